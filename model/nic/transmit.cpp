#include "nic/transmit.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "fabric/wire.hpp"
#include "host/interfaces.hpp"

namespace rvma {
namespace {

// Tags of reads: two kinds share the engine.
constexpr std::uint64_t kListTag = 1;
constexpr std::uint64_t payload_tag(std::uint64_t number) { return number << 1U; }
constexpr std::uint64_t list_tag(std::uint32_t uses, std::uint32_t put) {
  return (std::uint64_t{uses & 0x7fff'ffffU} << 33U) | (std::uint64_t{put} << 1U) | kListTag;
}

constexpr std::uint32_t kListEntryBytes = 8;
constexpr std::uint32_t kWordBytes = 16;

PhysicalAddress list_entry(const std::uint8_t* bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < kListEntryBytes; ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return PhysicalAddress{value};
}

DmaWrite word_write(PhysicalAddress to, std::uint64_t first, std::uint64_t second) {
  DmaWrite write;
  write.to.add(to, kWordBytes);
  write.word = {first, second};
  write.is_word = true;
  return write;
}

bool is_read_answer(const PutRequest& request) {
  return request.purpose == Purpose::rdma && request.rdma.operation == RdmaOperation::read_answer;
}

/// Whether it stands in its queue pair's queue: an answer to a read does not wait behind what its node asks for.
bool is_stoppable(const PutRequest& request) {
  return request.purpose == Purpose::rdma && request.rdma.operation != RdmaOperation::read &&
         request.rdma.operation != RdmaOperation::read_answer;
}

/// Whether the message has its place in the order of an RDMA queue pair.
bool has_order(const PutRequest& request) {
  return request.purpose == Purpose::rdma && request.rdma.operation != RdmaOperation::read;
}

/// What stands in a packet that only fills its number: the message, and packet 1 of no bytes. That contradicts itself,
/// so that it changes nothing wherever it arrives, even if nothing else of its message ever did.
DataHeader filler(MessageId message) {
  DataHeader data;
  data.message = message;
  data.packet_index = 1;
  return data;
}

}  // namespace

Transmit::Transmit(const sc_core::sc_module_name& name, SimContext& context, const Parameters& parameters,
                   PacketPool& packets, PayloadPool& payloads, InterruptArm& arm, const ObserverList& observers)
    : Component(name, context, parameters.config.clock),
      dma("dma"),
      egress("egress"),
      gets("gets"),
      config_(parameters.config),
      page_bytes_(parameters.page.count()),
      node_(parameters.node),
      boot_number_(parameters.boot_number),
      timing_only_(parameters.timing_only),
      mtu_(static_cast<std::uint32_t>(config_.mtu->count())),
      list_entries_(std::min(kMostListEntries, payloads.buffer_bytes() / kListEntryBytes)),
      limits_{config_.reliability.window,
              config_.reliability.messages,
              config_.reliability.max_tries,
              config_.reliability.rto,
              config_.reliability.reorder_window,
              {config_.congestion.control, config_.congestion.target, config_.congestion.initial_window,
               config_.reliability.window}},
      packets_(packets),
      payloads_(payloads),
      arm_(arm),
      observers_(observers),
      arrival_(*this, "arrival", [this] { take_acknowledgements(); }),
      timer_(*this, "timer", [this] { run_timer(); }) {
  RVMA_ASSERT(payloads.buffer_bytes() >= mtu_, "payload buffers are smaller than the mtu");
  context.stats().add(path(), stats_);
  context.stats().add_level(path(), "open_puts", stats_.open_puts, [this]() -> std::uint64_t { return open_puts_; });
  context.stats().add_level(path(), "buffer_bytes", stats_.buffer, [this]() -> std::uint64_t { return buffer_used_; });
}

// ----------------------------------------------------------------------------------------------------------- puts

bool Transmit::submit(const PutRequest& put, Cycles at) {
  // An accepted request is answered whatever the own puts and requests wait for: else two NICs that ask each other hold
  // the entries that each other's answers need.
  const bool is_answer = put.purpose == Purpose::get_answer;
  RVMA_ASSERT(!is_answer || open_answers_ < config_.get.queue, "more answers than requests that may be accepted");
  // So are reads of the RDMA NIC, whose work unit bounds them; its peak counts their answers too.
  const bool has_entry = is_answer || is_read_answer(put);
  if (!has_entry && open_puts_ - open_read_answers_ >= config_.transmit.open_puts) {
    ++stats_.full;
    if (!std::exchange(starved_, true)) open_puts_full_since_ = clock().time_of(at);
    return false;
  }
  // 1. An entry of the open-put table.
  if (is_read_answer(put)) ++open_read_answers_;
  const Index index = take_entry(put.purpose);
  const Time when = clock().time_of(at);
  Put& entry = puts_[index];
  entry.request = put;
  entry.commanded = when;
  entry.began = when;
  ++(put.purpose == Purpose::put           ? stats_.puts
     : put.purpose == Purpose::rdma        ? stats_.rdma_messages
     : put.purpose == Purpose::get_request ? stats_.get_requests
                                           : stats_.get_answers);
  const NodeId node = put.descriptor.destination_node;
  if (!keep_context(node)) {
    ++stats_.no_context;
    end_put(index, Outcome::busy, when);
    return true;
  }
  entry.peer = peer_of(node);
  entry.window_waited = peers_[entry.peer]->window_waited(when);
  // 2. A message that packet numbers cannot span fits no buffer either.
  const std::uint64_t length = put.descriptor.length;
  const std::uint64_t packets = length == 0 ? 1 : (length - 1) / mtu_ + 1;
  if (packets > std::numeric_limits<std::uint32_t>::max()) {
    end_put(index, Outcome::bounds, when);
    return true;
  }
  entry.packets = static_cast<std::uint32_t>(packets);
  if (has_order(put)) {
    entry.request.descriptor.offset = peers_[entry.peer]->queue_pairs[put.rdma.queue_pair].messages++;
  }
  // 3. Its page list is fetched while it waits for its turn.
  if (!put.descriptor.single_page && length > 0) fetch_list_piece(index, 0, when);
  queue_put(index);
  pump(when);
  return true;
}

Transmit::Index Transmit::take_entry(Purpose purpose) {
  const Index index = puts_.take();
  Put& put = puts_[index];
  put.open = true;
  put.asks = false;
  put.tries = 0;
  put.first_page = 0;
  put.pages.clear();
  if (purpose == Purpose::get_answer) {
    ++open_answers_;
  } else {
    stats_.open_puts.observe(++open_puts_);
  }
  return index;
}

Transmit::Index Transmit::peer_of(NodeId node) {
  const auto [place, is_new] = peer_index_.try_emplace(node, static_cast<Index>(peers_.size()));
  if (is_new) {
    peers_.push_back(std::make_unique<Peer>(node, limits_));
    if (cache_ != nullptr) cache_->add(place->second);
  }
  return place->second;
}

// -------------------------------------------------------------------------------------------------------- contexts

void Transmit::use_cache(SpilledCache& contexts) {
  cache_ = &contexts;
  contexts.set_rest([this](std::uint32_t peer) { return peers_[peer]->context.rest_bytes(); });
}

bool Transmit::keep_context(NodeId node) {
  if (cache_ != nullptr && cache_->is_full() && peer_index_.count(node) == 0) return false;
  peer_of(node);
  return true;
}

bool Transmit::is_ready(Peer& peer, Index index, Time at) {
  if (cache_ == nullptr) return true;
  TransmitContext::Resend resend;
  if (peer.sending == kNone && peer.waiting.empty() && !peer.context.next_resend(resend)) return false;
  if (peer.is_fetched) return false;
  if (cache_->lookup(index)) return true;
  // The wait counts as one for the peer's window.
  peer.window_is(true, at);
  peer.is_fetched = true;
  cache_->fetch(index, SpilledCache::Wait::to_send, [this, index] {
    peers_[index]->is_fetched = false;
    take_turn(index);
    pump(now());
  });
  // A host without delay has answered already.
  return !peer.is_fetched;
}

void Transmit::with_context(Index index, std::function<void()> then) {
  if (cache_ == nullptr) {
    then();
    return;
  }
  if (!cache_->lookup(index)) {
    cache_->fetch(index, SpilledCache::Wait::other, [this, index, then = std::move(then)] {
      cache_->changed(index);
      then();
    });
    return;
  }
  cache_->changed(index);
  then();
}

void Transmit::finish(Index peer, const TransmitContext::Ended& message, Time at) {
  Put& put = puts_[message.put];
  // What is not cut yet of a message that has ended is not sent.
  if (peers_[peer]->sending == message.put) peers_[peer]->sending = kNone;
  const bool has_queue = is_stoppable(put.request);
  if (has_queue && is_retried(message.outcome)) {
    stop(message.put, at);
    return;
  }
  // What an RDMA NIC is asked for is asked for again for ever.
  const bool may_retry = put.tries <= config_.reliability.rnr_tries || put.request.purpose == Purpose::rdma;
  if (is_retried(message.outcome) && may_retry) {
    retry_later(message.put, at);
    return;
  }
  if (put.asks) was_taken(message.put, at);
  end_put(message.put, message.outcome, at);
}

void Transmit::retry_later(Index index, Time at) {
  puts_[index].refused = at;
  retries_.push({at + config_.reliability.rnr_delay, index, puts_[index].uses});
  arm_timer();
}

void Transmit::send_again(Index index, Time at) {
  Put& put = puts_[index];
  if (put.tries > 0) {
    put.began = at;
    stats_.retry_wait_ns += at - put.refused;
  }
  queue_put(index);
}

// ---------------------------------------------------------------------------------------------- stopped queue pairs

Transmit::QueuePair& Transmit::queue_pair_of(const Put& put) {
  return peers_[put.peer]->queue_pairs.at(put.request.rdma.queue_pair);
}

/// A queue pair's message has found no receive. As with InfiniBand (rnr_retry = 7) the queue pair stops, and the
/// message is asked for again for ever; what was sent behind it is refused, too, and waits with it.
void Transmit::stop(Index index, Time at) {
  Put& put = puts_[index];
  QueuePair& queue_pair = queue_pair_of(put);
  const bool was_asking = put.asks;
  put.refused = at;
  hold(queue_pair, index);
  // 1. Those of it that are not sent yet are not sent now.
  const bool was_stopped = std::exchange(queue_pair.is_stopped, true);
  FifoRing<Index>& waiting = peers_[put.peer]->waiting;
  for (std::size_t left = was_stopped ? 0 : waiting.size(); left > 0; --left) {
    const Index next = waiting.pop();
    const PutRequest& request = puts_[next].request;
    if (is_stoppable(request) && request.rdma.queue_pair == put.request.rdma.queue_pair) {
      hold(queue_pair, next);
    } else {
      waiting.push(next);
    }
  }
  // 2. The pause. What was sent before the queue pair stopped says nothing new.
  if (was_stopped && !was_asking && queue_pair.asking > 0) return;
  queue_pair.burst = 1;
  if (!std::exchange(queue_pair.pauses, true)) retry_later(index, at);
}

void Transmit::hold(QueuePair& queue_pair, Index index) {
  if (std::exchange(puts_[index].asks, false)) --queue_pair.asking;
  queue_pair.held.emplace(puts_[index].request.descriptor.offset, index);
}

/// The first ones go again.
void Transmit::ask(QueuePair& queue_pair, Time at) {
  for (std::uint32_t left = queue_pair.burst; left > 0 && !queue_pair.held.empty(); --left) {
    const Index first = queue_pair.held.begin()->second;
    queue_pair.held.erase(queue_pair.held.begin());
    puts_[first].asks = true;
    ++queue_pair.asking;
    send_again(first, at);
  }
  queue_pair.is_stopped = !queue_pair.held.empty();
}

/// One that was asked for again has been taken, or has ended otherwise.
void Transmit::was_taken(Index index, Time at) {
  QueuePair& queue_pair = queue_pair_of(puts_[index]);
  puts_[index].asks = false;
  if (--queue_pair.asking > 0 || queue_pair.pauses) return;
  queue_pair.burst *= 2;
  ask(queue_pair, at);
}

void Transmit::end_put(Index index, Outcome outcome, Time at) {
  Put& put = puts_[index];
  const bool is_put = put.request.purpose == Purpose::put;
  const PutRequest request = is_put ? PutRequest{} : put.request;
  const std::uint32_t tries = put.tries;
  if (is_put) tell_end(put, outcome, at);
  // The entry is free.
  put.open = false;
  ++put.uses;
  put.list_piece.reset();
  put.list_piece_entries = 0;
  put.request.payload.reset();
  puts_.give_back(index);
  const bool is_answer = !is_put && request.purpose == Purpose::get_answer;
  --(is_answer ? open_answers_ : open_puts_);
  if (is_read_answer(request)) --open_read_answers_;
  // One half of a get: the get unit goes on with it, perhaps with the next.
  if (!is_put && gets.size() > 0) gets->ended(request, outcome, tries, at);
  if (!is_answer && std::exchange(starved_, false)) {
    stats_.open_puts_full.occupy(std::max(at - open_puts_full_since_, Time::zero()), 1);
    for (const auto& room : room_) room();
  }
}

void Transmit::tell_end(const Put& put, Outcome outcome, Time at) {
  const Descriptor& descriptor = put.request.descriptor;
  ++ended(outcome);
  // 1. Results and checks see the end before the host can.
  if (!observers_.empty()) {
    observers_.tell(
        [&](NicObserver& observer) { observer.put_ended(node_, descriptor.completion, outcome, put.tries, at); });
  }
  // 2. The local completion word, then the interrupt if one is wanted: strictly ordered, so it finds the word written.
  if (descriptor.completion.value() == 0) return;
  const std::uint64_t bytes = outcome == Outcome::ok ? descriptor.length : 0;
  dma->write(word_write(descriptor.completion, static_cast<std::uint64_t>(outcome), bytes), *this, at);
  interrupt_if_armed(put, at);
}

/// An answer whose buffer is not its window's any more is not sent any further: what lies there may be anything. The
/// asker's get times out.
bool Transmit::gives_up_unreadable(Index peer_index, Index index, Time at) {
  Put& put = puts_[index];
  if (put.request.purpose != Purpose::get_answer || gets->may_read(put.request)) return false;
  ++stats_.answers_given_up;
  Peer& peer = *peers_[peer_index];
  if (peer.sending == index) {
    peer.sending = kNone;
  } else if (!peer.waiting.empty() && peer.waiting.front() == index) {
    peer.waiting.pop();
  }
  if (put.tries > 0) peer.context.abandon(put.message);
  end_put(index, Outcome::stale, at);
  return true;
}

/// Its bytes were read while they ceased to be the window's. Its number is taken: it goes out empty.
void Transmit::empty_unreadable(Reading& reading) {
  if (reading.put == kNone) return;
  const bool is_current = puts_[reading.put].open && puts_[reading.put].uses == reading.uses;
  if (is_current && !gives_up_unreadable(reading.peer, reading.put, now())) return;
  Packet& packet = *reading.packet;
  buffer_used_ -= packet.data.payload_length;
  packet.data = filler(packet.data.message);
  packet.payload.reset();
  packet.wire_bytes = wire_bytes_of(packet);
}

void Transmit::interrupt_if_armed(const Put& put, Time at) {
  if (!arm_.take(put.request.descriptor.completion)) return;
  dma->write(word_write(interrupt_address(put.request.pid), 0, 0), *this, at);
}

Counter& Transmit::ended(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok:
      return stats_.ended_ok;
    case Outcome::no_mailbox:
      return stats_.ended_no_mailbox;
    case Outcome::closed:
      return stats_.ended_closed;
    case Outcome::bad_key:
      return stats_.ended_bad_key;
    case Outcome::stale:
      return stats_.ended_stale;
    case Outcome::no_buffer:
      return stats_.ended_no_buffer;
    case Outcome::bounds:
      return stats_.ended_bounds;
    case Outcome::busy:
      return stats_.ended_busy;
    case Outcome::timeout:
    case Outcome::pending:
    case Outcome::unfinished:
      break;
  }
  return stats_.ended_timeout;
}

// ----------------------------------------------------------------------------------------------------- page lists

std::uint64_t Transmit::pages_of(const Put& put) const {
  const Descriptor& descriptor = put.request.descriptor;
  return (descriptor.local.value() % page_bytes_ + descriptor.length - 1) / page_bytes_ + 1;
}

void Transmit::fetch_list_piece(Index index, std::uint64_t first, Time at) {
  Put& put = puts_[index];
  const auto entries = static_cast<std::uint32_t>(std::min<std::uint64_t>(list_entries_, pages_of(put) - first));
  put.list_piece = payloads_.acquire(static_cast<std::uint32_t>(kListEntryBytes * entries));
  put.list_piece_entries = entries;
  ++stats_.list_reads;
  DmaRead read;
  read.from.add(PhysicalAddress{put.request.descriptor.page_list.value() + kListEntryBytes * first},
                kListEntryBytes * entries);
  read.into = put.list_piece;
  read.tag = list_tag(put.uses, index);
  dma->read(std::move(read), *this, at);
}

void Transmit::list_piece_arrived(Index index) {
  Put& put = puts_[index];
  for (std::uint32_t i = 0; i < put.list_piece_entries; ++i) {
    put.pages.push_back(list_entry(put.list_piece->data() + kListEntryBytes * i));
  }
  put.list_piece.reset();
  put.list_piece_entries = 0;
  take_turn(put.peer);
  pump(now());
}

/// Entries of the page list before this one are not needed again by this sending.
std::uint64_t Transmit::first_needed_page(const Put& put) const {
  const std::uint64_t packet = peers_[put.peer]->context.first_unacknowledged(put.message);
  return (put.request.descriptor.local.value() % page_bytes_ + packet * mtu_) / page_bytes_;
}

/// Physical memory of `length` bytes at `offset` of the put; false: that part of its page list is not here yet.
bool Transmit::locate(Index index, std::uint64_t offset, std::uint32_t length, SegmentList& from, Time at) {
  Put& put = puts_[index];
  const Descriptor& descriptor = put.request.descriptor;
  std::uint64_t position = descriptor.local.value() % page_bytes_ + offset;
  if (length == 0 || put.request.payload) return true;
  if (descriptor.single_page) {
    from.add(PhysicalAddress{descriptor.page_list.value() + position}, length);
    return true;
  }
  // 1. Entries that no packet, new or sent again, needs go; the next piece is asked for when half a piece is left.
  const std::uint64_t first = position / page_bytes_;
  const std::uint64_t last = (position + length - 1) / page_bytes_;
  if (first < put.first_page) {
    // A retry starts at the beginning again.
    if (put.list_piece_entries != 0) return false;
    put.pages.clear();
    put.first_page = first;
  }
  if (first - put.first_page >= 2 * list_entries_) {
    const std::uint64_t needed = std::clamp(first_needed_page(put), put.first_page, first);
    put.pages.erase(put.pages.begin(), put.pages.begin() + static_cast<std::ptrdiff_t>(needed - put.first_page));
    put.first_page = needed;
  }
  const std::uint64_t here = put.first_page + put.pages.size();
  if (put.list_piece_entries == 0 && here < pages_of(put) && here < last + 1 + list_entries_ / 2) {
    fetch_list_piece(index, here, at);
  }
  if (last >= here) return false;
  // 2. One segment a page.
  while (length > 0) {
    const std::uint64_t in_page = position % page_bytes_;
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, page_bytes_ - in_page));
    const PhysicalAddress page = put.pages[position / page_bytes_ - put.first_page];
    from.add(PhysicalAddress{page.value() + in_page}, bytes);
    position += bytes;
    length -= bytes;
  }
  return true;
}

