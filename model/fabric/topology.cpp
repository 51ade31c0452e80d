#include "fabric/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/random.hpp"
#include "fabric/topology_dragonfly.hpp"
#include "fabric/topology_fat_tree.hpp"
#include "fabric/topology_file.hpp"
#include "fabric/topology_hyperx.hpp"
#include "fabric/topology_torus.hpp"

namespace rvma {
namespace {

constexpr std::uint64_t kMostSwitches = std::uint64_t{1} << 20U;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

class Complaints {
 public:
  explicit Complaints(ErrorList& errors) : errors_(errors) {}
  /// A mistake in the keys: they have no place in a file any more.
  void add(std::string what, std::string expected) {
    errors_.add(Position{"rvma", 0, 0}, std::move(what), std::move(expected));
    any_ = true;
  }
  bool any() const { return any_; }

 private:
  ErrorList& errors_;
  bool any_ = false;
};

/// base to the power of exponent, or kNoLimit if that is more.
std::uint64_t power(std::uint64_t base, std::uint32_t exponent) {
  std::uint64_t product = 1;
  for (std::uint32_t i = 0; i < exponent; ++i) product = std::min(product * base, kNoLimit);
  return product;
}

std::uint64_t volume(const Dimensions& dimensions) {
  std::uint64_t product = 1;
  for (const std::uint32_t extent : dimensions.extents) product = std::min(product * extent, kNoLimit);
  return product;
}

/// Mistakes in the keys of the shape alone, whatever the number of nodes.
void check_keys(const FabricConfig& config, Topology topology, Complaints& complaints) {
  const auto grid = [&](const char* key, const Dimensions& dims) {
    if (volume(dims) <= kMostSwitches) return;
    complaints.add(fmt::format("{}: {} are too many switches", key, ValueText<Dimensions>::print(dims)),
                   fmt::format("expected at most {}", kMostSwitches));
  };
  switch (topology) {
    case Topology::fat_tree: {
      const FatTreeConfig& tree = config.fat_tree;
      if (tree.arity % tree.taper != 0) {
        complaints.add(fmt::format("fabric.fat_tree.taper: {} does not divide fabric.fat_tree.arity = {}",
                                   tree.taper.get(), tree.arity.get()),
                       "expected a divisor of the arity");
      }
      return;
    }
    case Topology::dragonfly: {
      const DragonflyConfig& fly = config.dragonfly;
      const std::uint32_t most = fly.a * fly.h + 1;
      if (fly.groups > most) {
        complaints.add(fmt::format("fabric.dragonfly.groups: {} groups are more than the {} global links of a group "
                                   "reach (fabric.dragonfly.a = {} x fabric.dragonfly.h = {})",
                                   fly.groups.get(), most - 1, fly.a.get(), fly.h.get()),
                       fmt::format("expected at most {}", most));
      }
      if (std::uint64_t{fly.groups} * fly.a > kMostSwitches) {
        complaints.add(fmt::format("fabric.dragonfly.groups: {} x fabric.dragonfly.a = {} are too many switches",
                                   fly.groups.get(), fly.a.get()),
                       fmt::format("expected at most {}", kMostSwitches));
      }
      return;
    }
    case Topology::torus:
      grid("fabric.torus.dims", config.torus.dims);
      return;
    case Topology::hyperx: {
      grid("fabric.hyperx.dims", config.hyperx.dims);
      std::uint64_t ports = config.hyperx.nodes_per_switch;
      for (const std::uint32_t extent : config.hyperx.dims->extents) ports += extent - 1;
      if (ports > 4096) {
        complaints.add(fmt::format("fabric.hyperx.dims: {} give a switch {} ports",
                                   ValueText<Dimensions>::print(config.hyperx.dims), ports),
                       "expected at most 4096");
      }
      return;
    }
    case Topology::file:
      if (config.file.path->empty()) {
        complaints.add("fabric.file.path: topology file needs a file", "expected --set fabric.file.path=FILE");
      }
      return;
    case Topology::automatic:
    case Topology::p2p:
    case Topology::star:
      return;
  }
}

/// Which keys make the shape larger.
const char* size_keys(Topology topology) {
  switch (topology) {
    case Topology::fat_tree:
      return "fabric.fat_tree.arity or fabric.fat_tree.levels";
    case Topology::dragonfly:
      return "fabric.dragonfly.groups, fabric.dragonfly.a or fabric.dragonfly.p";
    case Topology::torus:
      return "fabric.torus.dims or fabric.torus.nodes_per_switch";
    case Topology::hyperx:
      return "fabric.hyperx.dims or fabric.hyperx.nodes_per_switch";
    case Topology::file:
      return "nodes in fabric.file.path";
    case Topology::automatic:
    case Topology::p2p:
    case Topology::star:
      break;
  }
  return "fabric.star.ports";
}

bool is_two_phased(Routing routing) { return routing == Routing::valiant || routing == Routing::ugal; }

}  // namespace

std::uint64_t pair_hash(SwitchId at, NodeId source, NodeId destination) {
  return mix64(mix64(std::uint64_t{source.value()} << 32U | destination.value()) ^ at.value());
}

Port Shape::static_output(SwitchId at, SwitchId target, NodeId source, NodeId destination) const {
  std::vector<Port> outputs;
  minimal(at, target, outputs);
  return outputs[static_cast<std::size_t>(pair_hash(at, source, destination) % outputs.size())];
}

bool Shape::is_detour(std::uint32_t detour, SwitchId source, SwitchId target) const {
  return detour != source.value() && detour != target.value();
}

std::uint32_t Shape::distance_over(SwitchId source, std::uint32_t detour, SwitchId target) const {
  return distance(source, SwitchId{detour}) + distance(SwitchId{detour}, target);
}

void Shape::towards_detour(SwitchId at, std::uint32_t detour, std::vector<Port>& outputs) const {
  minimal(at, SwitchId{detour}, outputs);
}

Shape::Escape Shape::escape(SwitchId /*at*/, SwitchId /*target*/) const { return {kNoPort, 0}; }

std::string Shape::switch_name(SwitchId at) const {
  return switches() == 1 ? "switch" : "switch" + std::to_string(at.value());
}

std::uint32_t Shape::parallel_before(SwitchId at, Port port) const {
  const PortEnd here = end(at, port);
  std::uint32_t before = 0;
  // Both ends must come to the same number: it counts on the side of the switch with the lower number.
  if (here.index < at.value()) return parallel_before(here.to_switch(), here.port);
  for (Port other = 0; other < port; ++other) {
    const PortEnd end_there = end(at, other);
    if (end_there.is_switch() && end_there.index == here.index) ++before;
  }
  return before;
}

std::string Shape::link_name(SwitchId at, Port port) const {
  const PortEnd there = end(at, port);
  if (there.is_node()) return switch_name(at) + "-" + std::to_string(there.index);
  std::string name = switch_name(at) + "-" + switch_name(there.to_switch());
  const std::uint32_t before = parallel_before(at, port);
  return before == 0 ? name : name + "-" + std::to_string(before);
}

std::optional<Shape::Attachment> Shape::find_link(std::string_view name) const {
  static constexpr std::string_view kSwitch = "switch";
  // 1. The switch that the name begins with, or the node's.
  const std::string_view first = name.substr(0, name.find('-'));
  const bool is_switch = first.substr(0, kSwitch.size()) == kSwitch;
  const std::string_view digits = first.substr(is_switch ? kSwitch.size() : 0);
  std::uint64_t number = 0;
  if (!digits.empty()) {
    const auto parsed = parse_integer(digits, kNoLimit, "number");
    if (!parsed) return std::nullopt;
    number = *parsed;
  } else if (!is_switch) {
    return std::nullopt;
  }
  if (!is_switch) {
    if (number >= nodes()) return std::nullopt;
    const Attachment place = attachment(NodeId{static_cast<std::uint32_t>(number)});
    if (name != std::string{first} + "-" + switch_name(place.at)) return std::nullopt;
    return place;
  }
  // 2. That of its ports whose cable has the name.
  if (number >= switches()) return std::nullopt;
  const SwitchId at{static_cast<std::uint32_t>(number)};
  for (Port port = 0; port < ports(at); ++port) {
    if (end(at, port).kind != PortEnd::Kind::nothing && link_name(at, port) == name) return Attachment{at, port};
  }
  return std::nullopt;
}

std::uint64_t Shape::cables() const {
  std::uint64_t ends = 0;
  for (std::uint32_t number = 0; number < switches(); ++number) {
    for (Port port = 0; port < ports(SwitchId{number}); ++port) {
      const PortEnd there = end(SwitchId{number}, port);
      if (there.is_node()) ends += 2;
      if (there.is_switch()) ++ends;
    }
  }
  return ends / 2;
}

std::uint64_t most_nodes(const FabricConfig& config, std::uint32_t nodes) {
  switch (resolve(config.topology, nodes)) {
    case Topology::p2p:
      return 2;
    case Topology::fat_tree:
      return power(config.fat_tree.arity, config.fat_tree.levels);
    case Topology::dragonfly:
      return std::uint64_t{config.dragonfly.p} * config.dragonfly.a * config.dragonfly.groups;
    case Topology::torus:
      return volume(config.torus.dims) * config.torus.nodes_per_switch;
    case Topology::hyperx:
      return volume(config.hyperx.dims) * config.hyperx.nodes_per_switch;
    case Topology::file: {
      ErrorList errors;
      return read_link_list(config.file.path, errors).attachments.size();
    }
    case Topology::automatic:
    case Topology::star:
      break;
  }
  return config.star.ports;
}

std::unique_ptr<Shape> make_shape(const FabricConfig& config, std::uint32_t nodes, ErrorList& errors) {
  const Topology topology = resolve(config.topology, nodes);
  Complaints complaints(errors);
  check_keys(config, topology, complaints);
  if (complaints.any() || topology == Topology::p2p) return nullptr;
  // The file is read once, for its nodes and its links.
  LinkList links;
  if (topology == Topology::file) {
    links = read_link_list(config.file.path, errors);
    if (links.attachments.empty()) return nullptr;
  }
  const std::uint64_t room = topology == Topology::file ? links.attachments.size() : most_nodes(config, nodes);
  if (nodes > room) {
    complaints.add(
        fmt::format("fabric.topology: {} holds {} nodes, not {}", ValueText<Topology>::print(topology), room, nodes),
        fmt::format("expected more {}, or fewer nodes", size_keys(topology)));
    return nullptr;
  }
  switch (topology) {
    case Topology::fat_tree:
      return std::make_unique<FatTreeShape>(config.fat_tree, nodes);
    case Topology::dragonfly:
      return std::make_unique<DragonflyShape>(config.dragonfly, nodes);
    case Topology::torus:
      return std::make_unique<TorusShape>(config.torus, nodes);
    case Topology::hyperx:
      return std::make_unique<HyperXShape>(config.hyperx, nodes);
    case Topology::file:
      return std::make_unique<FileShape>(std::move(links), nodes);
    case Topology::automatic:
    case Topology::p2p:
    case Topology::star:
      break;
  }
  return std::make_unique<StarShape>(nodes);
}

namespace {

/// Most virtual channels of any buffer; errors for a routing that the shape does not offer.
std::uint32_t most_channels(const FabricConfig& config, Topology topology, const Shape& shape, Complaints& complaints) {
  const Routing routing = config.routing;
  const std::string name = ValueText<Topology>::print(topology);
  if (is_two_phased(routing) && topology == Topology::fat_tree) {
    complaints.add(fmt::format("fabric.routing: {} takes ways longer than the shortest, topology {} has none",
                               ValueText<Routing>::print(routing), name),
                   "expected static, adaptive or spray");
    return 1;
  }
  if (config.switch_.flow_control.get() == FlowControl::drop) return 1;
  std::uint32_t most = 1;
  for (std::uint32_t number = 0; number < shape.switches(); ++number) {
    const SwitchId at{number};
    for (Port port = 0; port < shape.ports(at); ++port) {
      if (shape.end(at, port).is_switch()) most = std::max(most, shape.channels(routing, at, port));
    }
  }
  if (most > FileShape::kMostChannels) {
    complaints.add(fmt::format("fabric.routing: {} on topology {} needs {} virtual channels, one for each hop of the "
                               "longest way",
                               ValueText<Routing>::print(routing), name, most),
                   fmt::format("expected at most {}: a shape with shorter ways, another routing, or "
                               "fabric.switch.flow_control drop",
                               FileShape::kMostChannels));
  }
  return most;
}

void check_buffer(const FabricConfig& config, std::uint32_t channels, const LongestPackets& longest,
                  Complaints& complaints) {
  const Bytes buffer = config.switch_.buffer;
  const std::uint64_t room = buffer.count() / channels;
  const auto holds = [&](std::uint64_t bytes, const char* what) {
    if (room >= bytes) return;
    const std::string divided = channels == 1
                                    ? std::string{}
                                    : fmt::format(" divided among {} virtual channels ({} bytes each)", channels, room);
    complaints.add(fmt::format("fabric.switch.buffer: {}{} does not hold {} ({} bytes on the wire)", to_string(buffer),
                               divided, what, bytes),
                   fmt::format("expected at least {}B", bytes * channels));
  };
  holds(longest.data_bytes, "one packet of nic.mtu");
  holds(longest.acknowledgement_bytes,
        "the longest acknowledgement of nic.reliability.window and nic.reliability.messages");
}

/// The link's name with its ends in one order: both directions are meant.
std::string canonical(const std::string& link) {
  const std::size_t dash = link.find('-');
  if (dash == std::string::npos) return link;
  const std::string one = link.substr(0, dash);
  const std::string other = link.substr(dash + 1);
  return one < other ? one + "-" + other : other + "-" + one;
}

/// Each link goes down and comes up in turns.
void check_turns(const std::vector<FaultEvent>& events, Complaints& complaints) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (is_link_event(events[i].kind)) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return events[a].at < events[b].at; });
  std::map<std::string, bool> down;
  for (const std::size_t i : order) {
    const bool goes_down = events[i].kind == FaultKind::link_down;
    bool& is_down = down[canonical(events[i].where)];
    if (goes_down == is_down) {
      complaints.add(fmt::format("fabric.faults.events[{}]: link {} is {} already at {}", i, quoted(events[i].where),
                                 is_down ? "down" : "up", to_string(events[i].at)),
                     "expected link_down and link_up in turns");
    }
    is_down = goes_down;
  }
}

