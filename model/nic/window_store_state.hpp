/// \file
/// What the window store consists of. Private to window_store.cpp (packets) and window_store_calls.cpp (calls).
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "nic/binding_store.hpp"
#include "nic/closed_memory.hpp"
#include "nic/index_allocator.hpp"
#include "nic/window_store.hpp"

namespace rvma {

namespace store {

constexpr BufferId kNoBuffer{std::numeric_limits<std::uint32_t>::max()};
/// Windows of a node whose contexts may spill to host memory.
constexpr std::uint32_t kMostWindows = 1U << 24U;
/// Posted buffers of a node whose descriptors and counters may spill.
constexpr std::uint32_t kMostBuffers = 1U << 24U;

/// Contexts that can be on chip at once: each has a slot and a place in the translation table.
inline std::uint32_t most_resident(const NicConfig& config) {
  const TableConfig& table = config.table;
  const std::uint64_t places = std::uint64_t{table.banks} * table.rows * table.slots + table.stash;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(places, config.windows.on_chip));
}

/// Grows by blocks and never moves what it holds.
template <class Id, class T>
class StableVector {
 public:
  StableVector() = default;
  StableVector(const StableVector& other) : blocks_(other.blocks_.size()) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i] = std::make_unique<T[]>(kBlock);
      std::copy_n(other.blocks_[i].get(), kBlock, blocks_[i].get());
    }
  }
  StableVector& operator=(const StableVector&) = delete;
  T& operator[](Id id) { return blocks_[id.index() / kBlock][id.index() % kBlock]; }
  const T& operator[](Id id) const { return blocks_[id.index() / kBlock][id.index() % kBlock]; }
  void reach(std::size_t size) {
    while (blocks_.size() * kBlock < size) blocks_.push_back(std::make_unique<T[]>(kBlock));
  }

 private:
  static constexpr std::size_t kBlock = 8;
  std::vector<std::unique_ptr<T[]>> blocks_;
};

/// A completed epoch and the buffer that held it: what a rewind needs to post the buffer again by itself.
struct Remembered {
  BufferDescriptor descriptor;
  std::uint64_t length = 0;
  Epoch epoch;
};

/// The last `capacity` completed epochs of a window; memory grows up to that.
class HistoryRing {
 public:
  void add(const Remembered& buffer, std::uint32_t capacity) {
    if (capacity == 0) return;
    if (size_ == capacity) {
      entries_[first_] = buffer;
      first_ = (first_ + 1) % capacity;
      return;
    }
    const std::size_t place = (first_ + size_) % capacity;
    if (place < entries_.size()) {
      entries_[place] = buffer;
    } else {
      entries_.push_back(buffer);
    }
    ++size_;
  }
  std::size_t size() const { return size_; }
  /// `age` 0: the newest.
  const Remembered& at(std::size_t age) const { return entries_[(first_ + size_ - 1 - age) % entries_.size()]; }
  /// The newest `n` are forgotten: they are to come again.
  void drop_newest(std::size_t n) { size_ -= n; }

 private:
  std::vector<Remembered> entries_;
  std::size_t first_ = 0;  ///< oldest entry
  std::size_t size_ = 0;
};

/// Descriptor and counter of one posted buffer. The counter (reserved, delivered, unfinished) is in use from the first
/// message bound to the buffer until its epoch completes.
struct Buffer {
  BufferDescriptor descriptor;
  WindowId window;
  std::uint32_t generation = 0;  ///< of the slot's window
  BufferId next = kNoBuffer;     ///< in its window's bucket
  Epoch epoch;                   ///< once retired
  std::uint64_t reserved = 0;    ///< bytes or ops bound
  std::uint64_t tail = 0;        ///< managed: bytes appended
  std::uint64_t delivered = 0;   ///< bytes counted
  std::uint32_t unfinished = 0;  ///< messages bound and not counted whole
  bool has_counter = false;
  bool retired = false;
  bool broken = false;  ///< retired, and a message that was bound to it was cut off
};

enum class WindowState : std::uint8_t {
  free,
  allocated,  ///< the table is being told
  open,
  rewinding,  ///< refuses `busy`; what is on its way to its buffers is let in
  closing,    ///< refuses `closed`; bound messages are ending
  expired     ///< one-time window whose buffer has completed: waits for release
};

/// Context of one slot. Its buffers form one list: retired and uncompleted ones, the active one, unused ones.
struct Window {
  WindowState state = WindowState::free;
  Pid pid;
  Mailbox mailbox;
  std::uint32_t generation = 0;  ///< how many windows the slot has held
  std::uint32_t key = 0;
  std::uint64_t threshold = 0;  ///< bytes or ops
  ThresholdType threshold_type = ThresholdType::bytes;
  Placement placement = Placement::steered;
  std::uint8_t flags = 0;  ///< WindowFlag bits
  bool one_time = false;
  BufferId oldest = kNoBuffer;
  BufferId active = kNoBuffer;
  BufferId newest = kNoBuffer;
  std::uint64_t retired_epochs = 0;  ///< also the active buffer's epoch
  std::uint64_t completed_epochs = 0;
  std::uint64_t activity = 0;    ///< packets bound or placed
  std::uint64_t unfinished = 0;  ///< messages bound to any of its buffers and not counted whole
  HistoryRing history;
  std::function<void()> drained;
  std::vector<RewoundBuffer> rewound;  ///< while rewinding: what came back, front first

