#include "host/memory.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace rvma {

namespace {
/// Backing is taken from the machine in pieces of up to this size; the first of a memory are smaller, since thousands
/// of nodes touch a few pages each and huge pages of the machine make all of a piece resident.
constexpr std::size_t kSlabBytes = std::size_t{256} * 1024;

unsigned log2_of(std::uint64_t power) {
  unsigned shift = 0;
  while ((std::uint64_t{1} << shift) < power) ++shift;
  return shift;
}
}  // namespace

Memory::Memory(const sc_core::sc_module_name& name, SimContext& context, const HostConfig& config)
    : Component(name, context, config.core.clock.get()),
      page_bytes_(config.page->count()),
      page_shift_(log2_of(page_bytes_)),
      wakeup_(*this, "visible", [this] { on_wakeup(); }) {
  RVMA_ASSERT(page_bytes_ == std::uint64_t{1} << page_shift_, "host.page is a power of two");
  context.stats().add(path(), stats_);
}

/// Bytes that never became visible: their owner gets the transactions back.
Memory::~Memory() {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (pending_[i].transaction != nullptr) pending_[i].transaction->release();
  }
}

void Memory::read(PhysicalAddress address, void* to, std::uint64_t bytes) {
  settle();
  auto* out = static_cast<std::uint8_t*>(to);
  std::uint64_t at = address.value();
  while (bytes > 0) {
    const std::uint64_t offset = at & (page_bytes_ - 1);
    const std::uint64_t piece = std::min(bytes, page_bytes_ - offset);
    if (const Page* page = find_page(at >> page_shift_); page != nullptr && page->bytes != nullptr) {
      std::memcpy(out, page->bytes + offset, piece);
    } else {
      std::memset(out, 0, piece);
    }
    out += piece;
    at += piece;
    bytes -= piece;
  }
}

void Memory::write(PhysicalAddress address, const void* from, std::uint64_t bytes) {
  if (bytes == 0) return;
  settle();
  store(address.value(), static_cast<const std::uint8_t*>(from), bytes);
  trigger(address.value(), bytes);
}

void Memory::map_constant(PhysicalAddress address, const std::uint8_t* bytes) {
  RVMA_ASSERT((address.value() & (page_bytes_ - 1)) == 0 && address.value() < kInterruptWindow,
              "a whole page of memory");
  settle();
  Page& page = page_at(address.value() >> page_shift_);
  if (page.backing != nullptr) {
    std::memcpy(page.backing, bytes, page_bytes_);
  } else {
    page.bytes = bytes;
  }
  trigger(address.value(), page_bytes_);
}

void Memory::zero(PhysicalAddress address, std::uint64_t bytes) {
  settle();
  std::uint64_t at = address.value();
  for (std::uint64_t left = bytes; left > 0;) {
    const std::uint64_t offset = at & (page_bytes_ - 1);
    const std::uint64_t piece = std::min(left, page_bytes_ - offset);
    const std::uint64_t number = at >> page_shift_;
    const Page* page = find_page(number);
    if (page != nullptr && page->bytes != nullptr) std::memset(back_page(number, offset, piece) + offset, 0, piece);
    at += piece;
    left -= piece;
  }
  if (bytes > 0) trigger(address.value(), bytes);
}

void Memory::post(tlm::tlm_generic_payload& write, Time visible) {
  RVMA_ASSERT(visible >= now(), "a posted write becomes visible now or later");
  settle();
  PendingWrite pending;
  pending.visible = visible;
  pending.address = write.get_address();
  pending.bytes = write.get_data_length();
  const bool interrupt = pending.address >= kInterruptWindow;
  if (!interrupt) {
    if (write.get_data_ptr() == nullptr || pending.bytes == 0) return;
    if (write.has_mm()) {
      write.acquire();
      pending.transaction = &write;
    } else {
      pending.copy.assign(write.get_data_ptr(), write.get_data_ptr() + pending.bytes);
    }
  }
  if (interrupt) ++pending_interrupts_;
  if (interrupt || is_watched(pending.address, pending.bytes)) wakeup_.at(visible);
  pending_.insert_from_back(std::move(pending),
                            [](const PendingWrite& a, const PendingWrite& b) { return a.visible < b.visible; });
  stats_.pending_writes.observe(pending_.size());
}

std::uint64_t Memory::watch(PhysicalAddress address, std::uint64_t bytes, std::function<void()> changed) {
  settle();
  const Watch& added =
      watches_.emplace_back(Watch{++last_handle_, address.value(), address.value() + bytes, std::move(changed)});
  ++stats_.watches;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (!added.overlaps(pending_[i].address, pending_[i].bytes)) continue;
    wakeup_.at(pending_[i].visible);
    break;
  }
  return last_handle_;
}

void Memory::unwatch(std::uint64_t handle) {
  const auto has_handle = [handle](const auto& item) { return item.handle == handle; };
  watches_.erase(std::remove_if(watches_.begin(), watches_.end(), has_handle), watches_.end());
  due_.erase(std::remove_if(due_.begin(), due_.end(), has_handle), due_.end());
  // A callback may cancel a watch that is called behind it; the list under way keeps its length.
  for (Due& due : calling_) {
    if (due.handle == handle) due.changed = nullptr;
  }
  if (watches_.empty() && due_.empty() && pending_interrupts_ == 0) wakeup_.cancel();
}