// -------------------------------------------------------------------------------------------------------- packets

void Transmit::queue_put(Index index) {
  Put& put = puts_[index];
  put.next_packet = 0;
  if (is_stoppable(put.request)) {
    QueuePair& queue_pair = queue_pair_of(put);
    if (queue_pair.is_stopped && !put.asks) {
      hold(queue_pair, index);
      return;
    }
  }
  peers_[put.peer]->waiting.push(index);
  take_turn(put.peer);
}

void Transmit::take_turn(Index peer) {
  if (std::exchange(peers_[peer]->in_turn, true)) return;
  turn_.push(peer);
}

void Transmit::pump(Time at) {
  if (pumping_) return;  // the loop below is at work further up the call stack, and sees the change
  pumping_ = true;
  if (std::exchange(buffer_stalled_, false)) {
    stats_.buffer_full.occupy(std::max(at - buffer_full_since_, Time::zero()), 1);
  }
  while (!turn_.empty()) {
    const Index index = turn_.front();
    Peer& peer = *peers_[index];
    const Step step = is_ready(peer, index, at) ? cut_next(peer, index, at) : Step::blocked;
    if (step == Step::no_buffer) {
      ++stats_.buffer_stalls;
      buffer_stalled_ = true;
      buffer_full_since_ = std::max(buffer_full_since_, at);  // departures are told ahead, and not in order
      break;
    }
    turn_.pop();
    peers_[index]->in_turn = false;
    if (step == Step::cut) take_turn(index);
  }
  pumping_ = false;
}

