#include "driver/pinned_memory.hpp"

namespace rvma {

unsigned PinnedMemory::class_of(std::uint64_t bytes) {
  unsigned shift = kSmallestShift;
  while ((std::uint64_t{1} << shift) < bytes) ++shift;
  return shift;
}

PhysicalAddress PinnedMemory::allocate(std::uint64_t bytes) {
  const unsigned shift = class_of(bytes);
  Class& blocks = class_at(shift);
  if (!blocks.free.empty()) {
    const PhysicalAddress taken = blocks.free.back();
    blocks.free.pop_back();
    return taken;
  }
  const std::uint64_t block = std::uint64_t{1} << shift;
  if (blocks.next == blocks.end) {
    const std::uint64_t page = frames_.page_bytes();
    if (block >= page) return frames_.allocate_contiguous(block);
    blocks.next = frames_.allocate_contiguous(page).value();
    blocks.end = blocks.next + page;
  }
  blocks.next += block;
  return PhysicalAddress{blocks.next - block};
}

void PinnedMemory::free(PhysicalAddress block, std::uint64_t bytes) { class_at(class_of(bytes)).free.push_back(block); }

}  // namespace rvma