  bool is_catch_all() const { return (flags & kWindowCatchAll) != 0; }
  /// Bytes that a message takes beyond its own.
  std::uint64_t overhead() const { return is_catch_all() ? kRecordBytes : 0; }
  MailboxKey mailbox_key() const { return {pid, mailbox}; }
  bool is_serving() const { return state == WindowState::open || state == WindowState::rewinding; }
  bool holds(const DataHeader& header) const { return mailbox == header.mailbox && pid == header.destination_pid; }
};

/// Where a message would go.
struct Placing {
  Outcome refusal = Outcome::pending;  ///< pending: fits
  BufferId buffer;
  std::uint64_t offset = 0;    ///< of the message within it
  bool retire_active = false;  ///< managed misfit
};

}  // namespace store

struct WindowStore::Impl {
  using Buffer = store::Buffer;
  using Placing = store::Placing;
  using Window = store::Window;

  explicit Impl(const NicConfig& config)
      : mtu(config.mtu->count()),
        history_capacity(config.history),
        counter_capacity(config.counters.spill ? store::kMostBuffers : std::uint32_t{config.counters.on_chip}),
        most_catch_alls(config.windows.spill ? store::most_resident(config) - 1U : store::kMostWindows),
        slots(config.windows.spill ? store::kMostWindows : std::uint32_t{config.windows.on_chip}),
        buffer_ids(config.buffers.spill ? store::kMostBuffers : std::uint32_t{config.buffers.on_chip}),
        bindings(config.binding.on_chip),
        closed(config.closed_memory),
        closed_answers(config.closed_memory) {}

  // -- Buckets
  void append(Window& window, BufferId id);
  void free_buffer(BufferId id);
  void retire_active(Window& window);
  void finish_message(Buffer& buffer);
  bool would_complete_at_once(const Window& window) const;
  void complete_drained(Window& window, WindowId slot);
  void expire(Window& window, WindowId slot);
  void remember_closed(const Window& window);
  bool is_closed(const MailboxKey& key) const { return closed.contains(key) || closed_answers.contains(key); }
  void finish_close(Window& window);

  // -- Rewinding
  void cut_off_all(WindowId slot, std::vector<WindowStore::CutMessage>& cut);
  void bring_back(Window& window, WindowId slot, std::uint64_t n);

  // -- Binding
  Outcome find_own_slot(const DataHeader& header, const WindowLookup& lookup, WindowId& slot) const;
  Outcome find_slot(const DataHeader& header, const WindowLookup& lookup, WindowId& slot) const;
  Outcome miss_reason(const DataHeader& header, const WindowLookup& lookup) const;
  Placing placing_of(const Window& window, const DataHeader& header) const;
  Placing steered(const Window& window, const DataHeader& header) const;
  Placing managed(const Window& window, const DataHeader& header) const;
  bool has_room_for(const Window& window, const Placing& placing, bool needs_binding) const;
  void reserve(Window& window, const Placing& placing, const DataHeader& header);

  /// Tells the listener, if there is one.
  template <class Subject>
  void tell(void (StoreListener::*event)(Subject), Subject subject) {
    if (listener != nullptr) (listener->*event)(subject);
  }
  void add_counter(BufferId id);
  void drop_counter(BufferId id);

  /// Runs the callbacks of what has become due; always the last act of a public call.
  void tell_due(bool caller_takes_completions);

  std::uint64_t mtu;  ///< bytes
  bool binds_all = false;
  std::uint32_t history_capacity;
  std::uint32_t counter_capacity;
  std::size_t most_catch_alls;
  IndexAllocator slots;
  IndexAllocator buffer_ids;
  store::StableVector<WindowId, Window> windows;
  store::StableVector<BufferId, Buffer> buffers;
  BindingStore bindings;
  /// Closed windows of gets, many and short-lived, do not push out those of the host.
  ClosedMemory closed;
  ClosedMemory closed_answers;
  boost::unordered_flat_map<MailboxKey, WindowId> slot_of;  ///< allocated and open windows
  boost::unordered_flat_map<Pid, WindowId> catch_all_of;    ///< catch-all windows: one register a process
  std::uint32_t counters_in_use = 0;
  std::uint64_t posts = 0;
  std::vector<Completion> due;
  std::vector<WindowStore::Expired> expired;
  std::function<void()> on_due;
  std::function<void()> on_expired;
  StoreListener* listener = nullptr;
  WindowStoreStats stats;
  BindingStats binding_stats;
};

}  // namespace rvma
