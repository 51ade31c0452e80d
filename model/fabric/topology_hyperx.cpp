#include "fabric/topology_hyperx.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace rvma {

HyperXShape::HyperXShape(const HyperXConfig& config, std::uint32_t nodes)
    : Shape(nodes),
      extents_(config.dims->extents),
      per_switch_(config.nodes_per_switch),
      ports_(config.nodes_per_switch) {
  for (const std::uint32_t extent : extents_) {
    strides_.push_back(switches_);
    first_port_.push_back(ports_);
    switches_ *= extent;
    ports_ += extent - 1;
  }
  RVMA_ASSERT(nodes <= std::uint64_t{switches_} * per_switch_, "more nodes than the HyperX holds");
  coordinates_.reserve(switches_ * extents_.size());
  for (std::uint32_t number = 0; number < switches_; ++number) {
    for (std::size_t dimension = 0; dimension < extents_.size(); ++dimension) {
      coordinates_.push_back(static_cast<std::uint16_t>(number / strides_[dimension] % extents_[dimension]));
    }
  }
}

PortEnd HyperXShape::end(SwitchId at, Port port) const {
  if (port < per_switch_) {
    const std::uint32_t node = at.value() * per_switch_ + port;
    return node < nodes() ? PortEnd::of_node(node) : PortEnd{};
  }
  std::size_t dimension = extents_.size() - 1;
  while (port < first_port_[dimension]) --dimension;
  const std::uint32_t here = coordinate(at, dimension);
  const std::uint32_t index = port - first_port_[dimension];
  const std::uint32_t there = index < here ? index : index + 1;
  return PortEnd::of_switch(at.value() + there * strides_[dimension] - here * strides_[dimension],
                            port_to(dimension, there, here));
}

std::uint32_t HyperXShape::distance(SwitchId at, SwitchId target) const {
  std::uint32_t hops = 0;
  for (std::size_t dimension = 0; dimension < extents_.size(); ++dimension) {
    if (coordinate(at, dimension) != coordinate(target, dimension)) ++hops;
  }
  return hops;
}

void HyperXShape::minimal(SwitchId at, SwitchId target, std::vector<Port>& outputs) const {
  for (std::size_t dimension = 0; dimension < extents_.size(); ++dimension) {
    const std::uint32_t here = coordinate(at, dimension);
    const std::uint32_t there = coordinate(target, dimension);
    if (here != there) outputs.push_back(port_to(dimension, here, there));
  }
}

Port HyperXShape::dimension_order(SwitchId at, SwitchId target) const {
  for (std::size_t dimension = 0; dimension < extents_.size(); ++dimension) {
    const std::uint32_t here = coordinate(at, dimension);
    const std::uint32_t there = coordinate(target, dimension);
    if (here != there) return port_to(dimension, here, there);
  }
  return kNoPort;
}

Port HyperXShape::static_output(SwitchId at, SwitchId target, NodeId /*source*/, NodeId /*destination*/) const {
  return dimension_order(at, target);
}

void HyperXShape::towards_detour(SwitchId at, std::uint32_t detour, std::vector<Port>& outputs) const {
  outputs.push_back(dimension_order(at, SwitchId{detour}));
}

void HyperXShape::after_detour(SwitchId at, SwitchId target, std::vector<Port>& outputs) const {
  outputs.push_back(dimension_order(at, target));
}

std::uint32_t HyperXShape::channels(Routing routing, SwitchId /*at*/, Port /*port*/) const {
  switch (routing) {
    case Routing::static_:
      return 1;
    case Routing::adaptive:
    case Routing::spray: {
      const auto wide = std::count_if(extents_.begin(), extents_.end(), [](std::uint32_t n) { return n > 1; });
      return std::max(1U, static_cast<std::uint32_t>(wide));
    }
    case Routing::valiant:
    case Routing::ugal:
      return 2;
  }
  return 1;
}

std::uint32_t HyperXShape::channel(Routing routing, SwitchId /*at*/, Port /*port*/, SwitchId /*target*/,
                                   const RouteState& route) const {
  switch (routing) {
    case Routing::static_:
      return 0;
    case Routing::adaptive:
    case Routing::spray:
      return route.hops;
    case Routing::valiant:
    case Routing::ugal:
      return route.detour == RouteState::kNoDetour ? 1 : 0;
  }
  return 0;
}

}  // namespace rvma
