#include "nic/window_calls.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/error.hpp"

namespace rvma {

namespace {

constexpr std::uint32_t kListWordBytes = 8;
constexpr std::uint32_t kWordsPerEntry = 3;
constexpr std::uint32_t kCompletionWordBytes = 16;

// Tags of writes: lists need none, zeroed words name their rewind.
constexpr std::uint64_t kListTag = 0;
constexpr std::uint64_t rewind_tag(std::size_t index) { return index + 1; }

/// Byte `position` of the list (head, length, epoch) x n as it stands in memory.
std::uint8_t list_byte(const std::vector<WindowStore::CompletedBuffer>& list, std::uint64_t position) {
  const std::uint64_t word = position / kListWordBytes;
  const WindowStore::CompletedBuffer& entry = list[word / kWordsPerEntry];
  const std::uint64_t words[kWordsPerEntry] = {entry.head.value(), entry.length, entry.epoch.value()};
  return static_cast<std::uint8_t>(words[word % kWordsPerEntry] >> (8 * (position % kListWordBytes)));
}

}  // namespace

WindowCalls::WindowCalls(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, NodeId node,
                         WindowStore& windows, ContextCache& contexts, PayloadPool& payloads,
                         const ObserverList& observers)
    : Component(name, context, config.clock),
      counters("counters"),
      dma("dma"),
      delivery("delivery"),
      node_(node),
      windows_(windows),
      contexts_(contexts),
      payloads_(payloads),
      observers_(observers),
      execute_(*this, "execute", [this] { run(); }),
      answer_(*this, "answer", [this] { tell_delayed(); }),
      rewound_(*this, "rewound", [this] { finish_rewinds(); }) {
  context.stats().add(path(), stats_);
  context.stats().add(path(), windows.stats());
  context.stats().add(path().substr(0, path().rfind('.')) + ".bindings", windows.binding_stats());
  windows_.on_expired([this] { reap(); });
}

void WindowCalls::execute(const Descriptor& call, Pid pid, Cycles at, Done done) {
  if (pending_.empty() && clock().time_of(at) <= now()) {
    perform(call, pid, done);
    return;
  }
  pending_.push({call, pid, at, std::move(done)});
  execute_.at(std::max(now(), clock().time_of(pending_.front().at)));
}

void WindowCalls::run() {
  while (!pending_.empty() && clock().time_of(pending_.front().at) <= now()) {
    const Pending next = pending_.pop();
    perform(next.call, next.pid, next.done);
  }
  if (!pending_.empty()) execute_.at(clock().time_of(pending_.front().at));
}

void WindowCalls::perform(const Descriptor& call, Pid pid, const Done& done) {
  ++stats_.calls;
  // 1. Calls that need no window.
  switch (call.opcode) {
    case Opcode::init_window:
    case Opcode::post_one_time_buffer:
      open(call, pid, done);
      return;
    case Opcode::put:
    case Opcode::get:
    case Opcode::arm_interrupt:
      RVMA_ASSERT(false, "puts, gets and interrupt arming are no window calls");
      return;
    default:
      break;
  }
  perform_on_window(call, pid, done);
}

void WindowCalls::perform_on_window(const Descriptor& call, Pid pid, const Done& done, bool has_buffer) {
  // 2. Calls on an open window; one whose context is in host memory is brought on chip first.
  const WindowStore::WindowAnswer found = windows_.find_window(pid, call.mailbox);
  if (found.status != Status::ok) {
    answer(done, {found.status, 0});
    return;
  }
  if (!contexts_.is_resident(found.window)) {
    contexts_.acquire(found.window, pid, call.mailbox, [this, call, pid, done, has_buffer](bool is_here) {
      if (is_here) {
        perform_on_window(call, pid, done, has_buffer);
      } else {
        answer(done, {Status::full, 0});
      }
    });
    return;
  }
  switch (call.opcode) {
    case Opcode::post_buffer:
      answer(done, post_buffer(found.window, call, pid));
      return;
    case Opcode::inc_epoch:
      if (!has_buffer && waits_for_buffer(found.window, call, pid, done)) return;
      inc_epoch(found.window, done);
      return;
    case Opcode::get_epoch:
      answer(done, {Status::ok, windows_.completed_epochs(found.window)});
      return;
    case Opcode::get_buf_ptrs:
      answer(done, get_buf_ptrs(found.window, call));
      return;
    case Opcode::rewind:
      rewind(found.window, call, done);
      return;
    case Opcode::close_window:
      close(found.window, call, pid, done);
      return;
    default:
      RVMA_ASSERT(false, "unknown window call");
  }
}

bool WindowCalls::waits_for_buffer(WindowId window, const Descriptor& call, Pid pid, const Done& done) {
  if (descriptors_ == nullptr || counters_of_buffers_ == nullptr) return false;
  const WindowStore::Needs needs = windows_.needs_of_retirement(window);
  auto pending = std::make_shared<std::size_t>(0);
  std::vector<std::pair<SpilledCache*, std::uint32_t>> missing;
  for (const BufferId buffer : needs.descriptors) {
    if (!descriptors_->lookup(buffer.value())) missing.emplace_back(descriptors_, buffer.value());
  }
  for (const BufferId buffer : needs.counters) {
    if (!counters_of_buffers_->lookup(buffer.value())) missing.emplace_back(counters_of_buffers_, buffer.value());
  }
  *pending = missing.size();
  for (const auto& [cache, entry] : missing) {
    cache->fetch(entry, SpilledCache::Wait::other, [this, call, pid, done, pending] {
      if (--*pending == 0) perform_on_window(call, pid, done, true);
    });
  }
  return !missing.empty();
}

void WindowCalls::open(const Descriptor& call, Pid pid, const Done& done) {
  // 1. A context, and for a one-time window its buffer, before anybody can see the window.
  const WindowStore::WindowAnswer allocated = windows_.allocate_window(call, pid);
  if (allocated.status != Status::ok) {
    answer(done, {allocated.status, 0});
    return;
  }
  BufferId buffer;
  if (call.opcode == Opcode::post_one_time_buffer) {
    const WindowStore::PostAnswer posted = windows_.post_buffer(allocated.window, call);
    if (posted.status != Status::ok) {
      windows_.abandon_window(allocated.window);
      answer(done, {posted.status, 0});
      return;
    }
    buffer = posted.buffer;
  }
  // 2. The table learns the mailbox; then the window is open.
  contexts_.install(allocated.window, pid, call.mailbox,
                    [this, call, pid, slot = allocated.window, buffer, done](TableStatus status) {
                      opened(call, pid, slot, buffer, status, done);
                    });
}

void WindowCalls::opened(const Descriptor& call, Pid pid, WindowId slot, BufferId buffer, TableStatus status,
                         const Done& done) {
  if (status != TableStatus::ok) {
    ++stats_.table_refusals;
    windows_.abandon_window(slot);
    answer(done, {Status::full, 0});
    return;
  }
  windows_.open_window(slot);
  observers_.tell([&](NicObserver& observer) {
    observer.window_opened(node_, pid, slot, call, now());
    if (call.opcode == Opcode::post_one_time_buffer) observer.buffer_posted(node_, pid, slot, buffer, call, now());
  });
  answer(done, {});
}

CallAnswer WindowCalls::post_buffer(WindowId slot, const Descriptor& call, Pid pid) {
  const WindowStore::PostAnswer posted = windows_.post_buffer(slot, call);
  if (posted.status == Status::ok) {
    observers_.tell(
        [&](NicObserver& observer) { observer.buffer_posted(node_, pid, slot, posted.buffer, call, now()); });
  }
  return {posted.status, 0};
}

void WindowCalls::inc_epoch(WindowId slot, const Done& done) {
  BufferId retired;
  Epoch epoch;
  const Status status = windows_.inc_epoch(slot, retired, epoch);
  if (status != Status::ok) {
    answer(done, {status, 0});
    return;
  }
  observers_.tell([&](NicObserver& observer) { observer.epoch_retired(node_, slot, retired, epoch, true, now()); });
  answer_behind_completions(done);
}

CallAnswer WindowCalls::get_buf_ptrs(WindowId slot, const Descriptor& call) {
  std::vector<WindowStore::CompletedBuffer> list;
  const Status status = windows_.completed_buffers(slot, call.threshold, list);
  if (status != Status::ok) return {status, 0};
  write_list(call.completion, list);
  return {Status::ok, list.size()};
}

void WindowCalls::write_list(PhysicalAddress to, const std::vector<WindowStore::CompletedBuffer>& list) {
  const std::uint64_t total = list.size() * kWordsPerEntry * kListWordBytes;
  for (std::uint64_t sent = 0; sent < total;) {
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(total - sent, payloads_.buffer_bytes()));
    DmaWrite write;
    write.payload = payloads_.acquire(bytes);
    for (std::uint32_t i = 0; i < bytes; ++i) write.payload->data()[i] = list_byte(list, sent + i);
    write.to.add(PhysicalAddress{to.value() + sent}, bytes);
    dma->write(std::move(write), *this, now());
    sent += bytes;
  }
}

