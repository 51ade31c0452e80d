#include "fabric/faults.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "traffic.hpp"

namespace rvma {
namespace {

using test::ack_packet;
using test::data_packet;
using test::Receiver;

FaultsConfig reversing(std::uint32_t packets) {
  FaultsConfig config;
  config.reverse = packets;
  return config;
}

/// Delivers to a stage at given times, each announced at its own time.
struct Feeder : Component {
  explicit Feeder(SimContext& sim)
      : Component("feeder", sim, Frequency::mhz(1'000'000)), wakeup(*this, "wakeup", [this] {
          while (next < steps.size() && steps[next].first <= now()) steps[next++].second();
          if (next < steps.size()) wakeup.at(steps[next].first);
        }) {}
  void at(Time time, std::function<void()> step) {
    steps.emplace_back(time, std::move(step));
    if (steps.size() == 1) wakeup.at(time);
  }
  std::vector<std::pair<Time, std::function<void()>>> steps;
  std::size_t next = 0;
  Wakeup wakeup;
};

std::vector<std::uint32_t> sequences(const Receiver& receiver, PacketType type, std::uint32_t source) {
  std::vector<std::uint32_t> out;
  for (const test::Arrival& arrival : receiver.arrivals) {
    if (arrival.type == type && arrival.source == NodeId{source}) out.push_back(arrival.sequence);
  }
  return out;
}

TEST(FaultStage, IsWantedOnlyIfSomethingIsConfigured) {
  FaultsConfig config;
  EXPECT_FALSE(FaultStage::wanted(config));
  EXPECT_FALSE(FaultStage::wanted(reversing(1)));
  EXPECT_TRUE(FaultStage::wanted(reversing(2)));
  config.jitter = Time::from_ps(1);
  EXPECT_TRUE(FaultStage::wanted(config));
}

TEST(FaultStage, ReversesAWholeFlow) {
  SimContext context{1};
  PacketPool pool;
  Receiver receiver;
  FabricLosses losses;
  FaultStage stage{"stage", context, reversing(16), receiver, "stage", pool, losses};
  // Announced in advance, as an idle link does.
  for (std::uint32_t i = 0; i < 16; ++i) stage.deliver(data_packet(pool, 0, 1, i, 64), Time::from_ns(10 + i));
  sc_core::sc_start();
  ASSERT_EQ(receiver.arrivals.size(), 16U);
  for (std::uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(receiver.arrivals[i].sequence, 15 - i);
    EXPECT_EQ(receiver.arrivals[i].at, Time::from_ns(25));
  }
  EXPECT_EQ(stage.stats().packets.value(), 16U);
  EXPECT_EQ(stage.stats().reversed.value(), 16U);
  EXPECT_EQ(stage.stats().let_go.value(), 0U);
  EXPECT_EQ(stage.stats().delay_ns.value(), Time::from_ns(15 * 16 / 2));
  EXPECT_LE(context.activations(), 2U);
}

TEST(FaultStage, EachFlowIsReversedByItself) {
  SimContext context{1};
  PacketPool pool;
  Receiver receiver;
  FabricLosses losses;
  FaultStage stage{"stage", context, reversing(4), receiver, "stage", pool, losses};
  for (std::uint32_t i = 0; i < 8; ++i) {
    stage.deliver(data_packet(pool, 0, 1, i, 64), Time::from_ns(3 * i));
    stage.deliver(data_packet(pool, 2, 1, i, 64), Time::from_ns(3 * i + 1));
    stage.deliver(ack_packet(pool, 0, 1, i), Time::from_ns(3 * i + 2));
  }
  sc_core::sc_start();
  const std::vector<std::uint32_t> expected{3, 2, 1, 0, 7, 6, 5, 4};
  EXPECT_EQ(sequences(receiver, PacketType::data, 0), expected);
  EXPECT_EQ(sequences(receiver, PacketType::data, 2), expected);
  EXPECT_EQ(sequences(receiver, PacketType::acknowledgement, 0), expected);
  EXPECT_TRUE(receiver.ordered);
}

TEST(FaultStage, LetsGoAfterAShortTimeAndLosesNothing) {
  SimContext context{1};
  PacketPool pool;
  Receiver receiver;
  FabricLosses losses;
  FaultStage stage{"stage", context, reversing(16), receiver, "stage", pool, losses};
  for (std::uint32_t i = 0; i < 19; ++i) stage.deliver(data_packet(pool, 0, 1, i, 64), Time::from_ns(i));
  stage.deliver(ack_packet(pool, 0, 1, 5), Time::from_ns(100));
  sc_core::sc_start();
  ASSERT_EQ(receiver.arrivals.size(), 20U);
  // The second batch began with packet 16 at 16 ns.
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(receiver.arrivals[16 + i].sequence, 18 - i);
    EXPECT_EQ(receiver.arrivals[16 + i].at, Time::from_ns(2016));
  }
  EXPECT_EQ(receiver.arrivals[19].at, Time::from_ns(2100));
  EXPECT_EQ(stage.stats().let_go.value(), 2U);
  EXPECT_EQ(stage.stats().reversed.value(), 19U);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(FaultStage, ThePacketThatComesWhenTheTimeIsUpStartsANewBatch) {
  SimContext context{1};
  PacketPool pool;
  Receiver receiver;
  FabricLosses losses;
  FaultStage stage{"stage", context, reversing(3), receiver, "stage", pool, losses};
  Feeder feeder{context};
  const auto feed = [&](std::uint32_t sequence, Time at) {
    feeder.at(at, [&, sequence, at] { stage.deliver(data_packet(pool, 0, 1, sequence, 64), at); });
  };
  feed(0, Time::zero());
  feed(1, Time::from_ns(2000) - Time::from_ps(1));  // still in time
  feed(2, Time::from_ns(2000));                     // too late
  sc_core::sc_start();
  ASSERT_EQ(receiver.arrivals.size(), 3U);
  EXPECT_EQ(receiver.arrivals[0].sequence, 1U);
  EXPECT_EQ(receiver.arrivals[0].at, Time::from_ns(2000));
  EXPECT_EQ(receiver.arrivals[1].sequence, 0U);
  EXPECT_EQ(receiver.arrivals[2].sequence, 2U);
  EXPECT_EQ(receiver.arrivals[2].at, Time::from_ns(4000));
}

/// Arrival times of 2,000 packets, one every 10 ns, of a run with this seed.
std::vector<test::Arrival> with_jitter(SimContext& context, Time jitter, const char* name) {
  static PacketPool pool;
  FaultsConfig config;
  config.jitter = jitter;
  Receiver receiver;
  FabricLosses losses;
  FaultStage stage{name, context, config, receiver, "stage", pool, losses};
  const Time begin = SimContext::now();
  for (std::uint32_t i = 0; i < 2000; ++i) {
    stage.deliver(data_packet(pool, 0, 1, i, 64), begin + Time::from_ns(10) * i);
  }
  sc_core::sc_start();
  EXPECT_TRUE(receiver.ordered);
  for (test::Arrival& arrival : receiver.arrivals) arrival.at -= begin;
  return receiver.arrivals;
}

TEST(FaultStage, JitterIsWithinBoundsAndUsesThemAll) {
  SimContext context{1};
  const Time jitter = Time::from_ns(500);
  const auto arrivals = with_jitter(context, jitter, "stage");
  ASSERT_EQ(arrivals.size(), 2000U);
  Time least = Time::max();
  Time most = Time::zero();
  Time sum = Time::zero();
  bool overtaken = false;
  std::uint32_t previous = 0;
  std::set<std::uint32_t> seen;
  for (const test::Arrival& arrival : arrivals) {
    const Time delay = arrival.at - Time::from_ns(10) * arrival.sequence;
    EXPECT_GE(delay, Time::zero());
    EXPECT_LE(delay, jitter);
    least = std::min(least, delay);
    most = std::max(most, delay);
    sum += delay;
    overtaken = overtaken || arrival.sequence < previous;
    previous = arrival.sequence;
    seen.insert(arrival.sequence);
  }
  EXPECT_EQ(seen.size(), 2000U);
  EXPECT_LT(least, Time::from_ns(5));
  EXPECT_GT(most, Time::from_ns(495));
  EXPECT_NEAR(static_cast<double>(sum.ps()) / 2000, 250e3, 20e3);
  EXPECT_TRUE(overtaken);
}

/// One elaboration a process: the order of one run must be what the generator of the same stream says.
TEST(FaultStage, JitterFollowsTheSeedAndThePath) {
  SimContext context{42};
  const auto arrivals = with_jitter(context, Time::from_ns(500), "stage");
  Random same{42, "stage"};
  std::vector<Time> expected;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    expected.push_back(Time::from_ns(10) * i + Time::from_ps(static_cast<std::int64_t>(same.below(500'001))));
  }
  for (const test::Arrival& arrival : arrivals) EXPECT_EQ(arrival.at, expected[arrival.sequence]);
  Random other_seed{43, "stage"};
  Random other_path{42, "stage2"};
  Random again{42, "stage"};
  const std::uint64_t first = again.next();
  EXPECT_NE(first, other_seed.next());
  EXPECT_NE(first, other_path.next());
}

TEST(FaultStage, ReverseAndJitterTogetherLoseNothing) {
  SimContext context{3};
  PacketPool pool;
  Receiver receiver;
  FaultsConfig config = reversing(8);
  config.jitter = Time::from_us(1);
  FabricLosses losses;
  FaultStage stage{"stage", context, config, receiver, "stage", pool, losses};
  for (std::uint32_t i = 0; i < 1003; ++i) stage.deliver(data_packet(pool, i % 3, 9, i, 64), Time::from_ns(5 * i));
  sc_core::sc_start();
  std::set<std::uint32_t> seen;
  for (const test::Arrival& arrival : receiver.arrivals) seen.insert(arrival.sequence);
  EXPECT_EQ(receiver.arrivals.size(), 1003U);
  EXPECT_EQ(seen.size(), 1003U);
  EXPECT_TRUE(receiver.ordered);
  EXPECT_EQ(pool.in_use(), 0U);
}

/// Credit that came back, by hand.
struct Credit : LinkCreditIf {
  void return_credit(std::uint32_t wire_bytes, Time /*at*/) override { bytes += wire_bytes; }
  std::uint64_t bytes = 0;
};

/// 20,000 packets and 20,000 acknowledgements through one kind of fault at 10 %.
struct Damage {
  explicit Damage(const FaultsConfig& config) {
    receiver.credit = &credit;
    FaultStage stage{"stage", context, config, receiver, "stage", pool, losses};
    stage.connect(credit);
    for (std::uint32_t i = 0; i < 20'000; ++i) {
      stage.deliver(data_packet(pool, 0, 1, i, 64), Time::from_ns(10) * (2 * i));
      stage.deliver(ack_packet(pool, 0, 1, i), Time::from_ns(10) * (2 * i + 1));
      sent_bytes += data_wire_bytes(64) + ack_wire_bytes(0, 0);
    }
    sc_core::sc_start();
    stats = stage.stats();
    EXPECT_EQ(pool.in_use(), 0U);
    EXPECT_EQ(credit.bytes, sent_bytes) << "credit is neither lost nor made";
  }
  static FaultsConfig tenth(Key<Probability> FaultsConfig::*which) {
    FaultsConfig config;
    config.*which = Probability::from_ppb(100'000'000);
    return config;
  }
  std::uint64_t arrived(PacketType type) const {
    std::uint64_t count = 0;
    for (const test::Arrival& arrival : receiver.arrivals) count += arrival.type == type ? 1 : 0;
    return count;
  }
  SimContext context{5};
  PacketPool pool;
  Credit credit;
  Receiver receiver;
  FabricLosses losses;
  FaultStats stats;
  std::uint64_t sent_bytes = 0;
};

TEST(FaultStage, DropsItsShareOfBothKinds) {
  const Damage damage{Damage::tenth(&FaultsConfig::drop)};
  EXPECT_NEAR(static_cast<double>(damage.losses.data_lost), 2000, 200);
  EXPECT_NEAR(static_cast<double>(damage.losses.acknowledgements_lost), 2000, 200);
  EXPECT_EQ(damage.arrived(PacketType::data), 20'000 - damage.losses.data_lost);
  EXPECT_EQ(damage.arrived(PacketType::acknowledgement), 20'000 - damage.losses.acknowledgements_lost);
  EXPECT_EQ(damage.stats.dropped.value(), damage.losses.data_lost + damage.losses.acknowledgements_lost);
}

TEST(FaultStage, DoublesItsShareOfBothKinds) {
  const Damage damage{Damage::tenth(&FaultsConfig::duplicate)};
  EXPECT_NEAR(static_cast<double>(damage.losses.data_copied), 2000, 200);
  EXPECT_NEAR(static_cast<double>(damage.losses.acknowledgements_copied), 2000, 200);
  EXPECT_EQ(damage.arrived(PacketType::data), 20'000 + damage.losses.data_copied);
  EXPECT_EQ(damage.arrived(PacketType::acknowledgement), 20'000 + damage.losses.acknowledgements_copied);
  EXPECT_EQ(damage.stats.duplicated.value(), damage.losses.data_copied + damage.losses.acknowledgements_copied);
}

TEST(FaultStage, DamagesItsShareAndDeliversIt) {
  const Damage damage{Damage::tenth(&FaultsConfig::corrupt)};
  EXPECT_NEAR(static_cast<double>(damage.stats.corrupted.value()), 4000, 300);
  EXPECT_EQ(damage.receiver.arrivals.size(), 40'000U);
  std::uint64_t corrupted = 0;
  for (const test::Arrival& arrival : damage.receiver.arrivals) corrupted += arrival.corrupted ? 1 : 0;
  EXPECT_EQ(corrupted, damage.stats.corrupted.value());
}

}  // namespace
}  // namespace rvma