void check_events(const FabricConfig& config, Topology topology, std::uint32_t nodes, const Shape* shape,
                  Complaints& complaints) {
  check_turns(config.faults.events->events, complaints);
  std::size_t index = 0;
  for (const FaultEvent& event : config.faults.events->events) {
    const std::string key = fmt::format("fabric.faults.events[{}].where", index++);
    if (!is_link_event(event.kind)) continue;
    const bool known = shape != nullptr ? shape->find_link(event.where).has_value()
                                        : nodes == 2 && (event.where == "0-1" || event.where == "1-0");
    if (known) continue;
    complaints.add(fmt::format("{}: topology {} with {} nodes has no link {}", key,
                               ValueText<Topology>::print(topology), nodes, quoted(event.where)),
                   shape == nullptr ? std::string{"expected 0-1"}
                                    : fmt::format("expected a name as in links.csv, such as 0-{}",
                                                  shape->switch_name(shape->attachment(NodeId{0}).at)));
  }
}

}  // namespace

void validate_fabric(const FabricConfig& config, std::uint32_t nodes, const LongestPackets& longest,
                     ErrorList& errors) {
  const Topology topology = resolve(config.topology, nodes);
  Complaints complaints(errors);
  if (topology == Topology::p2p && nodes > 2) {
    complaints.add(fmt::format("fabric.topology: p2p holds 2 nodes, not {}", nodes), "expected topology star");
    return;
  }
  const std::uint64_t before = errors.count();
  const std::unique_ptr<Shape> shape = make_shape(config, nodes, errors);
  std::uint32_t channels = 1;
  if (shape) channels = most_channels(config, topology, *shape, complaints);
  // With more channels than can be there is no telling how much they need.
  if (channels <= FileShape::kMostChannels) check_buffer(config, channels, longest, complaints);
  if (errors.count() == before) check_events(config, topology, nodes, shape.get(), complaints);
}

}  // namespace rvma
