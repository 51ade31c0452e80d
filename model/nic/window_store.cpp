#include "nic/window_store.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "nic/binding_store.hpp"
#include "nic/closed_memory.hpp"
#include "nic/index_allocator.hpp"

namespace rvma {

namespace {

constexpr BufferId kNoBuffer{std::numeric_limits<std::uint32_t>::max()};
/// A slot number is the translation table's 16-bit value.
constexpr std::uint32_t kMostSlots = 1U << 16U;

/// Grows by blocks and never moves what it holds.
template <class Id, class T>
class StableVector {
 public:
  T& operator[](Id id) { return blocks_[id.index() / kBlock][id.index() % kBlock]; }
  const T& operator[](Id id) const { return blocks_[id.index() / kBlock][id.index() % kBlock]; }
  void reach(std::size_t size) {
    while (blocks_.size() * kBlock < size) blocks_.push_back(std::make_unique<T[]>(kBlock));
  }

 private:
  static constexpr std::size_t kBlock = 8;
  std::vector<std::unique_ptr<T[]>> blocks_;
};

/// The last `capacity` completed epochs of a window; memory grows up to that.
class HistoryRing {
 public:
  void add(const WindowStore::CompletedBuffer& buffer, std::uint32_t capacity) {
    if (capacity == 0) return;
    if (entries_.size() < capacity) {
      entries_.push_back(buffer);
    } else {
      entries_[next_] = buffer;
      next_ = (next_ + 1) % capacity;
    }
  }
  std::size_t size() const { return entries_.size(); }
  /// `age` 0: the newest.
  const WindowStore::CompletedBuffer& at(std::size_t age) const {
    return entries_[(next_ + entries_.size() - 1 - age) % entries_.size()];
  }

 private:
  std::vector<WindowStore::CompletedBuffer> entries_;
  std::size_t next_ = 0;  ///< oldest entry
};

/// Descriptor and counter of one posted buffer. The counter (reserved, delivered, unfinished) is in use from the first
/// message bound to the buffer until its epoch completes.
struct Buffer {
  BufferDescriptor descriptor;
  SlotId slot;
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
  closing,  ///< refuses `closed`; bound messages are ending
  expired   ///< one-time window whose buffer has completed: waits for release
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
  std::uint64_t unfinished = 0;  ///< messages bound to any of its buffers and not counted whole
  HistoryRing history;
  std::function<void()> drained;

  MailboxKey mailbox_key() const { return {pid, mailbox}; }
  bool holds(const DataHeader& header) const { return mailbox == header.mailbox && pid == header.destination_pid; }
};

/// Where a message would go.
struct Placing {
  Outcome refusal = Outcome::pending;  ///< pending: fits
  BufferId buffer;
  std::uint64_t offset = 0;    ///< of the message within it
  bool retire_active = false;  ///< managed misfit
};

}  // namespace

bool is_well_cut(const DataHeader& header, std::uint64_t mtu) {
  const std::uint64_t start = header.packet_index * mtu;
  if (header.message_length == 0) return header.packet_index == 0 && header.payload_length == 0;
  return start < header.message_length && header.payload_length == std::min(mtu, header.message_length - start);
}

struct WindowStore::Impl {
  explicit Impl(const NicConfig& config)
      : mtu(config.mtu->count()),
        history_capacity(config.history),
        counter_capacity(config.counters.on_chip),
        slots(std::min<std::uint32_t>(config.windows.on_chip, kMostSlots)),
        buffer_ids(config.buffers.on_chip),
        bindings(config.binding.on_chip),
        closed(config.closed_memory) {}

  // -- Buckets
  void append(Window& window, BufferId id);
  void free_buffer(BufferId id);
  void retire_active(Window& window);
  void finish_message(Buffer& buffer);
  bool would_complete_at_once(const Window& window) const;
  void complete_drained(Window& window, SlotId slot);
  void expire(Window& window, SlotId slot);
  void finish_close(Window& window);