void WindowCalls::rewind(WindowId slot, const Descriptor& call, const Done& done) {
  // 1. A place for what has to be known until the answer.
  std::size_t index = 0;
  while (index < rewinds_.size() && !rewinds_[index].over) ++index;
  // 2. It takes effect here, between two packets.
  const WindowStore::RewindAnswer begun =
      windows_.begin_rewind(slot, call.threshold, Epoch{call.length}, [this, index] { rewind_drained(index); });
  if (begun.status != Status::ok) {
    answer(done, {begun.status, 0});
    return;
  }
  if (index == rewinds_.size()) rewinds_.emplace_back();
  Rewind& started = rewinds_[index];
  started = Rewind{};
  started.window = slot;
  started.words = std::max<std::uint64_t>(call.threshold, 1);
  started.done = done;
  // 3. Whoever knows of the messages that are cut off.
  observers_.tell([&](NicObserver& observer) { observer.window_rewinding(node_, slot, now()); });
  for (const WindowStore::CutMessage& message : begun.cut_off) {
    delivery->withdraw(message.source, message.message, now());
  }
  if (begun.drained) rewind_drained(index);
}

/// All payload for the buffers is in the posted channel: zeros go behind it, and behind the completion words.
void WindowCalls::rewind_drained(std::size_t index) {
  Rewind& drained = rewinds_[index];
  drained.draining = false;
  std::vector<RewoundBuffer> buffers;
  windows_.rewound_buffers(drained.window, buffers);
  drained.words = std::min<std::uint64_t>(drained.words, buffers.size());
  drained.pending = drained.words;
  const Time behind = counters->flush_completions(now());
  drained.visible = std::max(behind, now());
  for (std::uint64_t i = 0; i < drained.words; ++i) {
    DmaWrite zero;
    zero.to.add(buffers[i].word, kCompletionWordBytes);
    zero.is_word = true;
    zero.tag = rewind_tag(index);
    dma->write(std::move(zero), *this, behind);
  }
  if (drained.words == 0) rewound_.at(drained.visible);
}

