// The fast payload formula against the formula itself.
#include "workload/payload_pattern.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.hpp"

namespace rvma {
namespace {

/// As the specification writes it, in arithmetic that does not wrap for the values used here.
std::uint8_t by_definition(std::uint64_t seed, std::uint64_t i) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint8_t>((Wide{seed} * 131 + Wide{i} * 7 + i / 256) % 256);
}

TEST(PayloadPattern, BytesFollowTheFormula) {
  EXPECT_EQ(pattern_byte(0, 0), 0);
  EXPECT_EQ(pattern_byte(1, 0), 131);
  EXPECT_EQ(pattern_byte(0, 1), 7);
  EXPECT_EQ(pattern_byte(0, 256), 1);
  EXPECT_EQ(pattern_byte(3, 1000), (3 * 131 + 1000 * 7 + 3) % 256);
}

TEST(PayloadPattern, FillsAndComparesAnyPiece) {
  for (std::uint64_t round = 1; round <= 2000; ++round) {
    SCOPED_TRACE("seed " + std::to_string(round));
    Random random(round);
    const std::uint64_t seed = random.below(3) == 0 ? random.next() : random.below(1000);
    // Near 0, near 2^32 and beyond, anywhere.
    const std::uint64_t base[] = {0, (1ULL << 32U) - 300, (1ULL << 33U) + 77, random.next() >> 1U};
    const std::uint64_t from = base[random.below(4)] + random.below(600);
    const std::size_t bytes = random.below(3000);
    std::vector<std::uint8_t> data(bytes + 2, 0xee);
    fill_pattern(data.data() + 1, bytes, seed, from);
    EXPECT_EQ(data.front(), 0xee);
    EXPECT_EQ(data.back(), 0xee);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(data[i + 1], by_definition(seed, from + i)) << i;
    EXPECT_EQ(matching_pattern_bytes(data.data() + 1, bytes, seed, from), bytes);
    if (bytes == 0) continue;
    const std::size_t wrong = random.below(bytes);
    data[wrong + 1] ^= static_cast<std::uint8_t>(1 + random.below(255));
    EXPECT_EQ(matching_pattern_bytes(data.data() + 1, bytes, seed, from), wrong);
  }
}

TEST(PayloadPattern, ARunOfAPeriodLiesInOnePlaceWhereverItBegins) {
  for (const std::uint64_t seed : {0ULL, 1ULL, 255ULL, 0xfedc'ba98'7654'3210ULL}) {
    for (const std::uint64_t from : {0ULL, 4096ULL, 65'535ULL, (1ULL << 40U) + 12'345ULL}) {
      const std::uint8_t* run = pattern_run(seed, from, 65'536);
      ASSERT_NE(run, nullptr);
      for (std::uint64_t i = 0; i < 65'536; ++i) ASSERT_EQ(run[i], by_definition(seed, from + i)) << seed << " " << i;
    }
  }
  EXPECT_EQ(pattern_run(1, 0, 65'537), nullptr);
}

}  // namespace
}  // namespace rvma
