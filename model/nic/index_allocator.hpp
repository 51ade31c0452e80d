/// \file
/// Free numbers 0..capacity-1 of an on-chip store.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"

namespace rvma {

/// Hands out the number that was freed longest ago, and only once `kReuseDistance` others are free (or all numbers have
/// been used), so that what still speaks of an old holder (a completion on its way, an observer) seldom meets a new
/// one. Memory grows with the numbers in use, not with the capacity. O(1), no allocation once warm.
class IndexAllocator {
 public:
  explicit IndexAllocator(std::uint32_t capacity) : capacity_(capacity) {}

  bool available() const { return in_use() < capacity_; }
  std::uint32_t in_use() const { return made() - free_; }
  std::uint32_t available_count() const { return capacity_ - in_use(); }
  /// Numbers ever handed out are below this.
  std::uint32_t made() const { return static_cast<std::uint32_t>(next_.size()); }

  /// Legal only while available().
  std::uint32_t take() {
    if (made() < capacity_ && free_ < kReuseDistance) {
      next_.push_back(0);
      return made() - 1;
    }
    RVMA_ASSERT(free_ > 0, "no free number left");
    const std::uint32_t taken = oldest_;
    oldest_ = next_[taken];
    --free_;
    return taken;
  }
  void give_back(std::uint32_t number) {
    if (free_ == 0) {
      oldest_ = number;
    } else {
      next_[newest_] = number;
    }
    newest_ = number;
    ++free_;
  }

 private:
  static constexpr std::uint32_t kReuseDistance = 32;

  std::uint32_t capacity_;
  std::vector<std::uint32_t> next_;  ///< of a free number: the one that was freed after it
  std::uint32_t free_ = 0;
  std::uint32_t oldest_ = 0;
  std::uint32_t newest_ = 0;
};

}  // namespace rvma
