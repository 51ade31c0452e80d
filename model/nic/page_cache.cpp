#include "nic/page_cache.hpp"

#include <algorithm>
#include <utility>

#include "base/random.hpp"

namespace rvma {

std::size_t hash_value(const PageCache::Key& key) {
  return static_cast<std::size_t>(mix64(key.posting * 0x9e3779b97f4a7c15ULL + key.line));
}

PageCache::PageCache(std::uint32_t entries, std::unique_ptr<ReplacementPolicy> policy)
    : most_lines_(std::max<std::size_t>(1, entries / kLinePages)), policy_(std::move(policy)) {}

const PageCache::Line* PageCache::find(const Key& key) {
  // Packets of one message mostly stay on one line: no hashing for them.
  if (last_ == kNone || entries_[last_].key != key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    last_ = found->second;
  }
  policy_->used(last_);
  return &entries_[last_].line;
}

void PageCache::insert(const Key& key, const Line& line) {
  // 1. The line is here already: new contents.
  if (find(key) != nullptr) {
    entries_[last_].line = line;
    return;
  }
  // 2. A free entry, else the one that the policy gives up.
  if (entries_.size() < most_lines_) {
    last_ = static_cast<Index>(entries_.size());
    entries_.emplace_back();
  } else {
    last_ = policy_->victim([](Index /*entry*/) { return true; });
    policy_->freed(last_);
    index_.erase(entries_[last_].key);
  }
  // 3. Fill it.
  entries_[last_] = {key, line};
  index_.emplace(key, last_);
  policy_->filled(last_);
}

}  // namespace rvma
