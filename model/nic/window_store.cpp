#include "nic/window_store.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "nic/window_store_state.hpp"

namespace rvma {

using store::Buffer;
using store::kNoBuffer;
using store::Placing;
using store::Window;
using store::WindowState;

namespace {

/// Bytes that the message takes in the window; one that wraps fits nowhere.
std::uint64_t length_in(const Window& window, const DataHeader& header) {
  const std::uint64_t length = header.message_length + window.overhead();
  return length < header.message_length ? std::numeric_limits<std::uint64_t>::max() : length;
}

}  // namespace

bool is_well_cut(const DataHeader& header, std::uint64_t mtu) {
  const std::uint64_t start = header.packet_index * mtu;
  if (header.message_length == 0) return header.packet_index == 0 && header.payload_length == 0;
  return start < header.message_length && header.payload_length == std::min(mtu, header.message_length - start);
}

// ------------------------------------------------------------------------------------------------------------ buckets

void WindowStore::Impl::append(Window& window, BufferId id) {
  if (window.newest != kNoBuffer) {
    buffers[window.newest].next = id;
  } else {
    window.oldest = id;
  }
  window.newest = id;
  const bool is_active = window.active == kNoBuffer;
  if (is_active) window.active = id;
  if (listener != nullptr) listener->descriptor_added(id, is_active);
  tell(&StoreListener::window_changed, buffers[id].window);
}

void WindowStore::Impl::add_counter(BufferId id) {
  buffers[id].has_counter = true;
  stats.counters_peak.observe(++counters_in_use);
  tell(&StoreListener::counter_added, id);
}

void WindowStore::Impl::drop_counter(BufferId id) {
  if (!std::exchange(buffers[id].has_counter, false)) return;
  --counters_in_use;
  tell(&StoreListener::counter_removed, id);
}

void WindowStore::Impl::free_buffer(BufferId id) {
  drop_counter(id);
  tell(&StoreListener::descriptor_removed, id);
  buffers[id] = Buffer{};
  buffer_ids.give_back(id.value());
}

void WindowStore::Impl::retire_active(Window& window) {
  Buffer& buffer = buffers[window.active];
  buffer.retired = true;
  buffer.epoch = Epoch{window.retired_epochs++};
  window.active = buffer.next;
  ++stats.epochs_retired;
  if (window.active != kNoBuffer) tell(&StoreListener::buffer_is_next, window.active);
  tell(&StoreListener::window_changed, buffer.window);
}

/// Whether retiring the active buffer would complete its epoch in the same step.
bool WindowStore::Impl::would_complete_at_once(const Window& window) const {
  return window.oldest == window.active && buffers[window.active].unfinished == 0;
}

/// Completes, in epoch order, the retired buffers at the front for which nothing is left to wait.
void WindowStore::Impl::complete_drained(Window& window, WindowId slot) {
  while (window.oldest != kNoBuffer) {
    const BufferId id = window.oldest;
    const Buffer& buffer = buffers[id];
    if (!buffer.retired || buffer.unfinished > 0) return;
    RVMA_ASSERT(buffer.epoch.value() == window.completed_epochs, "epochs complete in order");
    tell(&StoreListener::window_changed, slot);
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
    completion.window = slot;
    completion.buffer = id;
    completion.pid = window.pid;
    completion.mailbox = window.mailbox;
    completion.epoch = buffer.epoch;
    completion.head = buffer.descriptor.head;
    completion.length = buffer.delivered;
    completion.word = buffer.descriptor.word;
    completion.interrupt = (window.flags & kWindowInterrupt) != 0;
    completion.is_answer = (window.flags & kWindowAnswer) != 0;
    if (buffer.has_counter) tell(&StoreListener::counter_ends, id);
    due.push_back(completion);
    window.history.add({buffer.descriptor, completion.length, completion.epoch}, history_capacity);
    ++window.completed_epochs;
    ++stats.epochs_completed;
    window.oldest = buffer.next;
    if (window.oldest == kNoBuffer) window.newest = kNoBuffer;
    free_buffer(id);
    if (window.one_time && window.state == WindowState::open) expire(window, slot);
  }
}

/// The mailbox is free for a new window from now on; the slot when the table has forgotten it.
void WindowStore::Impl::expire(Window& window, WindowId slot) {
  window.state = WindowState::expired;
  slot_of.erase(window.mailbox_key());
  // Nobody has a second message for a get's window.
  if ((window.flags & kWindowAnswer) == 0) remember_closed(window);
  expired.push_back({slot, window.pid, window.mailbox});
}

void WindowStore::Impl::remember_closed(const Window& window) {
  ((window.flags & kWindowAnswer) != 0 ? closed_answers : closed).remember(window.mailbox_key());
}

/// A message bound to the buffer has ended, whole or cut off, and nothing of it is on the way.
void WindowStore::Impl::finish_message(Buffer& buffer) {
  const WindowId slot = buffer.window;
  Window& window = windows[slot];
  RVMA_ASSERT(buffer.generation == window.generation,
              "a slot is not used again while a message is bound to its window");
  --buffer.unfinished;
  --window.unfinished;
  // A retired buffer completes when no bound message is unfinished. What was delivered never decides.
  if (buffer.retired && buffer.unfinished == 0) complete_drained(window, slot);
  if (window.unfinished > 0) return;
  // A window that closes or is rewound is drained with its last bound message.
  if (window.state == WindowState::closing) finish_close(window);
  if (window.state == WindowState::rewinding) {
    const std::function<void()> drained = std::exchange(window.drained, nullptr);
    if (drained) drained();
  }
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

/// Window of the message, or why there is none. The context must be the packet's own, whatever slot the table named.
Outcome WindowStore::Impl::find_own_slot(const DataHeader& header, const WindowLookup& lookup, WindowId& slot) const {
  if (lookup.hit && lookup.window.index() < slots.made()) {
    const Window& window = windows[lookup.window];
    slot = lookup.window;
    if (window.holds(header) && window.is_serving()) return Outcome::pending;
    if (window.holds(header) && window.state == WindowState::closing) return Outcome::closed;
  }
  return miss_reason(header, lookup);
}

Outcome WindowStore::Impl::find_slot(const DataHeader& header, const WindowLookup& lookup, WindowId& slot) const {
  const Outcome reason = find_own_slot(header, lookup, slot);
  if (reason != Outcome::no_mailbox) return reason;
  // Nobody's: the process's catch-all window takes it.
  const auto catch_all = catch_all_of.find(header.destination_pid);
  if (catch_all == catch_all_of.end() || !windows[catch_all->second].is_serving()) return reason;
  slot = catch_all->second;
  return Outcome::pending;
}

Outcome WindowStore::Impl::miss_reason(const DataHeader& header, const WindowLookup& lookup) const {
  const MailboxKey key{header.destination_pid, header.mailbox};
  if (is_closed(key)) return Outcome::closed;
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
  const std::uint64_t length = length_in(window, header);
  Placing placing;
  placing.buffer = window.active;
  placing.offset = active.tail;
  // 1. It fits behind what is there.
  if (length <= active.descriptor.size - active.tail) return placing;
  // 2. It does not fit into an empty buffer.
  placing.refusal = Outcome::bounds;
  if (active.tail == 0) return placing;
  // 3. A next buffer takes it whole, or nothing happens.
  if (active.next != kNoBuffer) {
    if (length > buffers[active.next].descriptor.size) return placing;
    placing.refusal = Outcome::pending;
    placing.buffer = active.next;
    placing.offset = 0;
    placing.retire_active = true;
    return placing;
  }
  // 4. No next buffer: a buffer like the active one would take it, so the active one makes way.
  if (length > active.descriptor.size) return placing;
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
  if (buffer.has_counter) {
    tell(&StoreListener::counter_changed, placing.buffer);
  } else {
    add_counter(placing.buffer);
  }
  const std::uint64_t length = length_in(window, header);
  const std::uint64_t amount = window.threshold_type == ThresholdType::bytes ? length : 1;
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - buffer.reserved;
  buffer.reserved += std::min(amount, room);
  if (window.placement == Placement::managed) buffer.tail += length;
  ++buffer.unfinished;
  ++window.unfinished;
  ++window.activity;
  ++stats.messages_bound;
  if (window.is_catch_all()) ++stats.messages_caught;
}

void WindowStore::bind_all() { impl_->binds_all = true; }

BindAnswer WindowStore::bind(NodeId source, const DataHeader& header, const WindowLookup& lookup) {
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
  // 2. Window.
  if (const Outcome reason = store.find_slot(header, lookup, answer.window); reason != Outcome::pending) {
    answer.unidentified = reason == Outcome::busy;
    return refuse(reason);
  }
  Window& window = store.windows[answer.window];
  if (window.one_time && window.active == kNoBuffer) return refuse(Outcome::closed);
  // 3. Key (`stale` was decided by the delivery contexts before).
  if (window.key != 0 && window.key != header.key) return refuse(Outcome::bad_key);
  // 4. Empty bucket.
  if (window.active == kNoBuffer) return refuse(Outcome::no_buffer);
  // 5. Placement and bounds of the whole message.
  const Placing placing = store.placing_of(window, header);
  // 6. Room in the stores, and no rewind under way; nothing has been changed until here.
  const std::uint64_t overhead = window.overhead();
  const bool needs_binding = header.message_length > store.mtu || overhead > 0 || store.binds_all;
  const bool has_room = window.state == WindowState::open && store.has_room_for(window, placing, needs_binding);
  if (placing.refusal == Outcome::pending && !has_room) {
    if (needs_binding && !store.bindings.available()) ++store.binding_stats.refused;
    return refuse(Outcome::busy);
  }
  // 7. A managed misfit retires the active buffer: the only trace that a refusal may leave.
  if (placing.retire_active) {
    answer.retired = true;
    answer.retired_buffer = window.active;
    answer.retired_epoch = Epoch{window.retired_epochs};
    store.retire_active(window);
    store.complete_drained(window, answer.window);
  }
  if (placing.refusal != Outcome::pending) {
    store.tell_due(false);
    return refuse(placing.refusal);
  }
  // 8. Reserve; bind what has more packets to come.
  answer.epoch = Epoch{window.retired_epochs};
  answer.message_offset = placing.offset + overhead;
  answer.has_record = overhead > 0;
  store.reserve(window, placing, header);
  answer.place.buffer = placing.buffer;
  answer.place.offset = answer.message_offset + header.packet_index * store.mtu;
  if (needs_binding) {
    answer.place.has_binding = true;
    answer.place.binding = store.bindings.bind(source, header, placing.buffer, answer.message_offset);
    store.bindings[answer.place.binding].add_record(static_cast<std::uint32_t>(overhead));
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
  ++store.windows[store.buffers[entry.buffer].window].activity;
  place.buffer = entry.buffer;
  place.offset = entry.message_offset + header.packet_index * store.mtu;
  place.has_binding = true;
  place.binding = binding;
  return true;
}

// ------------------------------------------------------------------------------------------------------------ reading

ReadAnswer WindowStore::read(const DataHeader& header, const WindowLookup& lookup) const {
  const Impl& store = *impl_;
  ReadAnswer answer;
  const auto refuse = [&answer](Outcome reason) {
    answer.outcome = reason;
    return answer;
  };
  if (header.message_length != 0 || header.payload_length != 0 || header.packet_index != 0) {
    answer.malformed = true;
    return refuse(Outcome::bounds);
  }
  if (const Outcome reason = store.find_own_slot(header, lookup, answer.window); reason != Outcome::pending) {
    answer.unidentified = reason == Outcome::busy;
    return refuse(reason);
  }
  const Window& window = store.windows[answer.window];
  if (window.one_time && window.active == kNoBuffer) return refuse(Outcome::closed);
  const bool is_readable = (window.flags & kWindowReadable) != 0;
  if (!is_readable || (window.key != 0 && window.key != header.key)) return refuse(Outcome::bad_key);
  if (window.active == kNoBuffer) return refuse(Outcome::no_buffer);
  const std::uint64_t size = store.buffers[window.active].descriptor.size;
  if (header.offset > size || header.ask.length > size - header.offset) return refuse(Outcome::bounds);
  if (window.state != WindowState::open) return refuse(Outcome::busy);
  answer.buffer = window.active;
  return answer;
}

bool WindowStore::may_read(WindowId slot, BufferId buffer, std::uint64_t posting) const {
  const Window& window = impl_->windows[slot];
  if (!window.is_serving()) return false;
  if (impl_->buffers[buffer].descriptor.posting == posting) return true;
  for (std::size_t age = 0; age < window.history.size(); ++age) {
    if (window.history.at(age).descriptor.posting == posting) return true;
  }
  return false;
}

std::uint64_t WindowStore::activity(WindowId slot) const { return impl_->windows[slot].activity; }

const BufferDescriptor& WindowStore::buffer(BufferId buffer) const { return impl_->buffers[buffer].descriptor; }

// ----------------------------------------------------------------------------------------------------------- counting

bool WindowStore::ends_message(const PlacedPacket& packet) const {
  if (!packet.has_binding) return true;
  const Binding& entry = impl_->bindings[packet.binding];
  if (entry.cut_off) return entry.on_the_way == 1;
  return entry.on_the_way == 1 && entry.counted + packet.payload_length >= entry.total_length();
}

bool WindowStore::count(const PlacedPacket& packet) {
  Impl& store = *impl_;
  Buffer& buffer = store.buffers[packet.buffer];
  RVMA_ASSERT(buffer.unfinished > 0, "a counted packet belongs to a bound message");
  store.tell(&StoreListener::counter_changed, packet.buffer);
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
      RVMA_ASSERT(entry.counted <= entry.total_length(), "a message never counts more than its length");
      buffer.delivered += packet.payload_length;
      // A message ends with its last missing byte; of an empty one in a catch-all window, record and packet must come.
      if (entry.counted < entry.total_length() || entry.on_the_way > 0) return false;
    }
    store.bindings.release(packet.binding);
  } else if (store.windows[buffer.window].state == WindowState::rewinding) {
    whole = false;  // cut off on its way
    ++store.stats.messages_cut_off;
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
  Window& window = store.windows[buffer.window];
  CutOff answer;
  answer.window = buffer.window;
  answer.buffer = entry.buffer;
  // 1. What it has reserved and delivered.
  const std::uint64_t amount = window.threshold_type == ThresholdType::bytes ? entry.total_length() : 1;
  buffer.reserved -= std::min(amount, buffer.reserved);
  buffer.delivered -= entry.counted;
  entry.cut_off = true;
  ++store.stats.messages_cut_off;
  store.tell(&StoreListener::counter_changed, entry.buffer);
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

// ------------------------------------------------------------------------------------------------- what has to be here

void WindowStore::on_changes(StoreListener* listener) { impl_->listener = listener; }

WindowStore::Needs WindowStore::needs_of_first(const DataHeader& header, const WindowLookup& lookup) const {
  const Impl& store = *impl_;
  Needs needs;
  // 1. What bind() and read() refuse before they look at a buffer.
  const Outcome reason =
      header.is_get ? store.find_own_slot(header, lookup, needs.window) : store.find_slot(header, lookup, needs.window);
  if (reason != Outcome::pending || !is_well_cut(header, store.mtu)) return needs;
  const Window& window = store.windows[needs.window];
  if (window.active == kNoBuffer || (window.key != 0 && window.key != header.key)) return needs;
  // 2. The active buffer; a managed window's counter says where its messages end.
  needs.descriptors.push_back(window.active);
  if (header.is_get) return needs;
  const Placing placing = store.placing_of(window, header);
  const bool has_tail = window.placement == Placement::managed || placing.refusal == Outcome::pending;
  if (has_tail && store.buffers[window.active].has_counter) needs.counters.push_back(window.active);
  // 3. The next one, if the message does not fit: its size decides.
  if (window.placement == Placement::managed && (placing.retire_active || placing.refusal != Outcome::pending)) {
    const BufferId next = store.buffers[window.active].next;
    if (next != kNoBuffer) needs.descriptors.push_back(next);
  }
  return needs;
}

WindowStore::Needs WindowStore::needs_of_retirement(WindowId window) const {
  Needs needs;
  needs.window = window;
  const BufferId active = impl_->windows[window].active;
  if (active == kNoBuffer) return needs;
  needs.descriptors.push_back(active);
  if (impl_->buffers[active].has_counter) needs.counters.push_back(active);
  return needs;
}

std::optional<BufferId> WindowStore::bound_buffer(std::uint32_t binding) const {
  if (!impl_->bindings.contains(binding)) return std::nullopt;
  return impl_->bindings[binding].buffer;
}

WindowStoreStats& WindowStore::stats() { return impl_->stats; }
BindingStats& WindowStore::binding_stats() { return impl_->binding_stats; }

}  // namespace rvma
