// Completion queue writer alone, on a DMA engine that records.
#include "rdma/completion_queue_writer.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::cycle;
using test::ns;

constexpr std::int64_t kLatency = 3;
constexpr std::uint64_t kRing = 0x4000;

NicConfig test_config() {
  NicConfig config;
  config.completion.latency = Cycles{kLatency};
  return config;
}

struct Bench {
  Bench() {
    unit.dma.bind(dma);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  static DueCqe entry(std::uint16_t pid, std::uint64_t id, CqeKind kind = CqeKind::received) {
    return {Pid{pid}, {kind, Outcome::ok, 7, id}};
  }
  std::uint64_t place_of(std::size_t i) const { return dma.writes.at(i).write.to.segments.at(0).address.value(); }

  SimContext context{1};
  NicConfig config = test_config();
  test::Script script{"script", context};
  test::FakeDma dma{"dma", context, script};
  CompletionQueueWriter unit{"completions", context, config};
};

TEST(CompletionQueueWriter, WritesSixteenStrictBytesAfterItsLatency) {
  Bench bench;
  bench.unit.set_queue(Pid{0}, PhysicalAddress{kRing}, 16);
  bench.dma.write_time = ns(4);
  bench.unit.push({Pid{0}, {CqeKind::written, Outcome::bounds, 0x1234'5678, 0xabcd'ef01'2345'6789}}, cycle(10));
  ASSERT_EQ(bench.dma.writes.size(), 1U);
  const auto& call = bench.dma.writes[0];
  EXPECT_EQ(call.at, cycle(10 + kLatency)) << "neither a cycle earlier nor later";
  EXPECT_TRUE(call.write.is_word);
  EXPECT_FALSE(call.write.relaxed_ordering) << "behind the payload that it tells of";
  ASSERT_EQ(call.write.to.count(), 1U);
  EXPECT_EQ(call.write.to.segments[0].bytes, 16U);
  // kind, outcome, immediate | id
  EXPECT_EQ(call.write.word[0], 0x1234'5678'0000'0703U);
  EXPECT_EQ(call.write.word[1], 0xabcd'ef01'2345'6789U);
  EXPECT_EQ(bench.unit.stats().write_ns.value(), ns(kLatency + 4)) << "from due to the posted channel";
}

TEST(CompletionQueueWriter, WaitsForTheNextEdge) {
  Bench bench;
  bench.unit.set_queue(Pid{0}, PhysicalAddress{kRing}, 16);
  bench.unit.push(Bench::entry(0, 1), cycle(10) + Time::from_ps(1));
  EXPECT_EQ(bench.dma.writes.at(0).at, cycle(11 + kLatency));
}

TEST(CompletionQueueWriter, FillsTheRingInOrderAndWraps) {
  Bench bench;
  bench.unit.set_queue(Pid{0}, PhysicalAddress{kRing}, 4);
  for (std::uint64_t i = 0; i < 11; ++i) bench.unit.push(Bench::entry(0, i), cycle(100));
  ASSERT_EQ(bench.dma.writes.size(), 11U);
  for (std::size_t i = 0; i < 11; ++i) {
    EXPECT_EQ(bench.place_of(i), kRing + i % 4 * kCqeBytes);
    EXPECT_EQ(bench.dma.writes[i].write.word[1], i);
  }
}

TEST(CompletionQueueWriter, SustainsOneACycle) {
  Bench bench;
  bench.unit.set_queue(Pid{0}, PhysicalAddress{kRing}, 64);
  for (std::uint64_t i = 0; i < 50; ++i) bench.unit.push(Bench::entry(0, i), cycle(5));
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(bench.dma.writes.at(i).at, cycle(5 + kLatency + static_cast<std::int64_t>(i)));
  }
  EXPECT_EQ(bench.unit.stats().write.busy(), ns(50));
  EXPECT_EQ(bench.unit.stats().entries.value(), 50U);
  // Idle time is no debt.
  bench.unit.push(Bench::entry(0, 50), cycle(200));
  EXPECT_EQ(bench.dma.writes.at(50).at, cycle(200 + kLatency));
}

TEST(CompletionQueueWriter, EachProcessHasItsOwnRing) {
  Bench bench;
  bench.unit.set_queue(Pid{2}, PhysicalAddress{0x8000}, 2);
  bench.unit.set_queue(Pid{0}, PhysicalAddress{kRing}, 4);
  for (const std::uint16_t pid :
       {std::uint16_t{0}, std::uint16_t{2}, std::uint16_t{0}, std::uint16_t{2}, std::uint16_t{2}}) {
    bench.unit.push(Bench::entry(pid, 1), cycle(1));
  }
  const std::vector<std::uint64_t> places{kRing, 0x8000, kRing + 16, 0x8010, 0x8000};
  for (std::size_t i = 0; i < places.size(); ++i) EXPECT_EQ(bench.place_of(i), places[i]);
}

}  // namespace
}  // namespace rvma
