/// \file
/// Chooses a packet's way through the switches, as plain C++: the shape says which outputs there are, the routing which
/// of them a packet takes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "fabric/config.hpp"
#include "fabric/packet.hpp"
#include "fabric/topology.hpp"

namespace rvma {

/// What a routing may know of a switch's outputs.
class OutputView {
 public:
  virtual ~OutputView() = default;
  /// Bytes that wait for the output or are in the buffer behind it.
  virtual std::uint64_t load_bytes(Port port) const = 0;
  /// Whether the link behind it is up now.
  virtual bool is_up(Port port) const = 0;
};

/// `one` takes the virtual channels away that keep the fabric free of deadlock: for tests that show what they are for.
enum class ChannelUse : std::uint8_t { as_needed, one };

/// Stateless but for scratch memory; all switches of a fabric share one.
class Router {
 public:
  /// `shape` outlives the router. With drop-tail switches nothing waits for space: there is one channel.
  Router(const Shape& shape, Routing routing, FlowControl flow_control, ChannelUse use = ChannelUse::as_needed)
      : shape_(shape),
        routing_(routing),
        has_channels_(flow_control == FlowControl::credit && use == ChannelUse::as_needed) {}

  const Shape& shape() const { return shape_; }
  /// Virtual channels of the buffer behind an output that leads to a switch.
  std::uint32_t channels(SwitchId at, Port port) const {
    return has_channels_ ? shape_.channels(routing_, at, port) : 1;
  }

  /// An output and the virtual channel of the buffer behind it. Port kNoPort: no way leads there.
  struct Hop {
    Port port = kNoPort;
    std::uint32_t channel = 0;
    bool may_escape = false;  ///< to escape(), if there is no credit when it is the packet's turn
  };
  /// Where `packet`, at switch `at`, leaves it. `enters`: it comes from a node. Sets the packet's detour. Of equal
  /// outputs one is drawn from `random`; those that are down are avoided where there is another choice.
  Hop route(SwitchId at, bool enters, Packet& packet, const OutputView& outputs, Random& random);
  /// Where it may always go (Duato's escape network).
  Hop escape(SwitchId at, const Packet& packet) const;
  /// Notes in the packet that it takes this hop.
  void take(SwitchId at, const Hop& hop, RouteState& route) const;

 private:
  bool takes_detours() const { return routing_ == Routing::valiant || routing_ == Routing::ugal; }
  SwitchId target_of(const Packet& packet) const;
  void choose_detour(SwitchId at, SwitchId target, RouteState& route, const OutputView& outputs, Random& random);
  /// Picks one of `candidates_` that is up: the least loaded, or any.
  Port pick(bool by_load, const OutputView& outputs, Random& random);
  void drop_those_down(const OutputView& outputs);

  const Shape& shape_;
  Routing routing_;
  bool has_channels_;
  std::vector<Port> candidates_;
};

}  // namespace rvma
