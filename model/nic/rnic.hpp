/// \file
/// The RNIC: all its units wired together. Host side: `dma` (initiator, non-blocking base protocol) and `mmio` (target,
/// both transports); network side: network_input() for arrivals, connect() for departures and credit.
#pragma once

#include <cstdint>
#include <memory>
#include <systemc>

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
#include "nic/nic.hpp"
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

class Rnic : public Nic {
 public:
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

  PacketSinkIf& network_input() override { return input_; }
  void connect(LinkIf& link, LinkCreditIf& credit) override;
  void set_ring(Pid pid, PhysicalAddress base, std::uint32_t entries, PhysicalAddress consumed_word) override {
    command_.set_ring(pid, base, entries, consumed_word);
  }

  /// Where the host has memory for what does not fit on the NIC; once, before the first call. Without it the area
  /// begins at address 0, which only a host without memory of its own may leave so.
  void set_spill_area(const SpillArea& area);

  const CommandUnit& command() const { return command_; }
  const Transmit& transmit() const { return transmit_; }
  const Egress& egress() const { return egress_; }
  const DeliveryUnit& delivery() const { return delivery_; }
  /// An incarnation after the first begins.
  void power_on(Time at) { delivery_.power_on(at); }
  const DmaEngine& dma_engine() const { return dma_engine_; }

 private:
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
  bool take_mmio_write(Pid pid, std::uint64_t offset, const std::uint8_t* bytes, std::uint32_t length,
                       Time at) override;

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
  NicInput input_;
  ArmedCompletions armed_completions_;
  // Its bursts hold payloads from the other units' pools: it goes before they do.
  DmaEngine dma_engine_;
};

}  // namespace rvma
