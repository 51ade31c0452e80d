// Window calls alone: a window store, a table that records its commands and answers late, a DMA engine that records.
#include "nic/window_calls.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <systemc>
#include <vector>

namespace rvma {
namespace {

const Mailbox kMailbox{0xabcULL};
const Pid kPid{1};

struct FakeTable : TableCommandIf {
  void command(const TableCommand& what, Cycles, std::function<void(const TableAnswer&)> done) override {
    waiting.push_back({what, std::move(done)});
  }
  /// Answers the oldest command as a table of `capacity` entries would.
  void answer() {
    auto [what, done] = std::move(waiting.front());
    waiting.pop_front();
    TableAnswer said;
    const auto key = std::make_pair(what.pid.value(), what.mailbox.value());
    if (what.operation == TableOperation::insert) {
      if (entries.size() >= capacity) {
        said.status = TableStatus::full;
      } else if (!entries.emplace(key, what.slot).second) {
        said.status = TableStatus::exists;
      }
    } else if (entries.erase(key) == 0) {
      said.status = TableStatus::not_found;
    }
    done(said);
  }
  struct Waiting {
    TableCommand what;
    std::function<void(const TableAnswer&)> done;
  };
  std::deque<Waiting> waiting;
  std::map<std::pair<std::uint16_t, std::uint64_t>, SlotId> entries;
  std::size_t capacity = 100;
};

struct FakeDma : DmaIf {
  void write(DmaWrite what, DmaClient& client, Time at) override {
    if (what.is_word) client.dma_written(what.tag, at, at + visible_after);
    writes.push_back(std::move(what));
  }
  Time write_room_at() override { return Time::zero(); }
  void on_write_room(std::function<void()>) override {}
  void read(DmaRead, DmaClient&, Time) override {}
  std::vector<DmaWrite> writes;
  Time visible_after;
};

struct FakeCounters : CompletionFlushIf {
  Time flush_completions(Time at) override {
    store->take_completions(completions);
    return at + behind;
  }
  WindowStore* store = nullptr;
  Time behind;
  std::vector<Completion> completions;
};

struct FakeDelivery : DeliveryIf {
  Admission admit(const Packet&) override { return {}; }
  bool is_first(const Packet&) override { return false; }
  void bind(const MessageRef&, std::uint32_t) override {}
  void refuse(const MessageRef&, Outcome, Time) override {}
  void dispose(const MessageRef&, std::uint32_t, Time) override {}
  void end(const MessageRef&, Time) override {}
  void withdraw(NodeId, MessageId message, Time) override { withdrawn.push_back(message); }
  std::vector<MessageId> withdrawn;
};

struct LogObserver : NicObserver {
  void window_opened(NodeId, Pid, WindowId, const Descriptor&, Time) override { log += "opened "; }
  void buffer_posted(NodeId, Pid, WindowId, BufferId, const Descriptor&, Time) override { log += "posted "; }
  void epoch_retired(NodeId, WindowId, BufferId, Epoch, bool by_call, Time) override {
    log += by_call ? "retired-by-call " : "retired ";
  }
  void window_closed(NodeId, WindowId, const std::vector<BufferId>& returned, Time) override {
    log += "closed:" + std::to_string(returned.size()) + " ";
  }
  void window_rewinding(NodeId, WindowId, Time) override { log += "rewinding "; }
  void window_rewound(NodeId, WindowId, Epoch epoch, const std::vector<RewoundBuffer>& buffers, Time) override {
    log += "rewound:" + std::to_string(epoch.value()) + ":" + std::to_string(buffers.size()) + " ";
  }
  std::string log;
};

NicConfig test_config() {
  NicConfig config;
  config.mtu = Bytes{64};
  config.windows.on_chip = 4;
  config.windows.spill = false;
  config.buffers.on_chip = 8;
  config.buffers.spill = false;
  return config;
}

struct Bench {
  Bench()
      : store(config),
        contexts("contexts", context, config, store),
        unit("calls", context, config, NodeId{0}, store, contexts, payloads, observers) {
    counters.store = &store;
    contexts.table(table);
    contexts.dma(dma);
    unit.counters(counters);
    unit.dma(dma);
    unit.delivery(delivery);
    observers.add(observer);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  static Descriptor call(Opcode opcode, Mailbox mailbox = kMailbox) {
    Descriptor made;
    made.opcode = opcode;
    made.mailbox = mailbox;
    made.threshold = opcode == Opcode::init_window || opcode == Opcode::post_one_time_buffer ? 64 : 0;
    made.length = opcode == Opcode::post_buffer || opcode == Opcode::post_one_time_buffer ? 128 : 0;
    return made;
  }
  /// Executes now; the answer if it came at once.
  std::optional<CallAnswer> execute(const Descriptor& what, Pid pid = kPid) {
    answer.reset();
    unit.execute(what, pid, unit.current_cycle(), [this](const CallAnswer& said) { answer = said; });
    return answer;
  }
  Status status(const Descriptor& what) {
    execute(what);
    while (!answer && !table.waiting.empty()) table.answer();
    EXPECT_TRUE(answer);
    return answer ? answer->status : Status::unsupported;
  }
  BindAnswer bind(std::uint64_t length, std::uint32_t index = 0) {
    return store.bind(NodeId{0}, header(length, index), WindowLookup{true, window(), false});
  }
  static DataHeader header(std::uint64_t length, std::uint32_t index) {
    DataHeader made;
    made.destination_pid = kPid;
    made.mailbox = kMailbox;
    made.message_length = length;
    made.packet_index = index;
    made.payload_length = static_cast<std::uint16_t>(std::min<std::uint64_t>(64, length - 64 * index));
    return made;
  }
  WindowId window() { return store.locate(kPid, kMailbox).window; }
  bool count(const BindAnswer& bound, std::uint32_t bytes) {
    PlacedPacket packet;
    packet.buffer = bound.place.buffer;
    packet.has_binding = bound.place.has_binding;
    packet.binding = bound.place.binding;
    packet.payload_length = bytes;
    return store.count(packet);
  }

  SimContext context{1};
  NicConfig config = test_config();
  PayloadPool payloads{64};
  WindowStore store;
  ObserverList observers;
  LogObserver observer;
  FakeTable table;
  FakeCounters counters;
  FakeDma dma;
  FakeDelivery delivery;
  ContextCache contexts;
  WindowCalls unit;
  std::optional<CallAnswer> answer;
};

TEST(WindowCalls, WindowIsOpenOnceTheTableKnowsIt) {
  Bench bench;
  EXPECT_FALSE(bench.execute(Bench::call(Opcode::init_window)));
  EXPECT_EQ(bench.store.find_window(kPid, kMailbox).status, Status::no_window);
  EXPECT_EQ(bench.observer.log, "");
  ASSERT_EQ(bench.table.waiting.size(), 1U);
  EXPECT_EQ(bench.table.waiting[0].what.operation, TableOperation::insert);
  bench.table.answer();
  ASSERT_TRUE(bench.answer);
  EXPECT_EQ(bench.answer->status, Status::ok);
  EXPECT_EQ(bench.observer.log, "opened ");
  EXPECT_EQ(bench.store.find_window(kPid, kMailbox).window, bench.window());
  EXPECT_EQ(bench.status(Bench::call(Opcode::init_window)), Status::exists);
}

TEST(WindowCalls, FullTableLeavesNoWindow) {
  Bench bench;
  bench.table.capacity = 0;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(bench.status(Bench::call(Opcode::init_window)), Status::full);
    EXPECT_EQ(bench.status(Bench::call(Opcode::post_one_time_buffer)), Status::full);
  }
  EXPECT_EQ(bench.unit.stats().table_refusals.value(), 40U);
  bench.table.capacity = 1;
  EXPECT_EQ(bench.status(Bench::call(Opcode::init_window)), Status::ok);
}

TEST(WindowCalls, UnsupportedAndUnknown) {
  Bench bench;
  for (const Opcode opcode : {Opcode::post_buffer, Opcode::inc_epoch, Opcode::get_epoch, Opcode::get_buf_ptrs,
                              Opcode::rewind, Opcode::close_window}) {
    EXPECT_EQ(bench.status(Bench::call(opcode)), Status::no_window);
  }
  EXPECT_EQ(bench.unit.stats().failed.value(), 6U);
  EXPECT_TRUE(bench.table.waiting.empty());
}

TEST(WindowCalls, EpochsAndTheirList) {
  Bench bench;
  ASSERT_EQ(bench.status(Bench::call(Opcode::init_window)), Status::ok);
  EXPECT_EQ(bench.status(Bench::call(Opcode::inc_epoch)), Status::no_buffer);
  for (std::uint64_t i = 0; i < 5; ++i) {
    Descriptor post = Bench::call(Opcode::post_buffer);
    post.local = VirtualAddress{0x1122334455667700ULL + i};
    ASSERT_EQ(bench.status(post), Status::ok);
    const BindAnswer bound = bench.bind(10 + i);
    EXPECT_TRUE(bench.count(bound, static_cast<std::uint32_t>(10 + i)));
    EXPECT_EQ(bench.counters.completions.size(), i);
    ASSERT_EQ(bench.status(Bench::call(Opcode::inc_epoch)), Status::ok);
    EXPECT_EQ(bench.counters.completions.size(), i + 1) << "flushed before the answer";
  }
  EXPECT_EQ(bench.observer.log,
            "opened posted retired-by-call posted retired-by-call posted retired-by-call posted retired-by-call posted "
            "retired-by-call ");
  bench.status(Bench::call(Opcode::get_epoch));
  EXPECT_EQ(bench.answer->value, 5U);

  Descriptor list = Bench::call(Opcode::get_buf_ptrs);
  list.completion = PhysicalAddress{0x9000};
  list.threshold = 6;
  EXPECT_EQ(bench.status(list), Status::history);
  EXPECT_TRUE(bench.dma.writes.empty());
  list.threshold = 0;
  EXPECT_EQ(bench.status(list), Status::ok);
  EXPECT_TRUE(bench.dma.writes.empty());
  list.threshold = 5;
  ASSERT_EQ(bench.status(list), Status::ok);
  EXPECT_EQ(bench.answer->value, 5U);
  std::vector<std::uint8_t> bytes;
  for (const DmaWrite& write : bench.dma.writes) {
    ASSERT_EQ(write.to.count(), 1U);
    EXPECT_EQ(write.to.segments[0].address.value(), 0x9000 + bytes.size());
    EXPECT_FALSE(write.relaxed_ordering);
    EXPECT_FALSE(write.is_word);
    bytes.insert(bytes.end(), write.payload->data(), write.payload->data() + write.to.segments[0].bytes);
  }
  ASSERT_EQ(bytes.size(), 5U * 24);
  for (std::uint64_t i = 0; i < 5; ++i) {
    std::uint64_t words[3];
    std::memcpy(words, bytes.data() + 24 * i, sizeof words);
    EXPECT_EQ(words[0], 0x1122334455667700ULL + 4 - i);
    EXPECT_EQ(words[1], 14 - i);
    EXPECT_EQ(words[2], 4 - i);
  }
}

TEST(WindowCalls, CloseIsAnsweredWhenBoundMessagesHaveEnded) {
  Bench bench;
  bench.status(Bench::call(Opcode::init_window));
  for (int i = 0; i < 3; ++i) bench.status(Bench::call(Opcode::post_buffer));
  const BindAnswer retired = bench.bind(64);
  const BindAnswer active = bench.bind(10);
  EXPECT_FALSE(bench.execute(Bench::call(Opcode::close_window)));
  EXPECT_TRUE(bench.table.waiting.empty());
  EXPECT_EQ(bench.observer.log, "opened posted posted posted closed:2 ");
  EXPECT_EQ(bench.bind(1).outcome, Outcome::closed);
  bench.count(active, 10);
  EXPECT_TRUE(bench.table.waiting.empty());
  bench.count(retired, 64);
  ASSERT_EQ(bench.table.waiting.size(), 1U);
  EXPECT_EQ(bench.table.waiting[0].what.operation, TableOperation::erase);
  EXPECT_FALSE(bench.answer);
  bench.table.answer();
  ASSERT_TRUE(bench.answer);
  EXPECT_EQ(bench.answer->status, Status::ok);
  EXPECT_EQ(bench.counters.completions.size(), 1U) << "in the posted channel before the answer";
  EXPECT_TRUE(bench.table.entries.empty());
  EXPECT_EQ(bench.status(Bench::call(Opcode::get_epoch)), Status::closed);
  EXPECT_EQ(bench.status(Bench::call(Opcode::close_window)), Status::closed);
  EXPECT_EQ(bench.status(Bench::call(Opcode::init_window)), Status::ok);
  bench.status(Bench::call(Opcode::get_epoch));
  EXPECT_EQ(bench.answer->value, 0U);
}

TEST(WindowCalls, AnswersStandBehindCompletionWords) {
  Bench bench;
  bench.counters.behind = Time::from_ns(9);
  bench.status(Bench::call(Opcode::init_window));
  bench.status(Bench::call(Opcode::post_buffer));
  EXPECT_FALSE(bench.execute(Bench::call(Opcode::inc_epoch)));
  EXPECT_EQ(bench.counters.completions.size(), 1U);
  sc_core::sc_start(SimContext::to_sc(Time::from_ps(8'999)));
  EXPECT_FALSE(bench.answer);
  sc_core::sc_start(SimContext::to_sc(Time::from_ps(2)));
  ASSERT_TRUE(bench.answer);
  EXPECT_EQ(bench.answer->status, Status::ok);

  sc_core::sc_start(SimContext::to_sc(Time::from_ps(999)));  // an edge: calls execute at once
  EXPECT_FALSE(bench.execute(Bench::call(Opcode::close_window)));
  ASSERT_EQ(bench.table.waiting.size(), 1U);
  bench.table.answer();
  sc_core::sc_start(SimContext::to_sc(Time::from_ps(8'999)));
  EXPECT_FALSE(bench.answer);
  sc_core::sc_start(SimContext::to_sc(Time::from_ps(2)));
  EXPECT_TRUE(bench.answer);
}

TEST(WindowCalls, RewindIsAnsweredWhenZeroedWordsAreVisibleBehindEverything) {
  Bench bench;
  bench.counters.behind = Time::from_ns(9);
  bench.dma.visible_after = Time::from_ns(40);
  bench.status(Bench::call(Opcode::init_window));
  for (std::uint64_t i = 0; i < 3; ++i) {
    Descriptor post = Bench::call(Opcode::post_buffer);
    post.completion = PhysicalAddress{0x100 * (i + 1)};
    bench.status(post);
  }
  bench.count(bench.bind(64), 64);         // 0 completes
  const BindAnswer cut = bench.bind(128);  // 1 lacks a packet, the other one is on its way
  bench.observer.log.clear();
  Descriptor rewind = Bench::call(Opcode::rewind);
  rewind.threshold = 1;
  EXPECT_FALSE(bench.execute(rewind));
  EXPECT_EQ(bench.delivery.withdrawn.size(), 1U);
  EXPECT_EQ(bench.observer.log, "rewinding ");
  EXPECT_TRUE(bench.dma.writes.empty()) << "not before what is on its way has passed";
  EXPECT_EQ(bench.bind(8).outcome, Outcome::busy);
  bench.count(cut, 64);
  ASSERT_EQ(bench.dma.writes.size(), 1U) << "one completed word";
  EXPECT_TRUE(bench.dma.writes[0].is_word);
  EXPECT_FALSE(bench.dma.writes[0].relaxed_ordering);
  EXPECT_EQ(bench.dma.writes[0].word, (std::array<std::uint64_t, 2>{}));
  EXPECT_EQ(bench.dma.writes[0].to.segments[0].address.value(), 0x100U);
  EXPECT_EQ(bench.counters.completions.size(), 1U) << "the word that it zeroes goes before";
  sc_core::sc_start(SimContext::to_sc(Time::from_ps(48'999)));
  EXPECT_FALSE(bench.answer);
  EXPECT_EQ(bench.bind(8).outcome, Outcome::busy);
  sc_core::sc_start(SimContext::to_sc(Time::from_ps(2)));
  ASSERT_TRUE(bench.answer);
  EXPECT_EQ(bench.answer->status, Status::ok);
  EXPECT_EQ(bench.answer->value, 0U);
  EXPECT_EQ(bench.observer.log, "rewinding rewound:0:3 ");
  EXPECT_EQ(bench.bind(8).outcome, Outcome::pending);
}

TEST(WindowCalls, RewindsOfTwoProcessesEndEachAtItsTime) {
  Bench bench;
  for (const Pid pid : {Pid{1}, Pid{2}}) {
    bench.execute(Bench::call(Opcode::init_window), pid);
    bench.table.answer();
    bench.execute(Bench::call(Opcode::post_buffer), pid);
  }
  int answered = 0;
  const auto count = [&answered](const CallAnswer& said) {
    EXPECT_EQ(said.status, Status::ok);
    ++answered;
  };
  bench.dma.visible_after = Time::from_ns(40);
  bench.unit.execute(Bench::call(Opcode::rewind), Pid{1}, bench.unit.current_cycle(), count);
  bench.dma.visible_after = Time::from_ns(10);
  bench.unit.execute(Bench::call(Opcode::rewind), Pid{2}, bench.unit.current_cycle(), count);
  sc_core::sc_start(SimContext::to_sc(Time::from_ns(39)));
  EXPECT_EQ(answered, 1);
  sc_core::sc_start(SimContext::to_sc(Time::from_ns(2)));
  EXPECT_EQ(answered, 2);
}

TEST(WindowCalls, RewindOfNothingStillWaitsForVisibility) {
  Bench bench;
  bench.dma.visible_after = Time::from_ns(40);
  bench.status(Bench::call(Opcode::init_window));
  EXPECT_FALSE(bench.execute(Bench::call(Opcode::rewind)));
  sc_core::sc_start(SimContext::to_sc(Time::from_ns(1)));
  EXPECT_TRUE(bench.answer) << "no buffer, nothing to wait for";
  bench.status(Bench::call(Opcode::post_buffer));
  bench.count(bench.bind(10), 10);
  EXPECT_FALSE(bench.execute(Bench::call(Opcode::rewind)));
  EXPECT_EQ(bench.dma.writes.size(), 1U);
  sc_core::sc_start(SimContext::to_sc(Time::from_ps(39'999)));
  EXPECT_FALSE(bench.answer);
  sc_core::sc_start(SimContext::to_sc(Time::from_ns(1)));
  EXPECT_TRUE(bench.answer);
  sc_core::sc_start(SimContext::to_sc(Time::from_ps(1)));  // an edge: calls execute at once
  Descriptor too_far = Bench::call(Opcode::rewind);
  too_far.threshold = 1;
  EXPECT_EQ(bench.status(too_far), Status::history);
}

TEST(WindowCalls, OneTimeWindowLeavesTheTableByItself) {
  Bench bench;
  Descriptor one_time = Bench::call(Opcode::post_one_time_buffer);
  one_time.length = 0;
  EXPECT_EQ(bench.status(one_time), Status::bad_argument);
  one_time.length = 64;
  for (int i = 0; i < 20; ++i) {
    bench.observer.log.clear();
    // Posted before the table has forgotten the one before: it executes the erasure first.
    ASSERT_EQ(bench.status(one_time), Status::ok);
    EXPECT_EQ(bench.observer.log, i == 0 ? "opened posted " : "closed:0 opened posted ");
    const BindAnswer bound = bench.bind(64);
    ASSERT_EQ(bound.outcome, Outcome::pending);
    EXPECT_TRUE(bench.table.waiting.empty());
    bench.count(bound, 64);
    EXPECT_EQ(bench.table.waiting.size(), 1U);
    EXPECT_EQ(bench.status(Bench::call(Opcode::get_epoch)), Status::closed);
  }
  EXPECT_EQ(bench.unit.stats().expired.value(), 20U);
}

TEST(WindowCalls, OneTimeWindowWithoutABufferDescriptorIsFull) {
  Bench bench;
  bench.status(Bench::call(Opcode::init_window));
  for (int i = 0; i < 8; ++i) ASSERT_EQ(bench.status(Bench::call(Opcode::post_buffer)), Status::ok);
  EXPECT_EQ(bench.status(Bench::call(Opcode::post_buffer)), Status::full);
  EXPECT_EQ(bench.status(Bench::call(Opcode::post_one_time_buffer, Mailbox{5})), Status::full);
  EXPECT_TRUE(bench.table.waiting.empty());
  EXPECT_EQ(bench.store.find_window(kPid, Mailbox{5}).status, Status::no_window);
}

TEST(WindowCalls, WaitForTheirCycleInOrder) {
  Bench bench;
  std::string order;
  const auto log = [&order](const char* name) { return [&order, name](const CallAnswer&) { order += name; }; };
  bench.unit.execute(Bench::call(Opcode::get_epoch), kPid, Cycles{10}, log("a"));
  bench.unit.execute(Bench::call(Opcode::get_epoch), kPid, Cycles{10}, log("b"));
  bench.unit.execute(Bench::call(Opcode::get_epoch), kPid, Cycles{12}, log("c"));
  sc_core::sc_start(SimContext::to_sc(Time::from_ps(9'001)));
  EXPECT_EQ(order, "");
  sc_core::sc_start(SimContext::to_sc(Time::from_ns(1)));
  EXPECT_EQ(order, "ab");
  sc_core::sc_start(SimContext::to_sc(Time::from_ns(1)));
  EXPECT_EQ(order, "ab");
  sc_core::sc_start(SimContext::to_sc(Time::from_ns(1)));
  EXPECT_EQ(order, "abc");
}

TEST(WindowCalls, RegistersTheStoresStatistics) {
  Bench bench;
  bench.status(Bench::call(Opcode::init_window));
  bool found = false;
  for (const StatsRegistry::Entry& entry : bench.context.stats().entries()) {
    if (entry.unit_path == "calls" && entry.name == "windows_peak") found = true;
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(bench.store.stats().windows_peak.value(), 1U);
}

}  // namespace
}  // namespace rvma
