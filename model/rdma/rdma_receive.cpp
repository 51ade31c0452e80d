#include "rdma/rdma_receive.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace rvma {
namespace {

/// Host memory where queue pair contexts and region entries lie that are not on the NIC: beyond every frame.
constexpr std::uint64_t kQueuePairArea = 0x6000'0000'0000ULL;
constexpr std::uint64_t kRegionArea = 0x6800'0000'0000ULL;

}  // namespace

RdmaReceive::RdmaReceive(const sc_core::sc_module_name& name, SimContext& context, const Parameters& p,
                         RdmaState& state, CompletionQueueWriter& completions, const ObserverList& observers)
    : Component(name, context, p.nic.clock),
      delivery("delivery"),
      dma("dma"),
      writer("writer"),
      answers("answers"),
      credit("credit"),
      node_(p.node),
      page_bytes_(p.page.count()),
      latency_(p.nic.receive.conversion_latency),
      count_latency_(p.nic.counters.latency),
      state_(state),
      completions_(completions),
      observers_(observers),
      queue_pairs_(*this, {p.rdma.queue_pairs, kQueuePairArea, "queue_pairs", true}),
      regions_(*this, {p.rdma.regions, kRegionArea, "regions", false}),
      translator_(
          *this, p.page.count(), p.nic.receive.page_misses,
          PageCache(p.nic.page_cache.on_chip,
                    make_replacement(p.nic.page_cache.policy, Random(context.seed(), path() + ".page_cache"))),
          {stats_.page_hits, stats_.page_misses, stats_.line_fetches, stats_.line_bytes, stats_.translation_wait_ns,
           stats_.waiting, stats_.page_fetch},
          [this](PlacedPacket placed, const SegmentList& to, Cycles cycle) {
            translated(std::move(placed), to, cycle);
          },
          [this] { arm(); }),
      decision_(*this, "decision", [this] { run(); }) {
  context.stats().add(path(), stats_);
  context.stats().add_level(path(), "queue", stats_.queue, [this]() -> std::uint64_t { return queue_.size(); });
}

void RdmaReceive::start_of_simulation() {
  DmaIf& engine = *dma.operator->();
  translator_.use(engine);
  queue_pairs_.use(engine);
  regions_.use(engine);
  engine.on_write_room([this] {
    if (needs_room_) run();
  });
}

// ------------------------------------------------------------------------------------------------------- decisions

void RdmaReceive::convert(PacketPtr packet, Cycles ready) {
  Arrival arrival;
  arrival.packet = std::move(packet);
  arrival.ready = ready;
  queue_.push(std::move(arrival));
  stats_.queue.observe(queue_.size());
  if (queue_.size() == 1) arm();
}

void RdmaReceive::arm() {
  if (!resumed_.empty()) {
    decision_.at(clock().time_of(std::max(next_decision_, current_cycle())));
  } else if (!queue_.empty()) {
    decision_.at(clock().time_of(std::max({queue_.front().ready, next_decision_, current_cycle()})));
  }
}

void RdmaReceive::run() {
  needs_room_ = false;
  if (queue_.empty() && resumed_.empty()) return;
  // 1. One decision a cycle, in arrival order; packets that waited for state have waited long enough.
  const Cycles cycle = current_cycle();
  FifoRing<Arrival>& from = resumed_.empty() ? queue_ : resumed_;
  const Cycles due = std::max(from.front().ready, next_decision_);
  if (due > cycle || clock().time_of(cycle) > now()) {
    arm();
    return;
  }
  // 2. It waits while an earlier packet needs a fetch that is not free, and while the write queue has no room.
  const Time due_time = clock().time_of(due);
  if (translator_.blocked()) {
    stall(Stall::misses, due_time);
    return;
  }
  const Time room = dma->write_room_at();
  if (room > now()) {
    stall(Stall::writes, due_time);
    needs_room_ = room.is_never();
    if (!needs_room_) decision_.at(clock().time_of(clock().edge_at_or_after(room)));
    return;
  }
  stall(Stall::none, due_time);
  // 3. Decide.
  next_decision_ = cycle + Cycles{1};
  stats_.decide.occupy(clock().time_of(next_decision_) - now(), 1);
  Arrival arrival = from.pop();
  if (!wait_for_state(arrival)) {
    ++stats_.decisions;
    arrival.packet->stamp(Stage::context, now());
    decide(std::move(arrival.packet), cycle);
  }
  arm();
}

void RdmaReceive::stall(Stall cause, Time since) {
  if (stall_ == cause) return;
  if (stall_ != Stall::none) {
    (stall_ == Stall::writes ? stats_.stalled_on_writes_ns : stats_.stalled_on_misses_ns) += now() - stalled_since_;
    since = now();
  }
  stall_ = cause;
  stalled_since_ = since;
}

