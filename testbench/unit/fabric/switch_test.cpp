#include "fabric/switch.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "base/random.hpp"
#include "fabric/link.hpp"
#include "traffic.hpp"

namespace rvma {
namespace {

using test::data_packet;
using test::Receiver;
using test::Sender;

constexpr std::uint64_t kSeed = 11;

/// A switch with a link, a sender and a receiver at every port.
struct Star {
  Star(SimContext& context, std::uint32_t ports, const SwitchConfig& config = {}, Bytes receive_buffer = Bytes::kib(64))
      : shape(ports),
        router(shape, Routing::static_, config.flow_control),
        crossbar("switch", context, config, router, SwitchId{0}, stats),
        receivers(ports) {
    const bool is_paid = config.flow_control.get() == FlowControl::credit;
    for (std::uint32_t port = 0; port < ports; ++port) {
      up.push_back(std::make_unique<Link>(LinkConfig{}, crossbar.input(port), Link::Buffer{config.buffer, 1, is_paid}));
      down.push_back(std::make_unique<Link>(LinkConfig{}, receivers[port], Link::Buffer{receive_buffer}));
      crossbar.connect(port, *up.back(), *down.back());
      receivers[port].credit = down.back().get();
      senders.push_back(std::make_unique<Sender>(*up.back()));
    }
  }
  void start() {
    for (auto& sender : senders) sender->pump();
    sc_core::sc_start();
  }

