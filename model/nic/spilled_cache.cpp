#include "nic/spilled_cache.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"

namespace rvma {
namespace {

/// Tags of reads: whether the head has come already.
constexpr std::uint64_t tag_of(std::uint32_t index, bool is_rest) {
  return (std::uint64_t{index} << 1U) | (is_rest ? 1U : 0U);
}

}  // namespace

SpilledCache::SpilledCache(SimContext& context, const std::string& path, const SpillConfig& config,
                           std::uint32_t head_bytes)
    : head_bytes_(head_bytes),
      may_spill_(config.spill),
      most_reads_(config.misses),
      area_{{}, head_bytes},
      places_(config.on_chip, make_replacement(config.policy, Random(context.seed(), path))),
      stats_(*config.widened_by) {
  context.stats().add(path, stats_);
  context.stats().add_level(path, "outstanding", stats_.outstanding,
                            [this]() -> std::uint64_t { return outstanding_; });
}

void SpilledCache::set_area(const SpillArea::Region& area) {
  RVMA_ASSERT(area.stride >= head_bytes_, "entries of host memory overlap");
  area_ = area;
}

bool SpilledCache::is_on_chip(Key key) const { return exists(key) && where_[key] != kInHostMemory; }

SpilledCache::Place& SpilledCache::place_of(Key key) {
  if (key >= where_.size()) where_.resize(key + std::size_t{1}, kNowhere);
  return where_[key];
}

// ------------------------------------------------------------------------------------------------- coming and going

void SpilledCache::add(Key key, Birth birth) {
  RVMA_ASSERT(!exists(key), "an entry is added twice");
  RVMA_ASSERT(!is_full(), "an entry is added that may not spill");
  if (birth == Birth::if_it_fits && !places_.has_free()) {
    ++stats_.spilled_at_once;
    spill(key);
    write(key);
    return;
  }
  fill(key, true);
}

void SpilledCache::remove(Key key) {
  RVMA_ASSERT(exists(key), "an entry is removed that does not exist");
  Place& place = where_[key];
  if (place == kInHostMemory) {
    --spilled_;
  } else {
    places_.free(place);
  }
  place = kNowhere;
}

void SpilledCache::spill(Key key) {
  place_of(key) = kInHostMemory;
  stats_.spilled.observe(++spilled_);
}

void SpilledCache::fill(Key key, bool changed) {
  const CachePlaces::Taken taken = places_.fill();
  if (taken.place == on_chip_.size()) on_chip_.emplace_back();
  OnChip& here = on_chip_[taken.place];
  if (taken.replaces) {
    ++stats_.evictions;
    spill(here.key);
    if (here.changed) {
      ++stats_.write_backs;
      write(here.key);
    }
  }
  here = {key, changed};
  place_of(key) = taken.place;
  stats_.resident.observe(places_.filled());
}

// -------------------------------------------------------------------------------------------------------------- using

bool SpilledCache::lookup(Key key) {
  RVMA_ASSERT(exists(key), "an entry is looked up that does not exist");
  const Place place = where_[key];
  if (place == kInHostMemory) return false;
  ++stats_.hits;
  places_.use(place);
  return true;
}

void SpilledCache::changed(Key key) {
  RVMA_ASSERT(exists(key), "an entry has changed that does not exist");
  const Place place = where_[key];
  if (place == kInHostMemory) {
    write(key);
  } else {
    on_chip_[place].changed = true;
  }
}

void SpilledCache::fetch(Key key, Wait wait, std::function<void()> done) {
  ++stats_.misses;
  Misses::Index index = misses_.find(key);
  const bool is_new = index == Misses::kNone;
  if (is_new) index = misses_.open(key, SimContext::now());
  misses_[index].waiting.push_back({wait, SimContext::now(), std::move(done)});
  if (is_new) ask(index);
}

void SpilledCache::prefetch(Key key) {
  if (is_on_chip(key) || misses_.find(key) != Misses::kNone) return;
  ++stats_.ahead;
  ask(misses_.open(key, SimContext::now()));
}

void SpilledCache::ask(Misses::Index index) {
  ++stats_.fetches;
  if (outstanding_ < most_reads_) {
    start(index);
  } else {
    queue_.push(index);
  }
}

void SpilledCache::start(Misses::Index index) {
  stats_.outstanding.observe(++outstanding_);
  misses_[index].since = SimContext::now();
  read(0, head_bytes_, index);
}

void SpilledCache::read(std::uint64_t offset, std::uint32_t bytes, Misses::Index index) {
  DmaRead from_host;
  from_host.from.add(PhysicalAddress{area_.base.value() + misses_[index].key * area_.stride + offset}, bytes);
  from_host.tag = tag_of(index, offset > 0);
  stats_.read_bytes += bytes;
  dma_->read(std::move(from_host), *this, SimContext::now());
}

void SpilledCache::write(Key key) {
  DmaWrite to_host;
  const std::uint32_t bytes = bytes_of(key);
  to_host.to.add(PhysicalAddress{area_.base.value() + key * area_.stride}, bytes);
  stats_.written_bytes += bytes;
  dma_->write(std::move(to_host), *this, SimContext::now());
}

void SpilledCache::dma_read_done(std::uint64_t tag) {
  const auto index = static_cast<Misses::Index>(tag >> 1U);
  const Key key = misses_[index].key;
  const bool is_away = exists(key) && where_[key] == kInHostMemory;
  // 1. The head tells whether there is more.
  const bool is_head = (tag & 1U) == 0;
  if (is_head && is_away && bytes_of(key) > head_bytes_) {
    read(head_bytes_, bytes_of(key) - head_bytes_, index);
    return;
  }
  // 2. It takes a place, unless it is gone, or came back another way, meanwhile.
  if (is_away) {
    --spilled_;
    fill(key, false);
  }
  // 3. The next read may start.
  const Time busy = SimContext::now() - misses_[index].since;
  stats_.fetch.occupy(Time::from_ps(busy.ps() / most_reads_), 1);
  --outstanding_;
  std::vector<Waiter> waiting = misses_.close(index);
  while (!queue_.empty() && outstanding_ < most_reads_) start(queue_.pop());
  // 4. Who waited goes on.
  for (Waiter& waiter : waiting) {
    waited_in(waiter.wait) += SimContext::now() - waiter.since;
    waiter.done();
  }
}

void SpilledCache::dma_written(std::uint64_t /*tag*/, Time /*entered*/, Time /*visible*/) {}

TimeSum& SpilledCache::waited_in(Wait wait) {
  switch (wait) {
    case Wait::to_send:
      return stats_.waited_in_window_ns;
    case Wait::to_decide:
      return stats_.waited_in_context_ns;
    case Wait::to_count:
      return stats_.waited_in_count_ns;
    case Wait::other:
      break;
  }
  return stats_.waited_otherwise_ns;
}

}  // namespace rvma
