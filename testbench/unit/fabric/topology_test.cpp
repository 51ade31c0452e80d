#include "fabric/topology.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "fabric/topology_file.hpp"
#include "shapes.hpp"

namespace rvma {
namespace {

using test::ShapeCase;

constexpr std::uint32_t kFar = std::numeric_limits<std::uint32_t>::max();

/// Hops from every switch to `target` by breadth-first search over the cables; only through switches that `within`
/// lets.
template <class Within>
std::vector<std::uint32_t> search(const Shape& shape, std::uint32_t target, const Within& within) {
  std::vector<std::uint32_t> hops(shape.switches(), kFar);
  std::vector<std::uint32_t> open{target};
  hops[target] = 0;
  for (std::size_t next = 0; next < open.size(); ++next) {
    const SwitchId at{open[next]};
    for (Port port = 0; port < shape.ports(at); ++port) {
      const PortEnd end = shape.end(at, port);
      if (!end.is_switch() || !within(end.index) || hops[end.index] != kFar) continue;
      hops[end.index] = hops[open[next]] + 1;
      open.push_back(end.index);
    }
  }
  return hops;
}

class EveryShape : public testing::TestWithParam<ShapeCase> {
 protected:
  EveryShape() : shape(test::make(GetParam())) {}

  /// A dragonfly's shortest paths stay within the groups of their ends.
  std::vector<std::uint32_t> hops_to(std::uint32_t target, std::uint32_t from) const {
    if (GetParam().config.topology.get() != Topology::dragonfly) {
      return search(*shape, target, [](std::uint32_t) { return true; });
    }
    const std::uint32_t a = GetParam().config.dragonfly.a;
    return search(*shape, target, [&](std::uint32_t at) { return at / a == target / a || at / a == from / a; });
  }
  std::set<std::uint32_t> switches_with_nodes() const {
    std::set<std::uint32_t> out;
    for (std::uint32_t node = 0; node < shape->nodes(); ++node) out.insert(shape->attachment(NodeId{node}).at.value());
    return out;
  }

