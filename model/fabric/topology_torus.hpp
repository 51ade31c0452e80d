/// \file
/// A torus or mesh of any number of dimensions.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/topology.hpp"

namespace rvma {

/// Switch = sum of coordinate x stride, the first dimension fastest; node n is at switch n / nodes_per_switch. Ports:
/// the nodes, then for each dimension up (+1) and down (-1). A ring of two switches has one cable, a ring of one none.
///
/// Channels: dimension order with a dateline at each ring's end (Dally and Seitz 1987): channel 0 before the dateline,
/// 1 behind it or if the way does not cross it. So channels 0 and 1 escape for adaptive and spray, which have channel 2
/// besides (Duato 1993); valiant and ugal use 0 and 1 up to the detour, 2 and 3 behind it. Half of that in a mesh.
class TorusShape : public Shape {
 public:
  TorusShape(const TorusConfig& config, std::uint32_t nodes);

  std::uint32_t switches() const override { return switches_; }
  Port ports(SwitchId /*at*/) const override { return per_switch_ + 2 * static_cast<Port>(extents_.size()); }
  PortEnd end(SwitchId at, Port port) const override;
  Attachment attachment(NodeId node) const override {
    return {SwitchId{node.value() / per_switch_}, node.value() % per_switch_};
  }
  std::uint32_t distance(SwitchId at, SwitchId target) const override;
  void minimal(SwitchId at, SwitchId target, std::vector<Port>& outputs) const override;
  /// Dimension order. Where both ways round are equally long, odd coordinates go down.
  Port static_output(SwitchId at, SwitchId target, NodeId source, NodeId destination) const override;
  std::uint32_t detours() const override { return switches_ > 2 ? switches_ : 0; }
  void towards_detour(SwitchId at, std::uint32_t detour, std::vector<Port>& outputs) const override;
  void after_detour(SwitchId at, SwitchId target, std::vector<Port>& outputs) const override;
  std::uint32_t channels(Routing routing, SwitchId at, Port port) const override;
  std::uint32_t channel(Routing routing, SwitchId at, Port port, SwitchId target,
                        const RouteState& route) const override;
  bool has_escape(Routing routing) const override { return routing == Routing::adaptive || routing == Routing::spray; }
  Escape escape(SwitchId at, SwitchId target) const override;

 private:
  std::uint32_t coordinate(SwitchId at, std::size_t dimension) const {
    return coordinates_[at.index() * extents_.size() + dimension];
  }
  bool is_ring(std::size_t dimension) const { return wrap_ && extents_[dimension] > 2; }
  /// Hops to the target in one dimension, each way; the other way round is impossible in a mesh.
  struct Ways {
    std::uint32_t up;
    std::uint32_t down;
  };
  Ways ways(std::size_t dimension, std::uint32_t from, std::uint32_t to) const;
  Port dimension_order(SwitchId at, SwitchId target) const;
  /// Channel of the dimension-order network: which side of the dateline.
  std::uint32_t dateline_channel(SwitchId at, Port port, SwitchId target) const;

  std::vector<std::uint32_t> extents_;
  std::vector<std::uint32_t> strides_;
  bool wrap_;
  std::uint32_t per_switch_;
  std::uint32_t switches_ = 1;
  std::uint32_t ordered_channels_ = 1;      ///< of the dimension-order network: 2 if there is a ring
  std::vector<std::uint16_t> coordinates_;  ///< of every switch, dimension by dimension
};

}  // namespace rvma