/// Cuts the peer's next packet and starts reading its payload.
Transmit::Step Transmit::cut_next(Peer& peer, Index peer_index, Time at) {
  // 1. Which, within the peer's limits.
  Cut cut;
  if (!choose(peer, cut, at)) return Step::blocked;
  if (cut.put != kNone && gives_up_unreadable(peer_index, cut.put, at)) return Step::cut;
  // 2. Page list and transmit buffer.
  SegmentList from;
  if (cut.length > 0 && !locate(cut.put, std::uint64_t{cut.packet_index} * mtu_, cut.length, from, at)) {
    ++stats_.list_stalls;
    return Step::blocked;
  }
  if (cut.length > 0 && buffer_used_ > 0 && buffer_used_ + cut.length > config_.transmit.buffer->count()) {
    return Step::no_buffer;
  }
  // 3. One packet a cycle.
  const Time commanded = cut.put == kNone ? Time::zero() : puts_[cut.put].commanded;
  const Cycles cycle = std::max(clock().edge_at_or_after(std::max(at, commanded)), next_cut_);
  next_cut_ = cycle + Cycles{1};
  const Time when = clock().time_of(cycle);
  if (cache_ != nullptr) cache_->changed(peer_index);
  stats_.cut.occupy(clock().time_of(next_cut_) - when, 1);
  if (cut.again) {
    take_again(peer, cut);
  } else {
    take_new(peer, cut, when);
  }
  // 4. Its payload.
  read_payload(make_packet(cut, peer, when), peer_index, cut.put, from, when);
  return Step::cut;
}