  std::unique_ptr<Shape> shape;
};

TEST_P(EveryShape, CablesHaveTwoEndsAndNodesHaveOne) {
  std::uint64_t ends = 0;
  std::uint32_t nodes = 0;
  for (std::uint32_t number = 0; number < shape->switches(); ++number) {
    for (Port port = 0; port < shape->ports(SwitchId{number}); ++port) {
      const PortEnd end = shape->end(SwitchId{number}, port);
      if (end.is_node()) {
        ++nodes;
        ASSERT_LT(end.index, shape->nodes());
        EXPECT_EQ(shape->attachment(end.node()).at.value(), number);
        EXPECT_EQ(shape->attachment(end.node()).port, port);
      } else if (end.is_switch()) {
        ++ends;
        ASSERT_LT(end.index, shape->switches());
        ASSERT_NE(end.index, number);
        const PortEnd back = shape->end(end.to_switch(), end.port);
        ASSERT_TRUE(back.is_switch());
        EXPECT_EQ(back.index, number);
        EXPECT_EQ(back.port, port);
      }
    }
  }
  EXPECT_EQ(nodes, GetParam().nodes);
  EXPECT_EQ(shape->cables(), ends / 2 + nodes);
}

TEST_P(EveryShape, DistancesAndOutputsAreThoseOfASearch) {
  for (const std::uint32_t target : switches_with_nodes()) {
    for (std::uint32_t from = 0; from < shape->switches(); ++from) {
      const std::vector<std::uint32_t> hops = hops_to(target, from);
      ASSERT_EQ(shape->distance(SwitchId{from}, SwitchId{target}), hops[from]) << from << " to " << target;
      if (from == target) continue;
      std::vector<Port> expected;
      for (Port port = 0; port < shape->ports(SwitchId{from}); ++port) {
        const PortEnd end = shape->end(SwitchId{from}, port);
        if (end.is_switch() && hops[end.index] != kFar && hops[end.index] + 1 == hops[from]) expected.push_back(port);
      }
      std::vector<Port> outputs;
      shape->minimal(SwitchId{from}, SwitchId{target}, outputs);
      std::sort(outputs.begin(), outputs.end());
      ASSERT_EQ(outputs, expected) << from << " to " << target;
    }
  }
}

TEST_P(EveryShape, AStaticPathIsAShortestOneAndAlwaysTheSame) {
  for (std::uint32_t source = 0; source < shape->nodes(); ++source) {
    for (std::uint32_t destination = 0; destination < shape->nodes(); ++destination) {
      SwitchId at = shape->attachment(NodeId{source}).at;
      const SwitchId target = shape->attachment(NodeId{destination}).at;
      const std::uint32_t distance = shape->distance(at, target);
      for (std::uint32_t hop = 0; hop < distance; ++hop) {
        const Port port = shape->static_output(at, target, NodeId{source}, NodeId{destination});
        ASSERT_EQ(port, shape->static_output(at, target, NodeId{source}, NodeId{destination}));
        ASSERT_TRUE(shape->end(at, port).is_switch());
        at = shape->end(at, port).to_switch();
      }
      ASSERT_EQ(at, target) << source << " to " << destination;
    }
  }
}

TEST_P(EveryShape, LinksHaveNamesOfTheirOwnAndAreFoundByThem) {
  std::set<std::string> names;
  for (std::uint32_t number = 0; number < shape->switches(); ++number) {
    const SwitchId at{number};
    for (Port port = 0; port < shape->ports(at); ++port) {
      const PortEnd end = shape->end(at, port);
      if (end.kind == PortEnd::Kind::nothing) continue;
      const std::string name = shape->link_name(at, port);
      EXPECT_TRUE(names.insert(name).second) << name;
      const auto found = shape->find_link(name);
      ASSERT_TRUE(found.has_value()) << name;
      EXPECT_EQ(found->at, at);
      EXPECT_EQ(found->port, port);
      if (end.is_node()) {
        EXPECT_TRUE(shape->find_link(std::to_string(end.index) + "-" + shape->switch_name(at)).has_value());
      } else {
        // The same cable has the same number from its other end.
        const std::string back = shape->link_name(end.to_switch(), end.port);
        const std::size_t ends = shape->switch_name(at).size() + shape->switch_name(end.to_switch()).size() + 1;
        EXPECT_EQ(name.substr(ends), back.substr(ends));
      }
    }
  }
  for (const char* wrong : {"", "-", "0", "0-", "switch", "switch0", "0-1", "switch0-switch0", "99999-switch0",
                            "switch99999-0", "x-y", "0-switch0-1", "switch-1-0"}) {
    EXPECT_FALSE(shape->find_link(wrong).has_value()) << wrong;
  }
}

TEST_P(EveryShape, ADetourIsAtMostAsFarAsItSays) {
  if (shape->detours() == 0) return;
  const std::set<std::uint32_t> targets = switches_with_nodes();
  for (const std::uint32_t source : targets) {
    for (const std::uint32_t target : targets) {
      if (source == target) continue;
      for (std::uint32_t detour = 0; detour < shape->detours(); ++detour) {
        if (!shape->is_detour(detour, SwitchId{source}, SwitchId{target})) continue;
        // Walk it, by the first output each time.
        SwitchId at{source};
        std::uint32_t hops = 0;
        std::vector<Port> outputs;
        const auto step = [&] {
          ASSERT_FALSE(outputs.empty());
          ASSERT_TRUE(shape->end(at, outputs.front()).is_switch());
          at = shape->end(at, outputs.front()).to_switch();
          outputs.clear();
          ASSERT_LT(++hops, 100U);
        };
        while (!shape->at_detour(at, detour)) {
          shape->towards_detour(at, detour, outputs);
          step();
        }
        while (at.value() != target) {
          shape->after_detour(at, SwitchId{target}, outputs);
          step();
        }
        const std::uint32_t said = shape->distance_over(SwitchId{source}, detour, SwitchId{target});
        // In a dragonfly the walk may come to another switch of the group than the best one.
        EXPECT_GE(hops, said);
        EXPECT_LE(hops, said + (GetParam().config.topology.get() == Topology::dragonfly ? 1U : 0U));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Topology, EveryShape, testing::ValuesIn(test::all_shapes()), test::case_name);

TEST(Topology, SizesAreTheirFormulas) {
  const auto room = [](const ShapeCase& of) { return most_nodes(of.config, of.nodes); };
  EXPECT_EQ(room(test::star(3)), 16U);
  EXPECT_EQ(room(test::fat_tree(3, 8, 2, 9)), 512U);
  EXPECT_EQ(room(test::dragonfly(4, 8, 4, 33, 3)), 1056U);
  EXPECT_EQ(room(test::torus("32x16x16", true, 1, 3)), 8192U);
  EXPECT_EQ(room(test::hyperx("4x3", 5, 3)), 60U);
  // Switches of full trees: levels x nodes / arity, the top ones with half the ports.
  EXPECT_EQ(test::make(test::fat_tree(3, 4, 1, 64))->switches(), 48U);
  EXPECT_EQ(test::make(test::fat_tree(3, 4, 2, 64))->switches(), 16U + 8U + 4U);
  // Only what is needed: five nodes of 8^3 need one switch, nine two and the eight above them.
  EXPECT_EQ(test::make(test::fat_tree(3, 8, 1, 5))->switches(), 1U);
  EXPECT_EQ(test::make(test::fat_tree(3, 8, 1, 9))->switches(), 2U + 8U);
}

TEST(Topology, TheLargestShapesAreCheapToDescribe) {
  const auto torus = test::make(test::torus("32x16x16", true, 1, 8192));
  EXPECT_EQ(torus->cables(), 8192U * 4);
  EXPECT_EQ(torus->distance(SwitchId{0}, SwitchId{8191}), 3U);
  const auto fly = test::make(test::dragonfly(8, 16, 8, 129, 16'512));
  EXPECT_EQ(fly->switches(), 2064U);
}

struct BadFile {
  const char* name;
  const char* text;
  const char* error;
};

TEST(TopologyFile, MistakesHaveTheirPlace) {
  const BadFile cases[] = {
      {"empty", "", "f:1:1: error: the file is empty; expected 'rvma-topology 1' and links"},
      {"lfs", "version https://git-lfs.github.com/spec/v1\n",
       "f:1:1: error: the file is a Git LFS pointer, not its content; fetch it with: git lfs pull"},
      {"mark", "\xef\xbb\xbfrvma-topology 1\n",
       "f:1:1: error: the file begins with a byte order mark; expected 'rvma-topology 1'"},
      {"header", "# x\n  graph {\n",
       "f:2:3: error: not a topology file: it begins with 'graph'; expected 'rvma-topology 1'"},
      {"no header", "# only a comment\n",
       "f:1:1: error: the file has no line 'rvma-topology 1'; expected it as the first line"},
      {"word", "rvma-topology 1\n  cable 0 switch0\n",
       "f:2:3: error: unknown word 'cable'; expected link A B [CABLES]"},
      {"few", "rvma-topology 1\nlink 0\n", "f:2:7: error: link with 1 arguments; expected link A B [CABLES]"},
      {"many", "rvma-topology 1\nlink 0 switch0 1 2\n",
       "f:2:18: error: link with 4 arguments; expected link A B [CABLES]"},
      {"name", "rvma-topology 1\nlink 0 swich0\n",
       "f:2:8: error: 'swich0' names no node and no switch; expected a node's number or a switch such as switch3, up "
       "to 1048575"},
      {"nodes", "rvma-topology 1\nlink 0 1\n",
       "f:2:6: error: a link between two nodes; expected a switch at one end at least"},
      {"itself", "rvma-topology 1\nlink 0 switch0\nlink switch0 switch0\n",
       "f:3:14: error: a link from 'switch0' to itself; expected another switch"},
      {"twice", "rvma-topology 1\nlink 0 switch0\r\nlink switch1 0\r\n",
       "f:3:14: error: a second link of node 0; expected one a node; the first is on line 2"},
      {"cables", "rvma-topology 1\nlink 0 switch0 2\n", "f:2:16: error: 2 cables of node 0; expected one cable a node"},
      {"zero", "rvma-topology 1\nlink switch1 switch0 0\n", "f:2:22: error: 0 cables; expected 1 to 1024"},
      {"gap", "rvma-topology 1\nlink 0 switch0\nlink 2 switch0\n",
       "f:1:1: error: node 1 has no link, node 2 has one; expected nodes 0, 1, .. without a gap"},
      {"switch gap", "rvma-topology 1\nlink 0 switch2\n",
       "f:1:1: error: switch0 has no link, switch2 has one; expected switches 0, 1, .. without a gap"},
      {"apart", "rvma-topology 1\nlink 0 switch0\nlink 1 switch1\n",
       "f:1:1: error: no way leads from switch0 to switch1; expected all switches to be connected"},
      {"no node", "rvma-topology 1\nlink switch0 switch1",
       "f:1:1: error: the file has no node; expected a link such as: link 0 switch0"},
  };
  for (const BadFile& bad : cases) {
    ErrorList errors;
    parse_link_list(bad.text, "f", errors);
    ASSERT_FALSE(errors.empty()) << bad.name;
    EXPECT_EQ(errors.shown().front().to_string(), bad.error) << bad.name;
  }
  ErrorList many;
  std::string text = "rvma-topology 1\n";
  for (int i = 0; i < 50; ++i) text += "cable\n";
  parse_link_list(text, "f", many);
  EXPECT_EQ(many.count(), 50U);
  EXPECT_EQ(many.shown().size(), ErrorList::kShown);
  ErrorList errors;
  read_link_list("/nowhere/links", errors);
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors.shown().front().position.source, "/nowhere/links");
}

std::vector<std::string> mistakes(const FabricConfig& config, std::uint32_t nodes) {
  ErrorList errors;
  validate_fabric(config, nodes, {4226, 300}, errors);
  std::vector<std::string> out;
  for (const Error& error : errors.shown()) out.push_back(error.what + " | " + error.expected);
  return out;
}

TEST(Topology, MistakesInTheKeysNameBothSides) {
  const auto only = [](const ShapeCase& of) {
    const std::vector<std::string> found = mistakes(of.config, of.nodes);
    return found.size() == 1 ? found.front() : std::to_string(found.size()) + " mistakes";
  };
  EXPECT_EQ(only(test::star(17)),
            "fabric.topology: star holds 16 nodes, not 17 | expected more fabric.star.ports, or fewer nodes");
  EXPECT_EQ(only(test::fat_tree(2, 4, 3, 4)),
            "fabric.fat_tree.taper: 3 does not divide fabric.fat_tree.arity = 4 | expected a divisor of the arity");
  EXPECT_EQ(only(test::fat_tree(2, 4, 1, 17)),
            "fabric.topology: fat_tree holds 16 nodes, not 17 | expected more fabric.fat_tree.arity or "
            "fabric.fat_tree.levels, or fewer nodes");
  EXPECT_EQ(only(test::dragonfly(1, 2, 2, 6, 4)),
            "fabric.dragonfly.groups: 6 groups are more than the 4 global links of a group reach (fabric.dragonfly.a = "
            "2 x fabric.dragonfly.h = 2) | expected at most 5");
  EXPECT_EQ(only(test::torus("4x4", true, 1, 17)),
            "fabric.topology: torus holds 16 nodes, not 17 | expected more fabric.torus.dims or "
            "fabric.torus.nodes_per_switch, or fewer nodes");
  EXPECT_EQ(only(test::torus("4096x4096", true, 1, 17)),
            "fabric.torus.dims: 4096x4096 are too many switches | expected at most 1048576");
  EXPECT_EQ(only(test::hyperx("3x3", 1, 10)),
            "fabric.topology: hyperx holds 9 nodes, not 10 | expected more fabric.hyperx.dims or "
            "fabric.hyperx.nodes_per_switch, or fewer nodes");
  ShapeCase tree = test::fat_tree(2, 4, 1, 16);
  tree.config.routing = Routing::valiant;
  EXPECT_EQ(only(tree),
            "fabric.routing: valiant takes ways longer than the shortest, topology fat_tree has none | expected "
            "static, adaptive or spray");
  ShapeCase torus = test::torus("4x4", true, 1, 16);
  torus.config.routing = Routing::ugal;
  torus.config.switch_.buffer = Bytes{16'000};
  EXPECT_EQ(only(torus),
            "fabric.switch.buffer: 16kB divided among 4 virtual channels (4000 bytes each) does not hold one packet of "
            "nic.mtu (4226 bytes on the wire) | expected at least 16904B");
  torus.config.switch_.flow_control = FlowControl::drop;
  EXPECT_TRUE(mistakes(torus.config, 16).empty());
  ShapeCase event = test::torus("4x4", true, 1, 16);
  event.config.faults.events = FaultEventList{{{Time::zero(), FaultKind::link_down, "switch0-switch4"},
                                               {Time::zero(), FaultKind::link_down, "switch0-switch5"}}};
  EXPECT_EQ(only(event),
            "fabric.faults.events[1].where: topology torus with 16 nodes has no link 'switch0-switch5' | expected a "
            "name as in links.csv, such as 0-switch0");
  FabricConfig pair;
  pair.faults.events = FaultEventList{{{Time::zero(), FaultKind::link_down, "0-2"}}};
  EXPECT_EQ(mistakes(pair, 2).size(), 1U);
  pair.faults.events = FaultEventList{{{Time::zero(), FaultKind::link_down, "1-0"}}};
  EXPECT_TRUE(mistakes(pair, 2).empty());
}

TEST(Topology, LinksGoDownAndComeUpInTurns) {
  FabricConfig pair;
  const auto mistakes_of = [&](std::vector<FaultEvent> events) {
    pair.faults.events = FaultEventList{std::move(events)};
    return mistakes(pair, 2);
  };
  const Time us = Time::from_us(1);
  EXPECT_TRUE(mistakes_of({{us, FaultKind::link_down, "0-1"},
                           {us * 3, FaultKind::link_down, "0-1"},
                           {us * 2, FaultKind::link_up, "1-0"}})
                  .empty());
  EXPECT_EQ(mistakes_of({{us, FaultKind::link_down, "0-1"}, {us * 2, FaultKind::link_down, "1-0"}}),
            std::vector<std::string>{"fabric.faults.events[1]: link '1-0' is down already at 2us | expected link_down "
                                     "and link_up in turns"});
  EXPECT_EQ(mistakes_of({{us, FaultKind::link_up, "0-1"}}).size(), 1U);
}

TEST(Topology, DimensionsReadBackAsTheyWerePrinted) {
  EXPECT_EQ(ValueText<Dimensions>::print(*ValueText<Dimensions>::parse("32x16x16")), "32x16x16");
  for (const char* wrong : {"", "x", "4x", "x4", "4x0", "4X4", "70000", "1x1x1x1x1x1x1x1x1", "-4", "4 x4"}) {
    EXPECT_FALSE(ValueText<Dimensions>::parse(wrong)) << wrong;
  }
  EXPECT_EQ(ValueText<Dimensions>::parse("4x").error().what, "an extent is missing");
}

TEST(FaultEvents, AreReadAndTheirMistakesHaveTheirPlace) {
  FabricConfig config;
  ErrorList errors;
  load_config_text(R"({"faults": {"events": [
    {"at": "1us", "kind": "link_down", "where": "0-1"},
    {"kind": "node_crash", "where": 3, "at": "2ms"}]}})",
                   "c", keys_of(config), errors);
  ASSERT_TRUE(errors.empty()) << errors.shown().front().to_string();
  const std::vector<FaultEvent>& events = config.faults.events->events;
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].at, Time::from_us(1));
  EXPECT_EQ(events[1].kind, FaultKind::node_crash);
  EXPECT_EQ(events[1].where, "3");
  // What is printed is read back.
  const std::string printed = ValueText<FaultEventList>::print(config.faults.events);
  EXPECT_EQ(ValueText<FaultEventList>::print(*ValueText<FaultEventList>::parse(printed)), printed);

  const std::pair<const char*, const char*> wrong[] = {
      {R"([{"at": "1us", "kind": "link_down", "where": "0-1"},
   {"at": "1us", "kind": "link_don", "where": "0-1"}])",
       "c:2:26: error: faults.events: kind: "},
      {R"([{"at": 1, "kind": "link_down", "where": "0-1"}])", "c:1:33: error: faults.events: at: "},
      {R"([{"at": "1us", "kind": "link_down"}])", "c:1:26: error: faults.events: an event without 'where'"},
      {R"([{"at": "1us", "kin": "link_down", "where": "0-1"}])",
       "c:1:47: error: faults.events: unknown name 'kin' in an event"},
      {R"([7])", "c:1:26: error: faults.events: an entry is not an object"},
      {R"("7")", "c:1:25: error: faults.events: not a list"},
  };
  for (const auto& [text, error] : wrong) {
    ErrorList found;
    load_config_text(std::string{R"({"faults": {"events":   )"} + text + "}}", "c", keys_of(config), found);
    ASSERT_FALSE(found.empty()) << text;
    EXPECT_EQ(found.shown().front().to_string().substr(0, std::string{error}.size()), error);
  }
}

}  // namespace
}  // namespace rvma
