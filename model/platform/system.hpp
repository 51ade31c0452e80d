/// \file
/// A whole machine: nodes and the fabric between them, built from the configuration.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/component.hpp"
#include "fabric/fabric.hpp"
#include "platform/config.hpp"
#include "platform/node.hpp"

namespace rvma {

class System {
 public:
  /// `config` is valid for `ranks` (see validate()) and outlives the system, as do the observers.
  System(SimContext& context, const Config& config, std::uint32_t ranks, const ObserverList& observers,
         DriverObserver* driver_observer, const TableUnitFactory& make_table = &ModelTableUnit::make,
         Protocol protocol = Protocol::rvma);
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(nodes_.size()); }
  Node& node(NodeId id) { return *nodes_.at(id.index()); }
  const Fabric& fabric() const { return *fabric_; }
  NodeId node_of(RankId rank) const { return NodeId{rank.value() / ranks_per_node_}; }
  Pid pid_of(RankId rank) const { return Pid{static_cast<std::uint16_t>(rank.value() % ranks_per_node_)}; }
  Driver& driver(RankId rank) { return node(node_of(rank)).driver(pid_of(rank)); }

  /// What `fabric.faults.events` does to nodes happens by itself; `crashed` and `restarted` learn of it at that time,
  /// after the node itself. Before the simulation starts.
  void on_node_events(std::function<void(NodeId)> crashed, std::function<void(NodeId)> restarted);
  /// Events of nodes that are still to come, by time.
  std::vector<FaultEvent> node_events_to_come() const;
  /// What the fabric and dead NICs lost, and the fabric made.
  FabricLosses losses() const;

  /// Gives a rank its program: an ordinary function over its driver. Before the simulation starts.
  void run_on(RankId rank, std::function<void(Driver&)> program);

  /// Memory of a process, as a load now would see it.
  void read(NodeId node, Pid pid, VirtualAddress from, std::uint64_t bytes, std::vector<std::uint8_t>& to);
  std::uint64_t load64(NodeId node, PhysicalAddress address);

  /// When the last posted write of any host is visible: writes are no events, so a simulation may end before it.
  Time drained_at() const;

  /// Data packets and acknowledgements between sender and receiver now: 0 once the network is drained.
  std::size_t packets_in_flight() const { return pools_.packets.in_use(); }

 private:
  class NodeEvents;
  std::unique_ptr<ModuleAnchor> anchor_;
  std::uint32_t ranks_;
  std::uint32_t ranks_per_node_;
  const NicConfig nic_config_;  ///< of every node
  Pools pools_;
  ProviderDirectory directory_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<NodeEvents> node_events_;
};

}  // namespace rvma
