/// \file
/// What a host and a network see of a NIC, whatever it does: sockets, link, command rings. The RNIC and the RDMA
/// baseline fit the same chassis by it.
#pragma once

#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <systemc>
#include <tlm>

#include "base/component.hpp"
#include "fabric/interfaces.hpp"
#include "fabric/packet.hpp"

namespace rvma {

class Nic : public Component {
 public:
  tlm::tlm_initiator_socket<> dma;
  /// One page of kMmioPageBytes a process, at pid x kMmioPageBytes; see nic/descriptor.hpp. Writes only; a write that
  /// hits neither doorbell nor inline window answers TLM_GENERIC_ERROR_RESPONSE and changes nothing. The annotated
  /// delay is the time at which the write arrives. nb_transport completes at once.
  tlm_utils::simple_target_socket<Nic> mmio;

  Nic(const sc_core::sc_module_name& name, SimContext& context, Frequency clock);

  /// Where the link to this NIC delivers.
  virtual PacketSinkIf& network_input() = 0;
  /// The link that leaves this NIC, and the credit side of the one that feeds it. Once, before the simulation starts.
  virtual void connect(LinkIf& link, LinkCreditIf& credit) = 0;
  /// See CommandUnit::set_ring().
  virtual void set_ring(Pid pid, PhysicalAddress base, std::uint32_t entries, PhysicalAddress consumed_word) = 0;

 protected:
  /// See CommandUnit::mmio_write().
  virtual bool take_mmio_write(Pid pid, std::uint64_t offset, const std::uint8_t* bytes, std::uint32_t length,
                               Time at) = 0;

 private:
  void b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay);
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay);
  tlm::tlm_response_status write_mmio(const tlm::tlm_generic_payload& transaction, const sc_core::sc_time& delay);
};

}  // namespace rvma
