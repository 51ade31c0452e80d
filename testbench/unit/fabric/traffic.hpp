/// \file
/// What the fabric's unit tests share: packets, a sender that respects credits and a receiver that notes what comes.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/component.hpp"
#include "fabric/interfaces.hpp"
#include "fabric/wire.hpp"

namespace rvma::test {

/// A data packet of `payload_bytes` (no bytes carried) with its size on the link.
inline PacketPtr data_packet(PacketPool& pool, std::uint32_t source, std::uint32_t destination, std::uint32_t sequence,
                             std::uint16_t payload_bytes) {
  PacketPtr packet = pool.acquire();
  packet->transport.source = NodeId{source};
  packet->transport.destination = NodeId{destination};
  packet->transport.sequence = sequence;
  packet->data.payload_length = payload_bytes;
  packet->wire_bytes = wire_bytes_of(*packet);
  return packet;
}

inline PacketPtr ack_packet(PacketPool& pool, std::uint32_t source, std::uint32_t destination,
                            std::uint32_t cumulative) {
  PacketPtr packet = pool.acquire();
  packet->transport.type = PacketType::acknowledgement;
  packet->transport.source = NodeId{source};
  packet->transport.destination = NodeId{destination};
  packet->ack.cumulative = cumulative;
  packet->wire_bytes = wire_bytes_of(*packet);
  return packet;
}

struct Arrival {
  PacketType type;
  NodeId source;
  NodeId destination;
  std::uint32_t sequence;  ///< cumulative number of an acknowledgement
  std::uint32_t wire_bytes;
  Time at;
  bool corrupted;
};

/// Notes every packet; gives its space back `hold` after its arrival if it has been told to whom.
class Receiver : public PacketSinkIf {
 public:
  void deliver(PacketPtr packet, Time at) override {
    ordered = ordered && at >= SimContext::now() && (arrivals.empty() || arrivals.back().at <= at);
    arrivals.push_back(
        {packet->transport.type, packet->transport.source, packet->transport.destination,
         packet->transport.type == PacketType::data ? packet->transport.sequence : packet->ack.cumulative,
         packet->wire_bytes, at, packet->corrupted});
    if (credit != nullptr) credit->return_credit(packet->wire_bytes, at + hold);
  }

  std::vector<Arrival> arrivals;
  bool ordered = true;  ///< times never went back, nor lay in the past
  LinkCreditIf* credit = nullptr;
  Time hold;
};

/// Sends its packets one after another as early as credit allows.
class Sender {
 public:
  explicit Sender(LinkIf& link) : link_(link) {
    link_.on_credit([this] { pump(); });
  }
  void push(PacketPtr packet) { packets_.push_back(std::move(packet)); }
  void pump() {
    while (!packets_.empty()) {
      if (link_.earliest_start(packets_.front()->wire_bytes, SimContext::now()).is_never()) return;
      PacketPtr packet = std::move(packets_.front());
      packets_.pop_front();
      link_.send(std::move(packet), SimContext::now());
    }
  }
  std::size_t left() const { return packets_.size(); }

 private:
  LinkIf& link_;
  std::deque<PacketPtr> packets_;
};

}  // namespace rvma::test
