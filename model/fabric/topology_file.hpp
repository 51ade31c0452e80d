/// \file
/// A shape given link by link in a text file:
///
///     rvma-topology 1
///     # two switches with two nodes each, and two cables between them
///     link 0 switch0
///     link 1 switch0
///     link 2 switch1
///     link 3 switch1
///     link switch0 switch1 2
///
/// A name is a node's number or `switch` and a number; a third argument is a number of parallel cables. Nodes and
/// switches are numbered from 0 without gaps, a node has one cable, and every switch can be reached.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "fabric/topology.hpp"

namespace rvma {

/// What the file says; ports of a switch are numbered in the order of the file.
struct LinkList {
  std::vector<std::vector<PortEnd>> ports;     ///< of each switch
  std::vector<Shape::Attachment> attachments;  ///< of each node
};
/// Mistakes go to `errors` with their position; `source` names the text in them.
LinkList parse_link_list(std::string_view text, const std::string& source, ErrorList& errors);
LinkList read_link_list(const std::string& path, ErrorList& errors);

/// Distances to a switch with nodes are found by breadth-first search when the first packet goes there, and kept: two
/// bytes a switch.
///
/// Channels: the number of hops taken so far. As many as the longest shortest path has hops between switches, twice
/// that over a detour; kMostChannels at most.
class FileShape : public Shape {
 public:
  static constexpr std::uint32_t kMostChannels = 64;

  /// `nodes`: how many of the file's are attached.
  FileShape(LinkList links, std::uint32_t nodes);

  std::uint32_t switches() const override { return static_cast<std::uint32_t>(links_.ports.size()); }
  Port ports(SwitchId at) const override { return static_cast<Port>(links_.ports[at.index()].size()); }
  PortEnd end(SwitchId at, Port port) const override;
  Attachment attachment(NodeId node) const override { return links_.attachments[node.index()]; }
  std::uint32_t distance(SwitchId at, SwitchId target) const override { return distances_to(target)[at.index()]; }
  void minimal(SwitchId at, SwitchId target, std::vector<Port>& outputs) const override;
  std::uint32_t detours() const override { return switches() > 2 ? switches() : 0; }
  std::uint32_t channels(Routing routing, SwitchId at, Port port) const override;
  std::uint32_t channel(Routing routing, SwitchId at, Port port, SwitchId target,
                        const RouteState& route) const override;
  /// Hops between switches of the longest shortest path: from any switch to one with nodes, or (over a detour) to any.
  std::uint32_t diameter(bool to_any_switch) const;

 private:
  const std::vector<std::uint16_t>& distances_to(SwitchId target) const;

  LinkList links_;
  std::uint32_t diameter_to_nodes_;
  mutable std::uint32_t diameter_ = 0;                         ///< to any switch; 0: not asked for yet
  mutable std::vector<std::vector<std::uint16_t>> distances_;  ///< to each switch that packets went to
};

}  // namespace rvma