bool Transmit::choose(Peer& peer, Cut& cut, Time at) {
  const auto length_of = [this](const Put& put, std::uint32_t packet) {
    const std::uint64_t offset = std::uint64_t{packet} * mtu_;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(mtu_, put.request.descriptor.length - offset));
  };
  // 1. What is to be sent again goes first: the window waits for it.
  TransmitContext::Resend resend;
  const bool again = peer.context.next_resend(resend);
  const bool has_work = again || peer.sending != kNone || !peer.waiting.empty();
  if (has_work && !peer.context.network_room(at)) {
    ++stats_.congestion_stalls;
    if (!again) peer.window_is(true, at);
    if (peer.context.in_flight() == 0) watch(peer_index_.at(peer.node));
    return false;
  }
  if (again) {
    cut.again = true;
    cut.sequence = resend.sequence;
    cut.message = resend.message;
    if (resend.put == TransmitContext::kNoPut) return true;
    cut.put = resend.put;
    cut.packet_index = resend.packet_index;
    cut.length = length_of(puts_[cut.put], cut.packet_index);
    return true;
  }
  // 2. The message being sent, else the next put.
  const bool opens = peer.sending == kNone;
  if (opens && peer.waiting.empty()) return false;
  const bool window_full = !peer.context.packet_room() || (opens && !peer.context.message_room());
  peer.window_is(window_full, at);
  if (window_full) {
    ++stats_.window_stalls;
    return false;
  }
  cut.put = opens ? peer.waiting.front() : peer.sending;
  cut.packet_index = puts_[cut.put].next_packet;
  cut.length = length_of(puts_[cut.put], cut.packet_index);
  return true;
}

