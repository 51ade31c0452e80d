/// \file
/// Section `fabric` of the configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "fabric/fault_events.hpp"

namespace rvma {

/// `automatic`: p2p for up to two nodes, star for more.
enum class Topology : std::uint8_t { automatic, p2p, star, fat_tree, dragonfly, torus, hyperx, file };
BOOST_DESCRIBE_ENUM(Topology, automatic, p2p, star, fat_tree, dragonfly, torus, hyperx, file)

/// How a packet's path is chosen among those that the shape offers:
/// static_: one path for each pair of nodes. adaptive: a shortest one, at each hop by the load of the outputs.
/// spray: a random shortest one. valiant: over a random place on the way. ugal: the shortest or over a random place,
/// whichever looks quicker where the packet enters.
enum class Routing : std::uint8_t { static_, adaptive, spray, valiant, ugal };
BOOST_DESCRIBE_ENUM(Routing, static_, adaptive, spray, valiant, ugal)

enum class FlowControl : std::uint8_t { credit, drop };
BOOST_DESCRIBE_ENUM(FlowControl, credit, drop)

enum class Forwarding : std::uint8_t { store_and_forward, cut_through };
BOOST_DESCRIBE_ENUM(Forwarding, store_and_forward, cut_through)

enum class Arbitration : std::uint8_t { round_robin, oldest_first };
BOOST_DESCRIBE_ENUM(Arbitration, round_robin, oldest_first)

/// Extents of a grid, "32x16x16".
struct Dimensions {
  static constexpr std::size_t kMost = 8;
  std::vector<std::uint32_t> extents;
};
template <>
struct ValueText<Dimensions> : detail::ScalarText<Dimensions, ValueText<Dimensions>> {
  static std::string type_name() { return "extents such as 4x4x4"; }
  static ValueResult<Dimensions> parse(std::string_view text);
  static std::string print(const Dimensions& value);
};

struct LinkConfig {
  Key<Rate> rate{Rate::gbps(400), {Rate::from_bits_per_s(1'000'000), Rate::gbps(100'000)}, "bit rate of a link"};
  Key<Time> latency{Time::from_ns(40), {Time::zero(), Time::from_us(1'000'000)}, "time of flight of a bit"};
  BOOST_DESCRIBE_CLASS(LinkConfig, (), (rate, latency), (), ())
};

struct SwitchConfig {
  Key<Time> latency{Time::from_ns(100),
                    {Time::zero(), Time::from_us(1'000'000)},
                    "from a packet's last bit (cut_through: its header) at the input to its earliest first bit at the "
                    "output"};
  Key<Bytes> buffer{Bytes::kib(64),
                    {Bytes{256}, Bytes::mib(1024)},
                    "input buffer of a port, divided evenly among its virtual channels"};
  Key<FlowControl> flow_control{FlowControl::credit,
                                "credit: lossless; drop: a packet that finds a switch's buffer full is lost"};
  Key<Forwarding> forwarding{Forwarding::store_and_forward,
                             "whether a packet may leave before its last bit has arrived"};
  Key<Arbitration> arbitration{Arbitration::round_robin,
                               "which input an output serves next; oldest_first: the packet longest in the fabric"};
  BOOST_DESCRIBE_CLASS(SwitchConfig, (), (latency, buffer, flow_control, forwarding, arbitration), (), ())
};

struct StarConfig {
  Key<std::uint32_t> ports{16, {2, 1024}, "ports of the switch"};
  BOOST_DESCRIBE_CLASS(StarConfig, (), (ports), (), ())
};

/// A folded Clos network: every switch has `arity` links down and, but at the top, `arity` / `taper` up.
struct FatTreeConfig {
  Key<std::uint32_t> levels{3, {1, 8}, "levels of switches; arity to the power of levels nodes"};
  Key<std::uint32_t> arity{8, {2, 256}, "links of a switch towards the nodes"};
  Key<std::uint32_t> taper{1, {1, 256}, "links down for each link up; divides arity"};
  BOOST_DESCRIBE_CLASS(FatTreeConfig, (), (levels, arity, taper), (), ())
};

/// Groups of switches, each linked to every other of its group; groups linked to each other.
struct DragonflyConfig {
  Key<std::uint32_t> p{2, {1, 256}, "nodes of a switch"};
  Key<std::uint32_t> a{4, {1, 256}, "switches of a group"};
  Key<std::uint32_t> h{2, {1, 256}, "links of a switch to other groups"};
  Key<std::uint32_t> groups{9, {1, 65'537}, "groups; at most a x h + 1"};
  BOOST_DESCRIBE_CLASS(DragonflyConfig, (), (p, a, h, groups), (), ())
};

struct TorusConfig {
  Key<Dimensions> dims{Dimensions{{4, 4, 4}}, "switches in each dimension, the first varies fastest"};
  Key<bool> wrap{true, "off: a mesh, without the links that close the rings"};
  Key<std::uint32_t> nodes_per_switch{1, {1, 256}, "nodes of a switch"};
  BOOST_DESCRIBE_CLASS(TorusConfig, (), (dims, wrap, nodes_per_switch), (), ())
};

/// A grid whose every line is fully connected.
struct HyperXConfig {
  Key<Dimensions> dims{Dimensions{{4, 4}}, "switches in each dimension, the first varies fastest"};
  Key<std::uint32_t> nodes_per_switch{4, {1, 256}, "nodes of a switch"};
  BOOST_DESCRIBE_CLASS(HyperXConfig, (), (dims, nodes_per_switch), (), ())
};

struct FileTopologyConfig {
  Key<std::string> path{std::string{}, "file that lists the links, relative to the current directory"};
  BOOST_DESCRIBE_CLASS(FileTopologyConfig, (), (path), (), ())
};

struct FaultsConfig {
  Key<Probability> drop{
      Probability{}, {Probability{}, Probability::from_ppb(1'000'000'000)}, "share of packets lost on their last hop"};
  Key<Probability> duplicate{
      Probability{}, {Probability{}, Probability::from_ppb(1'000'000'000)}, "share of packets that arrive twice"};
  Key<Probability> corrupt{Probability{},
                           {Probability{}, Probability::from_ppb(1'000'000'000)},
                           "share of packets whose bits are damaged on their last hop: the CRC finds it"};
  Key<Time> jitter{Time::zero(),
                   {Time::zero(), Time::from_us(10'000'000)},
                   "each packet is delayed by a random 0..jitter more on its last hop"};
  Key<std::uint32_t> reverse{
      0, {0, 4096}, "the last hop holds up to this many packets of a flow and delivers them in reverse"};
  Key<Time> reverse_hold{
      Time::from_us(2), {Time::from_ns(1), Time::from_us(10'000'000)}, "longest time that it holds the first of them"};
  Key<FaultEventList> events{
      {},
      "what breaks and comes back when: list of {at, kind, where}; kind: link_down, link_up, node_crash, node_restart; "
      "where: a link as in links.csv, such as 0-switch (a star) or 0-switch0, or a node's number"};
  BOOST_DESCRIBE_CLASS(FaultsConfig, (), (drop, duplicate, corrupt, jitter, reverse, reverse_hold, events), (), ())
};

struct FabricConfig {
  Key<Topology> topology{Topology::automatic, "shape of the fabric"};
  Key<Routing> routing{Routing::static_, "choice of a packet's path"};
  LinkConfig link;
  // `switch` is a keyword of C++; the path leaves the underscore out.
  SwitchConfig switch_;
  StarConfig star;
  FatTreeConfig fat_tree;
  DragonflyConfig dragonfly;
  TorusConfig torus;
  HyperXConfig hyperx;
  FileTopologyConfig file;
  FaultsConfig faults;
  BOOST_DESCRIBE_CLASS(FabricConfig, (),
                       (topology, routing, link, switch_, star, fat_tree, dragonfly, torus, hyperx, file, faults), (),
                       ())
};

}  // namespace rvma