void WindowCalls::finish_rewinds() {
  for (std::size_t i = 0; i < rewinds_.size(); ++i) {
    Rewind& rewind = rewinds_[i];
    if (rewind.over || rewind.draining || rewind.pending > 0) continue;
    if (rewind.visible > now()) {
      rewound_.at(rewind.visible);
      continue;
    }
    rewind.over = true;
    const WindowId slot = rewind.window;
    const Done done = std::exchange(rewind.done, nullptr);
    std::vector<RewoundBuffer> buffers;
    windows_.rewound_buffers(slot, buffers);
    const Epoch epoch = windows_.finish_rewind(slot);
    observers_.tell([&](NicObserver& observer) { observer.window_rewound(node_, slot, epoch, buffers, now()); });
    answer(done, {Status::ok, epoch.value()});
  }
}

void WindowCalls::close(WindowId slot, const Descriptor& call, Pid pid, const Done& done) {
  std::vector<BufferId> returned;
  windows_.begin_close(slot, returned, [this, slot, pid, mailbox = call.mailbox, done] {
    // Drained: the table forgets the mailbox, then the slot may be used again. Completions of the drained epochs are
    // written before the answer is.
    contexts_.remove(slot, pid, mailbox, [this, slot, done] {
      windows_.release_window(slot);
      answer_behind_completions(done);
    });
  });
  observers_.tell([&](NicObserver& observer) { observer.window_closed(node_, slot, returned, now()); });
}

/// Windows that have closed themselves leave the table; their mailbox was free again at once, because the table
/// executes commands in order.
void WindowCalls::reap() {
  expired_.clear();
  windows_.take_expired(expired_);
  for (const WindowStore::Expired& window : expired_) {
    ++stats_.expired;
    contexts_.remove(window.window, window.pid, window.mailbox, [this, slot = window.window] {
      windows_.release_window(slot);
      observers_.tell([&](NicObserver& observer) { observer.window_closed(node_, slot, {}, now()); });
    });
  }
}

void WindowCalls::answer(const Done& done, const CallAnswer& what) {
  if (what.status != Status::ok) ++stats_.failed;
  done(what);
}

void WindowCalls::answer_behind_completions(const Done& done) {
  const Time behind = counters->flush_completions(now());
  if (behind <= now() && delayed_.empty()) {
    answer(done, {});
    return;
  }
  delayed_.push({behind, done});
  answer_.at(delayed_.front().at);
}

void WindowCalls::tell_delayed() {
  while (!delayed_.empty() && delayed_.front().at <= now()) answer(delayed_.pop().done, {});
  if (!delayed_.empty()) answer_.at(delayed_.front().at);
}

void WindowCalls::dma_written(std::uint64_t tag, Time entered, Time visible) {
  if (tag == kListTag) return;
  Rewind& rewind = rewinds_[tag - rewind_tag(0)];
  rewind.visible = std::max(rewind.visible, visible.is_never() ? entered : visible);
  if (--rewind.pending == 0) rewound_.at(std::max(rewind.visible, now()));
}

void WindowCalls::dma_read_done(std::uint64_t /*tag*/) { RVMA_ASSERT(false, "the window calls read nothing"); }

}  // namespace rvma
