#include "base/clock.hpp"

#include <gtest/gtest.h>

#include "base/int128.hpp"
#include "base/random.hpp"

namespace rvma {
namespace {

using detail::int128;

const Frequency kOdd = Frequency::from_uhz(322'265'625'000'000);

TEST(ClockDomain, WholePeriod) {
  const ClockDomain clock(Frequency::mhz(1000));
  EXPECT_EQ(clock.time_of(Cycles{0}), Time::zero());
  EXPECT_EQ(clock.time_of(Cycles{7}), Time::from_ns(7));
  EXPECT_EQ(clock.edge_at_or_after(Time::zero()), Cycles{0});
  EXPECT_EQ(clock.edge_at_or_after(Time::from_ps(1)), Cycles{1});
  EXPECT_EQ(clock.edge_at_or_after(Time::from_ps(1000)), Cycles{1});
  EXPECT_EQ(clock.edge_at_or_after(Time::from_ps(1001)), Cycles{2});
  EXPECT_EQ(clock.cycles(Time::from_ps(1001)), Cycles{2});
  EXPECT_EQ(clock.cycles(Cycles{5}), Cycles{5});
  EXPECT_EQ(clock.time(Cycles{5}), Time::from_ns(5));
  EXPECT_EQ(clock.time(Time::from_ps(3)), Time::from_ps(3));
}

// 322.265625 MHz has the period 34 816 000 / 11 220... ps = 3103.0303... ps = 102400 / 33 ps exactly.
TEST(ClockDomain, OddPeriodDoesNotDrift) {
  const ClockDomain clock(kOdd);
  EXPECT_EQ(clock.time_of(Cycles{1}), Time::from_ps(3104));
  EXPECT_EQ(clock.time_of(Cycles{33}), Time::from_ps(102'400));
  for (std::int64_t k = 1; k <= 1'000'000'000'000; k *= 10) {
    for (std::int64_t i = -2; i <= 2; ++i) {
      const std::int64_t edge = k + i;
      if (edge < 0) continue;
      const int128 exact = (int128{edge} * 102'400 + 32) / 33;
      ASSERT_EQ(int128{clock.time_of(Cycles{edge}).ps()}, exact) << edge;
      // The edge is found from its own time, from just after the one before, and not from just after itself.
      ASSERT_EQ(clock.edge_at_or_after(clock.time_of(Cycles{edge})), Cycles{edge});
      ASSERT_EQ(clock.edge_at_or_after(clock.time_of(Cycles{edge}) + Time::from_ps(1)), Cycles{edge + 1});
    }
  }
  // 10^12 cycles: 51.7 minutes, to the picosecond.
  EXPECT_EQ(clock.time_of(Cycles{33'000'000'000}), Time::from_ps(102'400'000'000'000));
  EXPECT_EQ(clock.time_of(Cycles{990'000'000'000}), Time::from_ps(3'072'000'000'000'000));
}

TEST(ClockDomain, ShortestCyclesThatLast) {
  const ClockDomain clock(kOdd);
  EXPECT_EQ(clock.cycles(Time::zero()), Cycles{0});
  EXPECT_EQ(clock.cycles(Time::from_ps(1)), Cycles{1});
  EXPECT_EQ(clock.cycles(Time::from_ps(3103)), Cycles{1});
  EXPECT_EQ(clock.cycles(Time::from_ps(3104)), Cycles{2}) << "one cycle lasts 3103.03 ps";
  EXPECT_EQ(clock.cycles(Time::from_ps(102'400)), Cycles{33});
  EXPECT_EQ(clock.cycles(Time::from_ps(102'401)), Cycles{34});
}

TEST(ClockDomain, RandomFrequenciesAgreeWithTheDefinition) {
  const std::uint64_t seed = testing::UnitTest::GetInstance()->random_seed() + 1;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t uhz = 1'000'000'000'000 + random.below(100'000'000'000'000'000);
    const ClockDomain clock(Frequency::from_uhz(uhz));
    const Time time = Time::from_ps(static_cast<std::int64_t>(random.below(1'000'000'000'000'000)));
    const Cycles edge = clock.edge_at_or_after(time);
    ASSERT_GE(clock.time_of(edge), time) << uhz;
    if (edge.count() > 0) {
      ASSERT_LT(clock.time_of(edge - Cycles{1}), time) << uhz;
    }
    const int128 lasts = int128{clock.cycles(time).count()} * 1'000'000'000'000'000'000;
    ASSERT_GE(lasts, int128{time.ps()} * uhz);
    ASSERT_LT(lasts - 1'000'000'000'000'000'000, int128{time.ps()} * uhz);
  }
}

TEST(ClockDomainDeathTest, NoFrequencyAndNoRoom) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ClockDomain(Frequency::from_uhz(0)), testing::ExitedWithCode(3), "frequency above zero");
  const ClockDomain slow(Frequency::mhz(1));
  EXPECT_EXIT(static_cast<void>(slow.time_of(Cycles{10'000'000'000'000})), testing::ExitedWithCode(3), "106 days");
  const ClockDomain odd(Frequency::from_uhz(1'000'000'000'003));
  EXPECT_EXIT(static_cast<void>(odd.time_of(Cycles{10'000'000'000'000})), testing::ExitedWithCode(3), "64 bits");
}

TEST(Serializer, OneItemIsRoundedUp) {
  Serializer channel(Rate::gbps(57));
  EXPECT_EQ(channel.duration_of(64), Time::from_ps(8983));  // 512e12 / 57e9 = 8982.46
  const Serializer::Slot slot = channel.occupy(64, Time::from_ns(1));
  EXPECT_EQ(slot.start, Time::from_ns(1));
  EXPECT_EQ(slot.end, Time::from_ps(9983));
  EXPECT_EQ(channel.free_at(), slot.end);
}

TEST(Serializer, BusyRunHasExactlyTheRate) {
  for (const std::uint64_t bits_per_s :
       {std::uint64_t{57'000'000'000}, std::uint64_t{25'781'250'000}, std::uint64_t{400'000'000'000},
        std::uint64_t{1'000'000'007}, std::uint64_t{99'999'999'999'977}}) {
    const std::uint64_t seed = testing::UnitTest::GetInstance()->random_seed() + bits_per_s;
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Serializer channel(Rate::from_bits_per_s(bits_per_s));
    int128 bits = 0;
    for (int i = 0; i < 1'000'000; ++i) {
      const std::uint64_t bytes = random.below(4200);
      // Handed over early, or exactly when the channel is free: both are back to back.
      const Time not_before = random.below(2) == 0 ? channel.free_at() : Time::zero();
      const Time before = channel.free_at();
      const Serializer::Slot slot = channel.occupy(bytes, not_before);
      bits += int128{bytes} * 8;
      ASSERT_EQ(slot.start, before);
      const int128 exact_end = (bits * 1'000'000'000'000 + bits_per_s - 1) / bits_per_s;
      ASSERT_EQ(int128{slot.end.ps()}, exact_end) << "item " << i;
    }
  }
}

TEST(Serializer, IdleChannelStartsAfresh) {
  Serializer channel(Rate::from_bits_per_s(3'000'000'000'000));  // a byte takes 2.67 ps
  EXPECT_EQ(channel.occupy(1, Time::zero()).end, Time::from_ps(3));
  EXPECT_EQ(channel.occupy(1, Time::zero()).end, Time::from_ps(6));   // 5.33
  EXPECT_EQ(channel.occupy(1, Time::zero()).end, Time::from_ps(8));   // 8.00
  EXPECT_EQ(channel.occupy(1, Time::zero()).end, Time::from_ps(11));  // 10.67
  const Serializer::Slot later = channel.occupy(1, Time::from_ps(12));
  EXPECT_EQ(later.start, Time::from_ps(12));
  EXPECT_EQ(later.end, Time::from_ps(15));
}

TEST(Serializer, LargeItems) {
  Serializer channel(Rate::gbps(400));
  const std::uint64_t tebibyte = std::uint64_t{1} << 40U;
  EXPECT_EQ(channel.duration_of(tebibyte), Time::from_ps(21'990'232'555'520));
  EXPECT_EQ(channel.occupy(tebibyte, Time::zero()).end, Time::from_ps(21'990'232'555'520));
  EXPECT_EQ(channel.occupy(0, Time::zero()).end, Time::from_ps(21'990'232'555'520));
}

}  // namespace
}  // namespace rvma
