// The get unit alone: a window store, a table that answers at once, a transmit that records.
#include "nic/get_unit.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <systemc>
#include <utility>
#include <vector>

namespace rvma {
namespace {

const Pid kPid{1};
const PhysicalAddress kWord{0x5000};

struct FakeTable : TableCommandIf {
  void command(const TableCommand& what, Cycles, std::function<void(const TableAnswer&)> done) override {
    commands.push_back(what);
    TableAnswer answer;
    answer.status = is_full ? TableStatus::full : TableStatus::ok;
    done(answer);
  }
  std::vector<TableCommand> commands;
  bool is_full = false;
};

struct FakeDelivery : DeliveryIf {
  bool is_first(const Packet&) override { return false; }
  Admission admit(const Packet&) override { return {}; }
  void bind(const MessageRef&, std::uint32_t) override {}
  void refuse(const MessageRef&, Outcome, Time) override {}
  void dispose(const MessageRef&, std::uint32_t, Time) override {}
  void end(const MessageRef&, Time) override {}
  void withdraw(NodeId, MessageId message, Time) override { withdrawn.push_back(message); }
  std::vector<MessageId> withdrawn;
};

struct FakeDma : DmaIf {
  void write(DmaWrite what, DmaClient&, Time at) override { writes.emplace_back(std::move(what), at); }
  Time write_room_at() override { return Time::zero(); }
  void on_write_room(std::function<void()>) override {}
  void read(DmaRead, DmaClient&, Time) override {}
  std::vector<std::pair<DmaWrite, Time>> writes;
};

/// Has room for so many; answers it always takes.
struct FakeTransmit : TransmitIf {
  bool submit(const PutRequest& put, Cycles) override {
    if (puts.size() >= room && put.purpose != Purpose::get_answer) return false;
    puts.push_back(put);
    return true;
  }
  void on_room(std::function<void()> callback) override { tell_room = std::move(callback); }
  std::size_t room = 100;
  std::vector<PutRequest> puts;
  std::function<void()> tell_room;
};

struct Bench {
  explicit Bench(std::uint32_t windows = 8) {
    config.mtu = Bytes{64};
    config.windows.on_chip = windows;
    config.windows.spill = false;
    config.get.queue = 2;
    config.get.timeout = Time::from_us(10);
    config.reliability.rnr_tries = 2;
    config.reliability.rnr_delay = Time::from_us(5);
    store = std::make_unique<WindowStore>(config);
    contexts = std::make_unique<ContextCache>("contexts", context, config, *store);
    unit =
        std::make_unique<GetUnit>("gets", context, config, Bytes::kib(4), NodeId{0}, *store, *contexts, arm, observers);
    contexts->table(table);
    contexts->dma(dma);
    unit->delivery(delivery);
    unit->dma(dma);
    unit->transmit(transmit);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  void get(std::uint64_t length) {
    PutRequest request;
    request.pid = kPid;
    request.descriptor.opcode = Opcode::get;
    request.descriptor.mailbox = Mailbox{7};
    request.descriptor.key = 5;
    request.descriptor.offset = 9;
    request.descriptor.length = length;
    request.descriptor.completion = kWord;
    request.descriptor.destination_node = NodeId{3};
    ASSERT_TRUE(unit->submit(request, Cycles{0}));
  }
  BindAnswer bind(std::uint64_t length, std::uint32_t index = 0) {
    DataHeader header;
    header.destination_pid = kPid;
    header.mailbox = transmit.puts[0].ask.mailbox;
    header.key = transmit.puts[0].ask.key;
    header.message = MessageId{41};
    header.message_length = length;
    header.packet_index = index;
    header.payload_length = static_cast<std::uint16_t>(std::min<std::uint64_t>(64, length - 64 * index));
    return store->bind(NodeId{3}, header, WindowLookup{true, WindowId{0}, false});
  }
  bool count(const BindAnswer& bound, std::uint32_t bytes) {
    PlacedPacket packet;
    packet.buffer = bound.place.buffer;
    packet.has_binding = bound.place.has_binding;
    packet.binding = bound.place.binding;
    packet.payload_length = bytes;
    return store->count(packet);
  }
  void run(Time time) { sc_core::sc_start(SimContext::to_sc(time)); }

  SimContext context{1};
  NicConfig config;
  InterruptArm arm;
  ObserverList observers;
  FakeTable table;
  FakeDelivery delivery;
  FakeDma dma;
  FakeTransmit transmit;
  std::unique_ptr<WindowStore> store;
  std::unique_ptr<ContextCache> contexts;
  std::unique_ptr<GetUnit> unit;
};

TEST(GetUnit, AsksForAnAnswerIntoAWindowOfItsOwn) {
  Bench bench;
  bench.get(50);
  ASSERT_EQ(bench.transmit.puts.size(), 1U);
  const PutRequest& asked = bench.transmit.puts[0];
  EXPECT_EQ(asked.purpose, Purpose::get_request);
  EXPECT_EQ(asked.descriptor.length, 0U);
  EXPECT_EQ(asked.descriptor.mailbox, Mailbox{7});
  EXPECT_EQ(asked.descriptor.offset, 9U);
  EXPECT_EQ(asked.ask.length, 50U);
  EXPECT_NE(asked.ask.key, 0U);
  EXPECT_EQ(bench.table.commands[0].mailbox, asked.ask.mailbox);
  // The answer completes the window, and the word is the get's.
  bench.unit->ended(asked, Outcome::ok, 1, Time::zero());
  const BindAnswer bound = bench.bind(50);
  ASSERT_EQ(bound.outcome, Outcome::pending);
  EXPECT_TRUE(bench.count(bound, 50));
  std::vector<Completion> done;
  bench.store->take_completions(done);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_TRUE(done[0].is_answer);
  EXPECT_TRUE(bench.dma.writes.empty());
  bench.unit->answer_complete(done[0], Cycles{10});
  ASSERT_EQ(bench.dma.writes.size(), 1U);
  EXPECT_EQ(bench.dma.writes[0].first.word, (std::array<std::uint64_t, 2>{1, 50}));
  EXPECT_EQ(bench.dma.writes[0].second, Time::from_ns(10 + bench.config.completion.latency.get().count()));
  bench.run(Time::from_us(20));
  EXPECT_EQ(bench.dma.writes.size(), 1U) << "no time-out after the end";
}

TEST(GetUnit, ARefusalClosesTheWindowBeforeTheGetEnds) {
  Bench bench;
  bench.get(128);
  const BindAnswer bound = bench.bind(128);  // an answer is on its way all the same
  bench.unit->ended(bench.transmit.puts[0], Outcome::timeout, 3, Time::zero());
  EXPECT_EQ(bench.delivery.withdrawn.size(), 1U);
  EXPECT_EQ(bench.bind(128).outcome, Outcome::closed);
  EXPECT_TRUE(bench.dma.writes.empty()) << "a packet is on its way to the get's memory";
  EXPECT_FALSE(bench.count(bound, 64));
  ASSERT_EQ(bench.dma.writes.size(), 1U);
  EXPECT_EQ(bench.dma.writes[0].first.word,
            (std::array<std::uint64_t, 2>{static_cast<std::uint64_t>(Outcome::timeout), 0}));
  EXPECT_EQ(bench.table.commands.back().operation, TableOperation::erase);
}

TEST(GetUnit, TimesOutOnlyWhileNothingComes) {
  Bench bench;
  bench.get(128);
  bench.unit->ended(bench.transmit.puts[0], Outcome::ok, 1, Time::zero());
  bench.run(Time::from_us(9));
  const BindAnswer bound = bench.bind(128);
  bench.count(bound, 64);
  bench.run(Time::from_us(10));
  EXPECT_TRUE(bench.dma.writes.empty()) << "a packet has come meanwhile";
  bench.run(Time::from_us(2));
  ASSERT_EQ(bench.dma.writes.size(), 1U);
  EXPECT_EQ(bench.dma.writes[0].first.word[0], static_cast<std::uint64_t>(Outcome::timeout));
  EXPECT_EQ(bench.unit->stats().timed_out.value(), 1U);
}

TEST(GetUnit, WithoutAWindowItTriesAgainAndThenEndsBusy) {
  Bench bench(1);
  bench.get(8);
  bench.get(8);
  bench.run(Time::from_ns(9999));
  EXPECT_TRUE(bench.dma.writes.empty()) << "the second retry is 10 us after the get";
  bench.run(Time::from_ns(2));
  EXPECT_EQ(bench.unit->stats().window_retries.value(), 2U);
  EXPECT_EQ(bench.unit->stats().without_window.value(), 1U);
  ASSERT_EQ(bench.dma.writes.size(), 1U);
  EXPECT_EQ(bench.dma.writes[0].first.word[0], static_cast<std::uint64_t>(Outcome::busy));
  EXPECT_EQ(bench.transmit.puts.size(), 1U);
}

TEST(GetUnit, OpensItsWindowWhenThereIsRoomAgain) {
  Bench bench(1);
  bench.get(8);
  bench.get(16);
  bench.unit->ended(bench.transmit.puts[0], Outcome::bounds, 1, Time::zero());
  ASSERT_EQ(bench.dma.writes.size(), 1U) << "the first has ended";
  EXPECT_EQ(bench.transmit.puts.size(), 1U);
  bench.run(Time::from_us(6));
  ASSERT_EQ(bench.transmit.puts.size(), 2U);
  EXPECT_EQ(bench.transmit.puts[1].ask.length, 16U);
  EXPECT_EQ(bench.unit->stats().window_retries.value(), 1U);
  EXPECT_EQ(bench.unit->stats().without_window.value(), 0U);
  bench.run(Time::from_us(10));
  EXPECT_EQ(bench.dma.writes.size(), 1U) << "nothing is tried again any more";
}

TEST(GetUnit, WithoutAPlaceInTheTableItTriesAgainAndThenEndsBusy) {
  Bench bench;
  bench.table.is_full = true;
  bench.get(8);
  EXPECT_TRUE(bench.dma.writes.empty());
  bench.run(Time::from_us(11));
  EXPECT_EQ(bench.dma.writes.size(), 1U);
  EXPECT_TRUE(bench.transmit.puts.empty());
}

/// A window of three pages that may be read.
struct Readable {
  explicit Readable(Bench& bench) {
    Descriptor init;
    init.opcode = Opcode::init_window;
    init.mailbox = Mailbox{7};
    init.threshold = 1 << 20;
    init.window_flags = kWindowReadable;
    slot = bench.store->allocate_window(init, kPid).window;
    bench.store->open_window(slot);
    Descriptor post;
    post.length = 3 * 4096;
    post.local = VirtualAddress{0x10100};
    post.page_list = PhysicalAddress{0x8000};
    buffer = bench.store->post_buffer(slot, post).buffer;
    request.source_pid = Pid{4};
    request.destination_pid = kPid;
    request.offset = 8000;
    request.ask = GetAsk{100, Mailbox{99}, 77};
  }
  WindowId slot;
  BufferId buffer;
  DataHeader request;
};

TEST(GetUnit, AnswersDoNotWaitBehindRequests) {
  Bench bench;
  const Readable readable(bench);
  bench.transmit.room = 0;
  bench.get(8);
  EXPECT_TRUE(bench.unit->serve(NodeId{5}, readable.request, readable.slot, readable.buffer));
  bench.run(Time::from_ns(2));
  ASSERT_EQ(bench.transmit.puts.size(), 1U);
  EXPECT_EQ(bench.transmit.puts[0].purpose, Purpose::get_answer);
  bench.transmit.room = 2;
  bench.transmit.tell_room();
  bench.run(Time::from_ns(2));
  ASSERT_EQ(bench.transmit.puts.size(), 2U);
  EXPECT_EQ(bench.transmit.puts[1].purpose, Purpose::get_request);
}

TEST(GetUnit, RefusesRequestsThatItCouldNotAnswer) {
  Bench bench;
  const Readable readable(bench);
  bench.unit->on_request([](NodeId asker) { return asker == NodeId{5}; });
  EXPECT_FALSE(bench.unit->serve(NodeId{6}, readable.request, readable.slot, readable.buffer));
  EXPECT_TRUE(bench.unit->serve(NodeId{5}, readable.request, readable.slot, readable.buffer));
  EXPECT_EQ(bench.unit->stats().requests_turned_away.value(), 1U);
}

TEST(GetUnit, AnswersReadTheBufferThroughItsOwnPageList) {
  Bench bench;
  const auto [slot, buffer, request] = Readable(bench);
  EXPECT_TRUE(bench.unit->serve(NodeId{5}, request, slot, buffer));
  EXPECT_TRUE(bench.transmit.puts.empty()) << "the receive path does not wait for transmit";
  bench.run(Time::from_ns(2));
  ASSERT_EQ(bench.transmit.puts.size(), 1U);
  const Descriptor& put = bench.transmit.puts[0].descriptor;
  EXPECT_EQ(put.local, VirtualAddress{0x10100 + 8000});
  EXPECT_EQ(put.page_list, PhysicalAddress{0x8000 + 8 * 2}) << "byte 0x100 + 8000 lies in the third page";
  EXPECT_EQ(put.length, 100U);
  EXPECT_EQ(put.mailbox, Mailbox{99});
  EXPECT_EQ(put.key, 77U);
  EXPECT_EQ(put.destination_node, NodeId{5});
  EXPECT_EQ(put.destination_pid, Pid{4});
  // The queue holds two, until the answers have ended.
  EXPECT_TRUE(bench.unit->serve(NodeId{5}, request, slot, buffer));
  EXPECT_FALSE(bench.unit->serve(NodeId{5}, request, slot, buffer));
  EXPECT_TRUE(bench.unit->may_read(bench.transmit.puts[0]));
  bench.unit->ended(bench.transmit.puts[0], Outcome::ok, 1, Time::zero());
  EXPECT_TRUE(bench.unit->serve(NodeId{5}, request, slot, buffer));
  std::vector<BufferId> returned;
  bench.store->begin_close(slot, returned, [] {});
  EXPECT_FALSE(bench.unit->may_read(bench.transmit.puts[0]));
}

}  // namespace
}  // namespace rvma
