#include "fabric/topology_dragonfly.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"

namespace rvma {

DragonflyShape::DragonflyShape(const DragonflyConfig& config, std::uint32_t nodes)
    : Shape(nodes),
      p_(config.p),
      a_(config.a),
      h_(config.h),
      groups_(config.groups),
      rounds_(config.groups > 1 ? config.a * config.h / (config.groups - 1) : 0) {
  RVMA_ASSERT(groups_ == 1 || rounds_ >= 1, "more groups than the global cables of one reach");
  RVMA_ASSERT(nodes <= std::uint64_t{groups_} * a_ * p_, "more nodes than the dragonfly holds");
}

DragonflyShape::Cable DragonflyShape::cable(std::uint32_t from_group, std::uint32_t to_group,
                                            std::uint32_t round) const {
  const std::uint32_t forth = round * (groups_ - 1) + (to_group + groups_ - from_group) % groups_ - 1;
  const std::uint32_t back = round * (groups_ - 1) + (from_group + groups_ - to_group) % groups_ - 1;
  return {forth / h_, p_ + (a_ - 1) + forth % h_, back / h_};
}

PortEnd DragonflyShape::end(SwitchId at, Port port) const {
  if (port < p_) {
    const std::uint32_t node = at.value() * p_ + port;
    return node < nodes() ? PortEnd::of_node(node) : PortEnd{};
  }
  const std::uint32_t here = index(at);
  if (!is_global(at, port)) {
    const std::uint32_t number = port - p_;
    const std::uint32_t there = number < here ? number : number + 1;
    return PortEnd::of_switch(group(at) * a_ + there, local_port(there, here));
  }
  const std::uint32_t number = here * h_ + (port - p_ - (a_ - 1));
  if (number >= rounds_ * (groups_ - 1)) return PortEnd{};
  const std::uint32_t round = number / (groups_ - 1);
  const std::uint32_t there = (group(at) + number % (groups_ - 1) + 1) % groups_;
  const Cable back = cable(there, group(at), round);
  return PortEnd::of_switch(there * a_ + back.from, back.port);
}

std::uint32_t DragonflyShape::distance(SwitchId at, SwitchId target) const {
  if (at == target) return 0;
  if (group(at) == group(target)) return 1;
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  for (std::uint32_t round = 0; round < rounds_; ++round) {
    least = std::min(least, hops(cable(group(at), group(target), round), index(at), index(target)));
  }
  return least;
}

void DragonflyShape::add_once(Port port, std::vector<Port>& outputs, std::size_t first) const {
  const auto begin = outputs.begin() + static_cast<std::ptrdiff_t>(first);
  if (std::find(begin, outputs.end(), port) == outputs.end()) outputs.push_back(port);
}

void DragonflyShape::minimal(SwitchId at, SwitchId target, std::vector<Port>& outputs) const {
  if (group(at) == group(target)) {
    outputs.push_back(local_port(index(at), index(target)));
    return;
  }
  const std::uint32_t least = distance(at, target);
  const std::size_t first = outputs.size();
  for (std::uint32_t round = 0; round < rounds_; ++round) {
    const Cable over = cable(group(at), group(target), round);
    if (hops(over, index(at), index(target)) != least) continue;
    add_once(over.from == index(at) ? over.port : local_port(index(at), over.from), outputs, first);
  }
}

bool DragonflyShape::is_detour(std::uint32_t detour, SwitchId source, SwitchId target) const {
  return detour != group(source) && detour != group(target);
}

void DragonflyShape::towards_detour(SwitchId at, std::uint32_t detour, std::vector<Port>& outputs) const {
  // A global cable of the switch's own first; otherwise over any switch that has one.
  const std::size_t first = outputs.size();
  for (std::uint32_t round = 0; round < rounds_; ++round) {
    const Cable over = cable(group(at), detour, round);
    if (over.from == index(at)) add_once(over.port, outputs, first);
  }
  if (outputs.size() != first) return;
  for (std::uint32_t round = 0; round < rounds_; ++round) {
    add_once(local_port(index(at), cable(group(at), detour, round).from), outputs, first);
  }
}

std::uint32_t DragonflyShape::distance_over(SwitchId source, std::uint32_t detour, SwitchId target) const {
  // Of the shortest way to the group, and from where it arrives there.
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  for (std::uint32_t round = 0; round < rounds_; ++round) {
    const Cable over = cable(group(source), detour, round);
    const std::uint32_t there = (over.from != index(source) ? 1U : 0U) + 1U;
    least = std::min(least, there + distance(SwitchId{detour * a_ + over.to}, target));
  }
  return least;
}

std::uint32_t DragonflyShape::channels(Routing routing, SwitchId at, Port port) const {
  if (groups_ == 1) return 1;
  const std::uint32_t on_local = routing == Routing::valiant || routing == Routing::ugal ? 3 : 2;
  return is_global(at, port) ? on_local - 1 : on_local;
}

std::uint32_t DragonflyShape::channel(Routing /*routing*/, SwitchId /*at*/, Port /*port*/, SwitchId /*target*/,
                                      const RouteState& route) const {
  return route.global_hops;
}

}  // namespace rvma
