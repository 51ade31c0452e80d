#include "host/address_space.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/random.hpp"
#include "host/memory.hpp"

namespace rvma {

namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};
constexpr std::uint32_t kNoSlab = ~std::uint32_t{0};

bool is_power_of_two(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

unsigned log2_up(std::uint64_t value) {
  unsigned shift = 0;
  while ((std::uint64_t{1} << shift) < value) ++shift;
  return shift;
}

/// A bijection of the numbers of `bits` bits (an even number): adding a constant, multiplying by an odd number and
/// folding the upper half onto the lower are each reversible modulo 2^bits.
std::uint64_t scramble(std::uint64_t number, std::uint64_t key, unsigned bits) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::uint64_t x = (number + key) & mask;
  for (const std::uint64_t factor : {0x9e3779b97f4a7c15ULL, 0xbf58476d1ce4e5b9ULL}) {
    x ^= x >> bits / 2;
    x = (x * factor) & mask;
  }
  return x ^ x >> bits / 2;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------- frames

FrameAllocator::FrameAllocator(Bytes page, std::uint64_t seed)
    : page_bytes_(page.count()), seed_(mix64(seed)), next_contiguous_((std::uint64_t{1} << kFrameBits) * page.count()) {
  RVMA_ASSERT(is_power_of_two(page_bytes_), "host.page is a power of two");
}

/// The `count`-th frame in the scrambled order: groups in one order, the frames of each in another.
std::uint64_t FrameAllocator::frame_number(std::uint64_t count) const {
  const std::uint64_t group = scramble(count >> kGroupBits, seed_, kFrameBits - kGroupBits);
  return group << kGroupBits | scramble(count & ((std::uint64_t{1} << kGroupBits) - 1), seed_ ^ group, kGroupBits);
}

PhysicalAddress FrameAllocator::allocate() {
  if (!free_.empty()) {
    const PhysicalAddress frame = free_.back();
    free_.pop_back();
    return frame;
  }
  std::uint64_t number = 0;
  while (number == 0) number = frame_number(next_++);
  RVMA_ASSERT(next_ <= std::uint64_t{1} << kFrameBits, "physical memory is exhausted");
  return PhysicalAddress{number * page_bytes_};
}

PhysicalAddress FrameAllocator::allocate_contiguous(std::uint64_t bytes) {
  const PhysicalAddress first{next_contiguous_};
  next_contiguous_ += round_up(std::max<std::uint64_t>(bytes, 1), page_bytes_);
  RVMA_ASSERT(next_contiguous_ <= kInterruptWindow && next_contiguous_ > first.value(), "physical memory is exhausted");
  return first;
}

void FrameAllocator::free(PhysicalAddress frame) { free_.push_back(frame); }

// --------------------------------------------------------------------------------------------------- address space

struct AddressSpace::Impl {
  static constexpr unsigned kSmallestShift = 4;  ///< 16 B: a completion word
  static constexpr std::size_t kExactRuns = 64;  ///< runs up to so many pages have a list for each length
  /// Virtual page 0 lies here, so that no address is 0.
  static constexpr std::uint64_t kBase = std::uint64_t{1} << 40U;

  /// One virtual page.
  struct Page {
    std::uint64_t frame = kNone;
    std::uint64_t run_pages = 0;  ///< at the first page of an allocated range: its virtual pages; 0: not a first page
    std::uint32_t slab = kNoSlab;
    std::uint32_t run_class = 0;  ///< with run_pages
  };
  /// A page cut into blocks of one size.
  struct Slab {
    std::uint64_t page = 0;
    unsigned shift = 0;         ///< log2 of the block size
    std::uint32_t cut = 0;      ///< blocks handed out at least once
    std::uint32_t live = 0;     ///< blocks in use
    std::uint32_t partial = 0;  ///< place in the list of slabs with room
    std::vector<std::uint32_t> free;
  };

  Impl(Memory& memory_of_host, FrameAllocator& frame_allocator)
      : memory(memory_of_host),
        frames(frame_allocator),
        page_bytes(frame_allocator.page_bytes()),
        page_shift(log2_up(page_bytes)),
        partial_slabs(page_shift),
        empty_slabs(page_shift, 0) {
    RVMA_ASSERT(memory.page_bytes() == page_bytes, "memory and frames agree on the page");
  }

  Page& page_at(VirtualAddress address) { return pages[number_of(address)]; }
  std::uint64_t number_of(VirtualAddress address) const {
    const std::uint64_t number = (address.value() - kBase) >> page_shift;
    RVMA_ASSERT(address.value() >= kBase && number < pages.size(), "an address of this process");
    return number;
  }
  VirtualAddress address_of(std::uint64_t page) const { return VirtualAddress{kBase + (page << page_shift)}; }
  PhysicalAddress translate(VirtualAddress address) const {
    const Page& page = pages[number_of(address)];
    RVMA_ASSERT(page.frame != kNone, "a page that is allocated");
    return PhysicalAddress{page.frame + (address.value() & (page_bytes - 1))};
  }

  /// Lengths of virtual runs: exact up to kExactRuns pages, then eight steps a power of two, so that their lists stay
  /// few. Returns the list; raises `count` to the length of its runs.
  static std::uint32_t run_class(std::uint64_t& count) {
    if (count <= kExactRuns) return static_cast<std::uint32_t>(count);
    const unsigned shift = log2_up(count) - 4;
    const std::uint64_t steps = (count + (std::uint64_t{1} << shift) - 1) >> shift;
    count = steps << shift;
    return static_cast<std::uint32_t>(kExactRuns + shift * 16 + steps);
  }

  std::uint64_t allocate_run(std::uint64_t count, std::uint32_t& list) {
    list = run_class(count);
    if (list >= free_runs.size()) free_runs.resize(list + 1);
    if (!free_runs[list].empty()) {
      const std::uint64_t first = free_runs[list].back();
      free_runs[list].pop_back();
      return first;
    }
    const std::uint64_t first = pages.size();
    pages.resize(first + count);
    return first;
  }

  void give_frame(Page& page) { page.frame = frames.allocate().value(); }
  void take_frame(Page& page) {
    memory.release_frame(PhysicalAddress{page.frame});
    frames.free(PhysicalAddress{page.frame});
    page.frame = kNone;
  }

  VirtualAddress allocate_pages(std::uint64_t bytes, std::uint64_t align) {
    const std::uint64_t count = (bytes + page_bytes - 1) >> page_shift;
    const std::uint64_t align_pages = std::max<std::uint64_t>(1, align >> page_shift);
    std::uint32_t list = 0;
    const std::uint64_t run = allocate_run(count + align_pages - 1, list);
    // kBase is a multiple of every alignment below it; the frames go only to the pages that are used.
    const std::uint64_t base_page = kBase >> page_shift;
    const std::uint64_t first = round_up(base_page + run, align_pages) - base_page;
    for (std::uint64_t i = 0; i < count; ++i) give_frame(pages[first + i]);
    pages[first].run_pages = count;
    pages[first].run_class = list;
    if (align_pages > 1) aligned_runs.push_back({first, run});
    return address_of(first);
  }

  void free_pages(std::uint64_t first) {
    const std::uint64_t count = pages[first].run_pages;
    const std::uint32_t list = pages[first].run_class;
    for (std::uint64_t i = 0; i < count; ++i) take_frame(pages[first + i]);
    pages[first].run_pages = 0;
    std::uint64_t run = first;
    if (!aligned_runs.empty()) {
      const auto found = std::find_if(aligned_runs.begin(), aligned_runs.end(),
                                      [first](const AlignedRun& aligned) { return aligned.first == first; });
      if (found != aligned_runs.end()) {
        run = found->run;
        aligned_runs.erase(found);
      }
    }
    free_runs[list].push_back(run);
  }

  void add_partial(std::uint32_t number) {
    std::vector<std::uint32_t>& partial = partial_slabs[slabs[number].shift];
    slabs[number].partial = static_cast<std::uint32_t>(partial.size());
    partial.push_back(number);
  }
  void remove_partial(std::uint32_t number) {
    std::vector<std::uint32_t>& partial = partial_slabs[slabs[number].shift];
    partial[slabs[number].partial] = partial.back();
    slabs[partial.back()].partial = slabs[number].partial;
    partial.pop_back();
  }

  std::uint32_t new_slab(unsigned shift) {
    std::uint32_t number = static_cast<std::uint32_t>(slabs.size());
    if (free_slabs.empty()) {
      slabs.emplace_back();
    } else {
      number = free_slabs.back();
      free_slabs.pop_back();
    }
    Slab& slab = slabs[number];
    std::uint32_t list = 0;
    slab.page = allocate_run(1, list);
    slab.shift = shift;
    slab.cut = 0;
    slab.live = 0;
    slab.free.clear();
    give_frame(pages[slab.page]);
    pages[slab.page].slab = number;
    add_partial(number);
    ++empty_slabs[shift];
    return number;
  }

  VirtualAddress allocate_block(unsigned shift) {
    // 1. The slab used last that has room.
    std::vector<std::uint32_t>& partial = partial_slabs[shift];
    const std::uint32_t number = partial.empty() ? new_slab(shift) : partial.back();
    Slab& slab = slabs[number];
    if (slab.live == 0) --empty_slabs[shift];
    // 2. The block freed last, else a new one. A used block must read as zeros again.
    std::uint32_t block = slab.cut;
    if (slab.free.empty()) {
      ++slab.cut;
    } else {
      block = slab.free.back();
      slab.free.pop_back();
      memory.zero(PhysicalAddress{pages[slab.page].frame + (std::uint64_t{block} << shift)}, std::uint64_t{1} << shift);
    }
    // 3. A full slab leaves the list.
    if (++slab.live == page_bytes >> shift) remove_partial(number);
    return VirtualAddress{address_of(slab.page).value() + (std::uint64_t{block} << shift)};
  }

  void free_block(std::uint32_t number, VirtualAddress address) {
    Slab& slab = slabs[number];
    const std::uint64_t offset = address.value() & (page_bytes - 1);
    RVMA_ASSERT(slab.live > 0 && (offset & ((std::uint64_t{1} << slab.shift) - 1)) == 0,
                "free() takes what allocate() returned");
    slab.free.push_back(static_cast<std::uint32_t>(offset >> slab.shift));
    if (slab.live == page_bytes >> slab.shift) add_partial(number);
    if (--slab.live > 0) return;
    // One empty slab of each size is kept, so that a range that comes and goes does not move a page each time.
    if (++empty_slabs[slab.shift] == 1) return;
    --empty_slabs[slab.shift];
    remove_partial(number);
    take_frame(pages[slab.page]);
    pages[slab.page].slab = kNoSlab;
    free_runs[1].push_back(slab.page);
    free_slabs.push_back(number);
  }

  struct AlignedRun {
    std::uint64_t first;
    std::uint64_t run;
  };

  Memory& memory;
  FrameAllocator& frames;
  std::uint64_t page_bytes;
  unsigned page_shift;
  std::vector<Page> pages;
  std::vector<std::vector<std::uint64_t>> free_runs;  ///< by run_class
  std::vector<AlignedRun> aligned_runs;               ///< allocated ranges aligned to more than a page: rare
  std::vector<Slab> slabs;
  std::vector<std::uint32_t> free_slabs;
  std::vector<std::vector<std::uint32_t>> partial_slabs;  ///< by shift
  std::vector<std::uint32_t> empty_slabs;                 ///< by shift: slabs in the list without a live block
};

AddressSpace::AddressSpace(Memory& memory, FrameAllocator& frames) : impl_(std::make_unique<Impl>(memory, frames)) {}

AddressSpace::~AddressSpace() = default;

VirtualAddress AddressSpace::allocate(std::uint64_t bytes, std::uint64_t align) {
  RVMA_ASSERT(bytes > 0 && is_power_of_two(align) && align < Impl::kBase, "a size and a power of two");
  const unsigned shift = std::max(Impl::kSmallestShift, log2_up(std::max(bytes, align)));
  if (shift < impl_->page_shift) return impl_->allocate_block(shift);
  return impl_->allocate_pages(bytes, align);
}

void AddressSpace::free(VirtualAddress address) {
  const std::uint64_t number = impl_->number_of(address);
  const Impl::Page& page = impl_->pages[number];
  if (page.slab != kNoSlab) {
    impl_->free_block(page.slab, address);
    return;
  }
  RVMA_ASSERT(page.run_pages != 0 && address == impl_->address_of(number), "free() takes what allocate() returned");
  impl_->free_pages(number);
}

PhysicalAddress AddressSpace::translate(VirtualAddress address) const { return impl_->translate(address); }

void AddressSpace::pages(VirtualAddress address, std::uint64_t bytes, std::vector<PhysicalAddress>& out) const {
  out.clear();
  if (bytes == 0) return;
  const std::uint64_t first = impl_->number_of(address);
  const std::uint64_t last = impl_->number_of(VirtualAddress{address.value() + bytes - 1});
  for (std::uint64_t page = first; page <= last; ++page) out.push_back(impl_->translate(impl_->address_of(page)));
}

void AddressSpace::read(VirtualAddress address, void* to, std::uint64_t bytes) {
  auto* out = static_cast<std::uint8_t*>(to);
  while (bytes > 0) {
    const std::uint64_t piece = std::min(bytes, impl_->page_bytes - (address.value() & (impl_->page_bytes - 1)));
    impl_->memory.read(translate(address), out, piece);
    out += piece;
    address = VirtualAddress{address.value() + piece};
    bytes -= piece;
  }
}

void AddressSpace::write(VirtualAddress address, const void* from, std::uint64_t bytes) {
  const auto* in = static_cast<const std::uint8_t*>(from);
  while (bytes > 0) {
    const std::uint64_t piece = std::min(bytes, impl_->page_bytes - (address.value() & (impl_->page_bytes - 1)));
    impl_->memory.write(translate(address), in, piece);
    in += piece;
    address = VirtualAddress{address.value() + piece};
    bytes -= piece;
  }
}

void AddressSpace::map_constant(VirtualAddress page, const std::uint8_t* bytes) {
  impl_->memory.map_constant(translate(page), bytes);
}

std::uint64_t AddressSpace::page_bytes() const { return impl_->page_bytes; }

}  // namespace rvma
