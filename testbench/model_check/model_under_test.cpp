#include "model_under_test.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/error.hpp"

namespace rvma::check {

namespace {

const Pid kPid{3};
const Mailbox kMailbox{0xbeef000000000000ULL};
const Mailbox kNobodys{0xdead000000000000ULL};
constexpr std::uint64_t kHeadStep = 0x1000;
constexpr std::uint64_t kWordStep = 16;
constexpr std::uint32_t kHistory = 8;

}  // namespace

NicConfig ModelUnderTest::config_of(const Scenario& scenario) {
  NicConfig config;
  config.mtu = Bytes{kMtu};
  config.windows.on_chip = 4;
  config.windows.spill = false;
  config.buffers.on_chip = 8;
  config.buffers.spill = false;
  config.counters.on_chip = 8;
  config.counters.spill = false;
  config.binding.on_chip = scenario.binding_entries;
  config.history = kHistory;
  config.closed_memory = 2;
  return config;
}

namespace {

Reason reason_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::pending:
      return Reason::none;
    case Outcome::ok:
      return Reason::ok;
    case Outcome::no_mailbox:
      return Reason::no_mailbox;
    case Outcome::closed:
      return Reason::closed;
    case Outcome::bad_key:
      return Reason::bad_key;
    case Outcome::stale:
      return Reason::stale;
    case Outcome::no_buffer:
      return Reason::no_buffer;
    case Outcome::bounds:
      return Reason::bounds;
    case Outcome::busy:
      return Reason::busy;
    default:
      throw std::logic_error("a receiver never says so");
  }
}

CallStatus status_of(Status status) {
  switch (status) {
    case Status::ok:
      return CallStatus::ok;
    case Status::closed:
      return CallStatus::closed;
    case Status::no_window:
      return CallStatus::no_window;
    case Status::no_buffer:
      return CallStatus::no_buffer;
    case Status::history:
      return CallStatus::history;
    default:
      throw std::logic_error("no call of the check is answered so");
  }
}

NodeId node_of(unsigned sender) { return NodeId{7 + sender}; }

}  // namespace

ModelUnderTest* ModelUnderTest::running_ = nullptr;

ModelUnderTest::ModelUnderTest(const Scenario& scenario, const std::vector<MessageSpec>& messages,
                               const NicConfig& config)
    : scenario_(scenario), messages_(messages), store_(config) {
  store_.on_expired([] { running_->reap(); });
  running_ = this;
  open(scenario);
}

/// WindowCalls::open() and post_buffer().
void ModelUnderTest::open(const Scenario& scenario) {
  Descriptor call;
  call.opcode = scenario.is_one_time ? Opcode::post_one_time_buffer : Opcode::init_window;
  call.mailbox = kMailbox;
  call.threshold = scenario.threshold;
  call.threshold_type = scenario.counts_ops ? ThresholdType::ops : ThresholdType::bytes;
  call.placement = scenario.is_managed ? Placement::managed : Placement::steered;
  call.key = scenario.key;
  call.length = scenario.buffers.front();
  slot_ = store_.allocate_window(call, kPid).window;
  const auto post = [&](std::uint64_t number) {
    Descriptor buffer;
    buffer.opcode = Opcode::post_buffer;
    buffer.length = scenario.buffers.at(number);
    buffer.local = VirtualAddress{kHeadStep * (number + 1)};
    buffer.completion = PhysicalAddress{kWordStep * (number + 1)};
    numbers_[store_.post_buffer(slot_, buffer).buffer.value()] = static_cast<int>(number);
  };
  if (scenario.is_one_time) post(0);
  store_.open_window(slot_);
  in_table_ = true;
  for (std::uint64_t i = scenario.is_one_time ? 1 : 0; i < scenario.buffers.size(); ++i) post(i);
}

Observed ModelUnderTest::apply(const Action& action, const Arrival& arrival) {
  running_ = this;
  Observed seen;
  switch (action.act) {
    case Act::arrive:
    case Act::again:
    case Act::resend:
      seen = arrive(action.message, action.packet, arrival);
      break;
    case Act::land:
      seen = land(action.message, action.packet);
      break;
    case Act::hear:
    case Act::new_generation:
      break;  // at the senders only
    case Act::inc_epoch: {
      const WindowStore::WindowAnswer found = store_.find_window(kPid, kMailbox);
      BufferId retired;
      Epoch epoch;
      seen.call = status_of(found.status == Status::ok ? store_.inc_epoch(found.window, retired, epoch) : found.status);
      break;
    }
    case Act::rewind:
      seen = rewind(action.packet);
      break;
    case Act::finish_rewind:
      seen = finish_rewind();
      break;
    case Act::close:
      seen = close();
      break;
    case Act::silence:
      silence(action.message);
      break;
  }
  take(seen);
  return seen;
}

