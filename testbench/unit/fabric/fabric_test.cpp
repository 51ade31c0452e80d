#include "fabric/fabric.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>

#include "traffic.hpp"

namespace rvma {
namespace {

using test::data_packet;
using test::Receiver;

/// N receivers on a fabric, each sending one packet to every other.
struct Exchange {
  Exchange(SimContext& context, const FabricConfig& fabric_config, std::uint32_t nodes)
      : config(fabric_config), receivers(nodes) {
    std::vector<FabricAttachment> attachments;
    for (Receiver& receiver : receivers) attachments.push_back({&receiver, Bytes::kib(64)});
    fabric = std::make_unique<Fabric>("fabric", context, config, attachments, pool);
    for (std::uint32_t node = 0; node < nodes; ++node) receivers[node].credit = &fabric->credit(NodeId{node});
  }
  void all_to_all() {
    const auto nodes = static_cast<std::uint32_t>(receivers.size());
    for (std::uint32_t source = 0; source < nodes; ++source) {
      for (std::uint32_t step = 1; step < nodes; ++step) {
        const std::uint32_t destination = (source + step) % nodes;
        fabric->link(NodeId{source}).send(data_packet(pool, source, destination, step, 64), Time::zero());
      }
    }
    sc_core::sc_start();
  }
  void expect_complete() const {
    for (std::uint32_t node = 0; node < receivers.size(); ++node) {
      std::set<std::uint32_t> sources;
      for (const test::Arrival& arrival : receivers[node].arrivals) {
        EXPECT_EQ(arrival.destination, NodeId{node});
        sources.insert(arrival.source.value());
      }
      EXPECT_EQ(sources.size(), receivers.size() - 1);
      EXPECT_EQ(receivers[node].arrivals.size(), receivers.size() - 1);
    }
  }

  FabricConfig config;
  PacketPool pool;
  std::deque<Receiver> receivers;
  std::unique_ptr<Fabric> fabric;
};

std::set<std::string> paths(const SimContext& context) {
  std::set<std::string> out;
  for (const StatsRegistry::Entry& entry : context.stats().entries()) out.emplace(entry.unit_path);
  return out;
}

TEST(Fabric, TwoNodesAreWiredToEachOther) {
  SimContext context{1};
  Exchange exchange{context, FabricConfig{}, 2};
  EXPECT_EQ(exchange.fabric->topology(), Topology::p2p);
  exchange.all_to_all();
  exchange.expect_complete();
  EXPECT_EQ(exchange.receivers[1].arrivals[0].at, Time::from_ps(194 * 20 + 40'000));
  EXPECT_EQ(paths(context), (std::set<std::string>{"fabric", "fabric.link.0-1", "fabric.link.1-0"}));
  EXPECT_EQ(context.activations(), 0U);
}

TEST(Fabric, SixteenNodesMeetInOneSwitch) {
  SimContext context{1};
  Exchange exchange{context, FabricConfig{}, 16};
  EXPECT_EQ(exchange.fabric->topology(), Topology::star);
  exchange.all_to_all();
  exchange.expect_complete();
  EXPECT_EQ(paths(context).size(), 34U);
  EXPECT_EQ(paths(context).count("fabric.link.15-switch"), 1U);
  EXPECT_EQ(paths(context).count("fabric.link.switch-15"), 1U);
  EXPECT_EQ(paths(context).count("fabric.switch"), 1U);
}

TEST(Fabric, ANodeAloneSendsIntoNothing) {
  SimContext context{1};
  Exchange exchange{context, FabricConfig{}, 1};
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    exchange.fabric->link(NodeId{0}).send(data_packet(exchange.pool, 0, 1, i, 4096), Time::zero());
  }
  sc_core::sc_start();
  EXPECT_TRUE(exchange.receivers[0].arrivals.empty());
  EXPECT_EQ(exchange.pool.in_use(), 0U);
}

TEST(Fabric, FaultStagesStandBeforeEveryNode) {
  SimContext context{1};
  FabricConfig config;
  config.topology = Topology::star;
  config.faults.jitter = Time::from_us(1);
  config.faults.reverse = 4;
  Exchange exchange{context, config, 4};
  EXPECT_EQ(exchange.fabric->fault_stages().size(), 4U);
  exchange.all_to_all();
  exchange.expect_complete();
  EXPECT_EQ(paths(context).count("fabric.faults.3"), 1U);
}

TEST(Fabric, ShapesHoldWhatTheySay) {
  FabricConfig config;
  EXPECT_EQ(most_nodes(config, 2), 2U);
  EXPECT_EQ(most_nodes(config, 3), 16U);
  config.star.ports = 8;
  EXPECT_EQ(most_nodes(config, 3), 8U);
  config.topology = Topology::p2p;
  EXPECT_EQ(most_nodes(config, 3), 2U);
}

TEST(FabricDeathTest, TooManyNodesAreAnAssertion) {
  SimContext context{1};
  FabricConfig config;
  config.topology = Topology::p2p;
  EXPECT_EXIT((Exchange{context, config, 3}), testing::ExitedWithCode(3), "does not fit");
}

}  // namespace
}  // namespace rvma
