// Exact decimal text of ratios and rates.
#include "report/number_format.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "base/random.hpp"
#include "base/units.hpp"

namespace rvma {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(NumberFormat, RatiosAreRoundedHalfUp) {
  EXPECT_EQ(ratio_text(1, 3, 3), "0.333");
  EXPECT_EQ(ratio_text(2, 3, 3), "0.667");
  EXPECT_EQ(ratio_text(1, 2, 0), "1");
  EXPECT_EQ(ratio_text(49, 100, 0), "0");
  EXPECT_EQ(ratio_text(5, 1000, 2), "0.01");
  EXPECT_EQ(ratio_text(4999, 1'000'000, 2), "0.00");
  EXPECT_EQ(ratio_text(999'999, 1'000'000, 3), "1.000");
  EXPECT_EQ(ratio_text(7, 7, 1), "1.0");
  EXPECT_EQ(ratio_text(0, 5, 3), "0.000");
  EXPECT_EQ(ratio_text(5, 0, 3), "0");
}

TEST(NumberFormat, LargeRatiosAreExact) {
  EXPECT_EQ(ratio_text(kMax, 1, 9), "18446744073709551615.000000000");
  EXPECT_EQ(ratio_text(kMax, kMax, 9), "1.000000000");
  EXPECT_EQ(ratio_text(kMax - 1, kMax, 9), "1.000000000");
  EXPECT_EQ(ratio_text(1, kMax, 9), "0.000000000");
  // 2^53 + 1 is the first integer that a double cannot hold.
  EXPECT_EQ(ratio_text((1ULL << 53U) + 1, 1, 0), "9007199254740993");
}

TEST(NumberFormat, RatesAreExact) {
  // 50 bytes in 1 ns are 400 Gb/s.
  EXPECT_EQ(gbps_text(50, Time::from_ns(1)), "400.000");
  EXPECT_EQ(gbps_text(4096, Time::from_ps(81'920)), "400.000");
  EXPECT_EQ(gbps_text(1, Time::from_us(1'000'000)), "0.000");
  EXPECT_EQ(gbps_text(125'000, Time::from_us(1'000'000)), "0.001");
  EXPECT_EQ(gbps_text(1ULL << 40U, Time::from_us(1'000'000)), "8796.093");
  EXPECT_EQ(gbps_text(100, Time::zero()), "0");
  EXPECT_EQ(rate_text(3, 1'000'000, Time::from_ns(10)), "300.000") << "packets a ps, in Mpps";
  EXPECT_EQ(rate_text(2, 1, Time::from_ps(3), 1), "0.7");
}

TEST(NumberFormat, PercentHasOneDecimal) {
  EXPECT_EQ(percent_text(973'000), "97.3");
  EXPECT_EQ(percent_text(1'000'000), "100.0");
  EXPECT_EQ(percent_text(0), "0.0");
  EXPECT_EQ(percent_text(449), "0.0");
  EXPECT_EQ(percent_text(500), "0.1");
}

TEST(NumberFormat, AgreesWithDigitByDigitDivision) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::uint64_t denominator = 1 + random.below(1ULL << (1 + random.below(50)));
    const std::uint64_t numerator = random.next() >> random.below(60);
    const auto decimals = static_cast<unsigned>(random.below(7));
    // Long division, one decimal further than asked, then rounded by hand.
    std::string digits = std::to_string(numerator / denominator);
    std::uint64_t rest = numerator % denominator;
    for (unsigned i = 0; i <= decimals; ++i) {
      rest *= 10;
      digits += static_cast<char>('0' + rest / denominator);
      rest %= denominator;
    }
    const bool up = digits.back() >= '5';
    digits.pop_back();
    for (std::size_t i = digits.size(); up; --i) {
      if (i == 0) {
        digits.insert(0, "1");
        break;
      }
      if (++digits[i - 1] <= '9') break;
      digits[i - 1] = '0';
    }
    if (decimals > 0) digits.insert(digits.size() - decimals, ".");
    EXPECT_EQ(ratio_text(numerator, denominator, decimals), digits);
  }
}

}  // namespace
}  // namespace rvma