void Transmit::take_new(Peer& peer, Cut& cut, Time at) {
  Put& put = puts_[cut.put];
  if (peer.sending == kNone) {
    peer.waiting.pop();
    peer.sending = cut.put;
    put.message = peer.context.open(cut.put);
    ++put.tries;
    ++stats_.messages;
    if (put.tries > 1) ++stats_.retries;
    // What an RDMA message is for, the software knows that asked for it.
    if (!observers_.empty() && put.request.purpose != Purpose::rdma) tell_opened(put, peer, at);
  }
  const bool last = put.next_packet + 1 == put.packets;
  cut.message = put.message;
  cut.sequence = peer.context.take_sequence(put.message, last);
  ++put.next_packet;
  if (last) peer.sending = kNone;
  ++stats_.packets;
  stats_.payload_bytes += cut.length;
}

void Transmit::tell_opened(const Put& put, const Peer& peer, Time at) {
  const MessageRef message{node_, boot_number_, peer.context.generation(), put.message};
  const Descriptor& descriptor = put.request.descriptor;
  observers_.tell([&](NicObserver& observer) {
    if (put.request.purpose == Purpose::get_answer) {
      observer.answer_opened(node_, peer.node, descriptor.destination_pid, descriptor.mailbox, message, at);
    } else {
      observer.message_opened(node_, descriptor.completion, peer.node, message, at);
    }
  });
}

