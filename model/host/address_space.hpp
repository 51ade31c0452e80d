/// \file
/// One process's virtual memory: ranges backed by pages that are scattered over physical memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "host/interfaces.hpp"

namespace rvma {

/// Hands out physical page frames: recently freed ones first (warm), otherwise in a scrambled order given by the seed,
/// so that neighbours in virtual memory are not neighbours in physical memory. One group of frames is used up before
/// the next, so that what is known of each frame can be kept in dense tables. Frames start as zeros. Address 0 is never
/// handed out.
class FrameAllocator {
 public:
  /// The scrambled frames are numbered below 2^kFrameBits; contiguous ranges lie above them.
  static constexpr unsigned kFrameBits = 34;
  static constexpr unsigned kGroupBits = 12;  ///< log2 of the frames of a group

  FrameAllocator(Bytes page, std::uint64_t seed);
  PhysicalAddress allocate();
  /// Physically contiguous and aligned to a page, for rings and words; never scattered, never freed.
  PhysicalAddress allocate_contiguous(std::uint64_t bytes);
  /// Takes back what allocate() returned.
  void free(PhysicalAddress frame);
  std::uint64_t page_bytes() const { return page_bytes_; }

 private:
  std::uint64_t frame_number(std::uint64_t count) const;

  std::uint64_t page_bytes_;
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
  std::uint64_t next_contiguous_ = 0;
  std::vector<PhysicalAddress> free_;
};

class AddressSpace {
 public:
  /// Both must outlive the address space; what is still allocated when it ends is not given back.
  AddressSpace(class Memory& memory, FrameAllocator& frames);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// `bytes` >= 1 of zeros at a multiple of `align` (a power of two). Small ranges (up to half a page) share pages with
  /// others of their size, and never cross a page. Freed addresses are reused last-in first-out.
  VirtualAddress allocate(std::uint64_t bytes, std::uint64_t align);
  /// Frees what allocate() returned. Nothing may be in flight to it.
  void free(VirtualAddress address);
  PhysicalAddress translate(VirtualAddress address) const;
  /// Physical page addresses (each a multiple of the page) that [address, address + bytes) touches, in order;
  /// replaces what `out` held.
  void pages(VirtualAddress address, std::uint64_t bytes, std::vector<PhysicalAddress>& out) const;
  /// Through the page tables, as the core would: used by programs and checks.
  void read(VirtualAddress address, void* to, std::uint64_t bytes);
  void write(VirtualAddress address, const void* from, std::uint64_t bytes);
  /// Writes a whole page whose bytes lie at `bytes` as long as the memory lives: nothing is copied.
  void map_constant(VirtualAddress page, const std::uint8_t* bytes);
  std::uint64_t page_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rvma
