/// \file
/// Host physical memory: sparse, and exact in time without an event for each write.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/component.hpp"
#include "host/config.hpp"
#include "host/interfaces.hpp"
#include "host/ring_queue.hpp"

namespace rvma {

struct MemoryStats {
  Counter posted_writes{"writes", "DMA writes that became visible"};
  Counter posted_bytes{"bytes", "bytes of DMA writes that became visible"};
  Counter watches{"watches", "monitors set on a range"};
  Counter watch_hits{"watches", "monitors that a write triggered"};
  Counter interrupts{"interrupts", "writes to the interrupt window"};
  Peak pending_writes{"writes", "most DMA writes on their way to visibility at once"};
  Peak backed_pages{"pages", "most pages that held data at once"};
  BOOST_DESCRIBE_CLASS(MemoryStats, (),
                       (posted_writes, posted_bytes, watches, watch_hits, interrupts, pending_writes, backed_pages), (),
                       ())
};

/// Pages of `host.page` bytes get backing at their first write and lose it by release_frame(); a page without backing
/// reads as zeros. Released backing is reused last-in first-out, so that a run touches little fresh memory. A page can
/// also show constant bytes that lie elsewhere; then it gets backing only when something else is written to it.
///
/// A posted write lies in a queue until an access at or after its visible time applies it, in (visible, call) order:
/// nobody can tell the difference, and no event is spent. Only a watch that a pending write overlaps, and a write to
/// the interrupt window, arm one wake-up for the visible time.
class Memory : public Component, public MemoryIf {
 public:
  Memory(const sc_core::sc_module_name& name, SimContext& context, const HostConfig& config);
  ~Memory() override;

  void read(PhysicalAddress address, void* to, std::uint64_t bytes) override;
  /// A core's store: visible at once.
  void write(PhysicalAddress address, const void* from, std::uint64_t bytes) override;
  /// A transaction without a memory manager is copied instead of acquired. A null data pointer (timing only) changes
  /// no byte and triggers no watch. A range may cross pages, but not the border to the interrupt window.
  void post(tlm::tlm_generic_payload& write, Time visible) override;
  std::uint64_t watch(PhysicalAddress address, std::uint64_t bytes, std::function<void()> changed) override;
  void unwatch(std::uint64_t handle) override;

  /// A core's store of a whole page (`address` is a multiple of the page) whose bytes lie at `bytes` as long as this
  /// memory lives: visible at once, and nothing is copied.
  void map_constant(PhysicalAddress address, const std::uint8_t* bytes);
  /// Sets bytes to zero without giving backing to pages that have none.
  void zero(PhysicalAddress address, std::uint64_t bytes) override;
  /// The page at `address` (a multiple of the page) reads as zeros from now on; its backing is reused.
  void release_frame(PhysicalAddress address);
  /// Called at the visible time of a write to the interrupt window, with the core it names.
  void on_interrupt(std::function<void(Pid)> handler) { interrupt_ = std::move(handler); }

  /// When the last write posted so far is visible. No event keeps a simulation going until then: whoever looks at
  /// memory after a run first lets time pass to here.
  Time drained_at() { return pending_.empty() ? now() : std::max(now(), pending_.back().visible); }

  std::uint64_t page_bytes() const { return page_bytes_; }
  std::size_t backed_pages() const { return backed_pages_; }
  /// Pages for which memory was ever taken from the machine.
  std::size_t made_pages() const { return made_pages_; }
  const MemoryStats& stats() const { return stats_; }

 private:
  struct PendingWrite {
    Time visible;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    tlm::tlm_generic_payload* transaction = nullptr;  ///< acquired; null: `copy` or an interrupt
    std::vector<std::uint8_t> copy;
  };
  struct Watch {
    std::uint64_t handle;
    std::uint64_t address;
    std::uint64_t end;
    std::function<void()> changed;
    bool overlaps(std::uint64_t from, std::uint64_t length) const { return from < end && address < from + length; }
  };
  /// What the wake-up has to call, in the order in which the writes became visible.
  struct Due {
    std::uint64_t handle = 0;         ///< of a watch; 0: an interrupt
    std::function<void()> changed{};  ///< of a watch
    Pid pid{};                        ///< of an interrupt
  };

  struct Page {
    const std::uint8_t* bytes = nullptr;
    std::uint8_t* backing = nullptr;  ///< where `bytes` lie; null: they are constant and somebody else's
  };

  void settle() {
    if (!pending_.empty() && pending_.front().visible <= now()) settle_due();
  }
  void settle_due();
  void apply(PendingWrite& write);
  void store(std::uint64_t address, const std::uint8_t* from, std::uint64_t bytes);
  /// Null if no page of its group was ever written.
  Page* find_page(std::uint64_t number) const {
    const auto group = groups_.find(number >> kGroupBits);
    return group == groups_.end() ? nullptr : &group->second[number & ((1U << kGroupBits) - 1)];
  }
  Page& page_at(std::uint64_t number);
  std::uint8_t* take_backing();
  std::uint8_t* back_page(std::uint64_t number, std::uint64_t offset, std::uint64_t bytes);
  bool is_watched(std::uint64_t address, std::uint64_t bytes) const;
  void trigger(std::uint64_t address, std::uint64_t bytes);
  void call_due_soon();
  void arm();
  void on_wakeup();

  std::uint64_t page_bytes_;
  unsigned page_shift_;
  /// Pages in groups of neighbours, which are never given up: frames come and go all the time, groups do not.
  static constexpr unsigned kGroupBits = 6;
  boost::unordered_flat_map<std::uint64_t, std::unique_ptr<Page[]>> groups_;
  std::vector<std::uint8_t*> free_pages_;
  std::vector<std::unique_ptr<std::uint8_t[]>> slabs_;
  std::size_t made_pages_ = 0;
  std::size_t backed_pages_ = 0;

  RingQueue<PendingWrite> pending_;  ///< by (visible, call)
  std::vector<Watch> watches_;       ///< by call
  std::vector<Due> due_;
  std::vector<Due> calling_;  ///< being called; a member so that its capacity is reused
  bool in_wakeup_ = false;
  std::uint64_t last_handle_ = 0;
  std::size_t pending_interrupts_ = 0;
  std::function<void(Pid)> interrupt_;
  MemoryStats stats_;
  Wakeup wakeup_;
};

}  // namespace rvma
