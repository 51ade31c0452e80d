#include "fabric/routing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "shapes.hpp"

namespace rvma {
namespace {

using test::ShapeCase;

constexpr Routing kRoutings[] = {Routing::static_, Routing::adaptive, Routing::spray, Routing::valiant, Routing::ugal};

/// Loads and states as a test sets them.
class Outputs : public OutputView {
 public:
  std::uint64_t load_bytes(Port port) const override {
    const auto found = loads.find(port);
    return found == loads.end() ? 0 : found->second;
  }
  bool is_up(Port port) const override { return down.count(port) == 0; }
  std::map<Port, std::uint64_t> loads;
  std::set<Port> down;
};

/// A virtual channel of a link: switch, output, channel.
using Channel = std::tuple<std::uint32_t, Port, std::uint32_t>;
/// What may wait for what: a packet holds the first and wants the second.
using Waits = std::map<Channel, std::set<Channel>>;

bool has_cycle(const Waits& waits) {
  std::map<Channel, int> state;  // 1: being looked at, 2: done
  std::vector<std::pair<Channel, bool>> open;
  for (const auto& entry : waits) open.emplace_back(entry.first, false);
  while (!open.empty()) {
    const auto [channel, leaving] = open.back();
    open.pop_back();
    if (leaving) {
      state[channel] = 2;
      continue;
    }
    if (state[channel] != 0) continue;
    state[channel] = 1;
    open.emplace_back(channel, true);
    const auto found = waits.find(channel);
    if (found == waits.end()) continue;
    for (const Channel& next : found->second) {
      if (state[next] == 1) return true;
      if (state[next] == 0) open.emplace_back(next, false);
    }
  }
  return false;
}

/// Follows random packets between all pairs of nodes. Loads are random too, so that every choice occurs.
class Walker {
 public:
  Walker(const Shape& shape, Routing routing, ChannelUse use = ChannelUse::as_needed)
      : shape_(shape), routing_(routing), router_(shape, routing, FlowControl::credit, use) {}

  void walk_all(int times) {
    for (std::uint32_t source = 0; source < shape_.nodes(); ++source) {
      for (std::uint32_t destination = 0; destination < shape_.nodes(); ++destination) {
        for (int i = 0; i < times; ++i) walk(source, destination);
      }
    }
  }

  void walk(std::uint32_t source, std::uint32_t destination) {
    Packet packet;
    packet.transport.source = NodeId{source};
    packet.transport.destination = NodeId{destination};
    SwitchId at = shape_.attachment(packet.transport.source).at;
    const SwitchId home = shape_.attachment(packet.transport.destination).at;
    bool enters = true;
    std::vector<Channel> held;     // channels that it has been in, oldest first
    std::vector<Channel> escapes;  // those of them of the escape network
    std::uint32_t hops = 0;
    while (true) {
      Outputs outputs;
      for (Port port = 0; port < shape_.ports(at); ++port) outputs.loads[port] = random_.below(4);
      Router::Hop hop = router_.route(at, enters, packet, outputs, random_);
      enters = false;
      ASSERT_NE(hop.port, kNoPort);
      const PortEnd end = shape_.end(at, hop.port);
      if (end.is_node()) {
        ASSERT_EQ(end.index, destination);
        break;
      }
      ASSERT_TRUE(end.is_switch());
      ASSERT_LT(hop.channel, router_.channels(at, hop.port));
      // Duato: only the escape network must be free of cycles, counting what lies between two escapes.
      const bool escapable = hop.may_escape;
      if (escapable) {
        const Router::Hop escape = router_.escape(at, packet);
        ASSERT_LT(escape.channel, router_.channels(at, escape.port));
        ASSERT_NE(escape.channel, hop.channel);
        const Channel wanted{at.value(), escape.port, escape.channel};
        for (const Channel& channel : escapes) waits[channel].insert(wanted);
        if (random_.below(2) == 0) {
          hop = escape;
          escapes.push_back(wanted);
        }
      } else {
        const Channel wanted{at.value(), hop.port, hop.channel};
        if (!held.empty()) waits[held.back()].insert(wanted);
        held.push_back(wanted);
      }
      router_.take(at, hop, packet.route);
      at = shape_.end(at, hop.port).to_switch();
      ASSERT_LT(++hops, 64U);
    }
    ASSERT_EQ(at, home);
    longest = std::max(longest, hops);
    if (routing_ != Routing::valiant && routing_ != Routing::ugal) {
      ASSERT_EQ(hops, shape_.distance(shape_.attachment(packet.transport.source).at, home));
    }
  }

  Waits waits;
  std::uint32_t longest = 0;

