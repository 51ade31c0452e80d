#include "nic/congestion.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rvma {
namespace {

constexpr Time us(std::int64_t n) { return Time::from_us(n); }
constexpr Time kShortest = us(2);
constexpr std::uint64_t kPacket = CongestionWindow::kPacket;

CongestionLimits swift() {
  CongestionLimits limits;
  limits.control = CongestionControl::swift;
  limits.target = us(5);
  limits.initial_window = 64;
  limits.most_window = 1024;
  return limits;
}

TEST(CongestionWindow, OffIsNoLimit) {
  const CongestionLimits limits;
  CongestionWindow window{limits};
  window.acknowledged(10, us(1000), kShortest, us(1000));
  window.lost(us(1000));
  window.timed_out();
  EXPECT_TRUE(window.room(1'000'000, us(1000)));
  EXPECT_EQ(window.decreases(), 0U);
}

TEST(CongestionWindow, AdmitsItsWindowAndNoMore) {
  const CongestionLimits limits = swift();
  const CongestionWindow window{limits};
  EXPECT_TRUE(window.room(63, us(1)));
  EXPECT_FALSE(window.room(64, us(1)));
}

TEST(CongestionWindow, DoublesInARoundTripUntilTheFirstDecreaseAndThenGrowsByAPacket) {
  const CongestionLimits limits = swift();
  CongestionWindow window{limits};
  window.acknowledged(64, kShortest, kShortest, us(10));
  EXPECT_EQ(window.window(), 128 * kPacket);
  window.acknowledged(1, us(1000), kShortest, us(2000));
  EXPECT_EQ(window.window(), 64 * kPacket);
  for (int i = 0; i < 64; ++i) window.acknowledged(1, kShortest, kShortest, us(30));
  EXPECT_NEAR(static_cast<double>(window.window()) / kPacket, 65.0, 0.02);
}

TEST(CongestionWindow, NeverGrowsBeyondTheMost) {
  const CongestionLimits limits = swift();
  CongestionWindow window{limits};
  for (int i = 0; i < 100; ++i) window.acknowledged(64, kShortest, kShortest, us(10));
  EXPECT_EQ(window.window(), 1024 * kPacket);
}

TEST(CongestionWindow, ShrinksInProportionBeyondTheTargetAndNotBelowIt) {
  const CongestionLimits limits = swift();
  // Target: 2 + 5 + 5 / sqrt(64) = 7.625 us.
  CongestionWindow under{limits};
  under.acknowledged(1, Time::from_ns(7624), kShortest, us(100));
  EXPECT_GT(under.window(), 64 * kPacket);
  CongestionWindow over{limits};
  over.acknowledged(1, us(10), kShortest, us(100));
  // 1 - 0.8 x (10 - 7.625) / 10
  EXPECT_NEAR(static_cast<double>(over.window()) / kPacket, 64 * 0.81, 0.1);
  CongestionWindow far_over{limits};
  far_over.acknowledged(1, us(1000), kShortest, us(1000));
  EXPECT_EQ(far_over.window(), 32 * kPacket) << "at most by half";
}

TEST(CongestionWindow, ShrinksOnceInARoundTrip) {
  const CongestionLimits limits = swift();
  CongestionWindow window{limits};
  window.acknowledged(1, us(100), kShortest, us(1000));
  const std::uint64_t once = window.window();
  window.acknowledged(1, us(100), kShortest, us(1099));
  EXPECT_EQ(window.window(), once);
  window.acknowledged(1, us(100), kShortest, us(1100));
  EXPECT_LT(window.window(), once);
}

TEST(CongestionWindow, PacesBelowOnePacket) {
  const CongestionLimits limits = swift();
  CongestionWindow window{limits};
  EXPECT_TRUE(window.paced_until().is_never());
  Time at = us(1000);
  while (window.window() >= kPacket) {
    window.acknowledged(1, us(100), kShortest, at);
    at += us(200);
  }
  EXPECT_EQ(window.window(), kPacket / 2);
  window.sent(at);
  // Half a packet a round trip: the next one two round trips later, and only alone.
  EXPECT_FALSE(window.room(0, at + us(200) - Time::from_ps(1)));
  EXPECT_TRUE(window.room(0, at + us(200)));
  EXPECT_FALSE(window.room(1, at + us(200)));
  EXPECT_EQ(window.paced_until(), at + us(200));
}

TEST(CongestionWindow, LossesWithoutDelayAreChance) {
  const CongestionLimits limits = swift();
  CongestionWindow window{limits};
  window.acknowledged(1, kShortest, kShortest, us(10));
  const std::uint64_t before = window.window();
  window.lost(us(100));
  EXPECT_EQ(window.window(), before);
  for (int i = 0; i < 10; ++i) window.timed_out();
  EXPECT_EQ(window.window(), 16 * kPacket);
  // With delay they are congestion.
  window.acknowledged(1, us(100), kShortest, us(1000));
  const std::uint64_t shrunk = window.window();
  window.lost(us(1200));
  EXPECT_EQ(window.window(), shrunk / 2);
}

TEST(CongestionWindow, ATimeOutLeavesAPacketAtMost) {
  const CongestionLimits limits = swift();
  CongestionWindow window{limits};
  window.timed_out();
  EXPECT_EQ(window.window(), kPacket);
  for (int i = 0; i < 100; ++i) window.timed_out();
  EXPECT_EQ(window.window(), CongestionWindow::kLeast);
}

/// Many windows over one queue that serves a packet in 100 ns: they settle near the target, and share evenly.
TEST(CongestionWindow, ManyFlowsShareAQueueNearTheTarget) {
  const CongestionLimits limits = swift();
  constexpr int kFlows = 16;
  std::vector<CongestionWindow> flows(kFlows, CongestionWindow{limits});
  Time at = us(1000);
  Time round_trip = kShortest;
  for (int round = 0; round < 3000; ++round) {
    std::uint64_t in_flight = 0;
    for (const CongestionWindow& flow : flows) in_flight += flow.window();
    const Time served = Time::from_ns(static_cast<std::int64_t>(100 * in_flight / kPacket));
    round_trip = std::max(kShortest, served);
    at += round_trip;
    for (CongestionWindow& flow : flows) {
      const auto packets = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, flow.window() / kPacket));
      flow.acknowledged(packets, round_trip, kShortest, at);
    }
  }
  EXPECT_LT(round_trip, us(15));
  EXPECT_GT(round_trip, us(5));
  std::uint64_t least = ~std::uint64_t{0};
  std::uint64_t most = 0;
  for (const CongestionWindow& flow : flows) {
    least = std::min(least, flow.window());
    most = std::max(most, flow.window());
  }
  EXPECT_LT(most, 2 * least);
}

}  // namespace
}  // namespace rvma
