#include "network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.hpp"

namespace rvma {
namespace {

using test::Network;
using test::ShapeCase;

constexpr std::uint64_t kSeed = 17;
constexpr Routing kRoutings[] = {Routing::static_, Routing::adaptive, Routing::spray, Routing::valiant, Routing::ugal};
/// Of a packet with 64 bytes of payload.
constexpr std::uint32_t kSmallBytes = 64 + kDataOverheadBytes;

/// Small networks with at least two hops between switches, where the shape has any.
std::vector<ShapeCase> networks() {
  return {test::star(8),
          test::fat_tree(3, 2, 1, 8),
          test::fat_tree(2, 4, 2, 16),
          test::dragonfly(2, 4, 2, 9, 72),
          test::dragonfly(2, 4, 2, 3, 24),
          test::torus("8", true, 1, 8),
          test::torus("4x4", true, 1, 16),
          test::torus("3x4x2", true, 2, 48),
          test::torus("4x4", false, 1, 16),
          test::hyperx("3x3", 2, 18),
          test::file()};
}

struct Combination {
  ShapeCase shape;
  Routing routing;
  friend std::ostream& operator<<(std::ostream& out, const Combination& of) {
    return out << of.shape << " " << ValueText<Routing>::print(of.routing);
  }
};

std::vector<Combination> combinations() {
  std::vector<Combination> all;
  for (const ShapeCase& shape : networks()) {
    for (const Routing routing : kRoutings) {
      const bool is_tree = shape.config.topology.get() == Topology::fat_tree;
      if (is_tree && (routing == Routing::valiant || routing == Routing::ugal)) continue;
      all.push_back({shape, routing});
    }
  }
  return all;
}

class Saturated : public testing::TestWithParam<Combination> {
 protected:
  /// Buffers of one longest packet a channel: as little as is legal.
  static ShapeCase tight(const Combination& of, std::uint32_t payload_bytes) {
    ShapeCase shape = of.shape;
    shape.config.routing = of.routing;
    shape.config.switch_.forwarding = Forwarding::cut_through;
    std::uint32_t channels = 1;
    const auto plain = test::make(shape);
    for (std::uint32_t number = 0; number < plain->switches(); ++number) {
      for (Port port = 0; port < plain->ports(SwitchId{number}); ++port) {
        if (plain->end(SwitchId{number}, port).is_switch()) {
          channels = std::max(channels, plain->channels(of.routing, SwitchId{number}, port));
        }
      }
    }
    shape.config.switch_.buffer = Bytes{std::uint64_t{channels} * (payload_bytes + kDataOverheadBytes)};
    return shape;
  }
};

// Every node sends to every other, all at once, in an order of its own; the receivers are slow.
TEST_P(Saturated, DrainsToTheLastPacket) {
  SimContext context{kSeed};
  Network network{context, tight(GetParam(), 512), Bytes{1000}};
  Random random{kSeed};
  const std::uint32_t each = 6'000 / network.nodes();
  for (std::uint32_t source = 0; source < network.nodes(); ++source) {
    network.receivers[source].hold = Time::from_ns(100);
    for (std::uint32_t i = 0; i < each; ++i) {
      network.push(source, static_cast<std::uint32_t>(random.below(network.nodes())),
                   static_cast<std::uint16_t>(random.below(513)));
    }
  }
  network.start();
  network.expect_drained();
  EXPECT_EQ(network.received(), network.sent);
  // Two activations a packet and hop at most, where buffers hold a single packet.
  EXPECT_LE(context.activations(), 2 * network.fabric->stats().packet_hops.value());
}

INSTANTIATE_TEST_SUITE_P(Network, Saturated, testing::ValuesIn(combinations()),
                         [](const testing::TestParamInfo<Combination>& of) {
                           std::string routing = ValueText<Routing>::print(of.param.routing);
                           return of.param.shape.name + "_" + routing;
                         });

/// Every node of a ring of eight sends two to five hops up.
void fill_ring(Network& network) {
  for (std::uint32_t i = 0; i < 200; ++i) {
    for (std::uint32_t source = 0; source < 8; ++source) network.push(source, (source + 3) % 8, 64);
  }
}

TEST(Network, ARingWithoutItsChannelsWaitsForItself) {
  ShapeCase ring = test::torus("8", true, 1, 8);
  ring.config.switch_.buffer = Bytes{2 * kSmallBytes};
  SimContext context{kSeed};
  Network network{context, ring, Bytes::kib(64), ChannelUse::one};
  fill_ring(network);
  network.start();
  EXPECT_LT(network.received(), network.sent);
  std::uint64_t stuck = 0;
  for (const auto& at : network.fabric->switches()) stuck += at->queued();
  EXPECT_GT(stuck, 8U);
}

TEST(Network, TheSameRingWithItsChannelsDrains) {
  ShapeCase ring = test::torus("8", true, 1, 8);
  ring.config.switch_.buffer = Bytes{2 * kSmallBytes};
  SimContext context{kSeed};
  Network network{context, ring};
  fill_ring(network);
  network.start();
  network.expect_drained();
}

TEST(Network, AdaptivePacketsEscape) {
  ShapeCase ring = test::torus("8", true, 1, 8);
  ring.config.switch_.buffer = Bytes{3 * kSmallBytes};
  ring.config.routing = Routing::adaptive;
  SimContext context{kSeed};
  Network network{context, ring};
  fill_ring(network);
  network.start();
  network.expect_drained();
  std::uint64_t escaped = 0;
  for (std::size_t i = 0; i < 8; ++i) escaped += network.fabric->switch_stats(i).escaped.value();
  EXPECT_GT(escaped, 0U);
}

struct Path {
  ShapeCase shape;
  std::uint32_t source;
  std::uint32_t destination;
  std::uint32_t switches;  ///< on the way, by the formula of the shape
};

std::vector<Path> longest_paths() {
  return {{test::star(8), 0, 7, 1},
          {test::fat_tree(3, 4, 1, 64), 0, 63, 2 * 3 - 1},
          {test::dragonfly(2, 4, 2, 9, 72), 0, 71, 4},
          {test::torus("4x4x4", true, 1, 64), 0, 42, 4 / 2 * 3 + 1},
          {test::torus("4x4", false, 1, 16), 0, 15, 2 * 3 + 1},
          {test::hyperx("4x4x3", 2, 96), 0, 95, 3 + 1},
          {test::file(), 0, 2, 3}};
}

class LonePacket : public testing::TestWithParam<std::tuple<Path, Forwarding>> {};

TEST_P(LonePacket, TakesTheTimeOfTheFormula) {
  const auto& [path, forwarding] = GetParam();
  constexpr std::uint16_t payload = 4096;
  ShapeCase shape = path.shape;
  shape.config.switch_.forwarding = forwarding;
  SimContext context{kSeed};
  Network network{context, shape};
  network.push(path.source, path.destination, payload);
  network.start();
  ASSERT_EQ(network.receivers[path.destination].arrivals.size(), 1U);
  const std::int64_t packet_ps = std::int64_t{20} * (payload + kDataOverheadBytes);
  const std::int64_t header_ps = std::int64_t{20} * 70;
  const std::int64_t links = path.switches + 1;
  const std::int64_t in_flight_ps = links * 40'000 + path.switches * std::int64_t{100'000};
  // store and forward: n + 1 links, each with the whole packet; cut-through: the packet once, its header n times.
  const std::int64_t expected_ps =
      in_flight_ps +
      (forwarding == Forwarding::store_and_forward ? links * packet_ps : packet_ps + path.switches * header_ps);
  const std::int64_t taken_ps = network.receivers[path.destination].arrivals[0].at.ps();
  EXPECT_NEAR(static_cast<double>(taken_ps), static_cast<double>(expected_ps), static_cast<double>(expected_ps) / 100);
  EXPECT_EQ(taken_ps, expected_ps);
  EXPECT_EQ(context.activations(), path.switches);
  EXPECT_EQ(network.fabric->stats().packet_hops.value(), path.switches + 1U);
}

INSTANTIATE_TEST_SUITE_P(Network, LonePacket,
                         testing::Combine(testing::ValuesIn(longest_paths()),
                                          testing::Values(Forwarding::store_and_forward, Forwarding::cut_through)),
                         [](const testing::TestParamInfo<std::tuple<Path, Forwarding>>& of) {
                           return std::get<0>(of.param).shape.name + "_" +
                                  ValueText<Forwarding>::print(std::get<1>(of.param));
                         });

/// Rate at which the nodes receive, as a share of what all their links carry, in the middle of a long transfer.
double throughput(Network& network, std::uint32_t payload_bytes) {
  Time last;
  for (const test::Receiver& receiver : network.receivers) {
    if (!receiver.arrivals.empty()) last = std::max(last, receiver.arrivals.back().at);
  }
  const Time begin = Time::from_ps(last.ps() / 4);
  const Time end = Time::from_ps(last.ps() / 4 * 3);
  std::uint64_t packets = 0;
  for (const test::Receiver& receiver : network.receivers) {
    for (const test::Arrival& arrival : receiver.arrivals) {
      if (arrival.at > begin && arrival.at <= end) ++packets;
    }
  }
  const double capacity = static_cast<double>((end - begin).ps()) / 20 * network.nodes();
  return static_cast<double>(packets) * (payload_bytes + kDataOverheadBytes) / capacity;
}

/// Gives every node's packets to its sender one at a time, at a fixed interval: an offered load below saturation.
class Pacer : public Component {
 public:
  Pacer(SimContext& sim, Network& network, Time interval)
      : Component("pacer", sim, Frequency::mhz(1'000'000)),
        network_(network),
        interval_(interval),
        wakeup_(*this, "wakeup", [this] { work(); }) {
    wakeup_.at(Time::zero());
  }
  void offer(std::uint32_t source, std::uint32_t destination, std::uint16_t payload_bytes) {
    offers_.push_back({source, destination, payload_bytes});
  }