void Transmit::take_again(Peer& peer, const Cut& cut) {
  peer.context.pop_resend();
  ++stats_.resent;
  stats_.resent_bytes += cut.length;
  if (cut.put == kNone) ++stats_.fillers;
}

PacketPtr Transmit::make_packet(const Cut& cut, Peer& peer, Time at) {
  if (peer.incarnation == 0) peer.first_blind = std::min(peer.first_blind, at);
  PacketPtr packet = packets_.acquire();
  packet->transport.type = PacketType::data;
  packet->transport.source = node_;
  packet->transport.destination = peer.node;
  packet->transport.source_incarnation = boot_number_;
  packet->transport.destination_incarnation = peer.incarnation;
  packet->transport.generation = peer.context.generation();
  packet->transport.sequence = cut.sequence;
  packet->data = filler(cut.message);
  packet->is_resent = cut.again;
  if (cut.put != kNone) {
    const Put& put = puts_[cut.put];
    const Descriptor& descriptor = put.request.descriptor;
    packet->data.destination_pid = descriptor.destination_pid;
    packet->data.source_pid = put.request.pid;
    packet->data.mailbox = descriptor.mailbox;
    packet->data.key = descriptor.key;
    packet->data.message_length = descriptor.length;
    packet->data.offset = descriptor.offset;
    packet->data.packet_index = cut.packet_index;
    packet->data.payload_length = static_cast<std::uint16_t>(cut.length);
    packet->data.is_get = put.request.purpose == Purpose::get_request;
    packet->data.ask = put.request.ask;
    packet->data.rdma = put.request.rdma;
    packet->stamp(Stage::doorbell, put.request.doorbell);
    packet->stamp(Stage::command, put.commanded);
    packet->stamp(Stage::retry, put.began);
    const Time window_wait = std::min(peer.window_waited(at) - put.window_waited, at - put.began);
    if (!cut.again && cut.packet_index + 1 == put.packets) stats_.window_wait_ns += window_wait;
    packet->stamp(Stage::turn, at - window_wait);
    packet->stamp(Stage::window, at);
  }
  packet->wire_bytes = wire_bytes_of(*packet);
  return packet;
}

void Transmit::read_payload(PacketPtr packet, Index peer_index, Index put, const SegmentList& from, Time at) {
  const std::uint64_t number = first_reading_ + reading_.size();
  const std::uint32_t length = packet->data.payload_length;
  Reading reading;
  reading.peer = peer_index;
  reading.generation = peers_[peer_index]->context.generation();
  if (put != kNone && puts_[put].request.purpose == Purpose::get_answer && length > 0) {
    reading.put = put;
    reading.uses = puts_[put].uses;
  }
  // What RDMA's software says to its like is no payload of the program's: the run depends on it.
  const bool has_bytes = !timing_only_ || packet->data.rdma.operation == RdmaOperation::send;
  const PayloadRef here = put == kNone ? nullptr : puts_[put].request.payload;
  buffer_used_ += length;
  if (length > 0) stats_.buffer.observe(buffer_used_);
  if (length > 0 && has_bytes) packet->payload = payloads_.acquire(length);
  if (length == 0 || here) {
    // The entry keeps what came with the descriptor for another try.
    if (packet->payload) std::memcpy(packet->payload->data(), here->data(), length);
    reading.packet = std::move(packet);
    reading.ready = true;
    reading.ready_at = at;
    reading_.push(std::move(reading));
    release();
    return;
  }
  DmaRead read;
  read.from = from;
  read.into = packet->payload;
  read.tag = payload_tag(number);
  reading.packet = std::move(packet);
  reading_.push(std::move(reading));
  dma->read(std::move(read), *this, at);
}

