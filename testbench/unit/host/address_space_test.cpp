#include "host/address_space.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>

#include "base/random.hpp"
#include "host/memory.hpp"
#include "host_fixture.hpp"

namespace rvma {
namespace {

struct AddressSpaceTest : testing::Test {
  SimContext context{1};
  HostConfig config;
  Memory memory{"memory", context, config};
  FrameAllocator frames{config.page.get(), 7};
  AddressSpace space{memory, frames};
};

TEST(FrameAllocatorTest, FramesAreDistinctScatteredAndReusedLastInFirstOut) {
  FrameAllocator frames{Bytes::kib(4), 42};
  std::set<std::uint64_t> seen;
  std::uint64_t before = 0;
  int neighbours = 0;
  PhysicalAddress last;
  for (int i = 0; i < 100'000; ++i) {
    last = frames.allocate();
    EXPECT_EQ(last.value() % 4096, 0U);
    EXPECT_NE(last.value(), 0U);
    EXPECT_LT(last.value(), std::uint64_t{4096} << FrameAllocator::kFrameBits);
    EXPECT_TRUE(seen.insert(last.value()).second) << "frame handed out twice";
    if (last.value() == before + 4096) ++neighbours;
    before = last.value();
  }
  EXPECT_LT(neighbours, 3);
  const PhysicalAddress first{*seen.begin()};
  frames.free(first);
  frames.free(last);
  EXPECT_EQ(frames.allocate(), last);
  EXPECT_EQ(frames.allocate(), first);
}

TEST(FrameAllocatorTest, OrderFollowsTheSeed) {
  FrameAllocator a{Bytes::kib(4), 1};
  FrameAllocator b{Bytes::kib(4), 1};
  FrameAllocator c{Bytes::kib(4), 2};
  int same = 0;
  for (int i = 0; i < 100; ++i) {
    const PhysicalAddress frame = a.allocate();
    EXPECT_EQ(frame, b.allocate());
    if (frame == c.allocate()) ++same;
  }
  EXPECT_LT(same, 3);
}

TEST(FrameAllocatorTest, ContiguousRangesLieApartFromFrames) {
  FrameAllocator frames{Bytes::kib(4), 1};
  const PhysicalAddress ring = frames.allocate_contiguous(10'000);
  const PhysicalAddress next = frames.allocate_contiguous(1);
  EXPECT_EQ(ring.value() % 4096, 0U);
  EXPECT_EQ(next.value(), ring.value() + 3 * 4096);
  EXPECT_GE(ring.value(), std::uint64_t{4096} << FrameAllocator::kFrameBits);
}

TEST_F(AddressSpaceTest, RandomAllocationsKeepTheirBytesAndStartAsZeros) {
  constexpr std::uint64_t kSeed = 20240607;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random{kSeed};
  struct Range {
    std::uint64_t bytes;
    std::vector<std::uint8_t> data;
  };
  std::map<std::uint64_t, Range> live;
  for (int step = 0; step < 20'000; ++step) {
    if (live.size() < 200 && random.below(100) < 60) {
      const std::uint64_t bytes = 1 + random.below(random.below(4) == 0 ? 400'000 : 5'000);
      const std::uint64_t align = std::uint64_t{1} << random.below(random.below(50) == 0 ? 16 : 13);
      const VirtualAddress address = space.allocate(bytes, align);
      ASSERT_EQ(address.value() % align, 0U);
      // No overlap with a live neighbour.
      const auto after = live.lower_bound(address.value());
      if (after != live.end()) {
        ASSERT_LE(address.value() + bytes, after->first);
      }
      if (after != live.begin()) {
        const auto before = std::prev(after);
        ASSERT_LE(before->first + before->second.bytes, address.value());
      }
      std::vector<std::uint8_t> data(bytes, 0xaa);
      space.read(address, data.data(), bytes);
      ASSERT_EQ(data, std::vector<std::uint8_t>(bytes, 0)) << "not zeroed, step " << step;
      data = test::pattern(bytes, random.next());
      space.write(address, data.data(), bytes);
      live[address.value()] = Range{bytes, data};
    } else if (!live.empty()) {
      auto victim = live.begin();
      std::advance(victim, static_cast<long>(random.below(live.size())));
      std::vector<std::uint8_t> data(victim->second.bytes);
      space.read(VirtualAddress{victim->first}, data.data(), data.size());
      ASSERT_EQ(data, victim->second.data) << "step " << step;
      space.free(VirtualAddress{victim->first});
      live.erase(victim);
    }
  }
  for (const auto& [address, range] : live) space.free(VirtualAddress{address});
  // One empty slab of each of the eight sizes 16 B to 2 KiB may keep its page.
  EXPECT_LE(memory.backed_pages(), 8U);
}

TEST_F(AddressSpaceTest, SmallRangesShareAPageAndNeverCrossOne) {
  std::set<std::uint64_t> used;
  for (int i = 0; i < 256; ++i) used.insert(space.translate(space.allocate(16, 16)).value() / 4096);
  EXPECT_EQ(used.size(), 1U);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t address = space.allocate(1000, 8).value();
    EXPECT_EQ(address / 4096, (address + 999) / 4096);
  }
}

TEST_F(AddressSpaceTest, PagesNamesTheFramesInOrder) {
  const VirtualAddress head = space.allocate(5 * 4096, 64);
  std::vector<PhysicalAddress> list{PhysicalAddress{1}};
  const VirtualAddress middle{head.value() + 4000};
  space.pages(middle, 4193, list);  // ends on the second byte of the third page
  ASSERT_EQ(list.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(list[i], space.translate(VirtualAddress{head.value() + i * 4096}));
    EXPECT_EQ(list[i].value() % 4096, 0U);
  }
  space.pages(middle, 96, list);
  EXPECT_EQ(list.size(), 1U);
}

TEST_F(AddressSpaceTest, TenMillionPairsAreCheapAndTouchNoMoreMemory) {
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t word = 1;
  for (int i = 0; i < 10'000'000; ++i) {
    const VirtualAddress address = space.allocate(4096, 64);
    if (i % 1000 == 0) space.write(address, &word, sizeof word);
    space.free(address);
  }
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  RecordProperty("ns_per_pair", static_cast<int>(seconds * 100));
  EXPECT_EQ(memory.backed_pages(), 0U);
  EXPECT_LE(memory.made_pages(), 64U);
  EXPECT_LT(seconds, 20.0);  // ten times what it takes on a slow machine; sanitizers included
}

TEST_F(AddressSpaceTest, ASmallRangeThatComesAndGoesKeepsItsPage) {
  const VirtualAddress first = space.allocate(64, 64);
  const PhysicalAddress frame = space.translate(first);
  space.free(first);
  for (int i = 0; i < 10; ++i) {
    const VirtualAddress again = space.allocate(64, 64);
    EXPECT_EQ(space.translate(again), frame);
    space.free(again);
  }
}

}  // namespace
}  // namespace rvma
