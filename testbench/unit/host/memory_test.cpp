#include "host/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/random.hpp"
#include "host_fixture.hpp"

namespace rvma {
namespace {

using test::at;
using test::pattern;

constexpr Time ns(std::int64_t n) { return Time::from_ns(n); }

struct MemoryTest : testing::Test {
  SimContext context{1};
  HostConfig config;
  test::TransactionPool pool;
  Memory memory{"memory", context, config};

  std::vector<std::uint8_t> read(std::uint64_t address, std::size_t bytes) {
    std::vector<std::uint8_t> data(bytes, 0xee);
    memory.read(PhysicalAddress{address}, data.data(), bytes);
    return data;
  }
  void post(std::uint64_t address, const std::vector<std::uint8_t>& data, Time visible) {
    auto& item = pool.make(tlm::TLM_WRITE_COMMAND, address, data);
    memory.post(item.payload, visible);
    item.payload.release();
  }
};

TEST_F(MemoryTest, UnwrittenBytesAreZeroAndTakeNoBacking) {
  EXPECT_EQ(read(123'456'789'000, 10'000), std::vector<std::uint8_t>(10'000, 0));
  EXPECT_EQ(memory.backed_pages(), 0U);
}

TEST_F(MemoryTest, WritesCrossPagesAndZeroTheRestOfANewPage) {
  const auto data = pattern(9'000, 3);
  // Warm backing with other bytes, so that forgotten zeroing shows.
  for (std::uint64_t page = 0; page < 8; ++page) {
    const std::vector<std::uint8_t> junk(4096, 0xff);
    memory.write(PhysicalAddress{page << 20}, junk.data(), junk.size());
    memory.release_frame(PhysicalAddress{page << 20});
  }
  EXPECT_EQ(memory.backed_pages(), 0U);
  memory.write(PhysicalAddress{4096 * 10 + 100}, data.data(), data.size());
  EXPECT_EQ(read(4096 * 10 + 100, data.size()), data);
  EXPECT_EQ(read(4096 * 10, 100), std::vector<std::uint8_t>(100, 0));
  EXPECT_EQ(read(4096 * 10 + 9'100, 3'188), std::vector<std::uint8_t>(3'188, 0));
  EXPECT_EQ(memory.backed_pages(), 3U);
}

TEST_F(MemoryTest, AConstantPageIsShownWithoutBackingAndNeverWritten) {
  auto constant = pattern(4096, 5);
  const auto original = constant;
  memory.map_constant(PhysicalAddress{8192}, constant.data());
  EXPECT_EQ(read(8192, 4096), original);
  EXPECT_EQ(read(8192 + 4090, 10),
            (std::vector<std::uint8_t>{original[4090], original[4091], original[4092], original[4093], original[4094],
                                       original[4095], 0, 0, 0, 0}));
  EXPECT_EQ(memory.backed_pages(), 0U);
  // A write to part of it gives it backing, with the constant bytes around.
  const std::vector<std::uint8_t> written(100, 0x5a);
  memory.write(PhysicalAddress{8192 + 50}, written.data(), written.size());
  auto expected = original;
  std::copy(written.begin(), written.end(), expected.begin() + 50);
  EXPECT_EQ(read(8192, 4096), expected);
  EXPECT_EQ(constant, original);
  EXPECT_EQ(memory.backed_pages(), 1U);
  // So does zeroing.
  memory.map_constant(PhysicalAddress{4096 * 7}, constant.data());
  memory.zero(PhysicalAddress{4096 * 7 + 10}, 4);
  expected = original;
  std::fill(expected.begin() + 10, expected.begin() + 14, 0);
  EXPECT_EQ(read(4096 * 7, 4096), expected);
  EXPECT_EQ(constant, original);
}

TEST_F(MemoryTest, AConstantPageOverABackedOneShowsAndIsReleased) {
  const auto constant = pattern(4096, 6);
  const std::vector<std::uint8_t> before(4096, 0x77);
  memory.write(PhysicalAddress{4096}, before.data(), before.size());
  memory.map_constant(PhysicalAddress{4096}, constant.data());
  EXPECT_EQ(read(4096, 4096), constant);
  EXPECT_EQ(memory.backed_pages(), 1U);
  memory.release_frame(PhysicalAddress{4096});
  EXPECT_EQ(memory.backed_pages(), 0U);
  EXPECT_EQ(read(4096, 4096), std::vector<std::uint8_t>(4096, 0));
  memory.map_constant(PhysicalAddress{4096}, constant.data());
  memory.release_frame(PhysicalAddress{4096});
  EXPECT_EQ(read(4096, 4096), std::vector<std::uint8_t>(4096, 0));
  EXPECT_EQ(memory.backed_pages(), 0U);
}

TEST_F(MemoryTest, AConstantPageTriggersWatches) {
  const auto constant = pattern(4096, 6);
  int calls = 0;
  memory.watch(PhysicalAddress{4096 + 8}, 8, [&] { ++calls; });
  memory.map_constant(PhysicalAddress{4096}, constant.data());
  sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_NS));
  EXPECT_EQ(calls, 1);
}

TEST_F(MemoryTest, ReleasedBackingIsReusedAndReadsAsZeros) {
  const auto data = pattern(4096, 9);
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const PhysicalAddress page{i * 4096};
    memory.write(page, data.data(), data.size());
    memory.release_frame(page);
    ASSERT_EQ(read(page.value(), 16), std::vector<std::uint8_t>(16, 0));
  }
  EXPECT_LE(memory.made_pages(), 64U);
  EXPECT_EQ(memory.stats().backed_pages.value(), 1U);
}

TEST_F(MemoryTest, APostedWriteIsInvisibleBeforeItsTimeAndCostsNoActivation) {
  const auto data = pattern(64, 1);
  at(ns(10), [&] { post(5000, data, ns(100)); });
  at(ns(99), [&] { EXPECT_EQ(read(5000, 64), std::vector<std::uint8_t>(64, 0)); });
  at(ns(100), [&] { EXPECT_EQ(read(5000, 64), data); });
  sc_core::sc_start();
  EXPECT_EQ(context.activations(), 0U);
  EXPECT_EQ(context.notifications(), 0U);
  EXPECT_EQ(pool.freed(), 1U);
}

TEST_F(MemoryTest, WritesApplyInOrderOfVisibilityThenOfCalls) {
  at(ns(1), [&] {
    post(0, {1, 1, 1, 1}, ns(30));
    post(1, {2, 2}, ns(20));  // earlier: overwritten
    post(2, {3, 3}, ns(30));  // same time, called later: wins
    post(3, {4}, ns(40));
  });
  at(ns(20), [&] { EXPECT_EQ(read(0, 4), (std::vector<std::uint8_t>{0, 2, 2, 0})); });
  at(ns(30), [&] { EXPECT_EQ(read(0, 4), (std::vector<std::uint8_t>{1, 1, 3, 3})); });
  at(ns(40), [&] { EXPECT_EQ(read(0, 4), (std::vector<std::uint8_t>{1, 1, 3, 4})); });
  sc_core::sc_start();
}

TEST_F(MemoryTest, RandomPostsAgreeWithASortedReplay) {
  constexpr std::uint64_t kSeed = 77;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random{kSeed};
  struct Write {
    Time visible;
    std::uint64_t address;
    std::vector<std::uint8_t> data;
  };
  std::vector<Write> writes;
  std::vector<std::uint8_t> reference(20'000, 0);
  const auto replay = [&](Time until) {
    std::vector<Write> due;
    for (const Write& write : writes) {
      if (write.visible <= until) due.push_back(write);
    }
    std::stable_sort(due.begin(), due.end(), [](const Write& a, const Write& b) { return a.visible < b.visible; });
    std::fill(reference.begin(), reference.end(), 0);
    for (const Write& write : due) {
      std::copy(write.data.begin(), write.data.end(), reference.begin() + static_cast<long>(write.address));
    }
  };
  for (int step = 1; step <= 300; ++step) {
    at(ns(step * 10), [&, step] {
      for (std::uint64_t i = random.below(4); i > 0; --i) {
        const std::uint64_t bytes = 1 + random.below(6'000);
        const Write write{ns(step * 10 + static_cast<std::int64_t>(random.below(100))),
                          random.below(reference.size() - bytes), pattern(bytes, random.next())};
        writes.push_back(write);
        post(write.address, write.data, write.visible);
      }
      replay(SimContext::now());
      ASSERT_EQ(read(0, reference.size()), reference) << "step " << step;
    });
  }
  sc_core::sc_start();
  EXPECT_GT(writes.size(), 100U);
}

TEST_F(MemoryTest, ATransactionWithoutManagerIsCopied) {
  at(ns(1), [&] {
    std::vector<std::uint8_t> data{1, 2, 3, 4};
    tlm::tlm_generic_payload payload;
    payload.set_write();
    payload.set_address(100);
    payload.set_data_ptr(data.data());
    payload.set_data_length(4);
    memory.post(payload, ns(50));
  });
  at(ns(50), [&] { EXPECT_EQ(read(100, 4), (std::vector<std::uint8_t>{1, 2, 3, 4})); });
  sc_core::sc_start();
}

TEST_F(MemoryTest, TimingOnlyWritesChangeNothing) {
  const auto data = pattern(4096, 5);
  memory.write(PhysicalAddress{0}, data.data(), data.size());
  at(ns(1), [&] {
    auto& item = pool.make(tlm::TLM_WRITE_COMMAND, 0, pattern(4096, 6));
    item.burst.timing_only = true;
    item.payload.set_data_ptr(nullptr);
    memory.post(item.payload, ns(2));
    item.payload.release();
  });
  at(ns(5), [&] { EXPECT_EQ(read(0, 4096), data); });
  sc_core::sc_start();
  EXPECT_EQ(pool.freed(), 1U);
}

TEST_F(MemoryTest, AWatchIsCalledOnceAtTheExactTime) {
  std::vector<Time> calls;
  at(ns(1), [&] { memory.watch(PhysicalAddress{64}, 8, [&] { calls.push_back(SimContext::now()); }); });
  at(ns(5), [&] {
    post(72, {1}, ns(20));  // beside the range
    post(71, {1}, ns(30));
    post(64, {1}, ns(40));
  });
  sc_core::sc_start();
  EXPECT_EQ(calls, std::vector<Time>{ns(30)});
  EXPECT_EQ(context.activations(), 1U);
}

TEST_F(MemoryTest, AWatchSetAfterThePostIsCalledAsWell) {
  std::vector<Time> calls;
  at(ns(1), [&] {
    post(64, {9}, ns(40));
    post(64, {1}, ns(30));
  });
  at(ns(29), [&] { memory.watch(PhysicalAddress{60}, 8, [&] { calls.push_back(SimContext::now()); }); });
  sc_core::sc_start();
  EXPECT_EQ(calls, std::vector<Time>{ns(30)});
}

TEST_F(MemoryTest, AWatchSeesTheBytesAndMayWatchAgain) {
  std::vector<std::pair<Time, int>> seen;
  std::function<void()> look = [&] {
    seen.emplace_back(SimContext::now(), read(64, 1)[0]);
    memory.watch(PhysicalAddress{64}, 1, look);
  };
  at(ns(1), [&] { memory.watch(PhysicalAddress{64}, 1, look); });
  at(ns(2), [&] {
    post(64, {1}, ns(10));
    post(64, {2}, ns(10));
    post(64, {3}, ns(20));
  });
  at(ns(25), [&] {
    const std::uint8_t value = 4;
    memory.write(PhysicalAddress{64}, &value, 1);
  });
  sc_core::sc_start();
  EXPECT_EQ(seen, (std::vector<std::pair<Time, int>>{{ns(10), 2}, {ns(20), 3}, {ns(25), 4}}));
}

TEST_F(MemoryTest, AnUnwatchedRangeCostsNothing) {
  at(ns(1), [&] {
    const std::uint64_t handle = memory.watch(PhysicalAddress{64}, 8, [] { FAIL() << "cancelled"; });
    post(64, {1}, ns(30));
    memory.unwatch(handle);
  });
  sc_core::sc_start();
  EXPECT_EQ(context.activations(), 0U);
}

TEST_F(MemoryTest, AnAccessAtTheSameTimeDoesNotStealTheCall) {
  int calls = 0;
  at(ns(1), [&] { memory.watch(PhysicalAddress{0}, 8, [&] { ++calls; }); });
  at(ns(2), [&] { post(0, {1}, ns(30)); });
  // Without the deltas of at(): runs in the same delta as the wake-up, before or after it.
  for (int i = 0; i < 2; ++i) {
    sc_core::sc_spawn([&] {
      sc_core::wait(30, sc_core::SC_NS);
      EXPECT_EQ(read(0, 1)[0], 1);
      EXPECT_LE(calls, 1);
    });
  }
  sc_core::sc_start();
  EXPECT_EQ(calls, 1);
}

TEST_F(MemoryTest, AnInterruptArrivesAtItsVisibleTimeBehindEarlierData) {
  std::vector<std::tuple<Time, int, int>> seen;
  memory.on_interrupt([&](Pid pid) { seen.emplace_back(SimContext::now(), pid.value(), read(0, 1)[0]); });
  at(ns(1), [&] {
    post(0, {7}, ns(40));
    post(interrupt_address(Pid{3}).value(), {0, 0, 0, 0}, ns(40));
    post(interrupt_address(Pid{0}).value(), {0, 0, 0, 0}, ns(60));
  });
  sc_core::sc_start();
  EXPECT_EQ(seen, (std::vector<std::tuple<Time, int, int>>{{ns(40), 3, 7}, {ns(60), 0, 7}}));
  EXPECT_EQ(memory.stats().interrupts.value(), 2U);
}

TEST_F(MemoryTest, DrainedAtTellsWhenTheLastWriteIsVisible) {
  at(ns(1), [&] {
    EXPECT_EQ(memory.drained_at(), ns(1));
    post(0, {1}, ns(80));
    post(0, {2}, ns(70));
    EXPECT_EQ(memory.drained_at(), ns(80));
  });
  sc_core::sc_start();
  EXPECT_EQ(SimContext::now(), ns(1)) << "a posted write is no event";
  sc_core::sc_start(SimContext::to_sc(memory.drained_at() - SimContext::now()));
  EXPECT_EQ(read(0, 1)[0], 1);
}

TEST_F(MemoryTest, LargePagesWork) {
  HostConfig large;
  large.page = Bytes::mib(2);
  Memory big{"big", context, large};
  const auto data = pattern(3'000'000, 2);
  big.write(PhysicalAddress{1'000'000}, data.data(), data.size());
  std::vector<std::uint8_t> back(data.size());
  big.read(PhysicalAddress{1'000'000}, back.data(), back.size());
  EXPECT_EQ(back, data);
  EXPECT_EQ(big.backed_pages(), 2U);
}

}  // namespace
}  // namespace rvma
