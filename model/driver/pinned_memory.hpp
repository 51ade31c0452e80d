/// \file
/// Memory that the driver shares with the NIC: words and page lists, physically contiguous, recycled.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "host/address_space.hpp"

namespace rvma {

/// Blocks of 16 bytes and up, by powers of two, each aligned to its size up to a page. Grows with what is in use at a
/// time; nothing goes back to the frame allocator. Contents are whatever the last user left.
class PinnedMemory {
 public:
  explicit PinnedMemory(FrameAllocator& frames) : frames_(frames) {}

  PhysicalAddress allocate(std::uint64_t bytes);
  /// `bytes` as at allocation.
  void free(PhysicalAddress block, std::uint64_t bytes);

 private:
  static constexpr unsigned kSmallestShift = 4;
  static unsigned class_of(std::uint64_t bytes);

  FrameAllocator& frames_;
  struct Class {
    std::vector<PhysicalAddress> free;  ///< that were used before
    std::uint64_t next = 0;             ///< of the newest page, what was never handed out: [next, end)
    std::uint64_t end = 0;
  };
  Class& class_at(unsigned shift) {
    if (shift - kSmallestShift >= classes_.size()) classes_.resize(shift - kSmallestShift + 1);
    return classes_[shift - kSmallestShift];
  }
  std::vector<Class> classes_;  ///< as far as any was used: a node may have many drivers
};

}  // namespace rvma