bool RdmaReceive::wait_for_state(Arrival& arrival) {
  const DataHeader& header = arrival.packet->data;
  if (!arrival.has_queue_pair && state_.has_queue_pair(header.rdma.queue_pair) &&
      !queue_pairs_.find(header.rdma.queue_pair)) {
    const std::uint32_t number = header.rdma.queue_pair;
    hold(std::move(arrival), queue_pairs_, number, &Arrival::has_queue_pair);
    return true;
  }
  arrival.has_queue_pair = true;
  const bool names_region = header.rdma.operation != RdmaOperation::send && header.message_length > 0;
  const bool is_read = header.rdma.operation == RdmaOperation::read;
  if (!arrival.has_region && (names_region || is_read) && state_.has_region(header.key) && !regions_.find(header.key)) {
    const std::uint32_t number = header.key;
    hold(std::move(arrival), regions_, number, &Arrival::has_region);
    return true;
  }
  return false;
}

void RdmaReceive::hold(Arrival arrival, StateCache& cache, std::uint32_t number, bool Arrival::*got) {
  const std::uint64_t held = ++last_held_;
  held_.emplace(held, std::move(arrival));
  stats_.held.observe(held_.size());
  cache.fetch(number, [this, held, got, since = now()] {
    const auto place = held_.find(held);
    Arrival next = std::move(place->second);
    held_.erase(place);
    next.*got = true;
    next.ready = current_cycle();
    stats_.state_wait_ns += now() - since;
    resumed_.push(std::move(next));
    arm();
  });
}

void RdmaReceive::decide(PacketPtr packet, Cycles cycle) {
  const Time at = now();
  const TransportHeader& transport = packet->transport;
  const MessageRef message{transport.source, transport.source_incarnation, transport.generation, packet->data.message};
  const DeliveryIf::Admission admission = delivery->admit(*packet);
  const auto turn_away = [&](const char* why, Counter& counter) {
    ignore(*packet, why, counter);
    if (credit.size() > 0) credit->return_credit(packet->wire_bytes, at);
  };
  switch (admission.verdict) {
    case DeliveryIf::Verdict::fresh:
      break;
    case DeliveryIf::Verdict::duplicate:
      return turn_away("duplicate", stats_.duplicates);
    case DeliveryIf::Verdict::stale:
      return turn_away("stale", stats_.stale);
    case DeliveryIf::Verdict::closed:
      return turn_away("closed", stats_.late);
  }
  switch (admission.state) {
    case MessageState::refused:
      ++stats_.refused_packets;
      drop(*packet, message, at);
      return;
    case MessageState::done:
      ignore(*packet, "closed", stats_.late);
      drop(*packet, message, at);
      return;
    case MessageState::bound:
      if (!state_.agrees(admission.binding, packet->data)) {
        ignore(*packet, "mismatch", stats_.mismatches);
        drop(*packet, message, at);
        return;
      }
      place(std::move(packet), message, admission.binding, cycle);
      return;
    case MessageState::unseen:
      state_.hear(message.source, message.generation, due_);
      tell(due_, at);
      if (packet->data.rdma.operation == RdmaOperation::none) {
        ignore(*packet, "mismatch", stats_.mismatches);
        drop(*packet, message, at);
      } else if (packet->data.rdma.operation == RdmaOperation::read) {
        read(*packet, message);
      } else {
        open(std::move(packet), message, cycle);
      }
      return;
  }
}

void RdmaReceive::open(PacketPtr packet, const MessageRef& message, Cycles cycle) {
  const Time at = now();
  RdmaState::Opened opened = state_.open(message.source, packet->data);
  tell(opened.due, at);
  if (opened.malformed) {
    ignore(*packet, "mismatch", stats_.mismatches);
    drop(*packet, message, at);
    return;
  }
  if (opened.outcome != Outcome::pending) {
    refuse(message, opened.outcome, at);
    drop(*packet, message, at);
    return;
  }
  ++stats_.messages;
  if (packet->data.message_length > packet->data.payload_length) delivery->bind(message, opened.message);
  place(std::move(packet), message, opened.message, cycle);
}

void RdmaReceive::read(const Packet& packet, const MessageRef& message) {
  const Time at = now();
  Descriptor answer;
  Outcome outcome = state_.read(message.source, packet.data, answer, page_bytes_);
  if (outcome == Outcome::pending && !answers->answer(message.source, packet.data, answer)) outcome = Outcome::busy;
  if (outcome == Outcome::pending) {
    ++stats_.reads;
    delivery->end(message, at);
  } else {
    refuse(message, outcome, at);
  }
  drop(packet, message, at);
}