// ------------------------------------------------------------------------------------------------------------- packets

DataHeader ModelUnderTest::header_of(unsigned message, unsigned packet, const Arrival& arrival) const {
  const MessageSpec& spec = messages_[message];
  DataHeader header;
  header.destination_pid = kPid;
  header.source_pid = Pid{1};
  header.mailbox = spec.mailbox_exists ? kMailbox : kNobodys;
  header.key = spec.key;
  header.message = MessageId{arrival.id};
  header.open_span = static_cast<std::uint16_t>(arrival.id - arrival.oldest_open);
  header.message_length = spec.length;
  header.offset = spec.offset;
  header.packet_index = packet;
  header.payload_length = static_cast<std::uint16_t>(spec.packet_bytes(packet));
  return header;
}

/// DeliveryUnit::context_of().
ReceiveContext& ModelUnderTest::context_of(const Arrival& arrival) {
  const auto make = [&] { return Context{arrival.generation, ReceiveContext{1, arrival.generation, {16, 16, 64}}}; };
  auto found = contexts_.find(arrival.sender);
  if (found == contexts_.end()) found = contexts_.emplace(arrival.sender, make()).first;
  if (found->second.generation != arrival.generation) {
    silence(arrival.sender);
    found->second = make();
  }
  return found->second.receive;
}

ReceiveContext* ModelUnderTest::context_if_current(const Arrival& arrival) {
  const auto found = contexts_.find(arrival.sender);
  return found == contexts_.end() || found->second.generation != arrival.generation ? nullptr : &found->second.receive;
}

/// DeliveryUnit::admit() and AddressConversion::decide().
Observed ModelUnderTest::arrive(unsigned message, unsigned packet, const Arrival& arrival) {
  Observed seen;
  seen.fate = Fate::ignored;
  const auto known = contexts_.find(arrival.sender);
  if (known != contexts_.end() && arrival.generation < known->second.generation) return seen;
  ReceiveContext& context = context_of(arrival);
  const DataHeader header = header_of(message, packet, arrival);
  const ReceiveContext::Answer answer = context.admit(arrival.sequence, header.message, header.open_span);
  std::vector<ReceiveContext::Bound> abandoned;
  context.take_abandoned(abandoned);
  for (const ReceiveContext::Bound& bound : abandoned) store_.cut_off(bound.binding);
  switch (answer.admission.verdict) {
    case DeliveryIf::Verdict::fresh:
      break;
    case DeliveryIf::Verdict::closed:
      context.dispose(arrival.sequence, Time::zero());
      return seen;
    case DeliveryIf::Verdict::duplicate:
    case DeliveryIf::Verdict::stale:
      return seen;
  }
  switch (answer.admission.state) {
    case MessageState::refused:
      seen.fate = Fate::discarded;
      context.dispose(arrival.sequence, Time::zero());
      break;
    case MessageState::done:
      context.dispose(arrival.sequence, Time::zero());
      break;
    case MessageState::bound: {
      BufferPlace where;
      if (store_.place(answer.admission.binding, node_of(arrival.sender), header, where)) {
        place(where, header, message, arrival, seen);
      } else {
        context.dispose(arrival.sequence, Time::zero());
      }
      break;
    }
    case MessageState::unseen:
      bind(header, message, arrival, seen);
      break;
  }
  return seen;
}

/// AddressConversion::bind().
void ModelUnderTest::bind(const DataHeader& header, unsigned message, const Arrival& arrival, Observed& seen) {
  ReceiveContext& context = *context_if_current(arrival);
  const bool hits = header.mailbox == kMailbox && (in_table_ || !scenario_.table_forgets);
  const BindAnswer bound = store_.bind(node_of(arrival.sender), header, WindowLookup{hits, slot_, false});
  RVMA_ASSERT(!bound.malformed, "the check sends well-cut packets only");
  if (bound.outcome != Outcome::pending) {
    seen.fate = Fate::refused;
    seen.reason = reason_of(bound.outcome);
    context.refuse(header.message, bound.outcome, true, Time::zero());
    context.dispose(arrival.sequence, Time::zero());
    return;
  }
  if (bound.place.has_binding) context.bind(header.message, bound.place.binding);
  place(bound.place, header, message, arrival, seen);
}

