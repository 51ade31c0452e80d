/// \file
/// Builds what lies between the NICs: links, switches and fault stages, as section `fabric` of the configuration says.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/component.hpp"
#include "fabric/config.hpp"
#include "fabric/faults.hpp"
#include "fabric/interfaces.hpp"
#include "fabric/link.hpp"
#include "fabric/routing.hpp"
#include "fabric/switch.hpp"
#include "fabric/topology.hpp"

namespace rvma {

/// What a NIC offers to the link that feeds it.
struct FabricAttachment {
  PacketSinkIf* input = nullptr;
  Bytes receive_buffer;  ///< its size is the link's credit; at least the longest packet on the link
};

/// One direction of a cable. `from` and `to` are the names of its ends: a node's number, `switch7`, or `switch` where
/// there is only one. `name` is "FROM-TO", with "-1", "-2" .. behind it for parallel cables after the first.
struct FabricLink {
  std::string name;
  std::string from;
  std::string to;
};

/// Node n is entry n of `nodes`. One node alone on p2p gets a link too, with nothing at its far end: what is sent is
/// lost.
///
/// Statistics: `fabric`, sums over all links. Up to kMostUnits links also `fabric.link.NAME` for each, and
/// `fabric.switch` or `fabric.switch.N` for each switch; with more, `fabric.switches` for all of them together.
/// `fabric.faults.N`.
class Fabric : public sc_core::sc_module, private UtilisationTable {
 public:
  static constexpr std::size_t kMostUnits = 512;

  /// `config` is free of mistakes for so many nodes (validate_fabric()).
  Fabric(const sc_core::sc_module_name& name, SimContext& context, const FabricConfig& config,
         const std::vector<FabricAttachment>& nodes, PacketPool& packets, ChannelUse use = ChannelUse::as_needed);
  ~Fabric() override;

  /// Where node n sends.
  LinkIf& link(NodeId node) { return *transmit_.at(node.index()); }
  /// Where node n gives back the space in its input buffer.
  LinkCreditIf& credit(NodeId node) { return *receive_.at(node.index()); }

  Topology topology() const { return topology_; }
  /// Null in p2p.
  const Shape* shape() const { return shape_.get(); }
  const std::vector<std::unique_ptr<Switch>>& switches() const { return switches_; }
  const std::deque<Link>& links() const { return links_; }
  /// Of links()[index].
  FabricLink describe(std::size_t index) const;
  const FabricStats& stats() const { return stats_; }
  const FabricLosses& losses() const { return stats_.losses; }
  /// Of all switches together, or of the only one.
  const SwitchStats& switch_stats(std::size_t index) const {
    return switch_stats_[index < switch_stats_.size() ? index : 0];
  }
  const std::vector<std::unique_ptr<FaultStage>>& fault_stages() const { return faults_; }
  /// All of `fabric.faults.events`; those of links are seen to here.
  const std::vector<FaultEvent>& events() const { return config_.faults.events->events; }

 private:
  class Unplugged;
  /// Where a link begins: a port of a switch, or the node that it leads to.
  struct Origin {
    SwitchId at;
    Port port = kNoPort;
    bool is_from_node = false;
  };
  void build_single();
  void build_p2p(const std::vector<FabricAttachment>& nodes);
  void build_switches(const std::vector<FabricAttachment>& nodes, ChannelUse use);
  void schedule_events();
  void publish();
  /// Far end of the last hop to `node`: its input, or the fault stage in front of it.
  PacketSinkIf& last_hop(std::uint32_t node, const FabricAttachment& attachment);
  /// The link of the last hop to `node`, which the fault stage gives credit back to.
  Link& add_last_link(std::uint32_t node, const FabricAttachment& attachment, const Origin& origin);
  Link& add_link(PacketSinkIf& far_end, const Link::Buffer& buffer, const Origin& origin);

  // UtilisationTable: the links, where they are too many for a unit each.
  std::size_t size() const override { return links_.size(); }
  std::string unit(std::size_t index) const override;
  const Utilisation& utilisation(std::size_t index) const override { return links_[index].stats().wire; }

  SimContext& context_;
  const FabricConfig& config_;
  PacketPool& packets_;
  Topology topology_;
  std::unique_ptr<Unplugged> unplugged_;
  std::unique_ptr<Shape> shape_;
  std::unique_ptr<Router> router_;
  FabricStats stats_;
  std::deque<SwitchStats> switch_stats_;
  std::vector<std::unique_ptr<Switch>> switches_;
  std::vector<std::unique_ptr<FaultStage>> faults_;
  std::deque<Link> links_;
  std::vector<Origin> origins_;  ///< of each link
  std::vector<Link*> transmit_;
  std::vector<Link*> receive_;
};

}  // namespace rvma