void RdmaReceive::place(PacketPtr packet, const MessageRef& message, RdmaState::Index index, Cycles cycle) {
  PlacedPacket placed;
  placed.message = message;
  placed.sequence = packet->transport.sequence;
  placed.binding = index;
  placed.has_binding = packet->data.message_length > packet->data.payload_length;
  placed.payload_length = packet->data.payload_length;
  placed.payload = std::move(packet->payload);
  placed.left = packet->left;
  placed.buffer_offset = state_.offset_of(index, packet->data);
  placed.wire_bytes = packet->wire_bytes;
  state_.placing(index, packet->data);
  if (placed.payload_length == 0) {
    translated(std::move(placed), {}, cycle);
    return;
  }
  // A translation that misses is told later.
  placing_now_ = true;
  Waiting waiting;
  waiting.packet.message = message;
  waiting.packet.sequence = placed.sequence;
  const TranslatedRegion region = state_.region_of(index);
  translator_.translate(std::move(placed), region, cycle);
  if (std::exchange(placing_now_, false) && keeps_order(index)) {
    in_order_[state_.queue_pair_of(index)].push_back(std::move(waiting));
  }
}

bool RdmaReceive::keeps_order(RdmaState::Index index) const {
  return !state_.tracks_order() && (state_.queue_pair_of(index) & RdmaState::kManagement) == 0;
}

void RdmaReceive::translated(PlacedPacket placed, const SegmentList& to, Cycles cycle) {
  const bool is_new = std::exchange(placing_now_, false) || placed.payload_length == 0;
  const auto line =
      keeps_order(placed.binding) ? in_order_.find(state_.queue_pair_of(placed.binding)) : in_order_.end();
  // 1. Nothing of its queue pair waits.
  if (line == in_order_.end()) {
    hand_on(std::move(placed), to, cycle);
    return;
  }
  // 2. It waits behind others, or has waited.
  std::deque<Waiting>& packets = line->second;
  if (is_new) {
    packets.push_back({true, std::move(placed), to});
    return;
  }
  const auto same = [&](const Waiting& waiting) {
    return !waiting.has_place && waiting.packet.sequence == placed.sequence &&
           waiting.packet.message.generation == placed.message.generation &&
           waiting.packet.message.source_incarnation == placed.message.source_incarnation;
  };
  const auto own = std::find_if(packets.begin(), packets.end(), same);
  RVMA_ASSERT(own != packets.end(), "a packet was translated that did not wait");
  *own = {true, std::move(placed), to};
  // 3. The first ones go on, as far as they have their places.
  for (; !packets.empty() && packets.front().has_place; packets.pop_front()) {
    hand_on(std::move(packets.front().packet), packets.front().to, cycle);
  }
  if (packets.empty()) in_order_.erase(line);
}

void RdmaReceive::hand_on(PlacedPacket placed, const SegmentList& to, Cycles cycle) {
  // Packets leave the pipeline in the order of this call, at most one a cycle.
  const Cycles out = std::max(cycle + latency_, last_out_ + Cycles{1});
  last_out_ = out;
  placed.left[static_cast<std::size_t>(Stage::address_conversion)] = clock().time_of(out);
  writer->place(std::move(placed), to, out);
}

// -------------------------------------------------------------------------------------------------- behind memory

void RdmaReceive::count(PlacedPacket packet, Time at) {
  const Time when = clock().time_of(clock().edge_at_or_after(at) + count_latency_);
  const RdmaState::Counted counted = state_.count(packet.binding, packet.buffer_offset, packet.payload_length, due_);
  tell(due_, when);
  if (!counted.whole) return;
  ++stats_.whole;
  delivery->end(packet.message, when);
}

void RdmaReceive::tell(std::vector<DueCqe>& due, Time at) {
  for (const DueCqe& entry : due) completions_.push(entry, at);
  due.clear();
}

void RdmaReceive::cut_off(const MessageRef& /*message*/, std::uint32_t binding, Time at) {
  state_.cut_off(binding, due_);
  tell(due_, at);
}

void RdmaReceive::refuse(const MessageRef& message, Outcome reason, Time at) {
  ++refusals(reason);
  delivery->refuse(message, reason, at);
}

void RdmaReceive::drop(const Packet& packet, const MessageRef& message, Time at) {
  delivery->dispose(message, packet.transport.sequence, at);
  if (credit.size() > 0) credit->return_credit(packet.wire_bytes, at);
}

void RdmaReceive::ignore(const Packet& packet, const char* why, Counter& counter) {
  ++counter;
  observers_.tell([&](NicObserver& observer) { observer.packet_ignored(node_, packet, why, now()); });
}

Counter& RdmaReceive::refusals(Outcome reason) {
  switch (reason) {
    case Outcome::no_mailbox:
      return stats_.refused_queue_pair;
    case Outcome::bad_key:
      return stats_.refused_region;
    case Outcome::bounds:
      return stats_.refused_bounds;
    case Outcome::no_buffer:
      return stats_.refused_not_ready;
    default:
      return stats_.refused_busy;
  }
}

}  // namespace rvma