void ModelUnderTest::place(const BufferPlace& where, const DataHeader& header, unsigned message, const Arrival& arrival,
                           Observed& seen) {
  seen.fate = Fate::placed;
  seen.buffer = number_of(where.buffer);
  seen.offset = where.offset;
  on_the_way_.at(message * kMostPackets + header.packet_index) =
      OnTheWay{arrival, where.buffer, where.has_binding, where.binding, header.payload_length};
}

PlacedPacket ModelUnderTest::OnTheWay::packet() const {
  PlacedPacket placed;
  placed.message = MessageRef{node_of(arrival.sender), 1, arrival.generation, MessageId{arrival.id}};
  placed.sequence = arrival.sequence;
  placed.buffer = buffer;
  placed.binding = binding;
  placed.has_binding = has_binding;
  placed.payload_length = payload_length;
  return placed;
}

/// PayloadWriter::finish() and CounterUnit::end_message().
Observed ModelUnderTest::land(unsigned message, unsigned packet) {
  Observed seen;
  std::optional<OnTheWay>& moving = on_the_way_.at(message * kMostPackets + packet);
  if (!moving) return seen;
  const Arrival arrival = moving->arrival;
  const PlacedPacket landed = std::exchange(moving, std::nullopt)->packet();
  ReceiveContext* context = context_if_current(arrival);
  if (context != nullptr) context->dispose(arrival.sequence, Time::zero());
  const bool ends = store_.ends_message(landed);
  const bool is_whole = store_.count(landed);
  if (!ends || context == nullptr) return seen;
  if (is_whole) {
    context->end(landed.message.message, Time::zero());
  } else if (!landed.has_binding) {
    context->refuse(landed.message.message, Outcome::stale, true, Time::zero());
  }
  return seen;
}

/// CounterUnit::hand_over() and the completion writer.
void ModelUnderTest::take(Observed& seen) {
  std::vector<Completion> due;
  store_.take_completions(due);
  for (const Completion& completion : due) {
    const auto buffer = static_cast<std::size_t>(completion.head.value() / kHeadStep - 1);
    seen.completions.push_back({completion.epoch.value(), static_cast<int>(buffer), completion.length});
    word_.at(static_cast<std::size_t>(completion.word.value() / kWordStep - 1)) = 1 + completion.length;
  }
  if (is_closed_ && drained_) {
    drained_ = false;
    seen.call = CallStatus::ok;
  }
}

// --------------------------------------------------------------------------------------------------------------- calls

/// WindowCalls::rewind().
Observed ModelUnderTest::rewind(std::uint64_t n) {
  Observed seen;
  const WindowStore::WindowAnswer found = store_.find_window(kPid, kMailbox);
  if (found.status != Status::ok) {
    seen.call = status_of(found.status);
    return seen;
  }
  const WindowStore::RewindAnswer begun = store_.begin_rewind(slot_, n, Epoch{0}, [] { running_->drained_ = true; });
  if (begun.status != Status::ok) {
    seen.call = status_of(begun.status);
    return seen;
  }
  seen.call = CallStatus::pending;
  drained_ = begun.drained;
  rewound_ = std::max<std::uint64_t>(n, 1);
  for (const WindowStore::CutMessage& cut : begun.cut_off) {
    const auto context = contexts_.find(cut.source.value() - node_of(0).value());
    if (context != contexts_.end()) context->second.receive.withdraw(cut.message, true, Time::zero());
  }
  return seen;
}

/// WindowCalls::rewind_drained() and finish_rewinds().
Observed ModelUnderTest::finish_rewind() {
  Observed seen;
  if (!drained_) return seen;
  drained_ = false;
  std::vector<RewoundBuffer> buffers;
  store_.rewound_buffers(slot_, buffers);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::uint64_t number = buffers[i].word.value() / kWordStep - 1;
    numbers_[buffers[i].buffer.value()] = static_cast<int>(number);
    if (i < rewound_) word_.at(number) = 0;
  }
  seen.call_value = store_.finish_rewind(slot_).value();
  seen.call = CallStatus::ok;
  return seen;
}

