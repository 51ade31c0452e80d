#include "nic/spilled_cache.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace rvma {
namespace {

constexpr std::int64_t kReadNs = 100;
constexpr std::uint64_t kBase = 0x1000'0000;
constexpr std::uint64_t kStride = 256;
constexpr std::uint32_t kHead = 64;
using Wait = SpilledCache::Wait;
using Birth = SpilledCache::Birth;

/// Answers each read after a fixed time; keeps what was asked for.
class FakeDma : public Component, public DmaIf {
 public:
  explicit FakeDma(SimContext& context)
      : Component("dma", context, Frequency::mhz(1000)), step_(*this, "step", [this] { answer(); }) {}
  void write(DmaWrite write, DmaClient& /*client*/, Time /*at*/) override { log_segment("w", write.to.segments.at(0)); }
  Time write_room_at() override { return now(); }
  void on_write_room(std::function<void()> /*room*/) override {}
  void read(DmaRead read, DmaClient& client, Time at) override {
    log_segment("r", read.from.segments.at(0));
    waiting_.push_back({at + Time::from_ns(kReadNs), read.tag, &client});
    step_.at(waiting_.front().at);
  }
  std::string take_log() { return std::exchange(log_, {}); }

 private:
  struct Waiting {
    Time at;
    std::uint64_t tag;
    DmaClient* client;
  };
  /// "r3" a read of entry 3's head; "r3+64:32" of 32 bytes behind it.
  void log_segment(const char* what, const Segment& segment) {
    const std::uint64_t offset = segment.address.value() - kBase;
    log_ += what + std::to_string(offset / kStride);
    if (offset % kStride != 0) log_ += "+" + std::to_string(offset % kStride);
    if (segment.bytes != kHead) log_ += ":" + std::to_string(segment.bytes);
    log_ += " ";
  }
  void answer() {
    while (!waiting_.empty() && waiting_.front().at <= now()) {
      const Waiting next = waiting_.front();
      waiting_.pop_front();
      next.client->dma_read_done(next.tag);
    }
    if (!waiting_.empty()) step_.at(waiting_.front().at);
  }
  std::deque<Waiting> waiting_;
  std::string log_;
  Wakeup step_;
};

SpillConfig config_of(std::uint32_t on_chip, std::uint32_t misses, const std::string& policy = "lru") {
  SpillConfig config{1, 1000, {"", "", ""}};
  config.on_chip = on_chip;
  config.misses = misses;
  config.policy = *ValueText<ReplacementName>::parse(policy);
  return config;
}

struct Bench {
  explicit Bench(std::uint32_t on_chip, std::uint32_t misses = 4, const std::string& policy = "lru")
      : cache(context, "cache", config_of(on_chip, misses, policy), kHead) {
    cache.connect(dma);
    cache.set_area({PhysicalAddress{kBase}, kStride});
  }
  void fetch(std::uint32_t entry, Wait wait = Wait::to_decide) {
    cache.fetch(entry, wait, [this, entry] { told += std::to_string(entry) + " "; });
  }
  void run(std::int64_t ns) { sc_core::sc_start(SimContext::to_sc(Time::from_ns(ns))); }