 private:
  struct Offer {
    std::uint32_t source;
    std::uint32_t destination;
    std::uint16_t payload_bytes;
  };
  void work() {
    for (std::uint32_t i = 0; i < network_.nodes() && next_ < offers_.size(); ++i) {
      const Offer& offer = offers_[next_++];
      network_.push(offer.source, offer.destination, offer.payload_bytes);
      network_.senders[offer.source]->pump();
    }
    if (next_ < offers_.size()) wakeup_.at(now() + interval_);
  }

  Network& network_;
  Time interval_;
  std::vector<Offer> offers_;
  std::size_t next_ = 0;
  Wakeup wakeup_;
};

struct Permutation {
  ShapeCase shape;
  std::string name;
  std::uint32_t shift;  ///< node n sends to n + shift
  double bound;         ///< of what a node's link carries
};

std::vector<Permutation> permutations() {
  ShapeCase dumbbell{"dumbbell", 8, {}, {}};
  dumbbell.config.topology = Topology::file;
  dumbbell.links = "rvma-topology 1\n";
  for (int node = 0; node < 8; ++node) {
    dumbbell.links += "link " + std::to_string(node) + (node < 4 ? " switch0\n" : " switch1\n");
  }
  dumbbell.links += "link switch0 switch1\n";
  return {{test::star(8), "shift by 1", 1, 1.0},
          // Half the nodes away: every level is crossed, and a full tree has room for all.
          {test::fat_tree(3, 4, 1, 64), "shift by half", 32, 1.0},
          // Two levels up, two nodes share each link.
          {test::fat_tree(2, 4, 2, 16), "shift by half", 8, 0.5},
          // Next group: its p x a nodes share one global link.
          {test::dragonfly(2, 4, 2, 9, 72), "next group", 8, 1.0 / 8},
          // The four nodes of a switch share the link to the next.
          {test::hyperx("4x4", 4, 64), "next switch", 4, 1.0 / 4},
          // The two nodes of a switch share the link up.
          {test::torus("4x4", true, 2, 32), "next switch up", 2, 1.0 / 2},
          {dumbbell, "other side", 4, 1.0 / 4}};
}

class AtSaturation : public testing::TestWithParam<Permutation> {};

TEST_P(AtSaturation, APermutationReachesItsBound) {
  SimContext context{kSeed};
  Network network{context, GetParam().shape};
  for (std::uint32_t i = 0; i < 300; ++i) {
    for (std::uint32_t source = 0; source < network.nodes(); ++source) {
      // In a grid the switch behind the last of a row is its first.
      const std::uint32_t row = 4 * GetParam().shift;
      const Topology topology = GetParam().shape.config.topology;
      const bool is_grid = topology == Topology::hyperx || topology == Topology::torus;
      const std::uint32_t destination = is_grid ? source / row * row + (source % row + GetParam().shift) % row
                                                : (source + GetParam().shift) % network.nodes();
      network.push(source, destination, 1024);
    }
  }
  network.start();
  network.expect_drained();
  EXPECT_NEAR(throughput(network, 1024), GetParam().bound, GetParam().bound * 0.05);
  EXPECT_LE(context.activations(), network.fabric->stats().packet_hops.value() * 3 / 2);
}

INSTANTIATE_TEST_SUITE_P(Network, AtSaturation, testing::ValuesIn(permutations()),
                         [](const testing::TestParamInfo<Permutation>& of) { return of.param.shape.name; });

/// Tornado, three hops up a ring of eight: three streams share each link. Nearer senders get more of an overloaded link
/// (round robin), so the bound is for what can be offered, not for who shouts loudest.
double tornado(SimContext& context, double offered) {
  Network network{context, test::torus("8", true, 1, 8)};
  Pacer pacer{context, network, Time::from_ps(static_cast<std::int64_t>(20 * (1024 + kDataOverheadBytes) / offered))};
  for (std::uint32_t i = 0; i < 2000; ++i) {
    for (std::uint32_t source = 0; source < 8; ++source) pacer.offer(source, (source + 3) % 8, 1024);
  }
  network.start();
  network.expect_drained();
  return throughput(network, 1024);
}

TEST(Network, ATornadoUpToItsBoundIsCarried) {
  SimContext context{kSeed};
  EXPECT_NEAR(tornado(context, 0.99 / 3), 1.0 / 3, 0.05 / 3);
}

TEST(Network, ATornadoBeyondItsBoundIsNot) {
  SimContext context{kSeed};
  EXPECT_LT(tornado(context, 1.1 / 3), 1.0 / 3);
}

class Uncongested : public testing::TestWithParam<Routing> {};

// A fabric without contention, where static is at the full rate: spreading over paths may reorder, but costs nothing.
TEST_P(Uncongested, SpreadingCostsNoThroughput) {
  ShapeCase tree = test::fat_tree(3, 4, 1, 64);
  tree.config.routing = GetParam();
  SimContext context{kSeed};
  Network network{context, tree};
  // One sender of each switch: nothing needs to wait for anything.
  for (std::uint32_t i = 0; i < 1000; ++i) {
    for (std::uint32_t source = 0; source < 64; source += 4) network.push(source, (source + 32) % 64, 1024);
  }
  network.start();
  network.expect_drained();
  for (std::uint32_t node = 0; node < 64; node += 4) {
    const auto& arrivals = network.receivers[node].arrivals;
    ASSERT_EQ(arrivals.size(), 1000U);
    const double took = static_cast<double>((arrivals.back().at - arrivals.front().at).ps());
    EXPECT_NEAR(took, 999.0 * 20 * (1024 + kDataOverheadBytes), took * 0.01);
  }
}

INSTANTIATE_TEST_SUITE_P(Network, Uncongested, testing::Values(Routing::static_, Routing::adaptive, Routing::spray),
                         [](const testing::TestParamInfo<Routing>& of) { return ValueText<Routing>::print(of.param); });

TEST(Network, DetoursRelieveTheOneLinkBetweenTwoGroups) {
  ShapeCase fly = test::dragonfly(2, 4, 2, 9, 72);
  fly.config.routing = Routing::valiant;
  SimContext context{kSeed};
  Network network{context, fly};
  for (std::uint32_t i = 0; i < 300; ++i) {
    for (std::uint32_t source = 0; source < 72; ++source) network.push(source, (source + 8) % 72, 1024);
  }
  network.start();
  network.expect_drained();
  // Shortest paths come to 1/8; seven detours besides the link itself take what they would.
  EXPECT_GT(throughput(network, 1024), 0.3);
}

TEST(Network, UgalIsAsGoodAsTheBetterOne) {
  ShapeCase fly = test::dragonfly(2, 4, 2, 9, 72);
  fly.config.routing = Routing::ugal;
  SimContext context{kSeed};
  Network network{context, fly};
  for (std::uint32_t i = 0; i < 300; ++i) {
    for (std::uint32_t source = 0; source < 72; ++source) network.push(source, (source + 8) % 72, 1024);
  }
  network.start();
  network.expect_drained();
  EXPECT_GT(throughput(network, 1024), 0.25);
}

/// A line of four switches whose last link three senders at different distances share: the share of each.
std::vector<double> shares_on_a_line(SimContext& context, Arbitration arbitration) {
  ShapeCase line = test::torus("4", false, 1, 4);
  line.config.switch_.arbitration = arbitration;
  Network network{context, line};
  for (std::uint32_t i = 0; i < 2000; ++i) {
    for (std::uint32_t source = 0; source < 3; ++source) network.push(source, 3, 1024);
  }
  network.start();
  std::vector<double> share(3);
  for (std::size_t i = 500; i < 2000; ++i) share[network.receivers[3].arrivals[i].source.value()] += 1.0 / 1500;
  return share;
}

TEST(Network, OldestFirstFavoursTheFarthest) {
  // All wait equally long in the fabric then, so who has more buffers on the way gets more.
  SimContext context{kSeed};
  const std::vector<double> share = shares_on_a_line(context, Arbitration::oldest_first);
  EXPECT_GT(share[0], 0.4);
  EXPECT_LT(share[2], 0.25);
}

TEST(Network, RoundRobinHalvesTheShareAtEachMerge) {
  SimContext context{kSeed};
  const std::vector<double> share = shares_on_a_line(context, Arbitration::round_robin);
  EXPECT_NEAR(share[0], 1.0 / 4, 0.02);
  EXPECT_NEAR(share[1], 1.0 / 4, 0.02);
  EXPECT_NEAR(share[2], 1.0 / 2, 0.02);
}

TEST(Network, DropTailLosesWhatDoesNotFitAndCountsIt) {
  const Routing routing = Routing::adaptive;
  ShapeCase torus = test::torus("4x4", true, 1, 16);
  torus.config.routing = routing;
  torus.config.switch_.flow_control = FlowControl::drop;
  torus.config.switch_.buffer = Bytes{8000};
  SimContext context{kSeed};
  Network network{context, torus};
  for (std::uint32_t i = 0; i < 500; ++i) {
    for (std::uint32_t source = 1; source < 16; ++source) network.push(source, 0, 1024);
  }
  network.start();
  network.expect_drained();
  const FabricStats& stats = network.fabric->stats();
  EXPECT_GT(stats.lost_full.value(), 1000U);
  EXPECT_GT(network.received(), 500U);
  EXPECT_EQ(network.received() + stats.lost_full.value(), network.sent);
  std::uint64_t by_link = 0;
  for (const Link& link : network.fabric->links()) by_link += link.stats().lost_full.value();
  EXPECT_EQ(by_link, stats.lost_full.value());
  // The receiver's link never runs dry.
  const auto& arrivals = network.receivers[0].arrivals;
  const double took = static_cast<double>((arrivals.back().at - arrivals.front().at).ps());
  EXPECT_NEAR(took, static_cast<double>(arrivals.size() - 1) * 20 * (1024 + kDataOverheadBytes), took * 0.2);
}

TEST(Network, DropTailLosesExactlyWhatFindsTheBufferFull) {
  // Two senders into one output: in the time of a packet two arrive and one leaves.
  ShapeCase star = test::star(3);
  star.config.switch_.flow_control = FlowControl::drop;
  star.config.switch_.latency = Time::zero();
  star.config.switch_.buffer = Bytes{std::uint64_t{4} * (1024 + kDataOverheadBytes)};
  SimContext context{kSeed};
  Network network{context, star};
  for (std::uint32_t i = 0; i < 1000; ++i) {
    network.push(0, 2, 1024);
    network.push(1, 2, 1024);
  }
  network.start();
  network.expect_drained();
  // The output is busy from the first packet to the last, and the last four of each buffer drain afterwards.
  EXPECT_NEAR(static_cast<double>(network.received()), 1000 + 8, 3);
}

TEST(Network, WithoutContentionDropTailLosesNothing) {
  ShapeCase star = test::star(4);
  star.config.switch_.flow_control = FlowControl::drop;
  // A packet stays for its own time twice and the latency of the switch: 269 ns, in which 3.2 packets arrive.
  star.config.switch_.buffer = Bytes{std::uint64_t{4} * (4096 + kDataOverheadBytes)};
  SimContext context{kSeed};
  Network network{context, star};
  for (std::uint32_t i = 0; i < 1000; ++i) {
    for (std::uint32_t source = 0; source < 4; ++source) network.push(source, (source + 1) % 4, 4096);
  }
  network.start();
  network.expect_drained();
  EXPECT_EQ(network.received(), network.sent);
}

FaultEventList down_and_up(const std::string& link) {
  return FaultEventList{
      {{Time::from_us(50), FaultKind::link_up, link}, {Time::from_us(20), FaultKind::link_down, link}}};
}

TEST(Network, ALinkThatIsDownLosesWhatIsSentOverIt) {
  ShapeCase ring = test::torus("4", true, 1, 4);
  ring.config.faults.events = down_and_up("switch1-switch0");  // either end first
  SimContext context{kSeed};
  Network network{context, ring};
  for (std::uint32_t i = 0; i < 4000; ++i) {
    network.push(0, 1, 1024);
    network.push(1, 0, 1024);
    network.push(2, 3, 1024);
  }
  network.start();
  network.expect_drained();
  // 30 us of both directions, at 23.08 ns a packet; what is in flight when it goes down is lost too.
  const double each = 30'000 / 23.08;
  EXPECT_NEAR(static_cast<double>(network.fabric->stats().lost_down.value()), 2 * each, 8);
  EXPECT_EQ(network.receivers[3].arrivals.size(), 4000U);
  for (const test::Arrival& arrival : network.receivers[1].arrivals) {
    EXPECT_TRUE(arrival.at < Time::from_us(21) || arrival.at > Time::from_us(50));
  }
}

TEST(Network, AdaptiveGoesRoundALinkThatIsDown) {
  const Routing routing = Routing::spray;
  ShapeCase tree = test::fat_tree(2, 4, 1, 16);
  tree.config.routing = routing;
  tree.config.faults.events = down_and_up("switch0-switch4");
  SimContext context{kSeed};
  Network network{context, tree};
  for (std::uint32_t i = 0; i < 4000; ++i) network.push(0, 15, 1024);
  network.start();
  network.expect_drained();
  // Only what was on its way, or had been assigned, when it went down.
  EXPECT_LE(network.fabric->stats().lost_down.value(), 6U);
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < network.fabric->links().size(); ++i) {
    if (network.fabric->describe(i).name == "switch0-switch4")
      used = network.fabric->links()[i].stats().packets.value();
  }
  EXPECT_GT(used, 400U);  // before and after
}