/// WindowCalls::close().
Observed ModelUnderTest::close() {
  Observed seen;
  const WindowStore::WindowAnswer found = store_.find_window(kPid, kMailbox);
  if (found.status != Status::ok) {
    seen.call = status_of(found.status);
    return seen;
  }
  seen.call = CallStatus::pending;
  std::vector<BufferId> returned;
  store_.begin_close(slot_, returned, [] { running_->end_close(); });
  for (const BufferId buffer : returned) seen.returned.push_back(number_of(buffer));
  return seen;
}

/// WindowCalls::close(), behind the bound messages.
void ModelUnderTest::end_close() {
  is_closed_ = drained_ = true;
  in_table_ = false;
  store_.release_window(slot_);
}

/// DeliveryUnit::look_for_silence() and AddressConversion::cut_off().
void ModelUnderTest::silence(unsigned sender) {
  const auto found = contexts_.find(sender);
  if (found == contexts_.end()) return;
  std::vector<ReceiveContext::Bound> bound;
  found->second.receive.cut_off_all(bound, Time::zero());
  for (const ReceiveContext::Bound& message : bound) store_.cut_off(message.binding);
}

/// WindowCalls::reap().
void ModelUnderTest::reap() {
  std::vector<WindowStore::Expired> expired;
  store_.take_expired(expired);
  for (const WindowStore::Expired& window : expired) {
    in_table_ = false;
    store_.release_window(window.window);
  }
}

// ----------------------------------------------------------------------------------------------------------- what
// shows

void ModelUnderTest::acknowledge() {
  AckHeader ack;
  for (auto& context : contexts_) context.second.receive.fill(ack, Time::zero());
}

Snapshot ModelUnderTest::snapshot() {
  Snapshot seen;
  const WindowStore::WindowAnswer found = store_.locate(kPid, kMailbox);
  const bool is_closed = is_remembered_as_closed();
  seen.window_exists = found.status == Status::ok && !is_closed;
  seen.is_rewind_drained = seen.window_exists && drained_;
  if (seen.window_exists) {
    seen.completed = store_.completed_epochs(found.window);
    std::vector<WindowStore::CompletedBuffer> history;
    for (std::uint64_t n = kHistory; n > 0; --n) {
      if (store_.completed_buffers(found.window, n, history) == Status::ok) break;
    }
    for (const WindowStore::CompletedBuffer& epoch : history) {
      seen.history.push_back({epoch.epoch.value(), static_cast<int>(epoch.head.value() / kHeadStep) - 1, epoch.length});
    }
  }
  seen.word = word_;
  for (unsigned sender = 0; sender < kSenders; ++sender) {
    auto& disposed = seen.disposed.at(sender);
    auto& outcomes = seen.outcomes.at(sender);
    const auto known = contexts_.find(sender);
    if (known == contexts_.end()) continue;
    AckHeader ack;
    known->second.receive.fill(ack, Time::zero());
    for (std::uint32_t i = 0; i < kMostNumbers; ++i) {
      const std::uint32_t ahead = i - ack.cumulative;
      disposed[i] = i < ack.cumulative ||
                    (ahead / 64 < ack.selective.size() && (ack.selective[ahead / 64] >> (ahead % 64) & 1U) != 0);
      const std::uint32_t oldest = known->second.receive.oldest_open().value();
      const std::uint32_t from = ack.outcomes_from.value();
      if (i >= oldest && i < from) outcomes[i] = Reason::ok;
      if (i >= from && i - from < ack.outcomes.size()) outcomes[i] = reason_of(ack.outcomes[i - from]);
    }
    // A cut-off may be told while packets of its message are on their way, or later: nobody says.
    for (const std::optional<OnTheWay>& moving : on_the_way_) {
      if (!moving || moving->arrival.sender != sender) continue;
      if (moving->arrival.generation != known->second.generation) continue;
      if (outcomes.at(moving->arrival.id) == Reason::stale) outcomes.at(moving->arrival.id) = Reason::none;
    }
  }
  return seen;
}

std::int64_t ModelUnderTest::unaccounted() {
  const WindowStoreStats& stats = store_.stats();
  return static_cast<std::int64_t>(stats.messages_bound.value()) -
         static_cast<std::int64_t>(stats.messages_counted.value() + stats.messages_cut_off.value());
}

bool ModelUnderTest::is_remembered_as_closed() const { return store_.is_closed(kPid, kMailbox); }

/// A buffer that has gone back has no descriptor any more, so its number is kept here.
int ModelUnderTest::number_of(BufferId buffer) const { return numbers_.at(buffer.value()); }

}  // namespace rvma::check
