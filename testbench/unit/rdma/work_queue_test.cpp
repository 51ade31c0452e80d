// The software's way to the NIC: never more than it can hold, in order.
#include "rdma/work_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::ns;

constexpr std::uint64_t kConsumed = 0x100;

/// One word of memory, and whoever watches it.
struct FakeMemory : MemoryIf {
  void read(PhysicalAddress address, void* to, std::uint64_t bytes) override {
    EXPECT_EQ(address, PhysicalAddress{kConsumed});
    ASSERT_EQ(bytes, 8U);
    for (unsigned i = 0; i < 8; ++i) static_cast<std::uint8_t*>(to)[i] = static_cast<std::uint8_t>(consumed >> (8 * i));
    ++reads;
  }
  void write(PhysicalAddress, const void*, std::uint64_t) override {}
  void zero(PhysicalAddress, std::uint64_t) override {}
  void post(tlm::tlm_generic_payload&, Time) override {}
  std::uint64_t watch(PhysicalAddress address, std::uint64_t bytes, std::function<void()> changed) override {
    EXPECT_EQ(address, PhysicalAddress{kConsumed});
    EXPECT_EQ(bytes, 8U);
    watchers.push_back(std::move(changed));
    return watchers.size();
  }
  void unwatch(std::uint64_t) override {}
  /// The NIC has taken so many.
  void consume(std::uint64_t count) {
    consumed = count;
    for (const auto& watcher : std::exchange(watchers, {})) watcher();
  }
  std::uint64_t consumed = 0;
  int reads = 0;
  std::vector<std::function<void()>> watchers;
};

struct Bench {
  void post(std::uint64_t length, Time delay = Time::zero()) {
    Descriptor descriptor;
    descriptor.opcode = Opcode::rdma_send;
    descriptor.length = length;
    queue.post(descriptor, delay);
  }
  static CommandConfig config() {
    CommandConfig config;
    config.depth = 4;
    return config;
  }
  FakeMemory memory;
  std::vector<std::pair<std::uint64_t, Time>> written;
  WorkQueue queue{memory, PhysicalAddress{kConsumed}, config(), 4096, [this](const InlineCommand& command, Time delay) {
                    DescriptorBytes bytes;
                    std::copy_n(command.data(), bytes.size(), bytes.begin());
                    written.emplace_back(decode_descriptor(bytes)->length, delay);
                  }};
};

TEST(WorkQueue, WritesAtOnceWhileTheNicHasRoom) {
  Bench bench;
  for (std::uint64_t i = 0; i < 4; ++i) bench.post(i, ns(static_cast<std::int64_t>(10 * i)));
  ASSERT_EQ(bench.written.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(bench.written[i].first, i);
    EXPECT_EQ(bench.written[i].second, ns(static_cast<std::int64_t>(10 * i))) << "leaves when its core is done with it";
  }
  EXPECT_EQ(bench.memory.reads, 0) << "room is known without a look";
  EXPECT_TRUE(bench.memory.watchers.empty());
}

TEST(WorkQueue, TheNicNeverHoldsMoreThanItsDepth) {
  Bench bench;
  for (std::uint64_t i = 0; i < 10; ++i) bench.post(i);
  EXPECT_EQ(bench.written.size(), 4U);
  ASSERT_EQ(bench.memory.watchers.size(), 1U) << "one watcher, however many wait";
  bench.memory.consume(1);
  EXPECT_EQ(bench.written.size(), 5U);
  bench.memory.consume(3);
  EXPECT_EQ(bench.written.size(), 7U);
  bench.post(10);
  EXPECT_EQ(bench.written.size(), 7U) << "a later one does not overtake";
  bench.memory.consume(7);
  bench.memory.consume(11);
  ASSERT_EQ(bench.written.size(), 11U);
  for (std::size_t i = 0; i < 11; ++i) EXPECT_EQ(bench.written[i].first, i);
  EXPECT_TRUE(bench.memory.watchers.empty()) << "nobody waits any more";
}

TEST(WorkQueue, RoomThatAppearsGoesToWhoHasWaitedLongest) {
  Bench bench;
  for (std::uint64_t i = 0; i < 6; ++i) bench.post(i);
  bench.memory.consume(1);
  bench.memory.consumed = 4;  // seen by the next call, before the watcher tells
  bench.post(6);
  ASSERT_EQ(bench.written.size(), 7U);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(bench.written[i].first, i);
}

TEST(WorkQueue, LooksBeforeItWaits) {
  Bench bench;
  for (std::uint64_t i = 0; i < 4; ++i) bench.post(i);
  bench.memory.consumed = 2;
  bench.post(4, ns(9));
  ASSERT_EQ(bench.written.size(), 5U);
  EXPECT_EQ(bench.written[4].second, ns(9));
  EXPECT_TRUE(bench.memory.watchers.empty());
}

}  // namespace
}  // namespace rvma
