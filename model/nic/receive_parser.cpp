#include "nic/receive_parser.hpp"

#include <algorithm>
#include <utility>

#include "nic/datapath.hpp"

namespace rvma {

ReceiveParser::ReceiveParser(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config,
                             NodeId node, const ObserverList& observers)
    : Component(name, context, config.clock),
      lookup("lookup"),
      conversion("conversion"),
      acknowledgements("acknowledgements"),
      credit("credit"),
      node_(node),
      observers_(observers),
      datapath_bytes_(static_cast<std::uint32_t>(config.datapath->count())),
      parse_latency_(config.receive.parse_latency) {
  this->context().stats().add(path(), stats_);
}

void ReceiveParser::deliver(PacketPtr packet, Time at) {
  observers_.tell([&](NicObserver& observer) { observer.packet_arrived(node_, *packet, at); });
  packet->stamp(Stage::fabric, at);

  // 1. A header enters at an edge; its payload occupies the datapath behind it.
  const bool is_data = packet->transport.type == PacketType::data;
  const std::uint32_t payload_bytes = is_data ? packet->data.payload_length : 0U;
  const Cycles arrival = clock().edge_at_or_after(at);
  const Cycles taken = std::max(arrival, free_at_);
  free_at_ = taken + datapath_cycles(payload_bytes, datapath_bytes_);
  const Time taken_time = clock().time_of(taken);
  if (taken > arrival) stats_.wait_ns += taken_time - clock().time_of(arrival);
  stats_.parse.occupy(clock().time_of(free_at_) - taken_time, 8ULL * payload_bytes);

  // 2. Checksum: a damaged packet is dropped with everything that it claims.
  const Cycles ready = taken + std::max(parse_latency_, lookup->latency());
  const Time ready_time = clock().time_of(ready);
  if (packet->corrupted) {
    ++stats_.corrupt_packets;
    observers_.tell([&](NicObserver& observer) { observer.packet_ignored(node_, *packet, "crc", ready_time); });
    return_credit(*packet, ready_time);
    return;
  }
  packet->stamp(Stage::parse, ready_time);

  // 3. Acknowledgements leave the receive path here, and the input buffer with it.
  if (!is_data) {
    ++stats_.ack_packets;
    return_credit(*packet, ready_time);
    acknowledgements->acknowledgement(std::move(packet), ready_time);
    return;
  }

  // 4. Data: look up the window, and hand on for the cycle of the answer.
  ++stats_.data_packets;
  stats_.payload_bytes += payload_bytes;
  lookup->lookup(packet->data.destination_pid, packet->data.mailbox, ready - lookup->latency());
  conversion->convert(std::move(packet), ready);
}

void ReceiveParser::return_credit(const Packet& packet, Time at) {
  if (credit.size() > 0) credit->return_credit(packet.wire_bytes, at);
}

void NicInput::deliver(PacketPtr packet, Time at) {
  latest_ = std::max(latest_, at);
  parser_.deliver(std::move(packet), latest_);
}

}  // namespace rvma