/// Hands on the packets at the front whose payload is here.
void Transmit::release() {
  while (!reading_.empty() && reading_.front().ready) {
    Reading reading = reading_.pop();
    ++first_reading_;
    TransmitContext& context = peers_[reading.peer]->context;
    if (reading.generation != context.generation()) {
      // The peer was given up while the payload was read. The put has ended, so its memory is the program's again:
      // these bytes may be anything, and must not be delivered.
      ++stats_.abandoned;
      buffer_used_ -= reading.packet->data.payload_length;
      continue;
    }
    empty_unreadable(reading);
    const Time ready = std::max(reading.ready_at, now());
    reading.packet->stamp(Stage::payload_read, ready);
    // The oldest open id as late as it can be known: the receiver may forget the earlier ones.
    reading.packet->data.open_span = context.open_span(reading.packet->data.message);
    egress->send_data(std::move(reading.packet), ready);
  }
}

void Transmit::departed(const Egress::Departure& departure) {
  const auto found = peer_index_.find(departure.destination);
  RVMA_ASSERT(found != peer_index_.end(), "a packet left for nobody");
  TransmitContext& context = peers_[found->second]->context;
  if (departure.generation == context.generation()) {
    context.sent(departure.sequence, departure.at);
    watch(found->second);
  }
  buffer_used_ -= departure.payload_bytes;
  if (buffer_stalled_) pump(departure.at);
}

void Transmit::dma_read_done(std::uint64_t tag) {
  if ((tag & kListTag) != 0) {
    const auto index = static_cast<Index>(tag >> 1U);
    // The put may have ended (timeout) meanwhile, and another may have its entry.
    if (puts_[index].open && list_tag(puts_[index].uses, index) == tag) list_piece_arrived(index);
    return;
  }
  Reading& reading = reading_[(tag >> 1U) - first_reading_];
  reading.ready = true;
  reading.ready_at = now();
  release();
  // Abandoned packets have left the transmit buffer, too.
  if (buffer_stalled_) pump(now());
}

// ---------------------------------------------------------------------------------------------- answers and timers

void Transmit::acknowledgement(PacketPtr packet, Time at) {
  acknowledgements_.push({std::move(packet), at});
  arrival_.at(std::max(at, now()));
}

void Transmit::take_acknowledgements() {
  while (!acknowledgements_.empty() && acknowledgements_.front().at <= now()) {
    Acknowledgement acknowledgement = acknowledgements_.pop();
    take_in(std::move(acknowledgement.packet), now());
  }
  if (!acknowledgements_.empty()) arrival_.at(acknowledgements_.front().at);
}

void Transmit::take_in(PacketPtr packet, Time at) {
  ++stats_.acknowledgements;
  // 1. For this incarnation, by the peer's latest one.
  const TransportHeader& header = packet->transport;
  const auto found = peer_index_.find(header.source);
  if (found == peer_index_.end() || header.destination_incarnation != boot_number_ ||
      header.source_incarnation < peers_[found->second]->incarnation) {
    ++stats_.ignored_acknowledgements;
    return;
  }
  const Index index = found->second;
  if (cache_ == nullptr) {
    take_in_here(*packet, index, at);
    return;
  }
  peers_[index]->answers.push(std::move(packet));
  with_context(index, [this, index] { take_in_here(*peers_[index]->answers.pop(), index, now()); });
}

void Transmit::take_in_here(const Packet& packet, Index index, Time at) {
  const TransportHeader& header = packet.transport;
  Peer& peer = *peers_[index];
  if (header.source_incarnation < peer.incarnation) {
    ++stats_.ignored_acknowledgements;
    return;
  }
  // 2. A peer that has restarted knows nothing of what was open.
  if (header.source_incarnation > peer.incarnation && peer.incarnation != 0) {
    ++stats_.peers_restarted;
    peer.incarnation = header.source_incarnation;
    give_up(index, at);
    return;
  }
  // 3. It says who it is, and has counted nothing of this sender.
  if (packet.ack.age_us > 0) {
    meet(index, packet, at);
    return;
  }
  // 4. What it acknowledges in the current generation, and the puts that it ends.
  ended_.clear();
  if (header.generation != peer.context.generation() || !peer.context.acknowledge(packet.ack, at, ended_)) {
    ++stats_.ignored_acknowledgements;
    return;
  }
  peer.incarnation = header.source_incarnation;
  count(peer.context);
  for (std::size_t i = 0; i < ended_.size(); ++i) finish(index, ended_[i], at);
  // 5. The window may have opened, and packets may be known to be lost.
  watch(index);
  take_turn(index);
  pump(at);
}