void Memory::release_frame(PhysicalAddress address) {
  settle();
  Page* page = find_page(address.value() >> page_shift_);
  if (page == nullptr) return;
  if (page->backing != nullptr) {
    free_pages_.push_back(page->backing);
    --backed_pages_;
  }
  *page = Page{};
}

void Memory::settle_due() {
  const Time time = now();
  while (!pending_.empty() && pending_.front().visible <= time) {
    PendingWrite write = pending_.pop_front();
    apply(write);
  }
}

void Memory::apply(PendingWrite& write) {
  if (write.address >= kInterruptWindow) {
    --pending_interrupts_;
    ++stats_.interrupts;
    due_.push_back(Due{0, nullptr, Pid{static_cast<std::uint16_t>((write.address - kInterruptWindow) / 16)}});
    call_due_soon();
    return;
  }
  ++stats_.posted_writes;
  stats_.posted_bytes += write.bytes;
  const std::uint8_t* from = write.transaction != nullptr ? write.transaction->get_data_ptr() : write.copy.data();
  store(write.address, from, write.bytes);
  if (write.transaction != nullptr) write.transaction->release();
  trigger(write.address, write.bytes);
}

void Memory::store(std::uint64_t address, const std::uint8_t* from, std::uint64_t bytes) {
  RVMA_ASSERT(address + bytes <= kInterruptWindow && address + bytes >= address, "a write to memory stays in memory");
  while (bytes > 0) {
    const std::uint64_t offset = address & (page_bytes_ - 1);
    const std::uint64_t piece = std::min(bytes, page_bytes_ - offset);
    std::uint8_t* page = back_page(address >> page_shift_, offset, piece);
    std::memcpy(page + offset, from, piece);
    from += piece;
    address += piece;
    bytes -= piece;
  }
}

Memory::Page& Memory::page_at(std::uint64_t number) {
  std::unique_ptr<Page[]>& group = groups_[number >> kGroupBits];
  if (!group) group = std::make_unique<Page[]>(std::size_t{1} << kGroupBits);
  return group[number & ((1U << kGroupBits) - 1)];
}

std::uint8_t* Memory::take_backing() {
  if (free_pages_.empty()) {
    const std::size_t most = std::max<std::size_t>(1, kSlabBytes / page_bytes_);
    const std::size_t pages = std::clamp<std::size_t>(made_pages_, 1, most);
    // Not value-initialised: pages that are never used are never touched.
    slabs_.emplace_back(new std::uint8_t[pages * page_bytes_]);
    for (std::size_t i = pages; i-- > 0;) free_pages_.push_back(slabs_.back().get() + i * page_bytes_);
    made_pages_ += pages;
  }
  std::uint8_t* page = free_pages_.back();
  free_pages_.pop_back();
  stats_.backed_pages.observe(++backed_pages_);
  return page;
}

/// The page's backing; a new one gets what the page shows except for [offset, offset + bytes), which the caller writes.
std::uint8_t* Memory::back_page(std::uint64_t number, std::uint64_t offset, std::uint64_t bytes) {
  Page& page = page_at(number);
  if (page.backing != nullptr) return page.backing;
  page.backing = take_backing();
  const std::uint64_t end = offset + bytes;
  if (page.bytes == nullptr) {
    std::memset(page.backing, 0, offset);
    std::memset(page.backing + end, 0, page_bytes_ - end);
  } else {
    std::memcpy(page.backing, page.bytes, offset);
    std::memcpy(page.backing + end, page.bytes + end, page_bytes_ - end);
  }
  page.bytes = page.backing;
  return page.backing;
}

bool Memory::is_watched(std::uint64_t address, std::uint64_t bytes) const {
  return std::any_of(watches_.begin(), watches_.end(),
                     [&](const Watch& watch) { return watch.overlaps(address, bytes); });
}

/// Moves the watches that the write hits to the list of calls; they are made from the wake-up, never from within the
/// access that happened to apply the write.
void Memory::trigger(std::uint64_t address, std::uint64_t bytes) {
  for (std::size_t i = 0; i < watches_.size();) {
    if (!watches_[i].overlaps(address, bytes)) {
      ++i;
      continue;
    }
    ++stats_.watch_hits;
    due_.push_back(Due{watches_[i].handle, std::move(watches_[i].changed), Pid{}});
    watches_.erase(watches_.begin() + static_cast<std::ptrdiff_t>(i));
    call_due_soon();
  }
}

/// The wake-up itself looks at the list when it has settled, and again before it ends.
void Memory::call_due_soon() {
  if (!in_wakeup_) wakeup_.at(now());
}

/// Arms for the earliest pending write that somebody has to be told of.
void Memory::arm() {
  if (!due_.empty()) {
    wakeup_.at(now());
    return;
  }
  if (watches_.empty() && pending_interrupts_ == 0) {
    wakeup_.cancel();
    return;
  }
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const PendingWrite& write = pending_[i];
    if (write.address < kInterruptWindow && !is_watched(write.address, write.bytes)) continue;
    wakeup_.at(write.visible);
    return;
  }
}

void Memory::on_wakeup() {
  in_wakeup_ = true;
  settle();
  std::swap(calling_, due_);
  for (std::size_t i = 0; i < calling_.size(); ++i) {
    const std::function<void()> changed = std::move(calling_[i].changed);
    if (changed) {
      changed();
    } else if (calling_[i].handle == 0 && interrupt_) {
      interrupt_(calling_[i].pid);
    }
  }
  calling_.clear();
  in_wakeup_ = false;
  arm();
}

}  // namespace rvma