 private:
  const Shape& shape_;
  Routing routing_;
  Router router_;
  Random random_{5};
};

class EveryRoute : public testing::TestWithParam<ShapeCase> {};

TEST_P(EveryRoute, ArrivesAndNothingWaitsInARing) {
  const auto shape = test::make(GetParam());
  for (const Routing routing : kRoutings) {
    SCOPED_TRACE(ValueText<Routing>::print(routing));
    Walker walker(*shape, routing);
    walker.walk_all(shape->nodes() > 30 ? 4 : 40);
    EXPECT_FALSE(has_cycle(walker.waits));
  }
}

INSTANTIATE_TEST_SUITE_P(Routing, EveryRoute, testing::ValuesIn(test::all_shapes()), test::case_name);

TEST(Routing, WithoutChannelClassesARingWaitsForItself) {
  // The test above has teeth: each of these is free of cycles by its channels alone.
  const std::pair<ShapeCase, Routing> cases[] = {{test::torus("8", true, 1, 8), Routing::static_},
                                                 {test::torus("4x5", true, 1, 20), Routing::valiant},
                                                 {test::dragonfly(1, 4, 2, 9, 36), Routing::static_},
                                                 {test::hyperx("4x3", 1, 12), Routing::spray},
                                                 {test::file(), Routing::valiant}};
  for (const auto& [of, routing] : cases) {
    const auto shape = test::make(of);
    Walker walker(*shape, routing, ChannelUse::one);
    walker.walk_all(40);
    EXPECT_TRUE(has_cycle(walker.waits)) << of.name;
  }
}

/// The port that a packet takes at its first switch, `times` times.
std::map<Port, int> first_hops(Router& router, std::uint32_t source, std::uint32_t destination, const Outputs& outputs,
                               int times) {
  Random random{3};
  std::map<Port, int> taken;
  for (int i = 0; i < times; ++i) {
    Packet packet;
    packet.transport.source = NodeId{source};
    packet.transport.destination = NodeId{destination};
    const SwitchId at = router.shape().attachment(packet.transport.source).at;
    ++taken[router.route(at, true, packet, outputs, random).port];
  }
  return taken;
}

TEST(Routing, StaticTakesOnePathSprayAllAdaptiveTheLeastLoaded) {
  const auto shape = test::make(test::fat_tree(2, 4, 1, 16));
  Outputs outputs;
  outputs.loads = {{4, 900}, {5, 100}, {6, 100}, {7, 101}};
  Router fixed(*shape, Routing::static_, FlowControl::credit);
  EXPECT_EQ(first_hops(fixed, 0, 9, outputs, 400), (std::map<Port, int>{{5, 400}}));
  Router spray(*shape, Routing::spray, FlowControl::credit);
  const auto sprayed = first_hops(spray, 0, 9, outputs, 4000);
  for (Port port = 4; port < 8; ++port) EXPECT_NEAR(sprayed.at(port), 1000, 120);
  Router adaptive(*shape, Routing::adaptive, FlowControl::credit);
  const auto adapted = first_hops(adaptive, 0, 9, outputs, 4000);
  EXPECT_EQ(adapted.size(), 2U);
  EXPECT_NEAR(adapted.at(5), 2000, 200);
  EXPECT_NEAR(adapted.at(6), 2000, 200);
}

TEST(Routing, LinksThatAreDownAreAvoidedWhereThereIsAChoice) {
  const auto tree = test::make(test::fat_tree(2, 4, 1, 16));
  Outputs outputs;
  outputs.down = {5, 6};
  for (const Routing routing : {Routing::adaptive, Routing::spray}) {
    Router router(*tree, routing, FlowControl::credit);
    const auto taken = first_hops(router, 0, 9, outputs, 100);
    EXPECT_EQ(taken.count(5) + taken.count(6), 0U);
    EXPECT_EQ(taken.size(), 2U);
  }
  Router fixed(*tree, Routing::static_, FlowControl::credit);
  EXPECT_EQ(first_hops(fixed, 0, 9, outputs, 10), (std::map<Port, int>{{5, 10}}));
  // No choice: into the hole.
  outputs.down = {4, 5, 6, 7};
  Router spray(*tree, Routing::spray, FlowControl::credit);
  EXPECT_EQ(first_hops(spray, 0, 9, outputs, 100).size(), 4U);
  // Detours go round: node 1 of a ring of eight is one hop up (port 1); down is port 2.
  const auto ring = test::make(test::torus("8", true, 1, 8));
  outputs.down = {1};
  for (const Routing routing : {Routing::valiant, Routing::ugal}) {
    Router router(*ring, routing, FlowControl::credit);
    const auto taken = first_hops(router, 0, 1, outputs, 100);
    EXPECT_GE(taken.at(2), 97) << "of 100";
  }
}

TEST(Routing, UgalGoesStraightUntilTheDetourIsCheaper) {
  const auto fly = test::make(test::dragonfly(2, 4, 2, 9, 72));
  Router router(*fly, Routing::ugal, FlowControl::credit);
  Outputs outputs;
  const std::map<Port, int> idle = first_hops(router, 0, 8, outputs, 200);
  ASSERT_EQ(idle.size(), 1U);
  const Port straight = idle.begin()->first;
  outputs.loads[straight] = 100'000;
  const std::map<Port, int> loaded = first_hops(router, 0, 8, outputs, 200);
  EXPECT_GT(loaded.size(), 2U);
  const auto still = loaded.find(straight);
  EXPECT_LT(still == loaded.end() ? 0 : still->second, 100);
}

TEST(Routing, WithDropTailThereIsOneChannel) {
  const auto torus = test::make(test::torus("4x5", true, 1, 20));
  Router router(*torus, Routing::adaptive, FlowControl::drop);
  EXPECT_EQ(router.channels(SwitchId{0}, 1), 1U);
  Packet packet;
  packet.transport.destination = NodeId{7};
  Random random{1};
  const Router::Hop hop = router.route(SwitchId{0}, true, packet, Outputs{}, random);
  EXPECT_EQ(hop.channel, 0U);
  EXPECT_FALSE(hop.may_escape);
}

TEST(Routing, AnUnknownNodeHasNoWay) {
  const auto torus = test::make(test::torus("4x5", true, 1, 19));
  Router router(*torus, Routing::static_, FlowControl::credit);
  Packet packet;
  packet.transport.destination = NodeId{19};
  Random random{1};
  EXPECT_EQ(router.route(SwitchId{0}, true, packet, Outputs{}, random).port, kNoPort);
}

}  // namespace
}  // namespace rvma
