// The cache of queue pair contexts and regions, on a DMA engine that records.
#include "rdma/state_cache.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::cycle;
using test::ns;
using test::run_until;

constexpr std::uint64_t kArea = 0x6000'0000'0000ULL;

/// Reads take a fixed time and carry no bytes: what they bring is known.
class FakeDma : public test::FakeDma {
 public:
  FakeDma(SimContext& context, test::Script& script) : test::FakeDma("dma", context, script), script_(script) {}
  void read(DmaRead read, DmaClient& client, Time at) override {
    ASSERT_EQ(read.from.count(), 1U);
    EXPECT_EQ(read.from.segments[0].bytes, kRdmaEntryBytes);
    EXPECT_EQ(read.into, nullptr);
    numbers.push_back((read.from.segments[0].address.value() - kArea) / kRdmaEntryBytes);
    script_.at(at + read_time, [tag = read.tag, &client] { client.dma_read_done(tag); });
  }
  std::vector<std::uint64_t> numbers;

 private:
  test::Script& script_;
};

RdmaStateConfig test_config(std::uint32_t on_chip, std::uint32_t misses) {
  RdmaStateConfig config(on_chip, "of the test");
  config.misses = misses;
  return config;
}

struct Bench {
  explicit Bench(std::uint32_t on_chip = 2, std::uint32_t misses = 16, bool changes = true)
      : config(test_config(on_chip, misses)), cache(owner, {config, kArea, "cache", changes}) {
    cache.use(dma);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  void create(std::initializer_list<std::uint32_t> numbers) {
    for (const std::uint32_t number : numbers) cache.create(number);
  }
  void fetch(std::uint32_t number) {
    cache.fetch(number, [this, number] { done.emplace_back(number, SimContext::now()); });
  }

  SimContext context{1};
  test::Script script{"script", context};
  FakeDma dma{context, script};
  Component owner{"owner", context, Frequency::mhz(1000)};
  RdmaStateConfig config;
  StateCache cache;
  std::vector<std::pair<std::uint32_t, Time>> done;
};

using Done = std::vector<std::pair<std::uint32_t, Time>>;

TEST(StateCache, HitsWhatIsThere) {
  Bench bench;
  bench.create({1, 2});
  EXPECT_TRUE(bench.cache.find(1));
  EXPECT_TRUE(bench.cache.find(2));
  EXPECT_TRUE(bench.cache.find(1));
  EXPECT_EQ(bench.cache.stats().hits.value(), 3U);
  EXPECT_EQ(bench.cache.stats().misses.value(), 0U);
  EXPECT_EQ(bench.cache.stats().evictions.value(), 0U);
  EXPECT_EQ(bench.cache.stats().resident.value(), 2U);
}

TEST(StateCache, TheLeastRecentlyUsedGoesAndIsWrittenBack) {
  Bench bench;
  bench.create({1, 2});
  bench.cache.find(1);
  bench.cache.create(3);  // 2 goes
  EXPECT_FALSE(bench.cache.find(2));
  EXPECT_TRUE(bench.cache.find(1));
  EXPECT_TRUE(bench.cache.find(3));
  EXPECT_EQ(bench.cache.stats().evictions.value(), 1U);
  EXPECT_EQ(bench.cache.stats().write_backs.value(), 1U);
  EXPECT_EQ(bench.cache.stats().misses.value(), 1U);
  EXPECT_EQ(bench.cache.stats().entries.value(), 3U);
  EXPECT_EQ(bench.cache.stats().resident.value(), 2U);
  ASSERT_EQ(bench.dma.writes.size(), 1U);
  const DmaWrite& write = bench.dma.writes[0].write;
  EXPECT_EQ(write.to.segments.at(0).address, PhysicalAddress{kArea + 2 * kRdmaEntryBytes});
  EXPECT_EQ(write.to.total_bytes(), kRdmaEntryBytes);
}

TEST(StateCache, WhatNeverChangesIsNotWrittenBack) {
  Bench bench(1, 16, false);
  bench.create({1, 2, 3});
  EXPECT_EQ(bench.cache.stats().evictions.value(), 2U);
  EXPECT_EQ(bench.cache.stats().write_backs.value(), 0U);
  EXPECT_TRUE(bench.dma.writes.empty());
}

TEST(StateCache, AFetchTakesTheTimeOfItsRead) {
  Bench bench;
  bench.create({1, 2, 3});
  bench.script.at(cycle(100), [&] {
    ASSERT_FALSE(bench.cache.find(1));
    bench.fetch(1);
  });
  run_until(cycle(600) - Time::from_ps(1));
  EXPECT_TRUE(bench.done.empty());
  EXPECT_FALSE(bench.cache.find(1)) << "not there yet";
  run_until(cycle(600));
  EXPECT_EQ(bench.done, (Done{{1, cycle(600)}}));
  EXPECT_TRUE(bench.cache.find(1));
  EXPECT_EQ(bench.dma.numbers, (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(bench.cache.stats().fetch_ns.value(), ns(500));
  EXPECT_EQ(bench.cache.stats().fetches.value(), 1U);
  EXPECT_EQ(bench.cache.stats().evictions.value(), 2U) << "one by the third entry, one by the fetch";
  EXPECT_EQ(bench.cache.stats().write_backs.value(), 2U);
}

TEST(StateCache, WhoeverNeedsAnEntryUnderWayJoins) {
  Bench bench(1);
  bench.create({1, 2});
  bench.script.at(cycle(0), [&] { bench.fetch(1); });
  bench.script.at(cycle(200), [&] {
    bench.fetch(1);
    bench.fetch(1);
  });
  run_until(cycle(2000));
  EXPECT_EQ(bench.done, (Done{{1, cycle(500)}, {1, cycle(500)}, {1, cycle(500)}}));
  EXPECT_EQ(bench.cache.stats().fetches.value(), 1U);
}

TEST(StateCache, FetchesBeyondTheBoundWaitInOrder) {
  Bench bench(8, 2);
  bench.script.at(cycle(0), [&] {
    for (const std::uint32_t number : {5U, 6U, 7U, 8U, 9U}) bench.fetch(number);
    bench.fetch(9);
  });
  run_until(cycle(499));
  EXPECT_EQ(bench.dma.numbers.size(), 2U);
  run_until(cycle(500));
  EXPECT_EQ(bench.dma.numbers.size(), 4U);
  run_until(cycle(5000));
  EXPECT_EQ(bench.dma.numbers, (std::vector<std::uint64_t>{5, 6, 7, 8, 9}));
  EXPECT_EQ(
      bench.done,
      (Done{{5, cycle(500)}, {6, cycle(500)}, {7, cycle(1000)}, {8, cycle(1000)}, {9, cycle(1500)}, {9, cycle(1500)}}));
  EXPECT_EQ(bench.cache.stats().fetch_ns.value(), ns(2 * 500 + 2 * 1000 + 1500)) << "the wait for a free one counts";
}

TEST(StateCache, AnErasedEntryLeavesItsPlace) {
  Bench bench;
  bench.create({1, 2});
  bench.cache.erase(1);
  bench.cache.create(3);
  EXPECT_TRUE(bench.cache.find(2));
  EXPECT_TRUE(bench.cache.find(3));
  EXPECT_EQ(bench.cache.stats().evictions.value(), 0U);
  EXPECT_EQ(bench.cache.stats().entries.value(), 2U) << "at a time";
}

TEST(StateCache, AnEntryErasedWhileItIsFetchedTakesNoPlace) {
  Bench bench;
  bench.create({1, 2, 3});
  bench.script.at(cycle(0), [&] { bench.fetch(1); });
  bench.script.at(cycle(100), [&] { bench.cache.erase(1); });
  run_until(cycle(500));
  EXPECT_EQ(bench.done.size(), 1U) << "who waits is told all the same";
  EXPECT_FALSE(bench.cache.find(1));
  EXPECT_TRUE(bench.cache.find(2));
  EXPECT_TRUE(bench.cache.find(3));
}

TEST(StateCache, BeforeTheSimulationNothingIsWritten) {
  SimContext context{1};
  Component owner{"owner", context, Frequency::mhz(1000)};
  const RdmaStateConfig config = test_config(1, 1);
  StateCache cache(owner, {config, kArea, "cache", true});
  cache.create(1);
  cache.create(2);
  EXPECT_EQ(cache.stats().evictions.value(), 1U);
  EXPECT_EQ(cache.stats().write_backs.value(), 0U);
}

}  // namespace
}  // namespace rvma
