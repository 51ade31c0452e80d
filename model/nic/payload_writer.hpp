/// \file
/// Third unit of the receive path ("DMA write"): payload to host memory, then the packet to the delivery context and
/// the counter unit, in the order of the writes.
#pragma once

#include <cstdint>
#include <systemc>

#include "base/component.hpp"
#include "fabric/interfaces.hpp"
#include "nic/config.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "nic/observer.hpp"

namespace rvma {

struct PayloadWriterStats {
  Counter packets{"packets", "packets placed"};
  Counter empty_packets{"packets", "of these, packets without payload"};
  Counter records{"records", "records of messages in catch-all windows"};
  Counter bytes{"bytes", "payload and records written"};
  TimeSum wait_ns{"time that packets waited for the datapath behind the packet before"};
  TimeSum channel_ns{"time from the start of a packet's write to its entry into the posted channel, each on its own"};
  Peak pending{"packets", "packets whose write had been asked for and had not entered the posted channel"};
  Utilisation write{WorkKind::bits, "payload from the input buffer to the DMA engine", kWidenedByDatapath};
  BOOST_DESCRIBE_CLASS(PayloadWriterStats, (),
                       (packets, empty_packets, records, bytes, wait_ns, channel_ns, pending, write), (), ())
};

/// Payload passes at nic.datapath bytes a cycle, a packet without any takes one cycle. A packet is done once its last
/// byte has both left the input buffer and entered the posted channel, and not before an earlier packet is. Then it
/// leaves, once the counter unit has room for it.
class PayloadWriter : public Component, public PayloadWriterIf, public DmaClient {
 public:
  sc_core::sc_port<DmaIf> dma;
  sc_core::sc_port<DeliveryIf> delivery;
  sc_core::sc_port<CounterIf> counter;
  /// Of the link that feeds this NIC. Unbound: nobody counts credits.
  sc_core::sc_port<LinkCreditIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> credit;

  /// `config` and `observers` outlive the unit.
  PayloadWriter(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, NodeId node,
                const ObserverList& observers);

  void place(PlacedPacket packet, const SegmentList& to, Cycles at) override;

  void dma_written(std::uint64_t tag, Time entered, Time visible) override;
  void dma_read_done(std::uint64_t tag) override;

  const PayloadWriterStats& stats() const { return stats_; }

 private:
  struct Pending {
    PlacedPacket packet;
    Time start;
    Time streamed;  ///< the last byte has left the input buffer
    Time done;      ///< never: not yet in the posted channel
  };

  /// Finishes packets from the front as far as they are done.
  void finish();

  NodeId node_;
  const ObserverList& observers_;
  std::uint32_t datapath_bytes_;
  Cycles free_at_;               ///< first cycle in which the datapath is free
  FifoRing<Pending> pending_;    ///< in the order of place(); tags count on from the front's
  std::uint64_t first_tag_ = 0;  ///< of the front
  Time last_done_;
  bool finishing_ = false;
  PayloadWriterStats stats_;
};

}  // namespace rvma