/// A peer of which nothing was known is not in its first life. What was sent before it was powered on may have been
/// counted by an earlier one; everything else goes again, naming the one that is there.
void Transmit::meet(Index index, const Packet& packet, Time at) {
  Peer& peer = *peers_[index];
  if (peer.incarnation != 0) {
    ++stats_.ignored_acknowledgements;
    return;
  }
  peer.incarnation = packet.transport.source_incarnation;
  // It is that old at least, so that it was powered on no later than this.
  const Time powered_on = at - Time::from_us(packet.ack.age_us - 1);
  if (peer.first_blind < powered_on) {
    ++stats_.peers_restarted;
    give_up(index, at);
    return;
  }
  peer.context.send_all_again();
  watch(index);
  take_turn(index);
  pump(at);
}

void Transmit::count(TransmitContext& context) {
  const TransmitContext::Counts counts = context.take_counts();
  stats_.lost_by_evidence += counts.lost_by_evidence;
  stats_.timed_out += counts.timed_out;
  stats_.resent_in_vain += counts.in_vain;
  stats_.probes += counts.probes;
  stats_.congestion_decreases += counts.decreases;
}

void Transmit::watch(Index index) {
  Peer& peer = *peers_[index];
  const Time due = peer.context.deadline();
  if (due.is_never() == peer.waits) {
    peer.waits = !peer.waits;
    waiting_peers_ += peer.waits ? 1 : -1;
  }
  if (waiting_peers_ == 0) {
    // Nobody waits for anything: a timer that is left would be the run's last event.
    for (; !watches_.empty(); watches_.pop()) peers_[watches_.top().peer]->watched = Time::max();
    timer_.cancel();
    arm_timer();
    return;
  }
  // A later deadline is found when the earlier one is looked at.
  if (due >= peer.watched) return;
  peer.watched = due;
  watches_.push({due, index});
  arm_timer();
}

void Transmit::arm_timer() {
  Time next = watches_.empty() ? Time::max() : watches_.top().due;
  if (!retries_.empty()) next = std::min(next, retries_.front().due);
  if (!next.is_never()) timer_.at(std::max(next, now()));
}

void Transmit::run_timer() {
  // 1. Retries go to the end of their peer's queue.
  while (!retries_.empty() && retries_.front().due <= now()) {
    const Retry retry = retries_.pop();
    Put& put = puts_[retry.put];
    if (!put.open || put.uses != retry.uses) continue;
    if (is_stoppable(put.request)) {
      queue_pair_of(put).pauses = false;
      ask(queue_pair_of(put), now());
    } else {
      send_again(retry.put, now());
    }
  }
  // 2. Peers from which nothing was heard for too long.
  while (!watches_.empty() && watches_.top().due <= now()) {
    const Watch due = watches_.top();
    watches_.pop();
    if (peers_[due.peer]->watched != due.due) continue;
    peers_[due.peer]->watched = Time::max();
    check(due.peer, now());
  }
  pump(now());
  arm_timer();
}

void Transmit::check(Index index, Time at) {
  if (cache_ == nullptr || cache_->is_on_chip(index)) {
    check_here(index, at);
    return;
  }
  with_context(index, [this, index] {
    check_here(index, now());
    pump(now());
    arm_timer();
  });
}

void Transmit::check_here(Index index, Time at) {
  TransmitContext& context = peers_[index]->context;
  ended_.clear();
  const bool gives_up = context.check(at, ended_) == TransmitContext::Patience::ended;
  count(context);
  for (std::size_t i = 0; i < ended_.size(); ++i) finish(index, ended_[i], at);
  if (gives_up) {
    ++stats_.peers_given_up;
    give_up(index, at);
  }
  watch(index);
  take_turn(index);
}

void Transmit::give_up(Index peer_index, Time at) {
  Peer& peer = *peers_[peer_index];
  // 1. The next message opens a new generation.
  ended_.clear();
  peer.context.give_up(ended_);
  peer.first_blind = Time::max();
  peer.sending = kNone;
  while (!peer.waiting.empty()) peer.waiting.pop();
  peer.queue_pairs.clear();
  // 2. Every open put to the peer ends, those too that wait for their turn or a retry. What comes meanwhile, because
  // there is room again, takes entries that this has passed.
  for (Index index = 0; index < puts_.made(); ++index) {
    if (puts_[index].open && puts_[index].peer == peer_index) end_put(index, Outcome::timeout, at);
  }
}

}  // namespace rvma
