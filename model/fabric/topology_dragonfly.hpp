/// \file
/// A dragonfly (Kim, Dally, Scott and Abts 2008), one level of groups, each fully connected within.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/topology.hpp"

namespace rvma {

/// Switch = group x a + its index; node n is at switch n / p. Ports: p nodes, a - 1 switches of the group, h global.
/// Global cable q of a group (q = index x h + i) leads to the group (q mod (groups - 1)) + 1 further round, in round
/// q / (groups - 1); cables of a round that would not be complete are not there.
///
/// A shortest path here is at most local, global, local and stays within the two groups: paths through a third group
/// are detours, even where they are shorter. Channels: the number of global hops taken so far, which only rises
/// (2 for shortest paths, 3 over a detour: local-global-local-global-local; one fewer on global cables).
class DragonflyShape : public Shape {
 public:
  DragonflyShape(const DragonflyConfig& config, std::uint32_t nodes);

  std::uint32_t switches() const override { return groups_ * a_; }
  Port ports(SwitchId /*at*/) const override { return p_ + (a_ - 1) + h_; }
  PortEnd end(SwitchId at, Port port) const override;
  Attachment attachment(NodeId node) const override { return {SwitchId{node.value() / p_}, node.value() % p_}; }
  std::uint32_t distance(SwitchId at, SwitchId target) const override;
  void minimal(SwitchId at, SwitchId target, std::vector<Port>& outputs) const override;
  /// A detour is a group.
  std::uint32_t detours() const override { return groups_ > 2 ? groups_ : 0; }
  bool is_detour(std::uint32_t detour, SwitchId source, SwitchId target) const override;
  bool at_detour(SwitchId at, std::uint32_t detour) const override { return group(at) == detour; }
  std::uint32_t distance_over(SwitchId source, std::uint32_t detour, SwitchId target) const override;
  void towards_detour(SwitchId at, std::uint32_t detour, std::vector<Port>& outputs) const override;
  std::uint32_t channels(Routing routing, SwitchId at, Port port) const override;
  std::uint32_t channel(Routing routing, SwitchId at, Port port, SwitchId target,
                        const RouteState& route) const override;
  bool is_global(SwitchId /*at*/, Port port) const override { return port >= p_ + a_ - 1; }

 private:
  std::uint32_t group(SwitchId at) const { return at.value() / a_; }
  std::uint32_t index(SwitchId at) const { return at.value() % a_; }
  Port local_port(std::uint32_t from, std::uint32_t to) const { return p_ + (to < from ? to : to - 1); }
  /// A cable from one group to another.
  struct Cable {
    std::uint32_t from;  ///< index of its switch in the first group
    Port port;           ///< of that switch
    std::uint32_t to;    ///< index of its switch in the other
  };
  Cable cable(std::uint32_t from_group, std::uint32_t to_group, std::uint32_t round) const;
  /// Hops of the way over `over` to switch `target_index` of its far group.
  static std::uint32_t hops(const Cable& over, std::uint32_t from_index, std::uint32_t target_index) {
    return (over.from != from_index ? 1U : 0U) + 1U + (over.to != target_index ? 1U : 0U);
  }
  void add_once(Port port, std::vector<Port>& outputs, std::size_t first) const;

  std::uint32_t p_;
  std::uint32_t a_;
  std::uint32_t h_;
  std::uint32_t groups_;
  std::uint32_t rounds_;  ///< cables between each two groups
};

}  // namespace rvma
