// What calls do to windows: see window_store.hpp. Packets: window_store.cpp.
#include <functional>
#include <utility>

#include "base/error.hpp"
#include "nic/window_store.hpp"
#include "nic/window_store_state.hpp"

namespace rvma {

using store::Buffer;
using store::HistoryRing;
using store::kNoBuffer;
using store::Remembered;
using store::Window;
using store::WindowState;

// -------------------------------------------------------------------------------------------------------------- calls

WindowStore::WindowStore(const NicConfig& config) : impl_(std::make_unique<Impl>(config)) {}
WindowStore::WindowStore(const WindowStore& other) : impl_(std::make_unique<Impl>(*other.impl_)) {
  impl_->listener = nullptr;
}
WindowStore::~WindowStore() = default;

WindowStore::WindowAnswer WindowStore::allocate_window(const Descriptor& call, Pid pid) {
  Impl& store = *impl_;
  const bool one_time = call.opcode == Opcode::post_one_time_buffer;
  const bool catch_all = (call.window_flags & kWindowCatchAll) != 0;
  const bool may_be_empty = (call.window_flags & kWindowAnswer) != 0;
  if (call.threshold == 0 || (one_time && catch_all)) return {Status::bad_argument, {}};
  if (one_time && call.length == 0 && !may_be_empty) return {Status::bad_argument, {}};
  const MailboxKey key{pid, call.mailbox};
  if (store.slot_of.contains(key)) return {Status::exists, {}};
  if (catch_all && store.catch_all_of.contains(pid)) return {Status::exists, {}};
  if (!store.slots.available()) return {Status::full, {}};
  // Its context never leaves the NIC: one that took the last place would shut all other windows out.
  if (catch_all && store.catch_all_of.size() >= store.most_catch_alls) return {Status::full, {}};
  const WindowId slot{store.slots.take()};
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
  window.placement = catch_all ? Placement::managed : call.placement;
  window.flags = call.window_flags;
  window.one_time = one_time;
  store.slot_of[key] = slot;
  if (catch_all) store.catch_all_of[pid] = slot;
  store.stats.windows_peak.observe(store.slots.in_use());
  return {Status::ok, slot};
}

void WindowStore::open_window(WindowId slot) {
  Window& window = impl_->windows[slot];
  RVMA_ASSERT(window.state == WindowState::allocated, "a window is opened once, after its allocation");
  window.state = WindowState::open;
  impl_->closed.forget(window.mailbox_key());
  impl_->closed_answers.forget(window.mailbox_key());
  ++impl_->stats.windows_opened;
}

void WindowStore::abandon_window(WindowId slot) {
  Impl& store = *impl_;
  Window& window = store.windows[slot];
  RVMA_ASSERT(window.state == WindowState::allocated, "only a window that was never open is abandoned");
  while (window.oldest != kNoBuffer) {
    const BufferId id = window.oldest;
    window.oldest = store.buffers[id].next;
    store.free_buffer(id);
  }
  store.slot_of.erase(window.mailbox_key());
  if (window.is_catch_all()) store.catch_all_of.erase(window.pid);
  window.state = WindowState::free;
  store.slots.give_back(slot.value());
}

WindowStore::WindowAnswer WindowStore::find_window(Pid pid, Mailbox mailbox) const {
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
  return {impl_->is_closed(key) ? Status::closed : Status::no_window, {}};
}

WindowStore::WindowAnswer WindowStore::locate(Pid pid, Mailbox mailbox) const {
  const auto found = impl_->slot_of.find(MailboxKey{pid, mailbox});
  if (found == impl_->slot_of.end()) return {Status::no_window, {}};
  return {Status::ok, found->second};
}

MailboxKey WindowStore::key_of(WindowId slot) const { return impl_->windows[slot].mailbox_key(); }

bool WindowStore::may_leave(WindowId slot) const {
  const Window& window = impl_->windows[slot];
  return window.state == WindowState::open && window.unfinished == 0 && !window.is_catch_all();
}

bool WindowStore::is_closed(Pid pid, Mailbox mailbox) const { return impl_->is_closed(MailboxKey{pid, mailbox}); }

WindowStore::PostAnswer WindowStore::post_buffer(WindowId slot, const Descriptor& call) {
  Impl& store = *impl_;
  Window& window = store.windows[slot];
  RVMA_ASSERT(window.state == WindowState::open || window.state == WindowState::allocated,
              "a buffer is posted to a window that exists");
  if (call.length == 0 && (window.flags & kWindowAnswer) == 0) return {Status::bad_argument, {}};
  if (window.one_time && (window.oldest != kNoBuffer || window.retired_epochs > 0)) return {Status::bad_argument, {}};
  if (!store.buffer_ids.available()) return {Status::full, {}};
  const BufferId id{store.buffer_ids.take()};
  store.buffers.reach(store.buffer_ids.made());
  Buffer& buffer = store.buffers[id];
  buffer.window = slot;
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

Status WindowStore::inc_epoch(WindowId slot, BufferId& retired, Epoch& epoch) {
  Window& window = impl_->windows[slot];
  if (window.active == kNoBuffer) return Status::no_buffer;
  retired = window.active;
  epoch = Epoch{window.retired_epochs};
  impl_->retire_active(window);
  impl_->complete_drained(window, slot);
  impl_->tell_due(false);
  return Status::ok;
}

std::uint64_t WindowStore::completed_epochs(WindowId slot) const { return impl_->windows[slot].completed_epochs; }

Status WindowStore::completed_buffers(WindowId slot, std::uint64_t n, std::vector<CompletedBuffer>& out) const {
  const HistoryRing& history = impl_->windows[slot].history;
  if (n > history.size()) return Status::history;
  for (std::size_t age = 0; age < n; ++age) {
    const Remembered& epoch = history.at(age);
    out.push_back({epoch.descriptor.head, epoch.length, epoch.epoch});
  }
  return Status::ok;
}

void WindowStore::begin_close(WindowId slot, std::vector<BufferId>& returned, std::function<void()> drained) {
  Impl& store = *impl_;
  Window& window = store.windows[slot];
  RVMA_ASSERT(window.state == WindowState::open, "a window is closed once");
  // 1. From now on the mailbox refuses `closed`. It stays taken until the window is released.
  window.state = WindowState::closing;
  window.drained = std::move(drained);
  store.remember_closed(window);
  store.tell(&StoreListener::window_changed, slot);
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

void WindowStore::release_window(WindowId slot) {
  Impl& store = *impl_;
  Window& window = store.windows[slot];
  RVMA_ASSERT((window.state == WindowState::closing || window.state == WindowState::expired) && window.unfinished == 0,
              "a window is released after its bound messages have ended");
  if (window.state == WindowState::closing) store.slot_of.erase(window.mailbox_key());
  if (window.is_catch_all()) store.catch_all_of.erase(window.pid);
  window.state = WindowState::free;
  window.history = HistoryRing{};
  store.slots.give_back(slot.value());
  ++store.stats.windows_released;
}

// ------------------------------------------------------------------------------------------------------------- rewind

/// Every message that is bound to the window and not counted whole. A message of one packet has no entry: its packet is
/// on the way, and is not counted when it arrives.
void WindowStore::Impl::cut_off_all(WindowId slot, std::vector<WindowStore::CutMessage>& cut) {
  Window& window = windows[slot];
  for (std::uint32_t i = 0; i < bindings.made(); ++i) {
    if (!bindings.contains(i) || bindings[i].cut_off) continue;
    Binding& entry = bindings[i];
    Buffer& buffer = buffers[entry.buffer];
    if (!(buffer.window == slot)) continue;
    entry.cut_off = true;
    cut.push_back({entry.source, entry.message});
    ++stats.messages_cut_off;
    if (entry.on_the_way > 0) continue;
    bindings.release(i);
    --buffer.unfinished;
    --window.unfinished;
  }
}

void WindowStore::cut_off_window(WindowId slot, std::vector<CutMessage>& cut) {
  Impl& store = *impl_;
  store.cut_off_all(slot, cut);
  // A retired buffer that lacks a message never completes.
  Window& window = store.windows[slot];
  for (BufferId id = window.oldest; id != kNoBuffer && !cut.empty(); id = store.buffers[id].next) {
    store.buffers[id].broken = store.buffers[id].retired;
  }
}

/// The last `n` completed buffers stand before the others, and all that were retired or active are as if just posted,
/// but for what is on its way to them.
void WindowStore::Impl::bring_back(Window& window, WindowId slot, std::uint64_t n) {
  for (std::size_t age = 0; age < n; ++age) {
    const BufferId id{buffer_ids.take()};
    buffers.reach(buffer_ids.made());
    Buffer& buffer = buffers[id];
    buffer.descriptor = window.history.at(age).descriptor;
    buffer.window = slot;
    buffer.generation = window.generation;
    buffer.next = std::exchange(window.oldest, id);
    if (window.newest == kNoBuffer) window.newest = id;
    if (listener != nullptr) listener->descriptor_added(id, age + 1 == n);
  }
  stats.buffers_peak.observe(buffer_ids.in_use());
  window.history.drop_newest(n);
  window.completed_epochs -= n;
  window.retired_epochs = window.completed_epochs;
  const BufferId end = window.active == kNoBuffer ? kNoBuffer : buffers[window.active].next;
  for (BufferId id = window.oldest; id != end; id = buffers[id].next) {
    Buffer& buffer = buffers[id];
    buffer.reserved = buffer.tail = buffer.delivered = 0;
    buffer.epoch = Epoch{};
    buffer.retired = buffer.broken = false;
    if (buffer.has_counter) tell(&StoreListener::counter_changed, id);
    window.rewound.push_back({id, buffer.descriptor.word});
  }
  window.active = window.oldest;
  tell(&StoreListener::window_changed, slot);
}

WindowStore::RewindAnswer WindowStore::begin_rewind(WindowId slot, std::uint64_t n, Epoch oldest,
                                                    std::function<void()> drained) {
  Impl& store = *impl_;
  Window& window = store.windows[slot];
  RVMA_ASSERT(window.state == WindowState::open, "one process's calls are executed one after another");
  RewindAnswer answer;
  // 1. Whether it can be done.
  if (n > window.history.size() || (n > 0 && window.completed_epochs - n < oldest.value())) {
    answer.status = Status::history;
    return answer;
  }
  if (n > store.buffer_ids.available_count()) {
    answer.status = Status::full;
    return answer;
  }
  // 2. From now on the window refuses `busy`; what is bound is cut off, and what was filled stands at the front.
  window.state = WindowState::rewinding;
  store.cut_off_all(slot, answer.cut_off);
  store.bring_back(window, slot, n);
  ++store.stats.windows_rewound;
  store.stats.epochs_rewound += n;
  // 3. What is on its way is waited for.
  answer.drained = window.unfinished == 0;
  if (!answer.drained) window.drained = std::move(drained);
  return answer;
}

void WindowStore::rewound_buffers(WindowId slot, std::vector<RewoundBuffer>& out) const {
  const std::vector<RewoundBuffer>& rewound = impl_->windows[slot].rewound;
  out.insert(out.end(), rewound.begin(), rewound.end());
}

Epoch WindowStore::finish_rewind(WindowId slot) {
  Impl& store = *impl_;
  Window& window = store.windows[slot];
  RVMA_ASSERT(window.state == WindowState::rewinding && window.unfinished == 0,
              "a rewind is finished once it is drained");
  for (const RewoundBuffer& rewound : window.rewound) store.drop_counter(rewound.buffer);
  window.rewound = {};
  window.state = WindowState::open;
  return Epoch{window.completed_epochs};
}

// ------------------------------------------------------------------------------------------------------------ one-time

void WindowStore::take_expired(std::vector<Expired>& out) {
  out.insert(out.end(), impl_->expired.begin(), impl_->expired.end());
  impl_->expired.clear();
}

void WindowStore::on_expired(std::function<void()> expired) { impl_->on_expired = std::move(expired); }

}  // namespace rvma