  PacketPool pool;
  StarShape shape;
  Router router;
  SwitchStats stats;
  Switch crossbar;
  std::deque<Receiver> receivers;
  std::vector<std::unique_ptr<Link>> up;
  std::vector<std::unique_ptr<Link>> down;
  std::vector<std::unique_ptr<Sender>> senders;
};

TEST(Switch, LatencyOfOnePacketIsExact) {
  SimContext context{1};
  Star star{context, 2};
  star.senders[0]->push(data_packet(star.pool, 0, 1, 0, 64));
  star.start();
  ASSERT_EQ(star.receivers[1].arrivals.size(), 1U);
  // Twice onto a link (194 bytes at 20 ps), twice 40 ns of flight, once 100 ns through the switch.
  const std::int64_t onto_link = std::int64_t{194} * 20;
  EXPECT_EQ(star.receivers[1].arrivals[0].at, Time::from_ps(2 * onto_link + 2 * 40'000 + 100'000));
  EXPECT_EQ(star.stats.waited_ns.value(), Time::zero());
  EXPECT_EQ(context.activations(), 1U);
}

TEST(Switch, OutputRunsAtLinkRate) {
  SimContext context{1};
  Star star{context, 3};
  for (std::uint32_t i = 0; i < 2000; ++i) {
    for (std::uint32_t source = 0; source < 2; ++source) {
      star.senders[source]->push(data_packet(star.pool, source, 2, i, 4096));
    }
  }
  star.start();
  const auto& arrivals = star.receivers[2].arrivals;
  ASSERT_EQ(arrivals.size(), 4000U);
  EXPECT_EQ(arrivals.back().at - arrivals.front().at, Time::from_ps(std::int64_t{3999} * 4226 * 20));
  EXPECT_LE(context.activations(), 2 * 4000U);
}

TEST(Switch, SmallPacketsCostLessThanAnActivationEach) {
  SimContext context{1};
  Star star{context, 2};
  for (std::uint32_t i = 0; i < 4000; ++i) star.senders[0]->push(data_packet(star.pool, 0, 1, i, 64));
  star.start();
  const auto& arrivals = star.receivers[1].arrivals;
  ASSERT_EQ(arrivals.size(), 4000U);
  EXPECT_EQ(arrivals.back().at - arrivals.front().at, Time::from_ps(std::int64_t{3999} * 194 * 20));
  EXPECT_LT(context.activations(), 1000U);
}

TEST(Switch, FifteenSendersShareOneOutputFairly) {
  SimContext context{1};
  Star star{context, 16};
  constexpr std::uint32_t kEach = 1000;
  for (std::uint32_t i = 0; i < kEach; ++i) {
    for (std::uint32_t source = 1; source < 16; ++source) {
      star.senders[source]->push(data_packet(star.pool, source, 0, i, 1024));
    }
  }
  star.start();
  const auto& arrivals = star.receivers[0].arrivals;
  ASSERT_EQ(arrivals.size(), 15U * kEach);
  // At any time while all compete, every sender has had its share.
  std::map<std::uint32_t, std::uint32_t> share;
  const std::size_t competing = std::size_t{15} * kEach * 9 / 10;
  for (std::size_t i = 0; i < competing; ++i) ++share[arrivals[i].source.value()];
  for (std::uint32_t source = 1; source < 16; ++source) {
    EXPECT_NEAR(share[source], competing / 15.0, competing / 15.0 * 0.01) << "sender " << source;
  }
  EXPECT_EQ(arrivals.back().at - arrivals.front().at,
            Time::from_ps((std::int64_t{15} * kEach - 1) * (1024 + kDataOverheadBytes) * 20));
  EXPECT_TRUE(star.receivers[0].ordered);
  EXPECT_GT(star.up[1]->stats().credit_stall_ns.value(), Time::zero());
}

TEST(Switch, ABlockedOutputDoesNotBlockAnother) {
  SimContext context{1};
  Star star{context, 3, {}, Bytes{4 * (64 + kDataOverheadBytes)}};
  star.receivers[1].credit = nullptr;  // takes four packets and never gives space back
  for (std::uint32_t i = 0; i < 100; ++i) {
    star.senders[0]->push(data_packet(star.pool, 0, 1, i, 64));
    star.senders[0]->push(data_packet(star.pool, 0, 2, i, 64));
  }
  star.start();
  EXPECT_EQ(star.receivers[1].arrivals.size(), 4U);
  EXPECT_EQ(star.receivers[2].arrivals.size(), 100U);
  // And when it does, everything comes.
  star.receivers[1].credit = star.down[1].get();
  star.down[1]->return_credit(4 * (64 + kDataOverheadBytes), SimContext::now());
  sc_core::sc_start();
  EXPECT_EQ(star.receivers[1].arrivals.size(), 100U);
}

TEST(Switch, RandomTrafficThroughSmallBuffersArrivesWholeAndInOrder) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  SimContext context{1};
  SwitchConfig config;
  config.buffer = Bytes{6000};
  Star star{context, 8, config, Bytes{5000}};
  for (Receiver& receiver : star.receivers) receiver.hold = Time::from_ns(300);
  Random random{kSeed};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sent;
  for (int i = 0; i < 20'000; ++i) {
    const auto source = static_cast<std::uint32_t>(random.below(8));
    const auto destination = static_cast<std::uint32_t>(random.below(8));
    star.senders[source]->push(data_packet(star.pool, source, destination, sent[{source, destination}]++,
                                           static_cast<std::uint16_t>(random.below(4097))));
  }
  star.start();
  std::size_t received = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> next;
  for (std::uint32_t port = 0; port < 8; ++port) {
    EXPECT_TRUE(star.receivers[port].ordered);
    for (const test::Arrival& arrival : star.receivers[port].arrivals) {
      ++received;
      EXPECT_EQ(arrival.destination, NodeId{port});
      const std::uint32_t expected = next[{arrival.source.value(), port}]++;
      ASSERT_EQ(arrival.sequence, expected);
    }
  }
  EXPECT_EQ(received, 20'000U);
  EXPECT_EQ(star.pool.in_use(), 0U);
  EXPECT_EQ(star.stats.packets.value(), 20'000U);
  EXPECT_LE(context.activations(), 2 * 20'000U);
}

TEST(Switch, APacketWithoutARouteIsDroppedAndItsSpaceGivenBack) {
  SimContext context{1};
  SwitchConfig config;
  config.buffer = Bytes{300};
  Star star{context, 2, config};
  for (std::uint32_t i = 0; i < 10; ++i) star.senders[0]->push(data_packet(star.pool, 0, 77, i, 64));
  star.senders[0]->push(data_packet(star.pool, 0, 1, 10, 64));
  star.start();
  EXPECT_EQ(star.stats.unroutable.value(), 10U);
  EXPECT_EQ(star.receivers[1].arrivals.size(), 1U);
}

TEST(Switch, LatencyZeroWorks) {
  SimContext context{1};
  SwitchConfig config;
  config.latency = Time::zero();
  Star star{context, 2, config};
  for (std::uint32_t i = 0; i < 100; ++i) star.senders[0]->push(data_packet(star.pool, 0, 1, i, 64));
  star.start();
  ASSERT_EQ(star.receivers[1].arrivals.size(), 100U);
  EXPECT_EQ(star.receivers[1].arrivals[0].at, Time::from_ps(std::int64_t{2} * 194 * 20 + 80'000));
}

}  // namespace
}  // namespace rvma
