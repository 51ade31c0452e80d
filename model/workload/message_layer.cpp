#include "workload/message_layer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/int128.hpp"
#include "driver/exclusive_mailbox.hpp"
#include "workload/payload_pattern.hpp"

namespace rvma {
namespace {

/// Slots for returned credits, which no credit pays for: at most so many are unread at a time, because each returns
/// half of the slots or more.
constexpr std::uint32_t kCreditSlots = 2;
/// Mailboxes for the payload of a rendezvous have numbers from here on, slots from 0.
constexpr std::uint64_t kFirstPayloadMailbox = 1ULL << (kExclusiveNumberBits - 1);

Time copy_time(Rate rate, std::uint64_t bytes) {
  if (rate.bits_per_s() == 0) return Time::zero();
  constexpr std::uint64_t kPsPerSecond = 1'000'000'000'000;
  return Time::from_ps(static_cast<std::int64_t>(detail::uint128{bytes} * 8 * kPsPerSecond / rate.bits_per_s()));
}

}  // namespace

/// How far a message has come: what passes between two points belongs to one part of its way. The parts count when the
/// message is received; of one that never is, nobody knows the rest.
struct MessageLayer::Timeline {
  static constexpr std::array<TimeSum MessageStats::*, 7> kSums{
      &MessageStats::send_copy_ns,   &MessageStats::credit_wait_ns, &MessageStats::handshake_ns,
      &MessageStats::transfer_ns,    &MessageStats::matching_ns,    &MessageStats::late_receiver_ns,
      &MessageStats::receive_copy_ns};  ///< in order of Part
  Time issued;
  Time last;
  bool measured = false;  ///< as long as `period` is the board's
  std::uint32_t period = 0;
  std::array<Time, kSums.size()> parts{};
};

struct MessageLayer::Envelope {
  enum class Kind : std::uint8_t { eager, request, clear, credit } kind = Kind::credit;
  std::uint32_t tag = 0;
  std::uint64_t size = 0;              ///< bytes of the message
  std::uint32_t credits = 0;           ///< slots of the addressee's that are free again
  std::shared_ptr<Request> sender;     ///< request, clear
  std::shared_ptr<Timeline> timeline;  ///< null: credit
  Mailbox mailbox;                     ///< clear: for the payload
  Status status = Status::ok;          ///< clear
  VirtualAddress memory;               ///< eager, once it has come: its payload
};

struct MessageLayer::Request {
  MessageIssue issue;
  NameRef name;
  VirtualAddress memory;
  CompletionPointer word;  ///< recv by rendezvous: of the posted buffer
  std::uint64_t posted_bytes = 0;
  std::shared_ptr<Timeline> timeline;
  bool has_ended = false;
};

struct MessageLayer::Slot {
  Window window;
  VirtualAddress head;
  CompletionPointer word;
};

/// A message that waits for a slot.
struct MessageLayer::Outgoing {
  Envelope envelope;
  std::uint64_t payload = 0;         ///< bytes before the envelope
  std::uint64_t seed = 0;            ///< of payload and envelope
  std::shared_ptr<Request> request;  ///< eager: ends when it is put
};

struct MessageLayer::Peer {
  RankId rank;
  // What goes there
  std::uint64_t sent = 0;  ///< messages put so far
  std::uint32_t credits = 0;
  std::deque<Outgoing> waiting;
  // What comes from there
  std::uint64_t slot_bytes = 0;
  std::vector<Slot> slots;
  std::deque<Envelope> envelopes;               ///< of what is on its way, by number
  std::uint64_t taken = 0;                      ///< messages so far
  std::uint32_t owed = 0;                       ///< slots that are free again, and not returned
  std::deque<std::shared_ptr<Request>> posted;  ///< receives without a message
  std::deque<Envelope> unexpected;              ///< messages without a receive
};

/// A put of the layer's that has not ended.
struct MessageLayer::Flight {
  CompletionPointer word;
  VirtualAddress source;
  std::shared_ptr<Request> request;  ///< whose payload it is, if that ends with it
};

// ------------------------------------------------------------------------------------------------------------ board

MessageBoard::MessageBoard(const WorkloadConfig& config, std::uint32_t ranks)
    : config_(config.messages),
      with_bytes_(config.payload.get() == PayloadMode::bytes),
      layers_(ranks),
      inside_mark_(ranks, false) {}

void MessageBoard::marked(RankId rank, bool begin) {
  if (!has_marks_) {
    has_marks_ = true;
    has_first_ = false;
    ++period_;
    stats_ = MessageStats{};
  }
  inside_mark_[rank.index()] = begin;
}

// ----------------------------------------------------------------------------------------------------------- set-up

MessageLayer::MessageLayer(MessageBoard& board, const Trace& trace, RankId rank, const std::vector<RankHome>& homes,
                           const std::vector<PlayerObserver*>& observers)
    : board_(board),
      config_(board.config_),
      rank_(rank),
      homes_(homes),
      home_(homes[rank.index()]),
      driver_(*home_.driver),
      observers_(observers) {
  board_.layers_[rank.index()] = this;
  for (const MessagePeer& other : trace.message_peers(rank)) {
    auto peer = std::make_unique<Peer>();
    peer->rank = other.rank;
    peer->credits = config_.slots;
    peer->slot_bytes = kEnvelopeBytes + std::min(other.longest, config_.eager_limit->count());
    peers_.push_back(std::move(peer));
  }
}

MessageLayer::~MessageLayer() = default;

MessageLayer::Peer& MessageLayer::peer(RankId rank) {
  const auto place = std::lower_bound(peers_.begin(), peers_.end(), rank,
                                      [](const auto& peer, RankId wanted) { return peer->rank < wanted; });
  RVMA_ASSERT(place != peers_.end() && (*place)->rank == rank, "the trace checker knows every peer");
  return **place;
}

Status MessageLayer::open() {
  for (const std::unique_ptr<Peer>& from : peers_) {
    from->slots.resize(config_.slots + kCreditSlots);
    for (std::uint32_t lane = 0; lane < from->slots.size(); ++lane) {
      Slot& slot = from->slots[lane];
      const Status status = driver_.init_window(exclusive_mailbox(from->rank, lane), 1, ThresholdType::ops,
                                                Placement::steered, 0, 0, slot.window);
      if (status != Status::ok) return status;
      slot.head = driver_.space().allocate(from->slot_bytes, 64);
      slot.word = driver_.allocate_completion();
      post_slot(*from, lane);
    }
  }
  return Status::ok;
}

void MessageLayer::post_slot(Peer& from, std::uint32_t lane) {
  const Slot& slot = from.slots[lane];
  BufferPost post;
  post.mailbox = slot.window.mailbox;
  post.head = slot.head;
  post.size = from.slot_bytes;
  tell_post(post, slot.word);
  const Status status = driver_.post_buffer(slot.window, slot.head, from.slot_bytes, slot.word);
  RVMA_ASSERT(status == Status::ok, "the layer's own windows stay open");
}

void MessageLayer::tell_post(BufferPost post, CompletionPointer word) {
  post.rank = rank_;
  post.node = home_.node;
  post.pid = home_.pid;
  post.word = word.address;
  post.at = now();
  post.is_layers = true;
  tell([&](PlayerObserver& observer) { observer.post_issued(post); });
  tell([&](PlayerObserver& observer) { observer.buffer_unnamed(home_.node, word.address); });
}

// ----------------------------------------------------------------------------------------------- what programs ask for

std::shared_ptr<MessageLayer::Request> MessageLayer::new_request(const Operation& operation) {
  auto request = std::make_shared<Request>();
  request->name = operation.name;
  MessageIssue& issue = request->issue;
  issue.rank = rank_;
  issue.kind = operation.kind;
  issue.name = operation.has_name ? &request->name : nullptr;
  issue.peer = operation.rank;
  issue.tag = operation.tag;
  issue.size = operation.size;
  issue.seed = operation.seed;
  issue.number = issued_++;
  issue.at = now();
  ++open_;
  if (operation.has_name && !operation.name_never_used) named_[operation.name] = request;
  tell([&](PlayerObserver& observer) { observer.message_issued(issue); });
  if (board_.is_measured(rank_) && !std::exchange(board_.has_first_, true)) board_.first_ = board_.last_ = now();
  return request;
}

void MessageLayer::send(const Operation& operation) {
  const std::shared_ptr<Request> request = new_request(operation);
  request->timeline = std::make_shared<Timeline>(Timeline{now(), now(), board_.is_measured(rank_), board_.period_, {}});
  Outgoing outgoing;
  outgoing.seed = operation.seed;
  outgoing.envelope.tag = operation.tag;
  outgoing.envelope.size = operation.size;
  outgoing.envelope.timeline = request->timeline;
  if (operation.size <= config_.eager_limit->count()) {
    outgoing.envelope.kind = Envelope::Kind::eager;
    outgoing.payload = operation.size;
    outgoing.request = request;
    copy(operation.size, *request->timeline, Part::send_copy);
  } else {
    outgoing.envelope.kind = Envelope::Kind::request;
    outgoing.envelope.sender = request;
    request->memory = allocate(operation.size);
    fill(request->memory, operation.size, operation.seed);
  }
  enqueue(peer(operation.rank), std::move(outgoing));
  progress();
}

void MessageLayer::receive(const Operation& operation) {
  const std::shared_ptr<Request> request = new_request(operation);
  if (operation.size > 0) request->memory = allocate(operation.size);
  Peer& from = peer(operation.rank);
  const auto found = std::find_if(from.unexpected.begin(), from.unexpected.end(),
                                  [&](const Envelope& envelope) { return envelope.tag == operation.tag; });
  if (found == from.unexpected.end()) {
    from.posted.push_back(request);
    progress();
    return;
  }
  Envelope envelope = std::move(*found);
  from.unexpected.erase(found);
  pass(*envelope.timeline, Part::late_receiver);
  if (envelope.kind == Envelope::Kind::eager) {
    deliver(*request, envelope);
    if (envelope.size > 0) driver_.space().free(envelope.memory);
  } else {
    clear(from, request, envelope);
  }
  progress();
}

void MessageLayer::wait(const NameRef& name, WaitHow how, bool is_last) {
  const std::shared_ptr<Request> request = named_.at(name);
  while (!request->has_ended) {
    if (!progress()) sleep(how, nullptr);
  }
  if (is_last) named_.erase(name);
}

void MessageLayer::wait_all(WaitHow how) {
  while (open_ > 0) {
    if (!progress()) sleep(how, nullptr);
  }
}

void MessageLayer::finish() {
  gone();
  serve_until([this] { return board_.ended_ >= board_.layers_.size(); }, board_.all_ended_);
}

void MessageLayer::gone() {
  if (++board_.ended_ == board_.layers_.size()) board_.all_ended_.notify(sc_core::SC_ZERO_TIME);
}

// ------------------------------------------------------------------------------------------------------------ sending

void MessageLayer::enqueue(Peer& to, Outgoing outgoing) {
  to.waiting.push_back(std::move(outgoing));
  flush(to);
}

void MessageLayer::flush(Peer& to) {
  while (!to.waiting.empty() && to.credits > 0) {
    Outgoing outgoing = std::move(to.waiting.front());
    to.waiting.pop_front();
    --to.credits;
    issue(to, outgoing);
  }
}

/// Puts payload and envelope to the next slot.
void MessageLayer::issue(Peer& to, Outgoing& outgoing) {
  Envelope& envelope = outgoing.envelope;
  const bool is_eager = envelope.kind == Envelope::Kind::eager;
  if (!is_eager) {
    outgoing.seed = puts_++;
    if (envelope.timeline == nullptr || counts(*envelope.timeline)) ++board_.stats_.control;
  }
  if (is_eager || envelope.kind == Envelope::Kind::request) pass(*envelope.timeline, Part::credit_wait);
  envelope.credits = std::exchange(to.owed, 0);
  const auto lane = static_cast<std::uint32_t>(to.sent++ % (config_.slots + kCreditSlots));
  board_.layers_[to.rank.index()]->peer(rank_).envelopes.push_back(envelope);
  const std::uint64_t bytes = outgoing.payload + kEnvelopeBytes;
  const VirtualAddress source = allocate(bytes);
  fill(source, bytes, outgoing.seed);
  const CompletionPointer word =
      put(to, exclusive_mailbox(rank_, lane), source, bytes, outgoing.seed, outgoing.request.get());
  flights_.push_back({word, source, nullptr});
  if (!is_eager) return;
  MessageEnd how;
  how.size = outgoing.payload;
  end(*outgoing.request, how);
}

CompletionPointer MessageLayer::put(const Peer& to, Mailbox mailbox, VirtualAddress source, std::uint64_t bytes,
                                    std::uint64_t seed, const Request* request) {
  const RankHome& there = homes_[to.rank.index()];
  PutIssue put;
  put.rank = rank_;
  put.node = home_.node;
  put.name = request == nullptr ? nullptr : request->issue.name;
  put.destination = to.rank;
  put.destination_node = there.node;
  put.destination_pid = there.pid;
  put.mailbox = mailbox;
  put.size = bytes;
  put.seed = seed;
  put.pid = home_.pid;
  put.memory = source;
  put.at = now();
  const CompletionPointer word = driver_.allocate_completion();
  put.word = word.address;
  tell([&](PlayerObserver& observer) { observer.put_issued(put); });
  const Status status = driver_.put({there.node, there.pid}, mailbox, 0, source, bytes, 0, word);
  RVMA_ASSERT(status == Status::ok, "the layer's puts are well formed");
  return word;
}

/// Tells the peer of free slots where no message to it does.
void MessageLayer::return_credits(Peer& to) {
  if (to.owed < (config_.slots + 1) / 2) return;
  Outgoing credit;
  issue(to, credit);
}

// ---------------------------------------------------------------------------------------------------------- progress

/// Takes up everything that has come. False: nothing had.
bool MessageLayer::progress() {
  bool any = end_flights();
  for (const std::unique_ptr<Peer>& from : peers_) {
    while (take(*from)) any = true;
  }
  return take_payloads() || any;
}

void MessageLayer::sleep(WaitHow how, sc_core::sc_event* wake) {
  words_.clear();
  for (const std::unique_ptr<Peer>& from : peers_) {
    words_.push_back(from->slots[from->taken % from->slots.size()].word.address);
  }
  for (const std::shared_ptr<Request>& receive : clearances_) words_.push_back(receive->word.address);
  for (const Flight& flight : flights_) {
    if (flight.request != nullptr) words_.push_back(flight.word.address);
  }
  core().wait_any(words_, how, wake);
}

bool MessageLayer::end_flights() {
  bool any = false;
  for (std::size_t i = 0; i < flights_.size();) {
    if (!driver_.test(flights_[i].word)) {
      ++i;
      continue;
    }
    const Flight flight = flights_[i];
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
    const auto outcome = static_cast<Outcome>(core().load64(flight.word.address));
    tell([&](PlayerObserver& observer) { observer.put_freed(home_.node, flight.word.address); });
    driver_.free_completion(flight.word);
    driver_.space().free(flight.source);
    if (flight.request == nullptr) continue;
    MessageEnd how;
    how.rendezvous = true;
    how.outcome = outcome;
    how.size = flight.request->issue.size;
    end(*flight.request, how);
    any = true;
  }
  return any;
}

/// The next message from a peer, if it is there.
bool MessageLayer::take(Peer& from) {
  if (from.slots.empty()) return false;
  const auto lane = static_cast<std::uint32_t>(from.taken % from.slots.size());
  const Slot& slot = from.slots[lane];
  if (!driver_.test(slot.word)) return false;
  ++from.taken;
  Envelope envelope = std::move(from.envelopes.front());
  from.envelopes.pop_front();
  const std::uint64_t length = core().load64(PhysicalAddress{slot.word.address.value() + 8});
  from.credits += envelope.credits;
  envelope.memory = slot.head;
  arrived(from, envelope);
  // The slot is free again, and as good as new.
  tell([&](PlayerObserver& observer) { observer.buffer_freed(home_.node, slot.word.address); });
  if (board_.with_bytes_) {
    bytes_.assign(length, 0);
    driver_.space().write(slot.head, bytes_.data(), bytes_.size());
  }
  post_slot(from, lane);
  if (envelope.kind != Envelope::Kind::credit) ++from.owed;
  flush(from);
  return_credits(from);
  return true;
}

void MessageLayer::arrived(Peer& from, Envelope& envelope) {
  switch (envelope.kind) {
    case Envelope::Kind::credit:
      return;
    case Envelope::Kind::clear:
      cleared(from, envelope);
      return;
    case Envelope::Kind::eager:
      pass(*envelope.timeline, Part::transfer);
      break;
    case Envelope::Kind::request:
      pass(*envelope.timeline, Part::handshake);
      break;
  }
  core().compute(config_.matching);
  pass(*envelope.timeline, Part::matching);
  if (match(from, envelope)) return;
  if (counts(*envelope.timeline)) ++board_.stats_.unexpected;
  // Slots must not wait for receives: the payload moves to memory of the layer.
  if (envelope.kind == Envelope::Kind::eager && envelope.size > 0) {
    const VirtualAddress kept = allocate(envelope.size);
    move(envelope.memory, kept, envelope.size);
    copy(envelope.size, *envelope.timeline, Part::receive_copy);
    envelope.memory = kept;
  }
  from.unexpected.push_back(envelope);
}

/// To the oldest receive that it suits, if there is one.
bool MessageLayer::match(Peer& from, Envelope& envelope) {
  const auto found = std::find_if(from.posted.begin(), from.posted.end(), [&](const std::shared_ptr<Request>& receive) {
    return receive->issue.tag == envelope.tag;
  });
  if (found == from.posted.end()) return false;
  const std::shared_ptr<Request> receive = *found;
  from.posted.erase(found);
  if (envelope.kind == Envelope::Kind::eager) {
    deliver(*receive, envelope);
  } else {
    clear(from, receive, envelope);
  }
  return true;
}

void MessageLayer::deliver(Request& receive, Envelope& envelope) {
  const bool fits = envelope.size <= receive.issue.size;
  if (fits) {
    move(envelope.memory, receive.memory, envelope.size);
    copy(envelope.size, *envelope.timeline, Part::receive_copy);
  }
  received(receive, *envelope.timeline, envelope.size, false, fits ? Status::ok : Status::bad_argument);
}

/// Posts the program's buffer, and says where.
void MessageLayer::clear(Peer& from, const std::shared_ptr<Request>& receive, Envelope& request) {
  Outgoing outgoing;
  Envelope& answer = outgoing.envelope;
  answer = request;
  answer.kind = Envelope::Kind::clear;
  if (request.size > receive->issue.size) {
    answer.status = Status::bad_argument;
    received(*receive, *request.timeline, request.size, true, answer.status);
    enqueue(from, std::move(outgoing));
    return;
  }
  answer.mailbox = exclusive_mailbox(from.rank, kFirstPayloadMailbox | mailboxes_++);
  receive->timeline = request.timeline;
  receive->word = driver_.allocate_completion();
  BufferPost post;
  post.mailbox = answer.mailbox;
  post.head = receive->memory;
  post.size = request.size;
  tell_post(post, receive->word);
  const Status status = driver_.post_one_time_buffer(answer.mailbox, request.size, ThresholdType::bytes, 0,
                                                     receive->memory, request.size, receive->word);
  RVMA_ASSERT(status == Status::ok, "the driver takes every buffer of the layer");
  receive->posted_bytes = request.size;
  clearances_.push_back(receive);
  enqueue(from, std::move(outgoing));
}

/// At the sender: the payload may go.
void MessageLayer::cleared(Peer& from, Envelope& answer) {
  const std::shared_ptr<Request> request = std::move(answer.sender);
  if (answer.status != Status::ok) {
    driver_.space().free(request->memory);
    MessageEnd how;
    how.rendezvous = true;
    how.size = request->issue.size;
    how.status = answer.status;
    end(*request, how);
    return;
  }
  pass(*request->timeline, Part::handshake);
  const CompletionPointer word =
      put(from, answer.mailbox, request->memory, request->issue.size, request->issue.seed, request.get());
  const bool ends_now = config_.send_end.get() == SendEnd::issued;
  flights_.push_back({word, request->memory, ends_now ? nullptr : request});
  if (!ends_now) return;
  MessageEnd how;
  how.rendezvous = true;
  how.size = request->issue.size;
  end(*request, how);
}

/// Receives whose payload has come.
bool MessageLayer::take_payloads() {
  bool any = false;
  for (std::size_t i = 0; i < clearances_.size();) {
    const std::shared_ptr<Request> receive = clearances_[i];
    if (!driver_.test(receive->word)) {
      ++i;
      continue;
    }
    clearances_.erase(clearances_.begin() + static_cast<std::ptrdiff_t>(i));
    pass(*receive->timeline, Part::transfer);
    tell([&](PlayerObserver& observer) { observer.buffer_freed(home_.node, receive->word.address); });
    driver_.free_completion(receive->word);
    received(*receive, *receive->timeline, receive->posted_bytes, true, Status::ok);
    any = true;
  }
  return any;
}

// --------------------------------------------------------------------------------------------------------------- ends

void MessageLayer::received(Request& receive, const Timeline& timeline, std::uint64_t size, bool rendezvous,
                            Status status) {
  if (status == Status::ok && counts(timeline)) {
    MessageStats& stats = board_.stats_;
    ++(rendezvous ? stats.rendezvous : stats.eager);
    stats.received_bytes += size;
    stats.way_ns += now() - timeline.issued;
    stats.way.add(now() - timeline.issued);
    for (std::size_t i = 0; i < timeline.parts.size(); ++i) stats.*Timeline::kSums[i] += timeline.parts[i];
    stats.span_ns += now() - board_.last_;
    board_.last_ = now();
  }
  MessageEnd how;
  how.rendezvous = rendezvous;
  how.status = status;
  how.size = size;
  how.memory = receive.memory;
  end(receive, how);
  if (receive.issue.size > 0) driver_.space().free(receive.memory);
}

void MessageLayer::end(Request& request, MessageEnd how) {
  request.has_ended = true;
  --open_;
  how.rank = rank_;
  how.node = home_.node;
  how.pid = home_.pid;
  how.number = request.issue.number;
  how.at = now();
  tell([&](PlayerObserver& observer) { observer.message_ended(how); });
}

// ------------------------------------------------------------------------------------------------------ time and bytes

/// Whether the message belongs to the measured region.
bool MessageLayer::counts(const Timeline& timeline) const {
  return timeline.measured && timeline.period == board_.period_;
}

void MessageLayer::pass(Timeline& timeline, Part part) {
  timeline.parts[static_cast<std::size_t>(part)] += now() - timeline.last;
  timeline.last = now();
}

/// The time that it takes a core; the bytes are another matter.
void MessageLayer::copy(std::uint64_t bytes, Timeline& timeline, Part part) {
  const Time time = copy_time(config_.memcpy_rate, bytes);
  core().compute(time);
  if (counts(timeline)) board_.stats_.copying_ns += time;
  pass(timeline, part);
}

void MessageLayer::move(VirtualAddress from, VirtualAddress to, std::uint64_t bytes) {
  if (!board_.with_bytes_ || bytes == 0) return;
  bytes_.resize(bytes);
  driver_.space().read(from, bytes_.data(), bytes);
  driver_.space().write(to, bytes_.data(), bytes);
}

/// At a page border, if it has pages of its own, as an allocator of large buffers would place it.
VirtualAddress MessageLayer::allocate(std::uint64_t bytes) {
  const std::uint64_t page = driver_.space().page_bytes();
  return driver_.space().allocate(bytes, bytes >= page ? page : 64);
}

void MessageLayer::fill(VirtualAddress head, std::uint64_t bytes, std::uint64_t seed) {
  if (!board_.with_bytes_) return;
  for (std::uint64_t done = 0; done < bytes;) {
    const PatternPiece piece = pattern_piece(seed, done, bytes - done);
    driver_.space().write(VirtualAddress{head.value() + done}, piece.data, piece.bytes);
    done += piece.bytes;
  }
}

}  // namespace rvma
