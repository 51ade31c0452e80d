/// \file
/// The slot of a host whose RNIC can lose power. A crash takes everything that the RNIC knew; what comes back is
/// another one, with a newer boot number, in the same slot: each incarnation is an RNIC of its own, and the slot
/// connects the one that is alive to PCIe and to the network. A dead one goes on by itself, and nothing that it does
/// leaves the slot.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "base/component.hpp"
#include "fabric/interfaces.hpp"
#include "nic/nic.hpp"

namespace rvma {

class NicSlot : public sc_core::sc_module, public PacketSinkIf {
 public:
  tlm_utils::simple_initiator_socket<NicSlot> dma;  ///< to the host
  tlm_utils::simple_target_socket<NicSlot> mmio;    ///< from the host

  /// Holds `incarnations` RNICs, one after another. The first is alive from the start.
  NicSlot(const sc_core::sc_module_name& name, std::uint32_t incarnations);
  ~NicSlot() override;

  /// Incarnation `index` (from 0): binds its sockets. Once each, before the simulation starts.
  void insert(std::uint32_t index, Nic& nic);
  /// The link that leaves this slot, and the credit side of the one that feeds it.
  void connect(LinkIf& link, LinkCreditIf& credit);

  /// Nothing that the RNIC does from now on leaves the slot; what comes for it is lost.
  void power_off();
  /// The next incarnation is alive; packets that arrive before `deaf_until` are lost.
  void power_on(Time deaf_until);
  bool alive() const { return alive_; }
  std::uint32_t incarnation() const { return current_; }

  /// Where the fabric delivers.
  void deliver(PacketPtr packet, Time at) override;
  /// Packets that found nobody alive, or came too early.
  const FabricLosses& losses() const { return losses_; }

 private:
  class Bay;
  bool is_live(std::uint32_t index) const { return alive_ && index == current_; }
  tlm::tlm_sync_enum forward(int index, tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                             sc_core::sc_time& delay);
  tlm::tlm_sync_enum backward(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase, sc_core::sc_time& delay);
  void mmio_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay);
  tlm::tlm_sync_enum mmio_forward(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                  sc_core::sc_time& delay);

  std::vector<std::unique_ptr<Bay>> bays_;
  LinkIf* link_ = nullptr;
  LinkCreditIf* credit_ = nullptr;
  std::uint32_t current_ = 0;
  bool alive_ = true;
  Time deaf_until_;
  FabricLosses losses_;
  /// Transactions that the host has not answered, each with the incarnation that asked.
  boost::unordered_flat_map<const tlm::tlm_generic_payload*, std::uint32_t> asked_by_;
};

}  // namespace rvma
