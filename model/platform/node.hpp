/// \file
/// One host with its RNIC: memory, PCIe, cores and drivers, wired together.
#pragma once

#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "driver/driver.hpp"
#include "fabric/packet.hpp"
#include "host/address_space.hpp"
#include "host/core.hpp"
#include "host/memory.hpp"
#include "host/pcie.hpp"
#include "nic/nic.hpp"
#include "nic/observer.hpp"
#include "nic/table_unit.hpp"
#include "platform/config.hpp"
#include "platform/nic_slot.hpp"
#include "rdma/provider.hpp"

namespace rvma {

/// Pools that all nodes of a simulation share.
struct Pools {
  PacketPool packets;
  PayloadPool payloads;
  explicit Pools(std::uint32_t mtu_bytes) : payloads(mtu_bytes) {}
};

class Node : public sc_core::sc_module {
 public:
  struct Parameters {
    NodeId id;
    RankId first_rank;  ///< of the `processes` ranks that live here
    std::uint32_t processes = 1;
    DriverObserver* driver_observer = nullptr;
    TableUnitFactory make_table = &ModelTableUnit::make;
    bool may_crash = false;
    std::uint32_t restarts = 0;  ///< planned
    Protocol protocol = Protocol::rvma;
    std::uint32_t ranks = 0;  ///< of all nodes
    const NicConfig& nic_config;
    ProviderDirectory* directory = nullptr;  ///< rdma only
  };
  Node(const sc_core::sc_module_name& name, SimContext& context, const Config& config, const Parameters& parameters,
       Pools& pools, const ObserverList& observers);
  ~Node() override;

  /// The NIC that is alive, or was last.
  Nic& nic() { return *nics_[incarnation_]; }
  /// Where the fabric delivers.
  PacketSinkIf& network_input();
  void connect(LinkIf& link, LinkCreditIf& credit);

  /// The host loses power: its programs end, its RNIC forgets all, its memory stays. Only if it may_crash.
  void crash();
  /// It comes back with a newer RNIC and drivers that know nothing; its programs are the caller's to start. No more
  /// often than planned.
  void restart();
  bool alive() const { return slot_ == nullptr || slot_->alive(); }
  /// Packets that its dead or deaf RNIC lost.
  FabricLosses losses() const { return slot_ == nullptr ? FabricLosses{} : slot_->losses(); }
  Memory& memory() { return memory_; }
  std::uint32_t processes() const { return static_cast<std::uint32_t>(processes_.size()); }
  Core& core(Pid pid) { return *processes_.at(pid.value())->core; }
  AddressSpace& space(Pid pid) { return *processes_.at(pid.value())->space; }
  Driver& driver(Pid pid) { return *processes_.at(pid.value())->driver; }

 private:
  struct Process {
    std::unique_ptr<Core> core;
    std::unique_ptr<AddressSpace> space;
    std::unique_ptr<Driver> driver;
    std::vector<std::unique_ptr<Driver>> dead_drivers;  ///< results may still ask them
  };

  struct Incarnation {
    ObserverList observers;  ///< of its own: a dead RNIC's deeds are nobody's business
  };
  std::vector<std::unique_ptr<Nic>> make_nics(Pools& pools);
  std::unique_ptr<Nic> make_nic(std::uint32_t index, Pools& pools, const ObserverList& observers);
  void make_provider();
  void lend_memory();
  void make_driver(Process& process, Pid pid);

  SimContext& context_;
  const Config& config_;
  const Parameters parameters_;
  const NicConfig& nic_config_;
  const ObserverList& observers_;
  std::uint32_t incarnation_ = 0;  ///< from 0
  std::vector<std::unique_ptr<Incarnation>> incarnations_;
  // Memory holds transactions of the RNICs until they are visible: it goes before they do, and is made after them
  // (ModuleAnchor).
  std::vector<std::unique_ptr<Nic>> nics_;
  Memory memory_;
  FrameAllocator frames_;
  Pcie pcie_;
  std::unique_ptr<NicSlot> slot_;  ///< null: the host never crashes, and its RNIC is wired straight through
  std::vector<std::unique_ptr<Process>> processes_;
  std::unique_ptr<Provider> provider_;  ///< null: RVMA
};

}  // namespace rvma
