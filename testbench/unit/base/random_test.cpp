#include "base/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace rvma {
namespace {

/// The reference algorithm, written out from its description: state from four steps of SplitMix64.
std::uint64_t reference_first(std::uint64_t seed) {
  const std::uint64_t s1 = mix64(seed + 0x9e3779b97f4a7c15ULL);
  const std::uint64_t x = s1 * 5;
  return ((x << 7U) | (x >> 57U)) * 9;
}

TEST(Random, KnownValues) {
  // SplitMix64's published first outputs for seed 0.
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(mix64(0x9e3779b97f4a7c15ULL), 0x6e789e6aa1b965f4ULL);
  for (const std::uint64_t seed : {0ULL, 1ULL, 0xffffffffffffffffULL}) {
    EXPECT_EQ(Random(seed).next(), reference_first(seed));
  }
  // xoshiro256** seeded so with 0.
  Random random(0);
  EXPECT_EQ(random.next(), 0x99ec5f36cb75f2b4ULL);
  EXPECT_EQ(random.next(), 0xbf6e1f784956452aULL);
  EXPECT_EQ(random.next(), 0x1a5f849d4933e6e0ULL);
}

TEST(Random, StreamsAreTheirOwn) {
  std::set<std::uint64_t> firsts;
  for (const char* name : {"", "a", "b", "ab", "node0.jitter", "node1.jitter"}) {
    for (const std::uint64_t seed : {1ULL, 2ULL}) {
      firsts.insert(Random(seed, name).next());
      EXPECT_EQ(Random(seed, name).next(), Random(seed, name).next());
    }
  }
  EXPECT_EQ(firsts.size(), 12U);
}

TEST(Random, BelowIsInRangeAndEven) {
  const std::uint64_t seed = testing::UnitTest::GetInstance()->random_seed() + 1;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  EXPECT_EQ(random.below(1), 0U);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts.at(random.below(6));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 600);  // over six standard deviations
  // A bound just above 2^63 refuses nearly every second draw.
  for (int i = 0; i < 1'000; ++i) ASSERT_LE(random.below((1ULL << 63U) + 1), 1ULL << 63U);
}

TEST(Random, Chance) {
  Random random(5);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_FALSE(random.chance(0));
    ASSERT_TRUE(random.chance(1'000'000'000));
    hits += random.chance(50'000'000) ? 1 : 0;
  }
  EXPECT_NEAR(hits, 5'000, 450);
}

TEST(RandomDeathTest, NothingBelowZero) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(Random(1).below(0), testing::ExitedWithCode(3), "below zero");
}

}  // namespace
}  // namespace rvma
