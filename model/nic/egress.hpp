/// \file
/// The RNIC's way out: acknowledgements before data, one packet after another, onto the link.
#pragma once

#include <cstdint>
#include <functional>
#include <systemc>

#include "base/component.hpp"
#include "fabric/interfaces.hpp"
#include "fabric/packet.hpp"
#include "nic/config.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/observer.hpp"

namespace rvma {

class EgressIf : public virtual sc_core::sc_interface {
 public:
  /// Sends a data packet whose payload (if any) is at hand at `ready`; packets leave in call order.
  virtual void send_data(PacketPtr packet, Time ready) = 0;
  /// Sends an acknowledgement made at `ready`; it overtakes data packets that wait for the link.
  virtual void send_acknowledgement(PacketPtr packet, Time ready) = 0;
};

struct EgressStats {
  Counter data_packets{"packets", "data packets sent, those to the own node included"};
  Counter acknowledgements{"packets", "acknowledgements sent, those to the own node included"};
  Counter payload_bytes{"bytes", "payload sent"};
  Counter wire_bytes{"bytes", "sent on the link, headers, preamble and gap included"};
  Counter turned_round{"packets", "packets to the own node: they turned round before the link"};
  Counter credit_stalls{"stalls", "times the first packet found no credit at the link"};
  TimeSum link_wait_ns{"time that packets waited for the link or its credit after they were ready"};
  Peak queue{"packets", "packets waiting"};
  Utilisation datapath{WorkKind::bits, "payload moved through the transmit datapath, a cycle at least a packet",
                       kWidenedByDatapath};
  BOOST_DESCRIBE_CLASS(EgressStats, (),
                       (data_packets, acknowledgements, payload_bytes, wire_bytes, turned_round, credit_stalls,
                        link_wait_ns, queue, datapath),
                       (), ())
};

/// A packet takes ceil(payload / datapath) cycles of the datapath, at least one, and is ready for the link
/// transmit.latency cycles after its first. If datapath and link are free by then it is handed on at once, by annotated
/// time; otherwise the egress wakes up when they are.
class Egress : public Component, public EgressIf {
 public:
  sc_core::sc_port<LinkIf> link;
  /// Packets to the own node.
  sc_core::sc_port<PacketSinkIf> turn_round;

  Egress(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, NodeId node,
         const ObserverList& observers);

  void send_data(PacketPtr packet, Time ready) override;
  void send_acknowledgement(PacketPtr packet, Time ready) override;
  struct Departure {
    NodeId destination;
    std::uint32_t generation = 0;
    std::uint32_t sequence = 0;
    std::uint32_t payload_bytes = 0;
    Time at;  ///< of the first bit
  };
  /// `departed` learns of every data packet that leaves: its payload's place in the transmit buffer is free, and the
  /// time until it is answered runs.
  void on_departure(std::function<void(const Departure&)> departed) { departed_ = std::move(departed); }

  const EgressStats& stats() const { return stats_; }

 private:
  struct Waiting {
    PacketPtr packet;
    Cycles ready;  ///< may enter the datapath from then on
  };
  using Queue = FifoRing<Waiting>;

  void end_of_elaboration() override;
  void enqueue(Queue& queue, PacketPtr packet, Time ready);
  void send_what_can_go();
  void leave(Queue& queue, Cycles first, Time start);

  const std::uint32_t datapath_bytes_;
  const Cycles latency_;
  const NodeId node_;
  const ObserverList& observers_;
  EgressStats stats_;
  Queue acknowledgements_;
  Queue data_;
  Cycles datapath_free_;
  bool blocked_ = false;  ///< waits for on_credit
  std::function<void(const Departure&)> departed_;
  Wakeup wake_;
};

}  // namespace rvma
