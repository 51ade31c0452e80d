#include "fabric/topology_torus.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"

namespace rvma {
namespace {

constexpr std::uint32_t kImpossible = std::numeric_limits<std::uint32_t>::max();

}  // namespace

TorusShape::TorusShape(const TorusConfig& config, std::uint32_t nodes)
    : Shape(nodes), extents_(config.dims->extents), wrap_(config.wrap), per_switch_(config.nodes_per_switch) {
  for (std::size_t dimension = 0; dimension < extents_.size(); ++dimension) {
    strides_.push_back(switches_);
    switches_ *= extents_[dimension];
    if (is_ring(dimension)) ordered_channels_ = 2;
  }
  RVMA_ASSERT(nodes <= std::uint64_t{switches_} * per_switch_, "more nodes than the torus holds");
  coordinates_.reserve(switches_ * extents_.size());
  for (std::uint32_t number = 0; number < switches_; ++number) {
    for (std::size_t dimension = 0; dimension < extents_.size(); ++dimension) {
      coordinates_.push_back(static_cast<std::uint16_t>(number / strides_[dimension] % extents_[dimension]));
    }
  }
}

PortEnd TorusShape::end(SwitchId at, Port port) const {
  if (port < per_switch_) {
    const std::uint32_t node = at.value() * per_switch_ + port;
    return node < nodes() ? PortEnd::of_node(node) : PortEnd{};
  }
  const std::size_t dimension = (port - per_switch_) / 2;
  const bool up = (port - per_switch_) % 2 == 0;
  const std::uint32_t here = coordinate(at, dimension);
  const std::uint32_t extent = extents_[dimension];
  const bool at_edge = up ? here + 1 == extent : here == 0;
  if (at_edge && !is_ring(dimension)) return PortEnd{};
  const std::uint32_t there = up ? (here + 1) % extent : (here + extent - 1) % extent;
  return PortEnd::of_switch(at.value() + there * strides_[dimension] - here * strides_[dimension],
                            up ? port + 1 : port - 1);
}

TorusShape::Ways TorusShape::ways(std::size_t dimension, std::uint32_t from, std::uint32_t to) const {
  const std::uint32_t extent = extents_[dimension];
  if (is_ring(dimension)) return {(to + extent - from) % extent, (from + extent - to) % extent};
  return to >= from ? Ways{to - from, kImpossible} : Ways{kImpossible, from - to};
}

std::uint32_t TorusShape::distance(SwitchId at, SwitchId target) const {
  std::uint32_t hops = 0;
  for (std::size_t dimension = 0; dimension < extents_.size(); ++dimension) {
    const Ways way = ways(dimension, coordinate(at, dimension), coordinate(target, dimension));
    hops += std::min(way.up, way.down);
  }
  return hops;
}

void TorusShape::minimal(SwitchId at, SwitchId target, std::vector<Port>& outputs) const {
  for (std::size_t dimension = 0; dimension < extents_.size(); ++dimension) {
    const Ways way = ways(dimension, coordinate(at, dimension), coordinate(target, dimension));
    if (way.up == 0 || way.down == 0) continue;
    const Port up = per_switch_ + 2 * static_cast<Port>(dimension);
    if (way.up <= way.down) outputs.push_back(up);
    if (way.down <= way.up) outputs.push_back(up + 1);
  }
}

Port TorusShape::dimension_order(SwitchId at, SwitchId target) const {
  for (std::size_t dimension = 0; dimension < extents_.size(); ++dimension) {
    const std::uint32_t here = coordinate(at, dimension);
    const Ways way = ways(dimension, here, coordinate(target, dimension));
    if (way.up == 0 || way.down == 0) continue;
    // One hop later the way is no longer equally long both ways round: the parity decides once.
    const bool down = way.down < way.up || (way.down == way.up && here % 2 == 1);
    return per_switch_ + 2 * static_cast<Port>(dimension) + (down ? 1 : 0);
  }
  return kNoPort;
}

Port TorusShape::static_output(SwitchId at, SwitchId target, NodeId /*source*/, NodeId /*destination*/) const {
  return dimension_order(at, target);
}

void TorusShape::towards_detour(SwitchId at, std::uint32_t detour, std::vector<Port>& outputs) const {
  outputs.push_back(dimension_order(at, SwitchId{detour}));
}

void TorusShape::after_detour(SwitchId at, SwitchId target, std::vector<Port>& outputs) const {
  outputs.push_back(dimension_order(at, target));
}

std::uint32_t TorusShape::channels(Routing routing, SwitchId /*at*/, Port /*port*/) const {
  switch (routing) {
    case Routing::static_:
      return ordered_channels_;
    case Routing::adaptive:
    case Routing::spray:
      return ordered_channels_ + 1;
    case Routing::valiant:
    case Routing::ugal:
      return 2 * ordered_channels_;
  }
  return 1;
}

std::uint32_t TorusShape::dateline_channel(SwitchId at, Port port, SwitchId target) const {
  if (ordered_channels_ == 1) return 0;
  const std::size_t dimension = (port - per_switch_) / 2;
  const bool up = (port - per_switch_) % 2 == 0;
  const std::uint32_t here = coordinate(at, dimension);
  const std::uint32_t there = coordinate(target, dimension);
  const bool will_cross = up ? there < here : there > here;
  return will_cross ? 0 : 1;
}

std::uint32_t TorusShape::channel(Routing routing, SwitchId at, Port port, SwitchId target,
                                  const RouteState& route) const {
  switch (routing) {
    case Routing::static_:
      return dateline_channel(at, port, target);
    case Routing::adaptive:
    case Routing::spray:
      return ordered_channels_;
    case Routing::valiant:
    case Routing::ugal:
      return dateline_channel(at, port, target) + (route.detour == RouteState::kNoDetour ? ordered_channels_ : 0);
  }
  return 0;
}

Shape::Escape TorusShape::escape(SwitchId at, SwitchId target) const {
  const Port port = dimension_order(at, target);
  return {port, dateline_channel(at, port, target)};
}

}  // namespace rvma
