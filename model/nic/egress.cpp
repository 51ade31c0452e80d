#include "nic/egress.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "nic/datapath.hpp"

namespace rvma {

Egress::Egress(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, NodeId node,
               const ObserverList& observers)
    : Component(name, context, config.clock),
      link("link"),
      turn_round("turn_round"),
      datapath_bytes_(static_cast<std::uint32_t>(config.datapath->count())),
      latency_(config.transmit.latency),
      node_(node),
      observers_(observers),
      wake_(*this, "wake", [this] {
        if (!blocked_) send_what_can_go();
      }) {
  context.stats().add(path(), stats_);
  context.stats().add_level(path(), "queue", stats_.queue,
                            [this]() -> std::uint64_t { return acknowledgements_.size() + data_.size(); });
}

void Egress::end_of_elaboration() {
  link->on_credit([this] {
    if (!std::exchange(blocked_, false)) return;
    send_what_can_go();
  });
}

void Egress::send_data(PacketPtr packet, Time ready) {
  ++stats_.data_packets;
  stats_.payload_bytes += packet->data.payload_length;
  enqueue(data_, std::move(packet), ready);
}

void Egress::send_acknowledgement(PacketPtr packet, Time ready) {
  ++stats_.acknowledgements;
  enqueue(acknowledgements_, std::move(packet), ready);
}

void Egress::enqueue(Queue& queue, PacketPtr packet, Time ready) {
  queue.push({std::move(packet), clock().edge_at_or_after(ready)});
  stats_.queue.observe(acknowledgements_.size() + data_.size());
  if (!blocked_) send_what_can_go();
}

void Egress::send_what_can_go() {
  while (true) {
    Queue& queue = acknowledgements_.empty() ? data_ : acknowledgements_;
    if (queue.empty()) return;
    // A packet is not committed to a datapath or a link that is still busy: an acknowledgement may come and go first.
    // 1. The datapath. A packet that waited for the link has entered it long ago.
    const Cycles first = std::max(queue.front().ready, datapath_free_);
    if (first > current_cycle() + latency_) {
      wake_.at(clock().time_of(first));
      return;
    }
    const Time not_before = std::max(clock().time_of(first + latency_), now());
    // 2. The link; the own node is not behind it.
    Time start = not_before;
    if (queue.front().packet->transport.destination != node_) {
      start = link->earliest_start(queue.front().packet->wire_bytes, not_before);
    }
    if (start.is_never()) {
      ++stats_.credit_stalls;
      blocked_ = true;
      return;
    }
    if (start > not_before) {
      wake_.at(start);
      return;
    }
    leave(queue, first, start);
  }
}

void Egress::leave(Queue& queue, Cycles first, Time start) {
  PacketPtr packet = queue.pop().packet;
  const bool is_data = packet->transport.type == PacketType::data;
  const std::uint32_t payload = is_data ? packet->data.payload_length : 0;
  // 1. The datapath.
  datapath_free_ = first + datapath_cycles(payload, datapath_bytes_);
  const Time entered = clock().time_of(first);
  stats_.datapath.occupy(clock().time_of(datapath_free_) - entered, std::uint64_t{8} * payload);
  stats_.link_wait_ns += start - clock().time_of(first + latency_);
  // 2. The first bit.
  packet->stamp(Stage::transmit, start);
  const TransportHeader& transport = packet->transport;
  const Departure departure{transport.destination, transport.generation, transport.sequence, payload, start};
  const bool turns_round = packet->transport.destination == node_;
  if (turns_round) packet->wire_bytes = 0;
  stats_.wire_bytes += packet->wire_bytes;
  if (!observers_.empty()) {
    observers_.tell([&](NicObserver& observer) { observer.packet_sent(node_, *packet, start); });
  }
  if (turns_round) {
    ++stats_.turned_round;
    turn_round->deliver(std::move(packet), start);
  } else {
    const Time started = link->send(std::move(packet), start);
    RVMA_ASSERT(started == start, "the link started later than it said");
  }
  if (is_data && departed_) departed_(departure);
}

}  // namespace rvma