  // -- Binding
  Outcome miss_reason(const DataHeader& header, const LookupResult& lookup) const;
  Placing placing_of(const Window& window, const DataHeader& header) const;
  Placing steered(const Window& window, const DataHeader& header) const;
  Placing managed(const Window& window, const DataHeader& header) const;
  bool has_room_for(const Window& window, const Placing& placing, bool needs_binding) const;
  void reserve(Window& window, const Placing& placing, const DataHeader& header);

  /// Runs the callbacks of what has become due; always the last act of a public call.
  void tell_due(bool caller_takes_completions);

  std::uint64_t mtu;  ///< bytes
  std::uint32_t history_capacity;
  std::uint32_t counter_capacity;
  IndexAllocator slots;
  IndexAllocator buffer_ids;
  StableVector<SlotId, Window> windows;
  StableVector<BufferId, Buffer> buffers;
  BindingStore bindings;
  ClosedMemory closed;
  boost::unordered_flat_map<MailboxKey, SlotId> slot_of;  ///< allocated and open windows
  std::uint32_t counters_in_use = 0;
  std::uint64_t posts = 0;
  std::vector<Completion> due;
  std::vector<WindowStore::Expired> expired;
  std::function<void()> on_due;
  std::function<void()> on_expired;
  WindowStoreStats stats;
};

// ------------------------------------------------------------------------------------------------------------ buckets

void WindowStore::Impl::append(Window& window, BufferId id) {
  if (window.newest != kNoBuffer) {
    buffers[window.newest].next = id;
  } else {
    window.oldest = id;
  }
  window.newest = id;
  if (window.active == kNoBuffer) window.active = id;
}

void WindowStore::Impl::free_buffer(BufferId id) {
  Buffer& buffer = buffers[id];
  if (buffer.has_counter) --counters_in_use;
  buffer = Buffer{};
  buffer_ids.give_back(id.value());
}

void WindowStore::Impl::retire_active(Window& window) {
  Buffer& buffer = buffers[window.active];
  buffer.retired = true;
  buffer.epoch = Epoch{window.retired_epochs++};
  window.active = buffer.next;
  ++stats.epochs_retired;
}

/// Whether retiring the active buffer would complete its epoch in the same step.
bool WindowStore::Impl::would_complete_at_once(const Window& window) const {
  return window.oldest == window.active && buffers[window.active].unfinished == 0;
}

/// Completes, in epoch order, the retired buffers at the front for which nothing is left to wait.
void WindowStore::Impl::complete_drained(Window& window, SlotId slot) {
  while (window.oldest != kNoBuffer) {
    const BufferId id = window.oldest;
    const Buffer& buffer = buffers[id];
    if (!buffer.retired || buffer.unfinished > 0) return;
    RVMA_ASSERT(buffer.epoch.value() == window.completed_epochs, "epochs complete in order");
    if (buffer.broken) {
      // It holds the later ones back until the window closes, which gives it back without completion.
      if (window.state != WindowState::closing) return;
      ++window.completed_epochs;
      ++stats.buffers_returned;
      window.oldest = buffer.next;
      if (window.oldest == kNoBuffer) window.newest = kNoBuffer;
      free_buffer(id);
      continue;
    }
    Completion completion;
    completion.slot = slot;
    completion.buffer = id;
    completion.pid = window.pid;
    completion.mailbox = window.mailbox;
    completion.epoch = buffer.epoch;
    completion.head = buffer.descriptor.head;
    completion.length = buffer.delivered;
    completion.word = buffer.descriptor.word;
    completion.interrupt = (window.flags & kWindowInterrupt) != 0;
    due.push_back(completion);
    window.history.add({completion.head, completion.length, completion.epoch}, history_capacity);
    ++window.completed_epochs;
    ++stats.epochs_completed;
    window.oldest = buffer.next;
    if (window.oldest == kNoBuffer) window.newest = kNoBuffer;
    free_buffer(id);
    if (window.one_time && window.state == WindowState::open) expire(window, slot);
  }
}

/// The mailbox is free for a new window from now on; the slot when the table has forgotten it.
void WindowStore::Impl::expire(Window& window, SlotId slot) {
  window.state = WindowState::expired;
  slot_of.erase(window.mailbox_key());
  closed.remember(window.mailbox_key());
  expired.push_back({slot, window.pid, window.mailbox});
}

/// A message bound to the buffer has ended, whole or cut off, and nothing of it is on the way.
void WindowStore::Impl::finish_message(Buffer& buffer) {
  const SlotId slot = buffer.slot;
  Window& window = windows[slot];
  RVMA_ASSERT(buffer.generation == window.generation,
              "a slot is not used again while a message is bound to its window");
  --buffer.unfinished;
  --window.unfinished;
  // A retired buffer completes when no bound message is unfinished. What was delivered never decides.
  if (buffer.retired && buffer.unfinished == 0) complete_drained(window, slot);
  // A closing window is drained with its last bound message.
  if (window.state == WindowState::closing && window.unfinished == 0) finish_close(window);
}

/// All bound messages have ended: what was active goes back without completion.
void WindowStore::Impl::finish_close(Window& window) {
  if (window.oldest != kNoBuffer) {
    RVMA_ASSERT(window.oldest == window.newest && !buffers[window.oldest].retired,
                "only the buffer that was active is left of a drained bucket");
    free_buffer(window.oldest);
    window.oldest = window.newest = kNoBuffer;
  }
  const std::function<void()> drained = std::exchange(window.drained, nullptr);
  if (drained) drained();
}

void WindowStore::Impl::tell_due(bool caller_takes_completions) {
  if (!caller_takes_completions && !due.empty() && on_due) on_due();
  if (!expired.empty() && on_expired) on_expired();
}

// ------------------------------------------------------------------------------------------------------------ binding

Outcome WindowStore::Impl::miss_reason(const DataHeader& header, const LookupResult& lookup) const {
  const MailboxKey key{header.destination_pid, header.mailbox};
  if (closed.contains(key)) return Outcome::closed;
  if (lookup.sweeping) return Outcome::busy;
  // The table's answer was overtaken by an insertion: the sender asks again and meets the window.
  if (slot_of.contains(key)) return Outcome::busy;
  return Outcome::no_mailbox;
}

Placing WindowStore::Impl::placing_of(const Window& window, const DataHeader& header) const {
  return window.placement == Placement::steered ? steered(window, header) : managed(window, header);
}

Placing WindowStore::Impl::steered(const Window& window, const DataHeader& header) const {
  const std::uint64_t size = buffers[window.active].descriptor.size;
  Placing placing;
  placing.buffer = window.active;
  placing.offset = header.offset;
  if (header.offset > size || header.message_length > size - header.offset) placing.refusal = Outcome::bounds;
  return placing;
}

Placing WindowStore::Impl::managed(const Window& window, const DataHeader& header) const {
  const Buffer& active = buffers[window.active];
  Placing placing;
  placing.buffer = window.active;
  placing.offset = active.tail;
  // 1. It fits behind what is there.
  if (header.message_length <= active.descriptor.size - active.tail) return placing;
  // 2. It does not fit into an empty buffer.
  placing.refusal = Outcome::bounds;
  if (active.tail == 0) return placing;
  // 3. A next buffer takes it whole, or nothing happens.
  if (active.next != kNoBuffer) {
    if (header.message_length > buffers[active.next].descriptor.size) return placing;
    placing.refusal = Outcome::pending;
    placing.buffer = active.next;
    placing.offset = 0;
    placing.retire_active = true;
    return placing;
  }
  // 4. No next buffer: a buffer like the active one would take it, so the active one makes way.
  if (header.message_length > active.descriptor.size) return placing;
  placing.refusal = window.one_time ? Outcome::closed : Outcome::no_buffer;
  placing.retire_active = true;
  return placing;
}

bool WindowStore::Impl::has_room_for(const Window& window, const Placing& placing, bool needs_binding) const {
  if (needs_binding && !bindings.available()) return false;
  if (buffers[placing.buffer].has_counter || counters_in_use < counter_capacity) return true;
  // The misfit itself gives the counter of the buffer that it retires back, if nothing else holds that epoch.
  return placing.retire_active && would_complete_at_once(window) && buffers[window.active].has_counter;
}

void WindowStore::Impl::reserve(Window& window, const Placing& placing, const DataHeader& header) {
  Buffer& buffer = buffers[placing.buffer];
  if (!buffer.has_counter) {
    buffer.has_counter = true;
    stats.counters_peak.observe(++counters_in_use);
  }
  const std::uint64_t amount = window.threshold_type == ThresholdType::bytes ? header.message_length : 1;
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - buffer.reserved;
  buffer.reserved += std::min(amount, room);
  if (window.placement == Placement::managed) buffer.tail += header.message_length;
  ++buffer.unfinished;
  ++window.unfinished;
  ++stats.messages_bound;
}

BindAnswer WindowStore::bind(NodeId source, const DataHeader& header, const LookupResult& lookup) {
  Impl& store = *impl_;
  BindAnswer answer;
  const auto refuse = [&answer](Outcome reason) {
    answer.outcome = reason;
    return answer;
  };
  // 1. A packet that contradicts itself changes nothing.
  if (!is_well_cut(header, store.mtu)) {
    answer.malformed = true;
    return refuse(Outcome::bounds);
  }
  // 2. Window: the context must be the packet's own, whatever slot the table named.
  if (!lookup.hit || lookup.slot.index() >= store.slots.made()) return refuse(store.miss_reason(header, lookup));
  Window& window = store.windows[lookup.slot];
  if (!window.holds(header) || window.state != WindowState::open) {
    const bool is_closing = window.holds(header) && window.state == WindowState::closing;
    return refuse(is_closing ? Outcome::closed : store.miss_reason(header, lookup));
  }
  answer.slot = lookup.slot;
  if (window.one_time && window.active == kNoBuffer) return refuse(Outcome::closed);
  // 3. Key (`stale` was decided by the delivery contexts before).
  if (window.key != 0 && window.key != header.key) return refuse(Outcome::bad_key);
  // 4. Empty bucket.
  if (window.active == kNoBuffer) return refuse(Outcome::no_buffer);
  // 5. Placement and bounds of the whole message.
  const Placing placing = store.placing_of(window, header);
  // 6. Room in the stores; nothing has been changed until here.
  const bool needs_binding = header.message_length > store.mtu;
  if (placing.refusal == Outcome::pending && !store.has_room_for(window, placing, needs_binding)) {
    return refuse(Outcome::busy);
  }
  // 7. A managed misfit retires the active buffer: the only trace that a refusal may leave.
  if (placing.retire_active) {
    answer.retired = true;
    answer.retired_buffer = window.active;
    answer.retired_epoch = Epoch{window.retired_epochs};
    store.retire_active(window);
    store.complete_drained(window, lookup.slot);
  }
  if (placing.refusal != Outcome::pending) {
    store.tell_due(false);
    return refuse(placing.refusal);
  }
  // 8. Reserve; bind what has more packets to come.
  answer.epoch = Epoch{window.retired_epochs};
  answer.message_offset = placing.offset;
  store.reserve(window, placing, header);
  answer.place.buffer = placing.buffer;
  answer.place.offset = placing.offset + header.packet_index * store.mtu;
  if (needs_binding) {
    answer.place.has_binding = true;
    answer.place.binding = store.bindings.bind(source, header, placing.buffer, placing.offset);
    store.stats.bindings_peak.observe(store.bindings.in_use());
  }
  // 9. Retire at the threshold: no further message binds to this buffer.
  if (store.buffers[placing.buffer].reserved >= window.threshold) {
    if (answer.retired) {
      answer.retired_next = true;
    } else {
      answer.retired = true;
      answer.retired_buffer = placing.buffer;
      answer.retired_epoch = answer.epoch;
    }
    store.retire_active(window);
  }
  if (placing.retire_active) store.tell_due(false);
  return answer;
}

bool WindowStore::place(std::uint32_t binding, NodeId source, const DataHeader& header, BufferPlace& place) {
  Impl& store = *impl_;
  if (!store.bindings.contains(binding)) return false;
  Binding& entry = store.bindings[binding];
  if (!entry.agrees_with(source, header) || !is_well_cut(header, store.mtu)) return false;
  if (entry.cut_off || !entry.placed.mark(header.packet_index)) return false;
  ++entry.on_the_way;
  place.buffer = entry.buffer;
  place.offset = entry.message_offset + header.packet_index * store.mtu;
  place.has_binding = true;
  place.binding = binding;
  return true;
}

const BufferDescriptor& WindowStore::buffer(BufferId buffer) const { return impl_->buffers[buffer].descriptor; }

// ----------------------------------------------------------------------------------------------------------- counting

bool WindowStore::ends_message(const PlacedPacket& packet) const {
  if (!packet.has_binding) return true;
  const Binding& entry = impl_->bindings[packet.binding];
  if (entry.cut_off) return entry.on_the_way == 1;
  return entry.counted + packet.payload_length >= entry.message_length;
}

bool WindowStore::count(const PlacedPacket& packet) {
  Impl& store = *impl_;
  Buffer& buffer = store.buffers[packet.buffer];
  RVMA_ASSERT(buffer.unfinished > 0, "a counted packet belongs to a bound message");
  bool whole = true;
  if (packet.has_binding) {
    RVMA_ASSERT(store.bindings.contains(packet.binding), "a counted packet's binding lives until its message ends");
    Binding& entry = store.bindings[packet.binding];
    --entry.on_the_way;
    if (entry.cut_off) {
      if (entry.on_the_way > 0) return false;
      whole = false;
    } else {
      entry.counted += packet.payload_length;
      RVMA_ASSERT(entry.counted <= entry.message_length, "a message never counts more than its length");
      buffer.delivered += packet.payload_length;
      // A message ends with its last missing byte.
      if (entry.counted < entry.message_length) return false;
    }
    store.bindings.release(packet.binding);
  } else {
    // Bytes, in both threshold types: the length that the completion reports.
    buffer.delivered += packet.payload_length;
  }
  if (whole) ++store.stats.messages_counted;
  store.finish_message(buffer);
  store.tell_due(true);
  return whole;
}

WindowStore::CutOff WindowStore::cut_off(std::uint32_t binding) {
  Impl& store = *impl_;
  RVMA_ASSERT(store.bindings.contains(binding) && !store.bindings[binding].cut_off, "a bound message is cut off once");
  Binding& entry = store.bindings[binding];
  Buffer& buffer = store.buffers[entry.buffer];
  Window& window = store.windows[buffer.slot];
  CutOff answer;
  answer.slot = buffer.slot;
  answer.buffer = entry.buffer;
  // 1. What it has reserved and delivered.
  const std::uint64_t amount = window.threshold_type == ThresholdType::bytes ? entry.message_length : 1;
  buffer.reserved -= std::min(amount, buffer.reserved);
  buffer.delivered -= entry.counted;
  entry.cut_off = true;
  ++store.stats.messages_cut_off;
  // 2. A hole among appended messages cannot be filled: the buffer takes no more.
  const bool is_active = entry.buffer == window.active;
  if (is_active && window.placement == Placement::managed) {
    store.retire_active(window);
    answer.retired_now = true;
  }
  buffer.broken = buffer.broken || buffer.retired;
  answer.is_broken = buffer.broken;
  answer.epoch = buffer.epoch;
  // 3. What is on the way is waited for.
  if (entry.on_the_way == 0) {
    store.bindings.release(binding);
    store.finish_message(buffer);
    store.tell_due(false);
  }
  return answer;
}

void WindowStore::take_completions(std::vector<Completion>& out) {
  if (impl_->due.empty()) return;
  out.insert(out.end(), impl_->due.begin(), impl_->due.end());
  impl_->due.clear();
}

void WindowStore::on_completion_due(std::function<void()> due) { impl_->on_due = std::move(due); }

WindowStoreStats& WindowStore::stats() { return impl_->stats; }

// -------------------------------------------------------------------------------------------------------------- calls

WindowStore::WindowStore(const NicConfig& config) : impl_(std::make_unique<Impl>(config)) {}
WindowStore::~WindowStore() = default;

WindowStore::SlotAnswer WindowStore::allocate_window(const Descriptor& call, Pid pid) {
  Impl& store = *impl_;
  const bool one_time = call.opcode == Opcode::post_one_time_buffer;
  if (call.threshold == 0 || (one_time && call.length == 0)) return {Status::bad_argument, {}};
  if ((call.window_flags & kWindowCatchAll) != 0) return {Status::unsupported, {}};
  const MailboxKey key{pid, call.mailbox};
  if (store.slot_of.contains(key)) return {Status::exists, {}};
  if (!store.slots.available()) return {Status::full, {}};
  const SlotId slot{static_cast<std::uint16_t>(store.slots.take())};
  store.windows.reach(store.slots.made());
  Window& window = store.windows[slot];
  const std::uint32_t generation = window.generation + 1;
  window = Window{};
  window.state = WindowState::allocated;
  window.generation = generation;
  window.pid = pid;
  window.mailbox = call.mailbox;
  window.key = call.key;
  window.threshold = call.threshold;
  window.threshold_type = call.threshold_type;
  window.placement = call.placement;
  window.flags = call.window_flags;
  window.one_time = one_time;
  store.slot_of[key] = slot;
  store.stats.windows_peak.observe(store.slots.in_use());
  return {Status::ok, slot};
}

void WindowStore::open_window(SlotId slot) {
  Window& window = impl_->windows[slot];
  RVMA_ASSERT(window.state == WindowState::allocated, "a window is opened once, after its allocation");
  window.state = WindowState::open;
  impl_->closed.forget(window.mailbox_key());
  ++impl_->stats.windows_opened;
}

void WindowStore::abandon_window(SlotId slot) {
  Impl& store = *impl_;
  Window& window = store.windows[slot];
  RVMA_ASSERT(window.state == WindowState::allocated, "only a window that was never open is abandoned");
  while (window.oldest != kNoBuffer) {
    const BufferId id = window.oldest;
    window.oldest = store.buffers[id].next;
    store.free_buffer(id);
  }
  store.slot_of.erase(window.mailbox_key());
  window.state = WindowState::free;
  store.slots.give_back(slot.value());
}

WindowStore::SlotAnswer WindowStore::find_window(Pid pid, Mailbox mailbox) const {
  const MailboxKey key{pid, mailbox};
  const auto found = impl_->slot_of.find(key);
  if (found != impl_->slot_of.end()) {
    switch (impl_->windows[found->second].state) {
      case WindowState::open:
        return {Status::ok, found->second};
      case WindowState::closing:
        return {Status::closed, {}};
      default:
        break;
    }
  }
  return {impl_->closed.contains(key) ? Status::closed : Status::no_window, {}};
}

WindowStore::PostAnswer WindowStore::post_buffer(SlotId slot, const Descriptor& call) {
  Impl& store = *impl_;
  Window& window = store.windows[slot];
  RVMA_ASSERT(window.state == WindowState::open || window.state == WindowState::allocated,
              "a buffer is posted to a window that exists");
  if (call.length == 0) return {Status::bad_argument, {}};
  if (window.one_time && (window.oldest != kNoBuffer || window.retired_epochs > 0)) return {Status::bad_argument, {}};
  if (!store.buffer_ids.available()) return {Status::full, {}};
  const BufferId id{store.buffer_ids.take()};
  store.buffers.reach(store.buffer_ids.made());
  Buffer& buffer = store.buffers[id];
  buffer.slot = slot;
  buffer.generation = window.generation;
  buffer.descriptor.pid = window.pid;
  buffer.descriptor.head = call.local;
  buffer.descriptor.size = call.length;
  buffer.descriptor.page_list = call.page_list;
  buffer.descriptor.single_page = call.single_page;
  buffer.descriptor.word = call.completion;
  buffer.descriptor.posting = ++store.posts;
  store.append(window, id);
  ++store.stats.buffers_posted;
  store.stats.buffers_peak.observe(store.buffer_ids.in_use());
  return {Status::ok, id};
}

Status WindowStore::inc_epoch(SlotId slot, BufferId& retired, Epoch& epoch) {
  Window& window = impl_->windows[slot];
  if (window.active == kNoBuffer) return Status::no_buffer;
  retired = window.active;
  epoch = Epoch{window.retired_epochs};
  impl_->retire_active(window);
  impl_->complete_drained(window, slot);
  impl_->tell_due(false);
  return Status::ok;
}

std::uint64_t WindowStore::completed_epochs(SlotId slot) const { return impl_->windows[slot].completed_epochs; }

Status WindowStore::completed_buffers(SlotId slot, std::uint64_t n, std::vector<CompletedBuffer>& out) const {
  const HistoryRing& history = impl_->windows[slot].history;
  if (n > history.size()) return Status::history;
  for (std::size_t age = 0; age < n; ++age) out.push_back(history.at(age));
  return Status::ok;
}

void WindowStore::begin_close(SlotId slot, std::vector<BufferId>& returned, std::function<void()> drained) {
  Impl& store = *impl_;
  Window& window = store.windows[slot];
  RVMA_ASSERT(window.state == WindowState::open, "a window is closed once");
  // 1. From now on the mailbox refuses `closed`. It stays taken until the window is released.
  window.state = WindowState::closing;
  window.drained = std::move(drained);
  store.closed.remember(window.mailbox_key());
  // 2. The active and the unused buffers go back. The active one stays the bucket's last as long as it is written to.
  const BufferId active = window.active;
  const std::size_t returned_before = returned.size();
  if (active != kNoBuffer) {
    returned.push_back(active);
    for (BufferId id = std::exchange(store.buffers[active].next, kNoBuffer); id != kNoBuffer;) {
      const BufferId next = store.buffers[id].next;
      returned.push_back(id);
      store.free_buffer(id);
      id = next;
    }
    window.newest = active;
    window.active = kNoBuffer;
  }
  store.stats.buffers_returned += returned.size() - returned_before;
  // 3. Retired buffers that lack a message hold the later ones back no longer.
  store.complete_drained(window, slot);
  store.tell_due(false);
  // 4. Nothing bound: drained at once.
  if (window.unfinished == 0) store.finish_close(window);
}

void WindowStore::release_window(SlotId slot) {
  Impl& store = *impl_;
  Window& window = store.windows[slot];
  RVMA_ASSERT((window.state == WindowState::closing || window.state == WindowState::expired) && window.unfinished == 0,
              "a window is released after its bound messages have ended");
  if (window.state == WindowState::closing) store.slot_of.erase(window.mailbox_key());
  window.state = WindowState::free;
  window.history = HistoryRing{};
  store.slots.give_back(slot.value());
  ++store.stats.windows_released;
}

void WindowStore::take_expired(std::vector<Expired>& out) {
  out.insert(out.end(), impl_->expired.begin(), impl_->expired.end());
  impl_->expired.clear();
}

void WindowStore::on_expired(std::function<void()> expired) { impl_->on_expired = std::move(expired); }

}  // namespace rvma
