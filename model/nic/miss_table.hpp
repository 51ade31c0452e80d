/// \file
/// Reads of host memory that somebody waits for: the bounded part of every cache that spills. Plain C++, no DMA in it.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/slot_table.hpp"
#include "base/units.hpp"

namespace rvma {

/// A miss is named by what is missing, and by a number that goes as a tag with its reads. Whoever else needs the same
/// joins it. Numbers are used again.
template <class Key, class Waiter>
class MissTable {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};

  struct Miss {
    Key key{};
    Time since;
    std::vector<Waiter> waiting;
  };

  std::size_t size() const { return by_key_.size(); }
  bool empty() const { return by_key_.empty(); }
  Index find(const Key& key) const {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? kNone : found->second;
  }
  /// A miss of `key`, of which there is none yet.
  Index open(const Key& key, Time since) {
    const Index index = misses_.take();
    misses_[index].key = key;
    misses_[index].since = since;
    const bool is_new = by_key_.emplace(key, index).second;
    RVMA_ASSERT(is_new, "two misses of one entry at a time");
    return index;
  }
  Miss& operator[](Index index) { return misses_[index]; }
  /// The miss is over; returns who waited, in the order in which they came.
  std::vector<Waiter> close(Index index) {
    by_key_.erase(misses_[index].key);
    misses_.give_back(index);
    return std::exchange(misses_[index].waiting, {});
  }

 private:
  SlotTable<Miss> misses_;
  boost::unordered_flat_map<Key, Index> by_key_;
};

}  // namespace rvma
