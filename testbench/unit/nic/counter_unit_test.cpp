// Counter unit alone: a window store behind it, recording fakes around it.
#include "nic/counter_unit.hpp"

#include <gtest/gtest.h>

#include <string>
#include <systemc>
#include <vector>

namespace rvma {
namespace {

constexpr std::uint64_t kMtu = 64;
constexpr std::int64_t kLatency = 5;

/// Everything that the unit tells, in order, with the time at which it told it.
struct Record {
  std::string what;
  std::int64_t told_ns;
  std::int64_t at_ns;  ///< as stated
  bool operator==(const Record& o) const { return what == o.what && told_ns == o.told_ns && at_ns == o.at_ns; }
};
std::ostream& operator<<(std::ostream& out, const Record& r) {
  return out << r.what << " told " << r.told_ns << " at " << r.at_ns;
}

struct FakeDelivery : DeliveryIf {
  explicit FakeDelivery(std::vector<Record>& into) : log(into) {}
  bool is_first(const Packet&) override { return false; }
  Admission admit(const Packet&) override { return {}; }
  void bind(const MessageRef&, std::uint32_t) override {}
  void refuse(const MessageRef& message, Outcome reason, Time at) override {
    log.push_back({(reason == Outcome::stale ? "stale " : "refuse ") + std::to_string(message.message.value()),
                   SimContext::now().ps() / 1000, at.ps() / 1000});
  }
  void withdraw(NodeId, MessageId, Time) override {}
  void dispose(const MessageRef&, std::uint32_t, Time) override {}
  void end(const MessageRef& message, Time at) override {
    log.push_back({"end " + std::to_string(message.message.value()), SimContext::now().ps() / 1000, at.ps() / 1000});
  }
  std::vector<Record>& log;
};

struct FakeWriter : CompletionWriterIf {
  explicit FakeWriter(std::vector<Record>& into) : log(into) {}
  void complete(const Completion& completion, Cycles at) override {
    log.push_back({"complete " + std::to_string(completion.epoch.value()), SimContext::now().ps() / 1000, at.count()});
    seen.push_back(completion);
  }
  std::vector<Record>& log;
  std::vector<Completion> seen;
};

struct CountObserver : NicObserver {
  void message_counted(NodeId, const MessageRef&, BufferId, Time) override { ++counted; }
  int counted = 0;
};

NicConfig test_config() {
  NicConfig config;  // 1 GHz: a cycle is a nanosecond
  config.mtu = Bytes{kMtu};
  config.counters.latency = Cycles{kLatency};
  return config;
}

struct Bench {
  explicit Bench(std::uint64_t threshold, Placement placement = Placement::steered,
                 const NicConfig& nic = test_config())
      : config(nic),
        store(config),
        delivery(log),
        writer(log),
        unit("counter", context, config, NodeId{0}, store, observers) {
    unit.delivery(delivery);
    unit.completions(writer);
    observers.add(observer);
    Descriptor call;
    call.opcode = Opcode::init_window;
    call.mailbox = Mailbox{1};
    call.threshold = threshold;
    call.placement = placement;
    window = store.allocate_window(call, Pid{0}).window;
    store.open_window(window);
    sc_core::sc_start(SimContext::to_sc(Time::from_ps(1)));
  }
  void post(std::uint64_t size) {
    Descriptor call;
    call.opcode = Opcode::post_buffer;
    call.length = size;
    store.post_buffer(window, call);
  }
  DataHeader header(std::uint32_t id, std::uint64_t length, std::uint32_t index) const {
    DataHeader made;
    made.mailbox = Mailbox{1};
    made.message = MessageId{id};
    made.message_length = length;
    made.packet_index = index;
    made.payload_length = static_cast<std::uint16_t>(std::min(kMtu, length - index * kMtu));
    return made;
  }
  PlacedPacket placed(const DataHeader& cut, const BufferPlace& where) const {
    PlacedPacket packet;
    packet.message.message = cut.message;
    packet.buffer = where.buffer;
    packet.binding = where.binding;
    packet.has_binding = where.has_binding;
    packet.payload_length = cut.payload_length;
    packet.left[static_cast<std::size_t>(Stage::dma_write)] = Time::from_ps(1);
    return packet;
  }
  BindAnswer bind(const DataHeader& cut) { return store.bind(NodeId{1}, cut, WindowLookup{true, window, false}); }
  /// Binds a message of one packet.
  PlacedPacket single(std::uint32_t id, std::uint64_t length) {
    const DataHeader cut = header(id, length, 0);
    return placed(cut, bind(cut).place);
  }
  /// From 1 ps behind one edge to 1 ps behind another: what happens at the last one is seen.
  void run_ns(std::int64_t ns) { sc_core::sc_start(SimContext::to_sc(Time::from_ns(ns))); }

