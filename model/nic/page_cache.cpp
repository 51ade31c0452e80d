#include "nic/page_cache.hpp"

#include <algorithm>
#include <utility>

#include "base/random.hpp"

namespace rvma {

std::size_t hash_value(const PageCache::Key& key) {
  return static_cast<std::size_t>(mix64(key.posting * 0x9e3779b97f4a7c15ULL + key.line));
}

PageCache::PageCache(std::uint32_t entries, std::unique_ptr<ReplacementPolicy> policy)
    : places_(std::max<std::uint32_t>(1, entries / kLinePages), std::move(policy)) {}

const PageCache::Line* PageCache::find(const Key& key) {
  // Packets of one message mostly stay on one line: no hashing for them.
  if (last_ == kNone || entries_[last_].key != key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    last_ = found->second;
  }
  places_.use(last_);
  return &entries_[last_].line;
}

void PageCache::insert(const Key& key, const Line& line) {
  // 1. The line is here already: new contents.
  if (find(key) != nullptr) {
    entries_[last_].line = line;
    return;
  }
  // 2. A free entry, else the one that the policy gives up.
  const CachePlaces::Taken taken = places_.fill();
  last_ = taken.place;
  if (taken.replaces) index_.erase(entries_[last_].key);
  if (last_ == entries_.size()) entries_.emplace_back();
  // 3. Fill it.
  entries_[last_] = {key, line};
  index_.emplace(key, last_);
}

}  // namespace rvma
