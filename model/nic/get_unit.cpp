#include "nic/get_unit.hpp"

#include <utility>

#include "base/error.hpp"
#include "host/interfaces.hpp"

namespace rvma {
namespace {

constexpr std::uint32_t kWordBytes = 16;
constexpr std::uint64_t kPageListEntryBytes = 8;

DmaWrite word_write(PhysicalAddress to, std::uint64_t first, std::uint64_t second) {
  DmaWrite write;
  write.to.add(to, kWordBytes);
  write.word = {first, second};
  write.is_word = true;
  return write;
}

}  // namespace

GetUnit::GetUnit(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, Bytes page,
                 NodeId node, WindowStore& windows, ContextCache& contexts, InterruptArm& arm,
                 const ObserverList& observers)
    : Component(name, context, config.clock),
      delivery("delivery"),
      dma("dma"),
      transmit("transmit"),
      config_(config.get),
      reliability_(config.reliability),
      completion_latency_(clock().time_of(config.completion.latency)),
      page_bytes_(page.count()),
      node_(node),
      windows_(windows),
      contexts_(contexts),
      arm_(arm),
      observers_(observers),
      random_(context.seed(), path()),
      hand_on_(*this, "hand_on", [this] { hand_on(); }),
      time_out_(*this, "time_out", [this] { look_at_time_outs(); }),
      open_again_(*this, "open_again", [this] { open_again(); }) {
  context.stats().add(path(), stats_);
}

void GetUnit::end_of_elaboration() {
  transmit->on_room([this] {
    if (!asking_.empty()) hand_on_.at(now());
  });
}

void GetUnit::dma_read_done(std::uint64_t /*tag*/) { RVMA_ASSERT(false, "the get unit reads nothing"); }

/// Requests go to transmit in order, as far as it takes them, and no answer ever waits behind them.
void GetUnit::hand_on() {
  while (!answering_.empty()) {
    const bool is_taken = transmit->submit(answering_.pop(), current_cycle());
    RVMA_ASSERT(is_taken, "transmit keeps an entry for the answer to each accepted request");
  }
  while (!asking_.empty() && transmit->submit(asking_.front(), current_cycle())) asking_.pop();
}

// ---------------------------------------------------------------------------------------------------------- asker

bool GetUnit::submit(const PutRequest& get, Cycles /*at*/) {
  if (open_ >= config_.open) {
    starved_ = true;
    return false;
  }
  const Index index = gets_.take();
  Get& entry = gets_[index];
  entry.request = get;
  entry.state = State::opening;
  entry.tries = 0;
  entry.openings = 0;
  ++stats_.gets;
  stats_.open.observe(++open_);
  open_window(index);
  return true;
}

void GetUnit::open_window(Index index) {
  // 1. A mailbox and a key that nobody can guess.
  Get& get = gets_[index];
  Descriptor window = get.request.descriptor;
  window.opcode = Opcode::post_one_time_buffer;
  window.window_flags = kWindowAnswer;
  window.threshold = 1;
  window.threshold_type = ThresholdType::ops;
  do {
    window.key = static_cast<std::uint32_t>(random_.next());
  } while (window.key == 0);
  WindowStore::WindowAnswer allocated;
  do {
    window.mailbox = Mailbox{random_.next()};
    allocated = windows_.allocate_window(window, get.request.pid);
  } while (allocated.status == Status::exists);
  // 2. Context and buffer descriptor, as for any one-time window.
  BufferId buffer;
  bool has_room = allocated.status == Status::ok;
  if (has_room) {
    const WindowStore::PostAnswer posted = windows_.post_buffer(allocated.window, window);
    has_room = posted.status == Status::ok;
    buffer = posted.buffer;
    if (!has_room) windows_.abandon_window(allocated.window);
  }
  if (!has_room) {
    wait_for_room(index);
    return;
  }
  get.window = allocated.window;
  get.mailbox = window.mailbox;
  get.key = window.key;
  // 3. The table learns the mailbox.
  contexts_.install(allocated.window, get.request.pid, window.mailbox,
                    [this, index, buffer, window](TableStatus status) { opened(index, buffer, window, status); });
}

void GetUnit::opened(Index index, BufferId buffer, const Descriptor& window, TableStatus status) {
  Get& get = gets_[index];
  if (status != TableStatus::ok) {
    windows_.abandon_window(get.window);
    wait_for_room(index);
    return;
  }
  windows_.open_window(get.window);
  by_slot_[get.window] = index;
  observers_.tell(
      [&](NicObserver& observer) { observer.get_opened(node_, get.request.pid, get.window, buffer, window, now()); });
  ask(index);
}

/// As for a message that is refused `busy`: nic.reliability.rnr_tries retries, rnr_delay apart.
void GetUnit::wait_for_room(Index index) {
  Get& get = gets_[index];
  if (get.openings == reliability_.rnr_tries) {
    ++stats_.without_window;
    end(index, Outcome::busy, now());
    return;
  }
  ++get.openings;
  ++stats_.window_retries;
  openings_.push({now() + reliability_.rnr_delay.get(), index, get.uses});
  open_again_.at(openings_.front().at);
}

void GetUnit::open_again() {
  // Those that find no room again join behind.
  while (!openings_.empty() && openings_.front().at <= now()) {
    const Index index = openings_.pop().get;
    open_window(index);
  }
  if (!openings_.empty()) open_again_.at(openings_.front().at);
}

void GetUnit::ask(Index index) {
  Get& get = gets_[index];
  get.state = State::asking;
  PutRequest request = get.request;
  request.purpose = Purpose::get_request;
  request.job = index;
  request.uses = get.uses;
  request.ask = GetAsk{get.request.descriptor.length, get.mailbox, get.key};
  request.descriptor.length = 0;
  request.descriptor.single_page = true;
  asking_.push(request);
  hand_on();
}

void GetUnit::ended(const PutRequest& request, Outcome outcome, std::uint32_t tries, Time at) {
  if (request.purpose == Purpose::get_answer) {
    ++(outcome == Outcome::ok ? stats_.answers_ended : stats_.answers_failed);
    --serving_;
    return;
  }
  // The answer may have come before the acknowledgement of the request.
  if (!is_current(request.job, request.uses)) return;
  gets_[request.job].tries = tries;
  (void)at;
  if (outcome == Outcome::ok) {
    wait_for_answer(request.job);
  } else {
    close(request.job, outcome);
  }
}

void GetUnit::wait_for_answer(Index index) {
  Get& get = gets_[index];
  get.state = State::waiting;
  get.activity = windows_.activity(get.window);
  ++waiting_;
  due_.push({now() + config_.timeout.get(), index, get.uses});
  time_out_.at(due_.front().at);
}

void GetUnit::look_at_time_outs() {
  while (!due_.empty() && due_.front().at <= now()) {
    const Due due = due_.pop();
    if (!is_current(due.get, due.uses) || gets_[due.get].state != State::waiting) continue;
    Get& get = gets_[due.get];
    const std::uint64_t activity = windows_.activity(get.window);
    if (std::exchange(get.activity, activity) != activity) {
      due_.push({now() + config_.timeout.get(), due.get, due.uses});
      continue;
    }
    ++stats_.timed_out;
    close(due.get, Outcome::timeout);
  }
  if (!due_.empty()) time_out_.at(due_.front().at);
}

/// Nothing of the answer counts from now on; the get ends when what is on its way to its memory has landed.
void GetUnit::close(Index index, Outcome outcome) {
  Get& get = gets_[index];
  if (get.state == State::waiting) --waiting_;
  get.state = State::closing;
  get.outcome = outcome;
  // As for calls, the context must be on chip.
  if (contexts_.is_resident(get.window)) {
    close_window(index);
  } else {
    contexts_.acquire(get.window, get.request.pid, get.mailbox, [this, index](bool is_here) {
      if (is_here) {
        close_window(index);
      } else {
        close(index, gets_[index].outcome);  // it has to close: asks on
      }
    });
  }
}

void GetUnit::close_window(Index index) {
  Get& get = gets_[index];
  const WindowId slot = get.window;
  if (get.outcome == Outcome::ok) {
    // The answer has come while the context was fetched: the window has closed itself.
    end(index, Outcome::ok, now());
    return;
  }
  cut_.clear();
  windows_.cut_off_window(slot, cut_);
  observers_.tell([&](NicObserver& observer) { observer.get_given_up(node_, slot, now()); });
  for (const WindowStore::CutMessage& message : cut_) delivery->withdraw(message.source, message.message, now());
  std::vector<BufferId> returned;
  windows_.begin_close(slot, returned, [this, index] { drained(index); });
  observers_.tell([&](NicObserver& observer) { observer.window_closed(node_, slot, returned, now()); });
}

void GetUnit::drained(Index index) {
  const Get& get = gets_[index];
  contexts_.remove(get.window, get.request.pid, get.mailbox, [this, index] {
    windows_.release_window(gets_[index].window);
    end(index, gets_[index].outcome, now());
  });
}

void GetUnit::answer_complete(const Completion& completion, Cycles at) {
  const auto found = by_slot_.find(completion.window);
  RVMA_ASSERT(found != by_slot_.end(), "an answer came to a window that no get waits for");
  const Index index = found->second;
  Get& get = gets_[index];
  if (get.state == State::closing) {
    // It came whole at the last moment; the window is closing all the same.
    get.outcome = Outcome::ok;
    return;
  }
  if (get.state == State::waiting) --waiting_;
  end(index, Outcome::ok, clock().time_of(at) + completion_latency_);
}

void GetUnit::end(Index index, Outcome outcome, Time at) {
  Get& get = gets_[index];
  const Descriptor& descriptor = get.request.descriptor;
  ++(outcome == Outcome::ok ? stats_.ended_ok : stats_.ended_otherwise);
  // 1. Results and checks see the end before the host can.
  observers_.tell(
      [&](NicObserver& observer) { observer.put_ended(node_, descriptor.completion, outcome, get.tries, at); });
  // 2. The word, strictly behind the bytes; then the interrupt, if one is wanted.
  if (descriptor.completion.value() != 0) {
    const std::uint64_t bytes = outcome == Outcome::ok ? descriptor.length : 0;
    dma->write(word_write(descriptor.completion, static_cast<std::uint64_t>(outcome), bytes), *this, at);
    if (arm_.take(descriptor.completion)) {
      dma->write(word_write(interrupt_address(get.request.pid), 0, 0), *this, at);
    }
  }
  // 3. The entry is free. A timer that nobody needs would be the run's last event.
  if (const auto found = by_slot_.find(get.window); found != by_slot_.end() && found->second == index) {
    by_slot_.erase(found);
  }
  get.state = State::free;
  ++get.uses;
  gets_.give_back(index);
  --open_;
  if (waiting_ == 0) {
    while (!due_.empty()) due_.pop();
    time_out_.cancel();
  }
  if (std::exchange(starved_, false)) {
    for (const auto& room : room_) room();
  }
}

// --------------------------------------------------------------------------------------------------------- target

bool GetUnit::serve(NodeId source, const DataHeader& request, WindowId slot, BufferId buffer) {
  // What is accepted can be answered.
  if (serving_ >= config_.queue || (can_answer_ && !can_answer_(source))) {
    ++stats_.requests_turned_away;
    return false;
  }
  ++stats_.requests;
  stats_.serving.observe(++serving_);
  const BufferDescriptor& from = windows_.buffer(buffer);
  PutRequest answer;
  answer.purpose = Purpose::get_answer;
  answer.pid = request.destination_pid;
  answer.doorbell = now();
  answer.window = slot;
  answer.buffer = buffer;
  answer.posting = from.posting;
  Descriptor& put = answer.descriptor;
  put.opcode = Opcode::put;
  put.destination_node = source;
  put.destination_pid = request.source_pid;
  put.mailbox = request.ask.mailbox;
  put.key = request.ask.key;
  put.length = request.ask.length;
  // The buffer's own page list, from the page of the first byte on.
  put.local = VirtualAddress{from.head.value() + request.offset};
  put.single_page = from.single_page || put.length == 0;
  put.page_list = from.page_list;
  if (!put.single_page) {
    const std::uint64_t page = (from.head.value() % page_bytes_ + request.offset) / page_bytes_;
    put.page_list = PhysicalAddress{from.page_list.value() + kPageListEntryBytes * page};
  }
  // Handed on in a cycle of its own: the receive path does not wait for transmit.
  answering_.push(answer);
  hand_on_.at(clock().time_of(current_cycle() + Cycles{1}));
  return true;
}

bool GetUnit::may_read(const PutRequest& answer) {
  return windows_.may_read(answer.window, answer.buffer, answer.posting);
}

}  // namespace rvma