  SimContext context{1};
  NicConfig config;
  WindowStore store;
  ObserverList observers;
  CountObserver observer;
  std::vector<Record> log;
  FakeDelivery delivery;
  FakeWriter writer;
  CounterUnit unit;
  WindowId window;
};

TEST(CounterUnit, TakesEffectAfterItsLatency) {
  Bench bench(8);
  bench.post(8);
  bench.unit.count(bench.single(4, 8), Time::from_ps(9'400));  // taken at the next edge, 10 ns
  bench.run_ns(10 + kLatency - 1);
  EXPECT_TRUE(bench.log.empty());
  EXPECT_EQ(bench.store.completed_epochs(bench.window), 0U);
  bench.run_ns(1);
  EXPECT_EQ(bench.log, (std::vector<Record>{{"end 4", 15, 15}, {"complete 0", 15, 15}}));
  ASSERT_EQ(bench.writer.seen.size(), 1U);
  EXPECT_EQ(bench.writer.seen[0].left[static_cast<std::size_t>(Stage::count)], Time::from_ns(15));
  EXPECT_EQ(bench.writer.seen[0].left[static_cast<std::size_t>(Stage::dma_write)], Time::from_ps(1));
  EXPECT_EQ(bench.observer.counted, 1);
  EXPECT_EQ(bench.unit.stats().updates.value(), 1U);
}

TEST(CounterUnit, SustainsAnUpdateACycle) {
  Bench bench(1'000'000);
  bench.post(1'000'000);
  constexpr std::int64_t kUpdates = 200;
  for (std::int64_t i = 0; i < kUpdates; ++i) {
    bench.unit.count(bench.single(static_cast<std::uint32_t>(i), 8), Time::from_ns(10));
  }
  bench.run_ns(1000);
  ASSERT_EQ(bench.log.size(), static_cast<std::size_t>(kUpdates));
  for (std::int64_t i = 0; i < kUpdates; ++i) {
    EXPECT_EQ(bench.log[static_cast<std::size_t>(i)],
              (Record{"end " + std::to_string(i), 10 + kLatency + i, 10 + kLatency + i}));
  }
  EXPECT_EQ(bench.unit.stats().update.work(), static_cast<std::uint64_t>(kUpdates));
  EXPECT_EQ(bench.unit.stats().update.busy(), Time::from_ns(kUpdates));
  EXPECT_EQ(bench.unit.stats().waited_ns.value(), Time::from_ns(kUpdates * (kUpdates - 1) / 2));
  EXPECT_EQ(bench.unit.stats().queue.value(), static_cast<std::uint64_t>(kUpdates));
}

NicConfig stalling_config() {
  NicConfig config = test_config();
  config.counters.forwarding = false;
  return config;
}

/// Updates that all come at 10 ns, each a message of its own; `counted(ns)` is how many have taken effect by then.
struct Burst {
  Burst(const NicConfig& config, std::int64_t updates, std::int64_t buffers)
      : bench(8ULL * static_cast<std::uint64_t>(updates / buffers), Placement::steered, config) {
    for (std::int64_t i = 0; i < buffers; ++i) bench.post(4096);
    // A buffer is full after updates / buffers messages: update i is of buffer i % buffers.
    std::vector<PlacedPacket> packets;
    for (std::int64_t i = 0; i < updates; ++i) packets.push_back(bench.single(static_cast<std::uint32_t>(i), 8));
    for (std::int64_t i = 0; i < updates; ++i) {
      const std::int64_t of_buffer = i % buffers * (updates / buffers) + i / buffers;
      bench.unit.count(packets[static_cast<std::size_t>(of_buffer)], Time::from_ns(10));
    }
  }
  int counted(std::int64_t ns) {
    bench.run_ns(ns - passed);
    passed = ns;
    return bench.observer.counted;
  }
  Bench bench;
  std::int64_t passed = 0;
};

TEST(CounterUnit, WithForwardingNUpdatesOfOneCounterTakeNAndTheLatency) {
  Burst burst(test_config(), 100, 1);
  const std::int64_t last = 10 + 100 + kLatency - 1;  // the first is taken in the cycle in which it comes
  EXPECT_EQ(burst.counted(10 + kLatency - 1), 0);
  EXPECT_EQ(burst.counted(10 + kLatency), 1);
  EXPECT_EQ(burst.counted(last - 1), 99);
  EXPECT_TRUE(burst.bench.writer.seen.empty());
  EXPECT_EQ(burst.counted(last), 100);
  EXPECT_EQ(burst.bench.writer.seen.size(), 1U);
  EXPECT_EQ(burst.bench.unit.stats().stalls.value(), 0U);
  EXPECT_EQ(burst.bench.unit.stats().update.busy(), Time::from_ns(100));
}

TEST(CounterUnit, WithoutForwardingNUpdatesOfOneCounterTakeNLatencies) {
  Burst burst(stalling_config(), 100, 1);
  const std::int64_t last = 10 + 100 * kLatency;
  EXPECT_EQ(burst.counted(10 + kLatency - 1), 0);
  EXPECT_EQ(burst.counted(10 + kLatency), 1);
  EXPECT_EQ(burst.counted(10 + 2 * kLatency - 1), 1);
  EXPECT_EQ(burst.counted(10 + 2 * kLatency), 2);
  EXPECT_EQ(burst.counted(last - 1), 99);
  EXPECT_TRUE(burst.bench.writer.seen.empty());
  EXPECT_EQ(burst.counted(last), 100);
  EXPECT_EQ(burst.bench.writer.seen.size(), 1U);
  const CounterUnitStats& stats = burst.bench.unit.stats();
  EXPECT_EQ(stats.stalls.value(), 99U);
  EXPECT_EQ(stats.stall_ns.value(), Time::from_ns(99 * (kLatency - 1)));
  EXPECT_EQ(stats.update.busy(), Time::from_ns(100 + 99 * (kLatency - 1))) << "standing still is being busy";
}

TEST(CounterUnit, DifferentCountersAreNeverStalled) {
  // As many counters in turn as an update has cycles: each is written back when its next update comes.
  Burst enough(stalling_config(), 20 * kLatency, kLatency);
  EXPECT_EQ(enough.counted(10 + 20 * kLatency + kLatency - 2), 20 * kLatency - 1);
  EXPECT_EQ(enough.counted(10 + 20 * kLatency + kLatency - 1), 20 * kLatency);
  EXPECT_EQ(enough.bench.unit.stats().stalls.value(), 0U);
}

TEST(CounterUnit, OneCounterTooFewInTurnStallsForOneCycle) {
  Burst burst(stalling_config(), 20 * (kLatency - 1), kLatency - 1);
  // 20 turns, each as long as the latency; the last one is as long as it has counters.
  const std::int64_t last = 10 + 19 * kLatency + (kLatency - 1) + kLatency - 1;
  EXPECT_EQ(burst.counted(last - 1), 20 * (kLatency - 1) - 1);
  EXPECT_EQ(burst.counted(last), 20 * (kLatency - 1));
  EXPECT_EQ(burst.bench.unit.stats().stalls.value(), 19U);
  EXPECT_EQ(burst.bench.unit.stats().stall_ns.value(), Time::from_ns(19));
}

/// Two updates of one counter, the second `gap` cycles behind the first; returns how many stalled.
std::uint64_t stalls_at(std::int64_t gap) {
  Bench bench(1000, Placement::steered, stalling_config());
  bench.post(4096);
  const PlacedPacket first = bench.single(0, 8);
  const PlacedPacket second = bench.single(1, 8);
  bench.unit.count(first, Time::from_ns(10));
  bench.unit.count(second, Time::from_ns(10 + gap));
  bench.run_ns(10 + gap + kLatency + 1);
  EXPECT_EQ(bench.observer.counted, 2);
  return bench.unit.stats().stalls.value();
}

TEST(CounterUnit, AnUpdateBeforeTheWriteBackStalls) { EXPECT_EQ(stalls_at(kLatency - 1), 1U); }

TEST(CounterUnit, AnUpdateAtTheWriteBackDoesNot) { EXPECT_EQ(stalls_at(kLatency), 0U); }

TEST(CounterUnit, RoomComesWithTheUpdateThatLeavesTheQueue) {
  NicConfig config = stalling_config();
  config.counters.queue = 3;
  Bench bench(1000, Placement::steered, config);
  bench.post(4096);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bench.unit.room_at(), Time::zero()) << i;
    bench.unit.count(bench.single(i, 8), Time::from_ns(10));
  }
  EXPECT_EQ(bench.unit.room_at(), Time::from_ns(10));
  bench.unit.count(bench.single(3, 8), Time::from_ns(10));
  EXPECT_EQ(bench.unit.room_at(), Time::from_ns(10 + kLatency)) << "the second is taken then";
}

TEST(CounterUnit, OneActivationAMessageAtMost) {
  Bench bench(1'000'000);
  bench.post(1'000'000);
  constexpr std::uint32_t kPackets = 100;
  const std::uint64_t length = kPackets * kMtu;
  const DataHeader first = bench.header(0, length, kPackets - 1);
  const BindAnswer bound = bench.bind(first);
  bench.unit.count(bench.placed(first, bound.place), Time::from_ns(10));
  for (std::uint32_t k = kPackets - 1; k-- > 0;) {
    const DataHeader cut = bench.header(0, length, k);
    BufferPlace where;
    ASSERT_TRUE(bench.store.place(bound.place.binding, NodeId{1}, cut, where));
    bench.unit.count(bench.placed(cut, where), Time::from_ns(10 + 2 * (kPackets - 1 - k)));
  }
  bench.run_ns(1);
  const std::uint64_t before = bench.context.activations();
  bench.run_ns(10 + 2 * (kPackets - 1) + kLatency - 2);
  EXPECT_TRUE(bench.log.empty());
  bench.run_ns(1);
  EXPECT_EQ(bench.log,
            (std::vector<Record>{{"end 0", 10 + 2 * (kPackets - 1) + kLatency, 10 + 2 * (kPackets - 1) + kLatency}}));
  EXPECT_EQ(bench.context.activations() - before, 1U);
  EXPECT_EQ(bench.unit.stats().updates.value(), kPackets);
}

TEST(CounterUnit, CompletesEpochsInOrder) {
  Bench bench(8);
  bench.post(8);
  bench.post(8);
  const PlacedPacket first = bench.single(0, 8);
  const PlacedPacket second = bench.single(1, 8);
  bench.unit.count(second, Time::from_ns(10));
  bench.unit.count(first, Time::from_ns(20));
  bench.run_ns(24);
  EXPECT_EQ(bench.log, (std::vector<Record>{{"end 1", 15, 15}}));
  bench.run_ns(10);
  EXPECT_EQ(bench.log, (std::vector<Record>{
                           {"end 1", 15, 15}, {"end 0", 25, 25}, {"complete 0", 25, 25}, {"complete 1", 25, 25}}));
}

TEST(CounterUnit, MisfitCompletesByItself) {
  Bench bench(1000, Placement::managed);
  bench.post(64);
  bench.unit.count(bench.single(0, 40), Time::zero());
  bench.run_ns(30);
  ASSERT_EQ(bench.log.size(), 1U);
  EXPECT_EQ(bench.bind(bench.header(1, 40, 0)).outcome, Outcome::no_buffer);
  bench.run_ns(kLatency);  // taken at the next edge, 31 ns
  EXPECT_EQ(bench.log.size(), 1U);
  bench.run_ns(1);
  ASSERT_EQ(bench.log.size(), 2U);
  EXPECT_EQ(bench.log[1], (Record{"complete 0", 31 + kLatency, 31 + kLatency}));
  EXPECT_EQ(bench.writer.seen[0].length, 40U);
  EXPECT_EQ(bench.writer.seen[0].left[static_cast<std::size_t>(Stage::count)], Time::zero()) << "no packet did it";
}

TEST(CounterUnit, FlushHandsOverBeforeItReturns) {
  Bench bench(1000);
  bench.post(64);
  bench.run_ns(50);
  BufferId retired;
  Epoch epoch;
  ASSERT_EQ(bench.store.inc_epoch(bench.window, retired, epoch), Status::ok);
  const Time behind = bench.unit.flush_completions(bench.unit.now());
  ASSERT_EQ(bench.log, (std::vector<Record>{{"complete 0", 50, 51 + kLatency}}));
  bench.run_ns(100);
  EXPECT_EQ(bench.log.size(), 1U) << "told once";
  EXPECT_EQ(behind, Time::from_ns(51 + kLatency + 2)) << "the word starts after the completion writer's 2 cycles";
  EXPECT_EQ(bench.unit.flush_completions(bench.unit.now()), bench.unit.now()) << "nothing on its way";
}

}  // namespace
}  // namespace rvma
