/// \file
/// The shape of a fabric with switches, as plain C++: which port leads where, how far it is, which outputs lie on a
/// shortest path, and which virtual channels keep it free of deadlock. Computed from the numbers of switches and
/// ports: nothing here has a size of nodes x nodes. docs/explanation/topologies.md draws each shape.
///
/// A *detour* is the place that a packet of valiant or ugal routing passes before it turns to its destination: a
/// switch, or in a dragonfly a group.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "fabric/config.hpp"
#include "fabric/packet.hpp"

namespace rvma {

/// Number of a port within its switch.
using Port = std::uint32_t;
inline constexpr Port kNoPort = 0xffff'ffff;

/// What lies at the far end of a port's cable.
struct PortEnd {
  enum class Kind : std::uint8_t { nothing, node, other_switch };
  Kind kind = Kind::nothing;
  std::uint32_t index = 0;  ///< of the node or switch
  Port port = 0;            ///< of that switch

  bool is_node() const { return kind == Kind::node; }
  bool is_switch() const { return kind == Kind::other_switch; }
  NodeId node() const { return NodeId{index}; }
  SwitchId to_switch() const { return SwitchId{index}; }
  static PortEnd of_node(std::uint32_t node) { return {Kind::node, node, 0}; }
  static PortEnd of_switch(std::uint32_t number, Port port) { return {Kind::other_switch, number, port}; }
};

class Shape {
 public:
  virtual ~Shape() = default;
  Shape(const Shape&) = delete;
  Shape& operator=(const Shape&) = delete;

  /// Nodes that are attached: 0 .. nodes() - 1.
  std::uint32_t nodes() const { return nodes_; }
  virtual std::uint32_t switches() const = 0;
  /// Those without a cable included.
  virtual Port ports(SwitchId at) const = 0;
  virtual PortEnd end(SwitchId at, Port port) const = 0;

  struct Attachment {
    SwitchId at;
    Port port;
  };
  virtual Attachment attachment(NodeId node) const = 0;

  /// Links between switches on a shortest path; `target` has nodes.
  virtual std::uint32_t distance(SwitchId at, SwitchId target) const = 0;
  /// Appends every output of `at` (which is not `target`) that begins a shortest path. `target` has nodes.
  virtual void minimal(SwitchId at, SwitchId target, std::vector<Port>& outputs) const = 0;
  /// The one of them for packets from `source` to `destination`, whose switch `target` is or which pass `target` first.
  virtual Port static_output(SwitchId at, SwitchId target, NodeId source, NodeId destination) const;

  /// Number of detours to choose from; 0: every path is a shortest one.
  virtual std::uint32_t detours() const { return 0; }
  /// Whether a packet between these two switches gains anything by this detour.
  virtual bool is_detour(std::uint32_t detour, SwitchId source, SwitchId target) const;
  virtual bool at_detour(SwitchId at, std::uint32_t detour) const { return at.value() == detour; }
  /// Links between switches from `source` over the detour to `target`.
  virtual std::uint32_t distance_over(SwitchId source, std::uint32_t detour, SwitchId target) const;
  /// Outputs on a shortest way to the detour that are free of deadlock together with the channels of channel().
  virtual void towards_detour(SwitchId at, std::uint32_t detour, std::vector<Port>& outputs) const;
  /// Outputs of the second part of the way, from the detour to `target`; of the only part if ugal chose none.
  virtual void after_detour(SwitchId at, SwitchId target, std::vector<Port>& outputs) const {
    minimal(at, target, outputs);
  }

  /// Virtual channels of the buffer behind output `port`, which leads to a switch.
  virtual std::uint32_t channels(Routing routing, SwitchId at, Port port) const = 0;
  /// Channel that a packet takes there. `target`: the switch that it goes to now (the detour's, where that is one).
  virtual std::uint32_t channel(Routing routing, SwitchId at, Port port, SwitchId target,
                                const RouteState& route) const = 0;
  /// Whether a packet that finds no credit on channel() may move over to escape() (Duato's protocol).
  virtual bool has_escape(Routing /*routing*/) const { return false; }
  struct Escape {
    Port port;
    std::uint32_t channel;
  };
  virtual Escape escape(SwitchId at, SwitchId target) const;
  /// Whether `port` leads to another group, in a dragonfly.
  virtual bool is_global(SwitchId /*at*/, Port /*port*/) const { return false; }

  /// "3" for a node, "switch7", or "switch" where there is only one.
  std::string switch_name(SwitchId at) const;
  /// Name of the cable at a port, its own end first: "switch2-switch3"; parallel ones after the first get "-1", "-2" ..
  std::string link_name(SwitchId at, Port port) const;
  /// The port of a cable's name, either end first.
  std::optional<Attachment> find_link(std::string_view name) const;
  /// Number of cables, node cables included.
  std::uint64_t cables() const;

 protected:
  explicit Shape(std::uint32_t nodes) : nodes_(nodes) {}

 private:
  /// Cables between the same two switches at ports before `port`.
  std::uint32_t parallel_before(SwitchId at, Port port) const;
  std::uint32_t nodes_;
};

/// A number that is the same for every packet of a pair of nodes, and independent from switch to switch: chooses among
/// equal paths.
std::uint64_t pair_hash(SwitchId at, NodeId source, NodeId destination);

/// All nodes on one switch: node n at port n.
class StarShape : public Shape {
 public:
  explicit StarShape(std::uint32_t nodes) : Shape(nodes) {}
  std::uint32_t switches() const override { return 1; }
  Port ports(SwitchId /*at*/) const override { return nodes(); }
  PortEnd end(SwitchId /*at*/, Port port) const override { return PortEnd::of_node(port); }
  Attachment attachment(NodeId node) const override { return {SwitchId{0}, node.value()}; }
  std::uint32_t distance(SwitchId /*at*/, SwitchId /*target*/) const override { return 0; }
  void minimal(SwitchId /*at*/, SwitchId /*target*/, std::vector<Port>& /*outputs*/) const override {}
  std::uint32_t channels(Routing /*routing*/, SwitchId /*at*/, Port /*port*/) const override { return 1; }
  std::uint32_t channel(Routing /*routing*/, SwitchId /*at*/, Port /*port*/, SwitchId /*target*/,
                        const RouteState& /*route*/) const override {
    return 0;
  }
};

/// The shape that `automatic` stands for.
constexpr Topology resolve(Topology topology, std::uint32_t nodes) {
  if (topology != Topology::automatic) return topology;
  return nodes <= 2 ? Topology::p2p : Topology::star;
}

/// The configured shape with `nodes` nodes attached. Mistakes in its keys or its file go to `errors` (then null); p2p
/// has no switch and no Shape: null without an error. Position of an error in the keys: the command line's.
std::unique_ptr<Shape> make_shape(const FabricConfig& config, std::uint32_t nodes, ErrorList& errors);

/// Most nodes that the configured shape holds; its keys are without mistakes. `nodes` decides what `automatic` means.
std::uint64_t most_nodes(const FabricConfig& config, std::uint32_t nodes);

/// All mistakes of section `fabric` for so many nodes: shape, nodes that do not fit, a routing that the shape does not
/// offer, buffers that do not hold the longest packet, events at links that do not exist. Each names both sides.
struct LongestPackets {
  std::uint64_t data_bytes;             ///< on the wire
  std::uint64_t acknowledgement_bytes;  ///< on the wire
};
void validate_fabric(const FabricConfig& config, std::uint32_t nodes, const LongestPackets& longest, ErrorList& errors);

}  // namespace rvma
