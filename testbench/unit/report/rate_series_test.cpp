// Work over time in a fixed number of bins.
#include "report/rate_series.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"

namespace rvma {
namespace {

TEST(RateSeries, BinsWidenAndLoseNothing) {
  RateSeries series;
  for (std::int64_t ns = 0; ns < 256; ++ns) series.add(Time::from_ns(ns), 1);
  EXPECT_EQ(series.bin_width(), Time::from_ns(1));
  EXPECT_EQ(series.bin(255), 1U);
  series.add(Time::from_ns(256), 5);
  EXPECT_EQ(series.bin_width(), Time::from_ns(2));
  EXPECT_EQ(series.bin(0), 2U);
  EXPECT_EQ(series.bin(127), 2U);
  EXPECT_EQ(series.bin(128), 5U);
  EXPECT_EQ(series.bin(129), 0U);
  EXPECT_EQ(series.total(), 261U);
}

TEST(RateSeries, RandomAmountsAddUpInTheirBins) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    RateSeries series;
    std::vector<std::pair<Time, std::uint64_t>> added;
    std::uint64_t total = 0;
    for (int i = 0; i < 500; ++i) {
      const Time when = Time::from_ps(static_cast<std::int64_t>(random.below(1ULL << (10 + random.below(40)))));
      const std::uint64_t amount = random.below(5000);
      series.add(when, amount);
      added.emplace_back(when, amount);
      total += amount;
    }
    EXPECT_EQ(series.total(), total);
    std::vector<std::uint64_t> bins(RateSeries::kBins);
    for (const auto& [when, amount] : added) {
      bins.at(static_cast<std::size_t>(when.ps() / series.bin_width().ps())) += amount;
    }
    for (std::size_t i = 0; i < RateSeries::kBins; ++i) EXPECT_EQ(series.bin(i), bins[i]) << "bin " << i;
  }
}

TEST(RateSeries, SteadyLeavesOutTheFirstAndTheLastTenth) {
  RateSeries series;
  std::uint64_t amount = 0;
  Time duration;
  EXPECT_FALSE(series.steady(amount, duration));
  for (std::int64_t ns = 100; ns < 109; ++ns) series.add(Time::from_ns(ns), 10);
  EXPECT_FALSE(series.steady(amount, duration)) << "nine bins are too few";
  series.add(Time::from_ns(109), 3);
  ASSERT_TRUE(series.steady(amount, duration));
  EXPECT_EQ(amount, 80U) << "all but the first and the last of ten bins";
  EXPECT_EQ(duration, Time::from_ns(8));
  // 25 bins: three on each side, idle ones inside count as time.
  series.add(Time::from_ns(124), 7);
  ASSERT_TRUE(series.steady(amount, duration));
  EXPECT_EQ(duration, Time::from_ns(19));
  EXPECT_EQ(amount, 6 * 10U + 3U);
}

}  // namespace
}  // namespace rvma
