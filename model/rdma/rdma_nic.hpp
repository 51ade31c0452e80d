/// \file
/// The RDMA baseline's NIC: the RNIC's chassis with queue pairs and regions in the place of mailboxes and windows.
/// Command unit, transmit, egress, parser, delivery contexts, payload writer and DMA engine are the RNIC's own.
#pragma once

#include <cstdint>
#include <functional>
#include <systemc>
#include <utility>

#include "base/component.hpp"
#include "nic/command_unit.hpp"
#include "nic/config.hpp"
#include "nic/delivery_unit.hpp"
#include "nic/dma_engine.hpp"
#include "nic/egress.hpp"
#include "nic/interrupt_arm.hpp"
#include "nic/nic.hpp"
#include "nic/observer.hpp"
#include "nic/payload_writer.hpp"
#include "nic/receive_parser.hpp"
#include "nic/transmit.hpp"
#include "rdma/completion_queue_writer.hpp"
#include "rdma/config.hpp"
#include "rdma/rdma_calls.hpp"
#include "rdma/rdma_nic_if.hpp"
#include "rdma/rdma_receive.hpp"
#include "rdma/rdma_state.hpp"
#include "rdma/state_cache.hpp"
#include "rdma/work_unit.hpp"

namespace rvma {

class RdmaNic : public Nic, public RdmaNicIf {
 public:
  struct Parameters {
    const NicConfig& nic;
    const RdmaConfig& rdma;
    Bytes page;  ///< host.page, a power of two
    NodeId node;
    std::uint32_t boot_number = 1;
    bool timing_only = false;
  };
  /// Everything that is referred to outlives the NIC.
  RdmaNic(const sc_core::sc_module_name& name, SimContext& context, const Parameters& parameters, PacketPool& packets,
          PayloadPool& payloads, const ObserverList& observers);

  PacketSinkIf& network_input() override { return input_; }
  void connect(LinkIf& link, LinkCreditIf& credit) override;
  void set_ring(Pid pid, PhysicalAddress base, std::uint32_t entries, PhysicalAddress consumed_word) override {
    command_.set_ring(pid, base, entries, consumed_word);
  }
  void set_completion_queue(Pid pid, PhysicalAddress base, std::uint32_t entries) override {
    completions_.set_queue(pid, base, entries);
  }
  void prepare(const Descriptor& call, Pid pid) override { calls_.perform(call, pid); }
  void on_placed(std::function<void(const Placed&)> placed) override { placed_ = std::move(placed); }

  const RdmaState& state() const { return state_; }

 protected:
  bool take_mmio_write(Pid pid, std::uint64_t offset, const std::uint8_t* bytes, std::uint32_t length,
                       Time at) override;

 private:
  /// What the payload writer tells, in the words of this NIC.
  class PlacedObserver : public NicObserver {
   public:
    explicit PlacedObserver(RdmaNic& nic) : nic_(nic) {}
    void packet_placed(NodeId node, const PlacedPacket& packet, std::uint64_t buffer_offset, Time at) override;

   private:
    RdmaNic& nic_;
  };
  void bind_units();

  InterruptArm arm_;
  RdmaState state_;
  PlacedObserver placed_observer_;
  ObserverList placed_observers_;
  std::function<void(const Placed&)> placed_;
  CompletionQueueWriter completions_;
  ReceiveParser parser_;
  RdmaReceive receive_;
  PayloadWriter payload_writer_;
  RdmaCalls calls_;
  DeliveryUnit delivery_;
  CommandUnit command_;
  Transmit transmit_;
  WorkUnit work_;
  Egress egress_;
  NicInput input_;
  // Its bursts hold payloads from the other units' pools: it goes before they do.
  DmaEngine dma_engine_;
};

}  // namespace rvma
