/// \file
/// The RNIC: all its units wired together. Host side: `dma` (initiator, non-blocking base protocol) and `mmio` (target,
/// both transports); network side: network_input() for arrivals, connect() for departures and credit.
#pragma once

#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>

#include "base/component.hpp"
#include "fabric/interfaces.hpp"
#include "fabric/packet.hpp"
#include "nic/address_conversion.hpp"
#include "nic/command_unit.hpp"
#include "nic/completion_writer.hpp"
#include "nic/config.hpp"
#include "nic/counter_unit.hpp"
#include "nic/delivery_unit.hpp"
#include "nic/dma_engine.hpp"
#include "nic/egress.hpp"
#include "nic/get_unit.hpp"
#include "nic/interrupt_arm.hpp"
#include "nic/observer.hpp"
#include "nic/payload_writer.hpp"
#include "nic/receive_parser.hpp"
#include "nic/spill_area.hpp"
#include "nic/spilled_cache.hpp"
#include "nic/store_caches.hpp"
#include "nic/table_unit.hpp"
#include "nic/transmit.hpp"
#include "nic/window_calls.hpp"
#include "nic/window_store.hpp"

namespace rvma {

class Rnic : public Component {
 public:
  tlm::tlm_initiator_socket<> dma;
  /// One page of kMmioPageBytes a process, at pid x kMmioPageBytes; see nic/descriptor.hpp. Writes only; a write that
  /// hits neither doorbell nor inline window answers TLM_GENERIC_ERROR_RESPONSE and changes nothing. The annotated
  /// delay is the time at which the write arrives. nb_transport completes at once.
  tlm_utils::simple_target_socket<Rnic> mmio;

  struct Parameters {
    const NicConfig& config;
    Bytes page;  ///< host.page, a power of two
    NodeId node;
    std::uint32_t boot_number = 1;                        ///< incarnation, > 0
    bool timing_only = false;                             ///< payload bytes are not carried
    std::uint32_t ranks_per_node = 1;                     ///< rank = node x ranks_per_node + pid, for records
    TableUnitFactory make_table = &ModelTableUnit::make;  ///< the translation table: C++ or Verilog
  };
  /// Everything that is referred to outlives the RNIC.
  Rnic(const sc_core::sc_module_name& name, SimContext& context, const Parameters& parameters, PacketPool& packets,
       PayloadPool& payloads, const ObserverList& observers);

  /// Where the link to this NIC delivers.
  PacketSinkIf& network_input() { return input_; }
  /// The link that leaves this NIC, and the credit side of the one that feeds it. Once, before the simulation starts.
  void connect(LinkIf& link, LinkCreditIf& credit);
  /// See CommandUnit::set_ring().
  void set_ring(Pid pid, PhysicalAddress base, std::uint32_t entries, PhysicalAddress consumed_word) {
    command_.set_ring(pid, base, entries, consumed_word);
  }

  /// Where the host has memory for what does not fit on the NIC; once, before the first call. Without it the area
  /// begins at address 0, which only a host without memory of its own may leave so.
  void set_spill_area(const SpillArea& area);

  const CommandUnit& command() const { return command_; }
  const Transmit& transmit() const { return transmit_; }
  const Egress& egress() const { return egress_; }
  const DeliveryUnit& delivery() const { return delivery_; }
  const DmaEngine& dma_engine() const { return dma_engine_; }

 private:
  /// Arrivals from the link and from the own egress, in one order: the parser's times must not go back, so a packet
  /// that turned round may wait for one whose arrival the link has already announced.
  class Input : public PacketSinkIf {
   public:
    explicit Input(ReceiveParser& parser) : parser_(parser) {}
    void deliver(PacketPtr packet, Time at) override;

   private:
    ReceiveParser& parser_;
    Time latest_;
  };
  /// Between counters and completion writer: a completion whose word is armed also interrupts; one of a get's window is
  /// the get unit's.
  class ArmedCompletions : public CompletionWriterIf {
   public:
    ArmedCompletions(InterruptArm& arm, CompletionWriter& writer, GetUnit& gets)
        : arm_(arm), writer_(writer), gets_(gets) {}
    void complete(const Completion& completion, Cycles at) override;

   private:
    InterruptArm& arm_;
    CompletionWriter& writer_;
    GetUnit& gets_;
  };

  void bind_units();
  void bind_caches();
  void b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay);
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay);
  tlm::tlm_response_status write_mmio(const tlm::tlm_generic_payload& transaction, const sc_core::sc_time& delay);

  InterruptArm arm_;
  WindowStore windows_;
  SpilledCache buffer_cache_;
  SpilledCache counter_cache_;
  SpilledCache receive_context_cache_;
  SpilledCache transmit_context_cache_;
  std::unique_ptr<TableUnit> table_;
  ReceiveParser parser_;
  AddressConversion conversion_;
  PayloadWriter payload_writer_;
  CounterUnit counters_;
  CompletionWriter completion_writer_;
  ContextCache contexts_;
  StoreCaches store_caches_;
  CounterFetch counter_fetch_;
  WindowCalls window_calls_;
  DeliveryUnit delivery_;
  CommandUnit command_;
  Transmit transmit_;
  GetUnit gets_;
  Egress egress_;
  Input input_;
  ArmedCompletions armed_completions_;
  // Its bursts hold payloads from the other units' pools: it goes before they do.
  DmaEngine dma_engine_;
};

}  // namespace rvma
