#include "driver/pinned_memory.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace rvma {
namespace {

TEST(PinnedMemory, BlocksAreAlignedDistinctAndRecycled) {
  FrameAllocator frames{Bytes::kib(4), 1};
  PinnedMemory pinned{frames};
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const PhysicalAddress word = pinned.allocate(16);
    EXPECT_EQ(word.value() % 16, 0U);
    EXPECT_TRUE(seen.insert(word.value()).second);
  }
  for (const std::uint64_t word : seen) pinned.free(PhysicalAddress{word}, 16);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen.count(pinned.allocate(16).value()), 1U);
}

TEST(PinnedMemory, SizesDoNotOverlap) {
  FrameAllocator frames{Bytes::kib(4), 1};
  PinnedMemory pinned{frames};
  std::map<std::uint64_t, std::uint64_t> blocks;
  for (int round = 0; round < 20; ++round) {
    for (const std::uint64_t bytes : {16ULL, 24ULL, 100ULL, 4096ULL, 5000ULL, 100'000ULL}) {
      blocks[pinned.allocate(bytes).value()] = bytes;
    }
  }
  std::uint64_t end = 0;
  for (const auto& [begin, bytes] : blocks) {
    EXPECT_GE(begin, end);
    end = begin + bytes;
  }
  EXPECT_EQ(blocks.size(), 120U);
  // A block serves any size of its class again.
  const PhysicalAddress block = pinned.allocate(33);
  pinned.free(block, 33);
  EXPECT_EQ(pinned.allocate(64), block);
}

}  // namespace
}  // namespace rvma
