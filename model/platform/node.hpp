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
#include "nic/observer.hpp"
#include "nic/rnic.hpp"
#include "platform/config.hpp"

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
  };
  Node(const sc_core::sc_module_name& name, SimContext& context, const Config& config, const Parameters& parameters,
       Pools& pools, const ObserverList& observers);
  ~Node() override;

  Rnic& nic() { return nic_; }
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
  };

  // Memory holds transactions of the RNIC until they are visible: it goes before the RNIC does.
  Rnic nic_;
  Memory memory_;
  FrameAllocator frames_;
  Pcie pcie_;
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace rvma