TEST(Network, ANodesLinkGoesDownInBothDirections) {
  ShapeCase two{"p2p", 2, {}, {}};
  two.config.faults.events = down_and_up("1-0");
  SimContext context{kSeed};
  Network network{context, two};
  for (std::uint32_t i = 0; i < 4000; ++i) {
    network.push(0, 1, 1024);
    network.push(1, 0, 1024);
  }
  network.start();
  network.expect_drained();
  EXPECT_NEAR(static_cast<double>(network.fabric->stats().lost_down.value()), 2 * 30'000 / 23.08, 8);
}

TEST(Network, ManyLinksShareTheirStatistics) {
  SimContext context{kSeed};
  Network network{context, test::torus("16x16", true, 1, 256)};
  network.push(0, 17, 64);
  network.start();
  std::set<std::string> paths;
  for (const StatsRegistry::Entry& entry : context.stats().entries()) paths.emplace(entry.unit_path);
  EXPECT_EQ(paths, (std::set<std::string>{"fabric", "fabric.switches"}));
  ASSERT_EQ(context.stats().tables().size(), 1U);
  EXPECT_EQ(context.stats().tables()[0]->size(), 256U * 6);
  EXPECT_EQ(network.fabric->stats().packet_hops.value(), 4U);
  EXPECT_EQ(network.fabric->switch_stats(200).packets.value(), 3U);
}

}  // namespace
}  // namespace rvma
