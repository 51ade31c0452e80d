#include "driver/pinned_memory.hpp"

namespace rvma {

unsigned PinnedMemory::class_of(std::uint64_t bytes) {
  unsigned shift = kSmallestShift;
  while ((std::uint64_t{1} << shift) < bytes) ++shift;
  return shift;
}

PhysicalAddress PinnedMemory::allocate(std::uint64_t bytes) {
  const unsigned shift = class_of(bytes);
  std::vector<PhysicalAddress>& free = list_of(shift);
  const std::uint64_t block = std::uint64_t{1} << shift;
  if (free.empty()) {
    const std::uint64_t page = frames_.page_bytes();
    if (block >= page) return frames_.allocate_contiguous(block);
    const std::uint64_t base = frames_.allocate_contiguous(page).value();
    // Backwards, so that blocks are handed out in the order of their addresses.
    for (std::uint64_t at = page; at > 0; at -= block) free.push_back(PhysicalAddress{base + at - block});
  }
  const PhysicalAddress taken = free.back();
  free.pop_back();
  return taken;
}

void PinnedMemory::free(PhysicalAddress block, std::uint64_t bytes) { list_of(class_of(bytes)).push_back(block); }

}  // namespace rvma
