#include "nic/page_cache.hpp"

#include <algorithm>

#include "base/random.hpp"

namespace rvma {

std::size_t hash_value(const PageCache::Key& key) {
  return static_cast<std::size_t>(mix64(key.posting * 0x9e3779b97f4a7c15ULL + key.line));
}

PageCache::PageCache(std::uint32_t entries) : most_lines_(std::max<std::size_t>(1, entries / kLinePages)) {}

const PageCache::Line* PageCache::find(const Key& key) {
  // Packets of one message mostly stay on one line: no hashing for them.
  if (newest_ != kNone && entries_[newest_].key == key) return &entries_[newest_].line;
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  unlink(found->second);
  link_newest(found->second);
  return &entries_[found->second].line;
}

void PageCache::insert(const Key& key, const Line& line) {
  // 1. The line is here already: new contents.
  if (find(key) != nullptr) {
    entries_[newest_].line = line;
    return;
  }
  // 2. A free entry, else the one that was used least recently.
  Index entry = oldest_;
  if (entries_.size() < most_lines_) {
    entry = static_cast<Index>(entries_.size());
    entries_.emplace_back();
  } else {
    unlink(entry);
    index_.erase(entries_[entry].key);
  }
  // 3. Fill it.
  entries_[entry].key = key;
  entries_[entry].line = line;
  index_.emplace(key, entry);
  link_newest(entry);
}

void PageCache::unlink(Index entry) {
  const Entry& old = entries_[entry];
  (old.newer == kNone ? newest_ : entries_[old.newer].older) = old.older;
  (old.older == kNone ? oldest_ : entries_[old.older].newer) = old.newer;
}

void PageCache::link_newest(Index entry) {
  entries_[entry].newer = kNone;
  entries_[entry].older = newest_;
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = entry;
  newest_ = entry;
}

}  // namespace rvma
