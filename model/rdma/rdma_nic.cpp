#include "rdma/rdma_nic.hpp"

#include "base/error.hpp"

namespace rvma {

RdmaNic::RdmaNic(const sc_core::sc_module_name& name, SimContext& context, const Parameters& p, PacketPool& packets,
                 PayloadPool& payloads, const ObserverList& observers)
    : Nic(name, context, p.nic.clock),
      state_(p.nic.mtu->count(), p.rdma.ooo_tracking),
      placed_observer_(*this),
      completions_("completions", context, p.nic),
      parser_("parser", context, p.nic, p.node, observers),
      receive_("receive", context, {p.nic, p.rdma, p.page, p.node}, state_, completions_, observers),
      payload_writer_("payload_writer", context, p.nic, p.node, placed_observers_),
      calls_("calls", context, p.nic, state_, receive_.queue_pairs(), receive_.regions()),
      delivery_("delivery", context, p.nic, p.node, p.boot_number, packets),
      command_("command", context, p.nic, payloads, arm_),
      transmit_("transmit", context, {p.nic, p.page, p.node, p.boot_number, p.timing_only}, packets, payloads, arm_,
                observers),
      work_("work", context, p.nic, p.rdma, state_, receive_.queue_pairs(), completions_),
      egress_("egress", context, p.nic, p.node, observers),
      input_(parser_),
      dma_engine_("dma_engine", context, p.nic) {
  RVMA_ASSERT(p.boot_number > 0, "incarnation 0 means `not heard yet`");
  placed_observers_.add(placed_observer_);
  bind_units();
}

void RdmaNic::bind_units() {
  // 1. Host side.
  dma_engine_.dma.bind(dma);
  command_.dma(dma_engine_);
  transmit_.dma(dma_engine_);
  receive_.dma(dma_engine_);
  payload_writer_.dma(dma_engine_);
  completions_.dma(dma_engine_);
  // 2. Commands.
  command_.window_calls(calls_);
  command_.transmit(transmit_);
  command_.work_requests(work_);
  work_.transmit(transmit_);
  transmit_.gets(work_);
  // 3. Receive path.
  parser_.lookup(receive_);
  parser_.conversion(receive_);
  parser_.acknowledgements(transmit_);
  receive_.delivery(delivery_);
  receive_.writer(payload_writer_);
  receive_.answers(work_);
  payload_writer_.delivery(delivery_);
  payload_writer_.counter(receive_);
  // 4. Transmit path.
  transmit_.egress(egress_);
  delivery_.egress(egress_);
  delivery_.bindings(receive_);
  egress_.turn_round(input_);
  egress_.on_departure([this](const Egress::Departure& departure) { transmit_.departed(departure); });
}

void RdmaNic::connect(LinkIf& link, LinkCreditIf& credit) {
  egress_.link(link);
  parser_.credit(credit);
  receive_.credit(credit);
  payload_writer_.credit(credit);
}

bool RdmaNic::take_mmio_write(Pid pid, std::uint64_t offset, const std::uint8_t* bytes, std::uint32_t length, Time at) {
  return command_.mmio_write(pid, offset, bytes, length, at);
}

void RdmaNic::PlacedObserver::packet_placed(NodeId /*node*/, const PlacedPacket& packet, std::uint64_t buffer_offset,
                                            Time at) {
  if (!nic_.placed_) return;
  const RdmaState::Placing message = nic_.state_.placing_of(packet.binding);
  nic_.placed_({message, buffer_offset - message.base, &packet, at});
}

}  // namespace rvma
