// Completion writer alone, on a DMA engine that records.
#include "nic/completion_writer.hpp"

#include <gtest/gtest.h>

#include <systemc>
#include <vector>

#include "host/interfaces.hpp"

namespace rvma {
namespace {

constexpr std::int64_t kLatency = 3;

struct FakeDma : DmaIf {
  struct Write {
    DmaWrite what;
    Time at;
  };
  void write(DmaWrite what, DmaClient& by, Time at) override {
    writes.push_back({what, at});
    client = &by;
    if (answers_at_once) by.dma_written(what.tag, at + Time::from_ns(1), at + Time::from_ns(100));
  }
  Time write_room_at() override { return Time::zero(); }
  void on_write_room(std::function<void()>) override {}
  void read(DmaRead, DmaClient&, Time) override {}
  void answer(std::size_t i) {
    client->dma_written(writes[i].what.tag, writes[i].at + Time::from_ns(1), writes[i].at + Time::from_ns(100));
  }
  std::vector<Write> writes;
  DmaClient* client = nullptr;
  bool answers_at_once = false;
};

struct Written {
  Completion completion;
  Time entered;
  Time visible;
};
struct WordObserver : NicObserver {
  void completion_written(NodeId node, const Completion& completion, Time at, Time visible) override {
    EXPECT_EQ(node, NodeId{6});
    written.push_back({completion, at, visible});
  }
  std::vector<Written> written;
};

NicConfig test_config() {
  NicConfig config;
  config.completion.latency = Cycles{kLatency};
  return config;
}

struct Bench {
  Bench() : unit("writer", context, config, NodeId{6}, observers) {
    unit.dma(dma);
    observers.add(observer);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  static Completion completion(std::uint64_t epoch) {
    Completion made;
    made.epoch = Epoch{epoch};
    made.pid = Pid{2};
    made.head = VirtualAddress{0x1000 + epoch};
    made.length = 77 + epoch;
    made.word = PhysicalAddress{0x40 + 16 * epoch};
    made.left[static_cast<std::size_t>(Stage::count)] = Time::from_ns(10);
    return made;
  }
  SimContext context{1};
  NicConfig config = test_config();
  FakeDma dma;
  ObserverList observers;
  WordObserver observer;
  CompletionWriter unit;
};

TEST(CompletionWriter, WritesOneStrictWordAfterItsLatency) {
  Bench bench;
  bench.unit.complete(Bench::completion(1), Cycles{10});
  ASSERT_EQ(bench.dma.writes.size(), 1U) << "queued at once, behind the payload";
  const DmaWrite& write = bench.dma.writes[0].what;
  EXPECT_EQ(bench.dma.writes[0].at, Time::from_ns(10 + kLatency));
  EXPECT_TRUE(write.is_word);
  EXPECT_FALSE(write.relaxed_ordering);
  ASSERT_EQ(write.to.count(), 1U);
  EXPECT_EQ(write.to.segments[0].address, PhysicalAddress{0x50});
  EXPECT_EQ(write.to.segments[0].bytes, 16U);
  EXPECT_EQ(write.word[0], 0x1001U);
  EXPECT_EQ(write.word[1], 78U);
  EXPECT_TRUE(bench.observer.written.empty());
  bench.dma.answer(0);
  ASSERT_EQ(bench.observer.written.size(), 1U);
  const Written& seen = bench.observer.written[0];
  EXPECT_EQ(seen.entered, Time::from_ns(10 + kLatency + 1));
  EXPECT_EQ(seen.visible, Time::from_ns(10 + kLatency + 100));
  EXPECT_EQ(seen.completion.left[static_cast<std::size_t>(Stage::count)], Time::from_ns(10));
  EXPECT_EQ(seen.completion.left[static_cast<std::size_t>(Stage::completion_write)], seen.entered);
  EXPECT_EQ(seen.completion.left[static_cast<std::size_t>(Stage::visible)], seen.visible);
  EXPECT_EQ(bench.unit.stats().write_ns.max(), Time::from_ns(kLatency + 1));
}

TEST(CompletionWriter, SustainsOneACycle) {
  Bench bench;
  bench.dma.answers_at_once = true;
  for (std::uint64_t i = 0; i < 100; ++i) bench.unit.complete(Bench::completion(i), Cycles{5});
  ASSERT_EQ(bench.dma.writes.size(), 100U);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(bench.dma.writes[i].at, Time::from_ns(5 + kLatency + static_cast<std::int64_t>(i)));
    EXPECT_EQ(bench.observer.written[i].completion.epoch, Epoch{i});
  }
  EXPECT_EQ(bench.unit.stats().write.busy(), Time::from_ns(100));
  EXPECT_EQ(bench.unit.stats().in_flight.value(), 1U);
}

TEST(CompletionWriter, AnswersMayComeLate) {
  Bench bench;
  for (std::uint64_t i = 0; i < 8; ++i) bench.unit.complete(Bench::completion(i), Cycles{5});
  for (std::size_t i = 0; i < 8; ++i) bench.dma.answer(i);
  ASSERT_EQ(bench.observer.written.size(), 8U);
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(bench.observer.written[i].completion.epoch, Epoch{i});
  EXPECT_EQ(bench.unit.stats().in_flight.value(), 8U);
  for (std::uint64_t i = 8; i < 16; ++i) bench.unit.complete(Bench::completion(i), Cycles{50});
  EXPECT_EQ(bench.unit.stats().in_flight.value(), 8U) << "places are used again";
}

TEST(CompletionWriter, InterruptFollowsTheWord) {
  Bench bench;
  Completion completion = Bench::completion(0);
  completion.interrupt = true;
  bench.unit.complete(completion, Cycles{10});
  ASSERT_EQ(bench.dma.writes.size(), 2U);
  EXPECT_EQ(bench.dma.writes[0].what.to.segments[0].address, completion.word);
  EXPECT_EQ(bench.dma.writes[1].what.to.segments[0].address, interrupt_address(Pid{2}));
  EXPECT_FALSE(bench.dma.writes[1].what.relaxed_ordering);
  bench.dma.answer(0);
  bench.dma.answer(1);
  EXPECT_EQ(bench.observer.written.size(), 1U);
  EXPECT_EQ(bench.unit.stats().interrupts.value(), 1U);
  bench.unit.complete(Bench::completion(1), Cycles{20});
  EXPECT_EQ(bench.dma.writes.size(), 3U) << "without the flag, no interrupt";
}

}  // namespace
}  // namespace rvma
