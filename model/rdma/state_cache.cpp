#include "rdma/state_cache.hpp"

#include <utility>

#include "base/error.hpp"

namespace rvma {

StateCache::StateCache(Component& owner, const Parameters& p)
    : owner_(owner),
      area_(p.area),
      changes_(p.changes),
      most_fetches_(p.config.misses),
      places_(p.config.on_chip,
              make_replacement(p.config.policy, Random(owner.context().seed(), owner.path() + "." + p.name))) {
  owner.context().stats().add(owner.path() + "." + p.name, stats_);
}

void StateCache::create(std::uint32_t number) {
  ++entries_;
  stats_.entries.observe(entries_);
  if (const auto fetch = fetches_.find(number); fetch != fetches_.end()) fetch->second.is_wanted = true;
  bring_in(number);
}

void StateCache::erase(std::uint32_t number) {
  --entries_;
  if (const auto fetch = fetches_.find(number); fetch != fetches_.end()) fetch->second.is_wanted = false;
  const auto found = resident_.find(number);
  if (found == resident_.end()) return;
  places_.free(found->second);
  resident_.erase(found);
}

bool StateCache::find(std::uint32_t number) {
  const auto found = resident_.find(number);
  if (found == resident_.end()) {
    ++stats_.misses;
    return false;
  }
  ++stats_.hits;
  places_.use(found->second);
  return true;
}

void StateCache::fetch(std::uint32_t number, std::function<void()> done) {
  const auto [place, is_new] = fetches_.try_emplace(number);
  place->second.waiting.push_back(std::move(done));
  if (!is_new) return;
  place->second.since = owner_.now();
  if (under_way_ < most_fetches_) {
    start(number);
  } else {
    queue_.push(number);
  }
}

void StateCache::start(std::uint32_t number) {
  ++under_way_;
  ++stats_.fetches;
  DmaRead read;
  read.from.add(PhysicalAddress{area_ + std::uint64_t{number} * kRdmaEntryBytes}, kRdmaEntryBytes);
  read.tag = number;
  dma_->read(std::move(read), *this, owner_.now());
}

void StateCache::dma_read_done(std::uint64_t tag) {
  const auto number = static_cast<std::uint32_t>(tag);
  const auto found = fetches_.find(number);
  RVMA_ASSERT(found != fetches_.end(), "an entry came that nobody asked for");
  Fetch fetch = std::move(found->second);
  fetches_.erase(found);
  stats_.fetch_ns += owner_.now() - fetch.since;
  --under_way_;
  if (fetch.is_wanted) bring_in(number);
  while (under_way_ < most_fetches_ && !queue_.empty()) start(queue_.pop());
  for (const auto& done : fetch.waiting) done();
}

void StateCache::bring_in(std::uint32_t number) {
  if (resident_.contains(number)) return;
  const CachePlaces::Taken taken = places_.fill();
  if (taken.place >= held_.size()) held_.resize(taken.place + 1);
  if (taken.replaces) {
    const std::uint32_t gone = held_[taken.place];
    ++stats_.evictions;
    resident_.erase(gone);
    // Before the simulation starts nothing costs anything.
    if (changes_ && dma_ != nullptr) {
      ++stats_.write_backs;
      DmaWrite write;
      write.to.add(PhysicalAddress{area_ + std::uint64_t{gone} * kRdmaEntryBytes}, kRdmaEntryBytes);
      write.relaxed_ordering = true;
      dma_->write(std::move(write), *this, owner_.now());
    }
  }
  held_[taken.place] = number;
  resident_[number] = taken.place;
  stats_.resident.observe(resident_.size());
}

}  // namespace rvma
