#include "base/units.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace rvma {
namespace {

TEST(Units, TimeText) {
  EXPECT_EQ(to_string(Time::zero()), "0ns");
  EXPECT_EQ(to_string(Time::from_ps(1)), "1ps");
  EXPECT_EQ(to_string(Time::from_ps(999)), "999ps");
  EXPECT_EQ(to_string(Time::from_ps(1'000)), "1ns");
  EXPECT_EQ(to_string(Time::from_ns(1'500)), "1.5us");
  EXPECT_EQ(to_string(Time::from_ps(1'234'567)), "1.234567us");
  EXPECT_EQ(to_string(Time::from_us(10'000)), "10ms");
  EXPECT_EQ(to_string(Time::from_us(1'000'000)), "1s");
  EXPECT_EQ(to_string(Time::from_ps(-1'001)), "-1.001ns");
  EXPECT_EQ(to_string(Time::max()), "never");
  EXPECT_EQ(to_string(Time::max() - Time::from_ps(1)), "9223372.036854775806s");
  EXPECT_EQ(to_string(Time::from_ps(std::numeric_limits<std::int64_t>::min())), "-9223372.036854775808s");
}

TEST(Units, NanosecondText) {
  EXPECT_EQ(to_ns_string(Time::zero()), "0");
  EXPECT_EQ(to_ns_string(Time::from_ps(1'234'567)), "1234.567");
  EXPECT_EQ(to_ns_string(Time::from_ps(1'200)), "1.2");
  EXPECT_EQ(to_ns_string(Time::from_ps(1'001)), "1.001");
  EXPECT_EQ(to_ns_string(Time::from_ps(7)), "0.007");
  EXPECT_EQ(to_ns_string(Time::from_ns(3'000)), "3000");
  EXPECT_EQ(to_ns_string(Time::from_ps(-7)), "-0.007");
  // Beyond 2^53 ps, where a double would round.
  EXPECT_EQ(to_ns_string(Time::from_ps(9'007'199'254'740'993)), "9007199254740.993");
}

TEST(Units, OtherTexts) {
  EXPECT_EQ(to_string(Bytes{0}), "0B");
  EXPECT_EQ(to_string(Bytes{1500}), "1500B");
  EXPECT_EQ(to_string(Bytes::kib(4)), "4KiB");
  EXPECT_EQ(to_string(Bytes{4097}), "4097B");
  EXPECT_EQ(to_string(Bytes{64'000}), "64kB");
  EXPECT_EQ(to_string(Bytes::kib(500)), "500KiB");
  EXPECT_EQ(to_string(Bytes::mib(3)), "3MiB");
  EXPECT_EQ(to_string(Bytes{std::uint64_t{1} << 63U}), "8EiB");
  EXPECT_EQ(to_string(Rate::gbps(400)), "400Gbps");
  EXPECT_EQ(to_string(Rate::from_bits_per_s(25'781'250'000)), "25.78125Gbps");
  EXPECT_EQ(to_string(Rate::from_bits_per_s(0)), "0bps");
  EXPECT_EQ(to_string(Rate::gbps(1'600)), "1.6Tbps");
  EXPECT_EQ(to_string(Frequency::mhz(1'000)), "1GHz");
  EXPECT_EQ(to_string(Frequency::from_uhz(322'265'625'000'000)), "322.265625MHz");
  EXPECT_EQ(to_string(Frequency::from_uhz(1)), "0.000001Hz");
  EXPECT_EQ(to_string(Delay{Cycles{12}}), "12cyc");
  EXPECT_EQ(to_string(Delay{Time::from_ns(250)}), "250ns");
}

TEST(UnitsDeathTest, OverflowIsAnAssertion) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Time late = Time::max();
  EXPECT_EXIT(static_cast<void>(late + Time::from_ps(1)), testing::ExitedWithCode(3), "106 days");
  EXPECT_EXIT(static_cast<void>(Time::from_ps(-2) - late), testing::ExitedWithCode(3), "106 days");
  EXPECT_EXIT(static_cast<void>(late * 2), testing::ExitedWithCode(3), "106 days");
  EXPECT_EXIT(static_cast<void>(Time::from_us(std::numeric_limits<std::int64_t>::max() / 1000)),
              testing::ExitedWithCode(3), "106 days");
}

TEST(Units, NoOverflowAtTheEdge) {
  EXPECT_EQ(Time::from_ps(std::numeric_limits<std::int64_t>::max() - 1) + Time::from_ps(1), Time::max());
  EXPECT_TRUE(Time::max().is_never());
  EXPECT_FALSE((Time::max() - Time::from_ps(1)).is_never());
}

}  // namespace
}  // namespace rvma