  SimContext context{1};
  FakeDma dma{context};
  SpilledCache cache;
  std::string told;
};

TEST(SpilledCache, CostsNothingUpToItsPlacesAndOneWriteBackBeyond) {
  Bench bench(4);
  for (std::uint32_t i = 0; i < 4; ++i) bench.cache.add(i);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(bench.cache.lookup(i));
  EXPECT_FALSE(bench.cache.has_spilled());
  EXPECT_EQ(bench.dma.take_log(), "");
  bench.cache.add(4);
  EXPECT_TRUE(bench.cache.has_spilled());
  EXPECT_EQ(bench.dma.take_log(), "w0 ") << "the one used longest ago made room";
  EXPECT_FALSE(bench.cache.lookup(0));
  const SpilledCacheStats& stats = bench.cache.stats();
  EXPECT_EQ(stats.hits.value(), 4U);
  EXPECT_EQ(stats.evictions.value(), 1U);
  EXPECT_EQ(stats.write_backs.value(), 1U);
  EXPECT_EQ(stats.written_bytes.value(), kHead);
  EXPECT_EQ(stats.read_bytes.value(), 0U);
  EXPECT_EQ(stats.resident.value(), 4U);
  EXPECT_EQ(stats.spilled.value(), 1U);
}

TEST(SpilledCache, AMissTakesOneReadNotOneNanosecondLess) {
  Bench bench(1);
  bench.cache.add(0);
  bench.cache.add(1);
  bench.dma.take_log();
  ASSERT_FALSE(bench.cache.lookup(0));
  bench.fetch(0);
  bench.run(kReadNs - 1);
  EXPECT_EQ(bench.told, "");
  EXPECT_FALSE(bench.cache.is_on_chip(0));
  bench.run(2);
  EXPECT_EQ(bench.told, "0 ");
  EXPECT_TRUE(bench.cache.is_on_chip(0));
  EXPECT_FALSE(bench.cache.is_on_chip(1));
  EXPECT_EQ(bench.dma.take_log(), "r0 w1 ");
  const SpilledCacheStats& stats = bench.cache.stats();
  EXPECT_EQ(stats.misses.value(), 1U);
  EXPECT_EQ(stats.fetches.value(), 1U);
  EXPECT_EQ(stats.read_bytes.value(), kHead);
  EXPECT_EQ(stats.waited_in_context_ns.value(), Time::from_ns(kReadNs));
  EXPECT_EQ(stats.fetch.busy(), Time::from_ns(kReadNs / 4)) << "one of four reads that may be outstanding";
}

TEST(SpilledCache, WhatHasNotChangedIsNotWrittenBack) {
  Bench bench(1);
  bench.cache.add(0);
  bench.cache.add(1);
  for (int i = 0; i < 3; ++i) {
    bench.fetch(0);
    bench.run(2 * kReadNs);
    bench.fetch(1);
    bench.run(2 * kReadNs);
  }
  EXPECT_EQ(bench.dma.take_log(), "w0 r0 w1 r1 r0 r1 r0 r1 ");
  bench.cache.changed(1);
  bench.fetch(0);
  bench.run(2 * kReadNs);
  EXPECT_EQ(bench.dma.take_log(), "r0 w1 ");
  EXPECT_EQ(bench.cache.stats().evictions.value(), 8U);
  EXPECT_EQ(bench.cache.stats().write_backs.value(), 3U);
}

TEST(SpilledCache, AChangeOfWhatHasLeftMeanwhileIsWrittenThrough) {
  Bench bench(1);
  bench.cache.add(0);
  bench.cache.add(1);
  bench.dma.take_log();
  bench.cache.changed(0);
  EXPECT_EQ(bench.dma.take_log(), "w0 ");
  EXPECT_EQ(bench.cache.stats().evictions.value(), 1U);
}

TEST(SpilledCache, WhatIsNeededLaterTakesAFreePlaceOnly) {
  Bench bench(2);
  bench.cache.add(0);
  bench.cache.add(1, Birth::if_it_fits);
  EXPECT_TRUE(bench.cache.is_on_chip(1));
  bench.cache.add(2, Birth::if_it_fits);
  EXPECT_FALSE(bench.cache.is_on_chip(2));
  EXPECT_EQ(bench.dma.take_log(), "w2 ") << "a posted write of its own, nobody made room";
  EXPECT_EQ(bench.cache.stats().spilled_at_once.value(), 1U);
  bench.cache.remove(0);
  bench.cache.add(3, Birth::if_it_fits);
  EXPECT_TRUE(bench.cache.is_on_chip(3)) << "the place of 0";
}

TEST(SpilledCache, OneReadServesAllInTheOrderInWhichTheyCame) {
  Bench bench(1);
  bench.cache.add(0);
  bench.cache.add(1);
  bench.dma.take_log();
  std::string order;
  for (const char* who : {"a", "b", "c"}) {
    bench.cache.fetch(0, Wait::to_count, [&order, who] { order += who; });
    bench.run(10);
  }
  bench.run(kReadNs);
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(bench.dma.take_log(), "r0 w1 ");
  EXPECT_EQ(bench.cache.stats().misses.value(), 3U);
  EXPECT_EQ(bench.cache.stats().fetches.value(), 1U);
  EXPECT_EQ(bench.cache.stats().waited_in_count_ns.value(), Time::from_ns(kReadNs + kReadNs - 10 + kReadNs - 20));
}

TEST(SpilledCache, ReadsBeyondTheMissesWaitForTheirTurn) {
  Bench bench(1, 2);
  for (std::uint32_t i = 0; i < 5; ++i) bench.cache.add(i);
  bench.dma.take_log();
  bench.fetch(0);
  EXPECT_TRUE(bench.cache.may_fetch(1));
  bench.fetch(1);
  EXPECT_FALSE(bench.cache.may_fetch(2)) << "two are outstanding";
  EXPECT_TRUE(bench.cache.may_fetch(0)) << "one under way is joined";
  bench.fetch(2);
  bench.run(kReadNs + 1);
  EXPECT_EQ(bench.told, "0 1 ");
  bench.run(kReadNs - 2);
  EXPECT_EQ(bench.told, "0 1 ") << "the third read started when the first had ended";
  bench.run(2);
  EXPECT_EQ(bench.told, "0 1 2 ");
  EXPECT_EQ(bench.cache.stats().outstanding.value(), 2U);
}

TEST(SpilledCache, WhatIsReadAheadIsAHitLater) {
  Bench bench(1);
  bench.cache.add(0);
  bench.cache.add(1);
  bench.cache.prefetch(0);
  bench.cache.prefetch(0);
  bench.cache.prefetch(1);
  bench.run(2 * kReadNs);
  EXPECT_TRUE(bench.cache.lookup(0));
  EXPECT_EQ(bench.cache.stats().ahead.value(), 1U);
  EXPECT_EQ(bench.cache.stats().fetches.value(), 1U);
  EXPECT_EQ(bench.cache.stats().misses.value(), 0U);
}

TEST(SpilledCache, TheHeadTellsWhetherThereIsMore) {
  Bench bench(1);
  std::uint32_t rest = 128;
  bench.cache.set_rest([&rest](SpilledCache::Key /*entry*/) { return rest; });
  bench.cache.add(0);
  bench.cache.add(1);
  EXPECT_EQ(bench.dma.take_log(), "w0:192 ");
  bench.fetch(0);
  bench.run(2 * kReadNs - 1);
  EXPECT_EQ(bench.told, "") << "a second read, behind the first";
  bench.run(2);
  EXPECT_EQ(bench.told, "0 ");
  EXPECT_EQ(bench.dma.take_log(), "r0 r0+64:128 w1:192 ");
  rest = 0;
  bench.fetch(1);
  bench.run(kReadNs + 1);
  EXPECT_EQ(bench.told, "0 1 ");
  EXPECT_EQ(bench.dma.take_log(), "r1 ");
}

TEST(SpilledCache, WhoWaitsForWhatGoesIsTold) {
  Bench bench(1);
  bench.cache.add(0);
  bench.cache.add(1);
  bench.fetch(0);
  bench.cache.remove(0);
  bench.run(2 * kReadNs);
  EXPECT_EQ(bench.told, "0 ");
  EXPECT_TRUE(bench.cache.is_on_chip(1)) << "nothing came that needs its place";
  EXPECT_FALSE(bench.cache.has_spilled());
}

TEST(SpilledCache, WithoutSpillingItIsFull) {
  SimContext context{1};
  SpillConfig config = config_of(2, 1);
  config.spill = false;
  SpilledCache cache(context, "cache", config, kHead);
  cache.add(0);
  EXPECT_FALSE(cache.is_full());
  cache.add(1);
  EXPECT_TRUE(cache.is_full());
  cache.remove(0);
  EXPECT_FALSE(cache.is_full());
}

class EachPolicy : public testing::TestWithParam<std::string> {};

TEST_P(EachPolicy, KeepsBook) {
  constexpr std::uint64_t kSeed = 5;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Bench bench(3, 2, GetParam());
  Random random(kSeed);
  std::vector<bool> exists(12);
  std::uint64_t told = 0;
  std::uint64_t asked = 0;
  for (int step = 0; step < 2000; ++step) {
    const auto entry = static_cast<std::uint32_t>(random.below(exists.size()));
    if (!exists[entry]) {
      bench.cache.add(entry, random.below(2) == 0 ? Birth::on_chip : Birth::if_it_fits);
      exists[entry] = true;
    } else if (random.below(8) == 0) {
      bench.cache.remove(entry);
      exists[entry] = false;
    } else if (!bench.cache.lookup(entry)) {
      ++asked;
      bench.cache.fetch(entry, Wait::other, [&told] { ++told; });
    }
    if (random.below(3) == 0) bench.run(1 + static_cast<std::int64_t>(random.below(150)));
    std::uint32_t here = 0;
    std::uint32_t there = 0;
    for (std::uint32_t i = 0; i < exists.size(); ++i) {
      if (exists[i]) ++(bench.cache.is_on_chip(i) ? here : there);
    }
    ASSERT_LE(here, 3U);
    ASSERT_EQ(there > 0, bench.cache.has_spilled());
  }
  bench.run(20 * kReadNs);
  EXPECT_EQ(told, asked);
  EXPECT_GT(asked, 100U);
}

INSTANTIATE_TEST_SUITE_P(SpilledCache, EachPolicy, testing::ValuesIn(replacement_names()),
                         [](const auto& policy) { return policy.param; });

}  // namespace
}  // namespace rvma
