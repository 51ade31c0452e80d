/// \file
/// A fat tree (XGFT(h; m..m; 1, w..w) of Ohring et al. 1995): m = arity links down, w = arity / taper links up.
#pragma once

#include <vector>

#include "fabric/topology.hpp"

namespace rvma {

/// Level 1 has the nodes. A switch of level l is (subtree, copy): the subtree is node / arity^l, and each subtree has
/// w^(l-1) copies. Copy c of a subtree leads up to copies c w .. c w + w - 1 of the next. Only subtrees with nodes, and
/// only as many levels as they need, are built. Ports: down 0 .. arity - 1, then up.
class FatTreeShape : public Shape {
 public:
  FatTreeShape(const FatTreeConfig& config, std::uint32_t nodes);

  std::uint32_t switches() const override { return levels_.back().first + levels_.back().switches; }
  Port ports(SwitchId at) const override;
  PortEnd end(SwitchId at, Port port) const override;
  Attachment attachment(NodeId node) const override { return {SwitchId{node.value() / arity_}, node.value() % arity_}; }
  std::uint32_t distance(SwitchId at, SwitchId target) const override;
  void minimal(SwitchId at, SwitchId target, std::vector<Port>& outputs) const override;
  /// Up by the digits of the destination, so that the nodes of a switch spread over all its links.
  Port static_output(SwitchId at, SwitchId target, NodeId source, NodeId destination) const override;
  /// Up, then down: no cycle.
  std::uint32_t channels(Routing /*routing*/, SwitchId /*at*/, Port /*port*/) const override { return 1; }
  std::uint32_t channel(Routing /*routing*/, SwitchId /*at*/, Port /*port*/, SwitchId /*target*/,
                        const RouteState& /*route*/) const override {
    return 0;
  }

 private:
  struct Level {
    std::uint32_t first = 0;     ///< number of its first switch
    std::uint32_t switches = 0;  //
    std::uint32_t subtrees = 0;  ///< with nodes
    std::uint32_t copies = 1;    ///< switches of a subtree
    std::uint32_t span = 1;      ///< nodes of a subtree
  };
  struct Place {
    std::uint32_t level;  ///< index in levels_: 0 has the nodes
    std::uint32_t subtree;
    std::uint32_t copy;
  };
  Place place(SwitchId at) const;
  bool is_top(std::uint32_t level) const { return level + 1 == levels_.size(); }

  std::uint32_t arity_;
  std::uint32_t up_;  ///< links up of a switch
  std::vector<Level> levels_;
};

}  // namespace rvma
