#include "nic/address_conversion.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "nic/tell_bound.hpp"

namespace rvma {

AddressConversion::AddressConversion(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config,
                                     Bytes page, NodeId node, WindowStore& windows, const ObserverList& observers)
    : Component(name, context, config.clock),
      lookup("lookup"),
      delivery("delivery"),
      dma("dma"),
      writer("writer"),
      gets("gets"),
      credit("credit"),
      node_(node),
      windows_(windows),
      observers_(observers),
      latency_(config.receive.conversion_latency),
      gate_(windows, [this] { arm(); }),
      record_buffers_(kRecordBytes),
      translator_(
          *this, page.count(), config.receive.page_misses,
          PageCache(config.page_cache.on_chip,
                    make_replacement(config.page_cache.policy, Random(this->context().seed(), path() + ".page_cache"))),
          {stats_.page_hits, stats_.page_misses, stats_.line_fetches, stats_.line_bytes, stats_.translation_wait_ns,
           stats_.waiting, stats_.page_fetch},
          [this](PlacedPacket placed, const SegmentList& to, Cycles cycle) { hand_on(std::move(placed), to, cycle); },
          [this] { arm(); }),
      decision_(*this, "decision", [this] { run(); }) {
  this->context().stats().add(path(), stats_);
  this->context().stats().add_level(path(), "queue", stats_.queue, [this]() -> std::uint64_t { return queue_.size(); });
}

void AddressConversion::start_of_simulation() {
  translator_.use(*dma.operator->());
  DecisionGate::Surroundings around;
  around.delivery = delivery.operator->();
  if (sources.size() > 0) around.sources = sources.operator->();
  if (contexts.size() > 0) around.windows = contexts.operator->();
  around.descriptors = descriptors_;
  around.counters = counters_;
  gate_.surround(around);
  dma->on_write_room([this] {
    if (needs_room_) run();
  });
}

// ------------------------------------------------------------------------------------------------------- decisions

void AddressConversion::convert(PacketPtr packet, Cycles ready) {
  queue_.push(Arrival{std::move(packet), ready});
  stats_.queue.observe(queue_.size());
  if (queue_.size() == 1) arm();
}

void AddressConversion::arm() {
  if (gate_.has_ready()) {
    decision_.at(clock().time_of(std::max(next_decision_, current_cycle())));
  } else if (!queue_.empty()) {
    decision_.at(clock().time_of(std::max({queue_.front().ready, next_decision_, current_cycle()})));
  }
}

void AddressConversion::stall(Stall cause, Time since) {
  if (stall_ == cause) return;
  if (stall_ != Stall::none) {
    (stall_ == Stall::writes ? stats_.stalled_on_writes_ns : stats_.stalled_on_misses_ns) += now() - stalled_since_;
    since = now();
  }
  stall_ = cause;
  stalled_since_ = since;
}

void AddressConversion::run() {
  needs_room_ = false;
  if (queue_.empty() && !gate_.has_ready()) return;
  // 1. One decision a cycle, in arrival order; packets that waited for something have waited long enough.
  const Cycles cycle = current_cycle();
  const Cycles ready = gate_.has_ready() ? gate_.ready_from() : queue_.front().ready;
  const Cycles due = std::max(ready, next_decision_);
  if (due > cycle || clock().time_of(cycle) > now()) {
    arm();
    return;
  }
  // 2. It waits while an earlier packet needs a fetch that is not free; the translator goes on.
  const Time due_time = clock().time_of(due);
  if (translator_.blocked()) {
    stall(Stall::misses, due_time);
    return;
  }
  // 3. It waits while the write queue has no room; on_write_room() goes on where its time is not known yet.
  const Time room = dma->write_room_at();
  if (room > now()) {
    stall(Stall::writes, due_time);
    needs_room_ = room.is_never();
    if (!needs_room_) decision_.at(clock().time_of(clock().edge_at_or_after(room)));
    return;
  }
  stall(Stall::none, due_time);
  // 4. Decide.
  next_decision_ = cycle + Cycles{1};
  ++stats_.decisions;
  stats_.decide.occupy(clock().time_of(next_decision_) - now(), 1);
  PendingDecision next;
  if (gate_.has_ready()) {
    next = gate_.take_ready();
  } else {
    Arrival arrival = queue_.pop();
    next.packet = std::move(arrival.packet);
    next.ready = arrival.ready;
    next.packet->stamp(Stage::context, next.packet->left[static_cast<std::size_t>(Stage::parse)]);
    next.lookup = resolve(lookup->take());
  }
  if (gate_.pass(next)) {
    decide(next, cycle);
    gate_.decided(next);
  } else {
    stats_.held.observe(gate_.held());
  }
  arm();
}

WindowLookup AddressConversion::resolve(const LookupResult& answer) {
  if (contexts.size() > 0) return contexts->resolve(answer);
  return {answer.hit, WindowId{answer.slot.value()}, answer.sweeping};
}

void AddressConversion::decide(PendingDecision& next, Cycles cycle) {
  const Time at = now();
  PacketPtr& packet = next.packet;
  const TransportHeader& transport = packet->transport;
  const MessageRef message{transport.source, transport.source_incarnation, transport.generation, packet->data.message};

  // 1. Duplicates and what belongs to the past stop here; Delivery acknowledges what has to be.
  const DeliveryIf::Admission admission = delivery->admit(*packet);
  switch (admission.verdict) {
    case DeliveryIf::Verdict::fresh:
      break;
    case DeliveryIf::Verdict::duplicate:
      ++stats_.duplicates;
      ignore(*packet, "duplicate", at);
      return_credit(*packet, at);
      return;
    case DeliveryIf::Verdict::stale:
      ++stats_.stale;
      ignore(*packet, "stale", at);
      return_credit(*packet, at);
      return;
    case DeliveryIf::Verdict::closed:
      ++stats_.late;
      ignore(*packet, "closed", at);
      return_credit(*packet, at);
      return;
  }
  // What speaks of regions and queue pairs speaks to another kind of NIC.
  if (packet->data.rdma.operation != RdmaOperation::none) {
    ++stats_.mismatches;
    ignore(*packet, "mismatch", at);
    drop(*packet, message, at);
    return;
  }
  switch (admission.state) {
    // 2. A refused message stays refused, whatever has been posted meanwhile.
    case MessageState::refused:
      ++stats_.refused_packets;
      drop(*packet, message, at);
      return;
    // A message that has been counted whole has no packets left: this one contradicts it.
    case MessageState::done:
      ++stats_.late;
      ignore(*packet, "closed", at);
      drop(*packet, message, at);
      return;
    // 3. A bound message goes to its own buffer, whatever the table says by now.
    case MessageState::bound: {
      BufferPlace where;
      if (!windows_.place(admission.binding, transport.source, packet->data, where)) {
        ++stats_.mismatches;
        ignore(*packet, "mismatch", at);
        drop(*packet, message, at);
        return;
      }
      place(std::move(packet), message, where, cycle);
      return;
    }
    // 4. The first packet of a message binds it; a get's request is answered.
    case MessageState::unseen:
      if (packet->data.is_get) {
        read(next, message);
        return;
      }
      bind(next, message, cycle);
      return;
  }
}

void AddressConversion::note_use(const PendingDecision& next) {
  if (contexts.size() > 0 && next.lookup.hit) contexts->used(next.lookup.window, next.waited_for_window);
}

void AddressConversion::bind(PendingDecision& next, const MessageRef& message, Cycles cycle) {
  const Time at = now();
  PacketPtr& packet = next.packet;
  note_use(next);
  if (next.is_busy) {
    refuse(message, Outcome::busy, at);
    drop(*packet, message, at);
    return;
  }
  const BindAnswer bound = windows_.bind(message.source, packet->data, next.lookup);
  if (bound.malformed) {
    ++stats_.mismatches;
    ignore(*packet, "mismatch", at);
    drop(*packet, message, at);
    return;
  }
  if (bound.outcome != Outcome::pending) {
    ++refusals(bound.outcome);
    if (bound.unidentified) {
      delivery->refuse_unidentified(message, at);
    } else {
      delivery->refuse(message, bound.outcome, at);
    }
  } else {
    ++stats_.bindings;
    if (bound.place.has_binding) delivery->bind(message, bound.place.binding);
  }
  tell_bound(observers_, node_, message, packet->data.message_length, bound, at);
  if (bound.outcome != Outcome::pending) {
    drop(*packet, message, at);
    return;
  }
  if (bound.has_record) place_record(*packet, message, bound, cycle);
  place(std::move(packet), message, bound.place, cycle);
}

void AddressConversion::read(const PendingDecision& next, const MessageRef& message) {
  const Time at = now();
  const PacketPtr& packet = next.packet;
  note_use(next);
  if (next.is_busy) {
    refuse(message, Outcome::busy, at);
    drop(*packet, message, at);
    return;
  }
  const ReadAnswer read = windows_.read(packet->data, next.lookup);
  if (read.malformed) {
    ++stats_.mismatches;
    ignore(*packet, "mismatch", at);
  } else if (read.unidentified) {
    ++refusals(read.outcome);
    delivery->refuse_unidentified(message, at);
    tell_refused(message, read.outcome, at);
  } else if (read.outcome != Outcome::pending) {
    refuse(message, read.outcome, at);
  } else if (gets.size() == 0 || !gets->serve(message.source, packet->data, read.window, read.buffer)) {
    refuse(message, Outcome::busy, at);
  } else {
    ++stats_.reads;
    observers_.tell([&](NicObserver& observer) { observer.get_accepted(node_, message, read.buffer, at); });
    delivery->end(message, at);
  }
  drop(*packet, message, at);
}

/// The record goes the way of a packet: translated, written and counted with its message.
void AddressConversion::place_record(const Packet& packet, const MessageRef& message, const BindAnswer& bound,
                                     Cycles cycle) {
  const DataHeader& header = packet.data;
  PlacedPacket placed;
  placed.message = message;
  placed.buffer = bound.place.buffer;
  placed.binding = bound.place.binding;
  placed.has_binding = true;
  placed.is_record = true;
  placed.payload_length = kRecordBytes;
  placed.payload = record_buffers_.acquire();
  placed.left = packet.left;
  placed.buffer_offset = bound.message_offset - kRecordBytes;
  const std::uint64_t rank = std::uint64_t{message.source.value()} * ranks_per_node_ + header.source_pid.value();
  const std::uint64_t words[] = {rank, header.mailbox.value(), header.message_length, header.message.value()};
  for (std::uint32_t i = 0; i < kRecordBytes; ++i) {
    placed.payload->data()[i] = static_cast<std::uint8_t>(words[i / 8] >> (8 * (i % 8)));
  }
  convert(std::move(placed), cycle);
}

void AddressConversion::cut_off(const MessageRef& message, std::uint32_t binding, Time at) {
  const WindowStore::CutOff cut = windows_.cut_off(binding);
  observers_.tell([&](NicObserver& observer) {
    observer.message_cut_off(node_, message, cut.buffer, cut.is_broken, at);
    if (cut.retired_now) observer.epoch_retired(node_, cut.window, cut.buffer, cut.epoch, true, at);
  });
}

void AddressConversion::refuse(const MessageRef& message, Outcome reason, Time at) {
  ++refusals(reason);
  delivery->refuse(message, reason, at);
  tell_refused(message, reason, at);
}

void AddressConversion::tell_refused(const MessageRef& message, Outcome reason, Time at) {
  observers_.tell([&](NicObserver& observer) { observer.message_refused(node_, message, reason, at); });
}

void AddressConversion::drop(const Packet& packet, const MessageRef& message, Time at) {
  delivery->dispose(message, packet.transport.sequence, at);
  return_credit(packet, at);
}

void AddressConversion::ignore(const Packet& packet, const char* why, Time at) {
  observers_.tell([&](NicObserver& observer) { observer.packet_ignored(node_, packet, why, at); });
}

void AddressConversion::return_credit(const Packet& packet, Time at) {
  if (credit.size() > 0) credit->return_credit(packet.wire_bytes, at);
}

Counter& AddressConversion::refusals(Outcome reason) {
  switch (reason) {
    case Outcome::no_mailbox:
      return stats_.refused_no_mailbox;
    case Outcome::closed:
      return stats_.refused_closed;
    case Outcome::bad_key:
      return stats_.refused_bad_key;
    case Outcome::stale:
      return stats_.refused_stale;
    case Outcome::no_buffer:
      return stats_.refused_no_buffer;
    case Outcome::bounds:
      return stats_.refused_bounds;
    case Outcome::busy:
      return stats_.refused_busy;
    case Outcome::pending:
    case Outcome::ok:
    case Outcome::timeout:
    case Outcome::unfinished:
      break;
  }
  RVMA_ASSERT(false, "a receiver refused a message with an outcome that is no refusal");
  return stats_.refused_busy;
}

// ------------------------------------------------------------------------------------------------ page translation

void AddressConversion::place(PacketPtr packet, const MessageRef& message, const BufferPlace& place, Cycles cycle) {
  const BufferDescriptor& buffer = windows_.buffer(place.buffer);
  const std::uint32_t bytes = packet->data.payload_length;
  RVMA_ASSERT(place.offset <= buffer.size && bytes <= buffer.size - place.offset, "packet placed outside its buffer");

  PlacedPacket placed;
  placed.message = message;
  placed.sequence = packet->transport.sequence;
  placed.buffer = place.buffer;
  placed.binding = place.binding;
  placed.has_binding = place.has_binding;
  placed.payload_length = bytes;
  placed.payload = std::move(packet->payload);
  placed.left = packet->left;
  placed.buffer_offset = place.offset;
  placed.wire_bytes = packet->wire_bytes;
  convert(std::move(placed), cycle);
}

void AddressConversion::convert(PlacedPacket placed, Cycles cycle) {
  const BufferDescriptor& buffer = windows_.buffer(placed.buffer);
  translator_.translate(std::move(placed),
                        {buffer.head, buffer.size, buffer.page_list, buffer.single_page, buffer.posting}, cycle);
}

void AddressConversion::hand_on(PlacedPacket placed, const SegmentList& to, Cycles cycle) {
  // 5. Packets leave the pipeline in the order of this call, at most one a cycle.
  const Cycles out = std::max(cycle + latency_, last_out_ + Cycles{1});
  last_out_ = out;
  placed.left[static_cast<std::size_t>(Stage::address_conversion)] = clock().time_of(out);
  writer->place(std::move(placed), to, out);
}

}  // namespace rvma
