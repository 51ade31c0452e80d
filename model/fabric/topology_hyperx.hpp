/// \file
/// A HyperX (Ahn et al. 2009): a grid in which every switch has a link to each other one on each of its lines.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/topology.hpp"

namespace rvma {

/// Switches and nodes are numbered as in a torus. Ports: the nodes, then for each dimension one to every other
/// coordinate, in their order.
///
/// Channels: a way takes at most one hop a dimension. In dimension order that is free of deadlock by itself; adaptive
/// and spray, which take dimensions in any order, use a channel a hop; valiant and ugal one for each part of the way,
/// both in dimension order.
class HyperXShape : public Shape {
 public:
  HyperXShape(const HyperXConfig& config, std::uint32_t nodes);

  std::uint32_t switches() const override { return switches_; }
  Port ports(SwitchId /*at*/) const override { return ports_; }
  PortEnd end(SwitchId at, Port port) const override;
  Attachment attachment(NodeId node) const override {
    return {SwitchId{node.value() / per_switch_}, node.value() % per_switch_};
  }
  std::uint32_t distance(SwitchId at, SwitchId target) const override;
  void minimal(SwitchId at, SwitchId target, std::vector<Port>& outputs) const override;
  /// Dimension order.
  Port static_output(SwitchId at, SwitchId target, NodeId source, NodeId destination) const override;
  std::uint32_t detours() const override { return switches_ > 2 ? switches_ : 0; }
  void towards_detour(SwitchId at, std::uint32_t detour, std::vector<Port>& outputs) const override;
  void after_detour(SwitchId at, SwitchId target, std::vector<Port>& outputs) const override;
  std::uint32_t channels(Routing routing, SwitchId at, Port port) const override;
  std::uint32_t channel(Routing routing, SwitchId at, Port port, SwitchId target,
                        const RouteState& route) const override;

 private:
  std::uint32_t coordinate(SwitchId at, std::size_t dimension) const {
    return coordinates_[at.index() * extents_.size() + dimension];
  }
  Port port_to(std::size_t dimension, std::uint32_t from, std::uint32_t to) const {
    return first_port_[dimension] + (to < from ? to : to - 1);
  }
  Port dimension_order(SwitchId at, SwitchId target) const;

  std::vector<std::uint32_t> extents_;
  std::vector<std::uint32_t> strides_;
  std::vector<Port> first_port_;  ///< of each dimension
  std::uint32_t per_switch_;
  std::uint32_t switches_ = 1;
  Port ports_;
  std::vector<std::uint16_t> coordinates_;
};

}  // namespace rvma
