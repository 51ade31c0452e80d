/// \file
/// Section `fabric` of the configuration.
#pragma once

#include <cstdint>

#include "base/config.hpp"

namespace rvma {

/// `automatic`: p2p for up to two nodes, star for more.
enum class Topology : std::uint8_t { automatic, p2p, star };
BOOST_DESCRIBE_ENUM(Topology, automatic, p2p, star)

enum class Routing : std::uint8_t { static_ };
BOOST_DESCRIBE_ENUM(Routing, static_)

enum class FlowControl : std::uint8_t { credit };
BOOST_DESCRIBE_ENUM(FlowControl, credit)

struct LinkConfig {
  Key<Rate> rate{Rate::gbps(400), {Rate::from_bits_per_s(1'000'000), Rate::gbps(100'000)}, "bit rate of a link"};
  Key<Time> latency{Time::from_ns(40), {Time::zero(), Time::from_us(1'000'000)}, "time of flight of a bit"};
  BOOST_DESCRIBE_CLASS(LinkConfig, (), (rate, latency), (), ())
};

struct SwitchConfig {
  Key<Time> latency{Time::from_ns(100),
                    {Time::zero(), Time::from_us(1'000'000)},
                    "from a packet's last bit at the input to its earliest first bit at the output"};
  Key<Bytes> buffer{Bytes::kib(64), {Bytes{256}, Bytes::mib(1024)}, "input buffer of a port"};
  Key<FlowControl> flow_control{FlowControl::credit, "credit: lossless"};
  BOOST_DESCRIBE_CLASS(SwitchConfig, (), (latency, buffer, flow_control), (), ())
};

struct StarConfig {
  Key<std::uint32_t> ports{16, {2, 1024}, "ports of the switch"};
  BOOST_DESCRIBE_CLASS(StarConfig, (), (ports), (), ())
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
  BOOST_DESCRIBE_CLASS(FaultsConfig, (), (drop, duplicate, corrupt, jitter, reverse, reverse_hold), (), ())
};

struct FabricConfig {
  Key<Topology> topology{Topology::automatic, "shape of the fabric"};
  Key<Routing> routing{Routing::static_, "choice of a packet's path"};
  LinkConfig link;
  // `switch` is a keyword of C++; the path leaves the underscore out.
  SwitchConfig switch_;
  StarConfig star;
  FaultsConfig faults;
  BOOST_DESCRIBE_CLASS(FabricConfig, (), (topology, routing, link, switch_, star, faults), (), ())
};

}  // namespace rvma
