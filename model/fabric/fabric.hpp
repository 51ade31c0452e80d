/// \file
/// Builds what lies between the NICs: links, switch and fault stages, as section `fabric` of the configuration says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/component.hpp"
#include "fabric/config.hpp"
#include "fabric/faults.hpp"
#include "fabric/interfaces.hpp"
#include "fabric/link.hpp"
#include "fabric/switch.hpp"

namespace rvma {

/// What a NIC offers to the link that feeds it.
struct FabricAttachment {
  PacketSinkIf* input = nullptr;
  Bytes receive_buffer;  ///< its size is the link's credit; at least the longest packet on the link
};

/// The shape that `automatic` stands for.
constexpr Topology resolve(Topology topology, std::uint32_t nodes) {
  if (topology != Topology::automatic) return topology;
  return nodes <= 2 ? Topology::p2p : Topology::star;
}
/// Most nodes that the configured shape holds; more are the configuration's error, and an assertion failure here.
std::uint32_t most_nodes(const FabricConfig& config, std::uint32_t nodes);

/// Node n is entry n of `nodes`. One node alone gets a link too, with nothing at its far end: what is sent is lost.
/// Statistics: `fabric.link.A-B` (A and B a node's number or `switch`), `fabric.switch`, `fabric.faults.N`.
class Fabric : public sc_core::sc_module {
 public:
  Fabric(const sc_core::sc_module_name& name, SimContext& context, const FabricConfig& config,
         const std::vector<FabricAttachment>& nodes, PacketPool& packets);
  ~Fabric() override;

  /// Where node n sends.
  LinkIf& link(NodeId node) { return *transmit_.at(node.index()); }
  /// Where node n gives back the space in its input buffer.
  LinkCreditIf& credit(NodeId node) { return *receive_.at(node.index()); }

  Topology topology() const { return topology_; }
  const FabricLosses& losses() const { return losses_; }
  /// Null in a topology without one.
  const Switch* central_switch() const { return switch_.get(); }
  const std::vector<std::unique_ptr<Link>>& links() const { return links_; }
  const std::vector<std::unique_ptr<FaultStage>>& fault_stages() const { return faults_; }

 private:
  class Unplugged;
  void build_single();
  void build_p2p(const std::vector<FabricAttachment>& nodes);
  void build_star(const std::vector<FabricAttachment>& nodes);
  /// Far end of the last hop to `node`: its input, or the fault stage in front of it.
  PacketSinkIf& last_hop(std::uint32_t node, const FabricAttachment& attachment);
  /// The last link to `node`, with the fault stage at its end.
  Link& add_last_link(const std::string& ends, std::uint32_t node, const FabricAttachment& attachment);
  Link& add_link(const std::string& ends, PacketSinkIf& far_end, Bytes receiver_buffer);

  SimContext& context_;
  const FabricConfig& config_;
  PacketPool& packets_;
  FabricLosses losses_;
  Topology topology_;
  std::unique_ptr<Unplugged> unplugged_;
  std::unique_ptr<Switch> switch_;
  std::vector<std::unique_ptr<FaultStage>> faults_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<LinkIf*> transmit_;
  std::vector<LinkCreditIf*> receive_;
};

}  // namespace rvma
