#include "nic/address_conversion.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::cycle;
using test::ns;
using test::PacketSpec;
using test::run_until;
using test::single;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kList = 0x9000;
constexpr std::uint64_t kManyOps = 1'000'000;

/// A page list whose page i is at `first` + 16 i pages: nothing is contiguous.
std::vector<std::uint64_t> pages(std::uint64_t first, std::size_t count) {
  std::vector<std::uint64_t> list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(first + i * 16 * kPage);
  return list;
}

/// What the table does not know lies in host memory until the test says otherwise.
struct FakeContexts : ContextIf {
  WindowLookup resolve(const LookupResult& answer) const override {
    return {answer.hit, WindowId{answer.slot.value()}, answer.sweeping};
  }
  void used(WindowId /*window*/, bool has_waited) override { waited.push_back(has_waited); }
  bool has_spilled() const override { return true; }
  bool fetch(Pid /*pid*/, Mailbox /*mailbox*/, Done done) override {
    if (!takes) return false;
    fetches.push_back(std::move(done));
    return true;
  }
  WindowLookup find(Pid /*pid*/, Mailbox /*mailbox*/) const override { return now; }
  bool pin(WindowId /*window*/) override {
    ++pinned;
    return true;
  }
  void unpin(WindowId /*window*/) override { ++unpinned; }
  void tell(Fetched outcome, WindowId window) {
    for (const Done& done : std::exchange(fetches, {})) done(outcome, window);
  }
  bool takes = true;
  std::vector<Done> fetches;
  std::vector<bool> waited;
  WindowLookup now;
  int pinned = 0;
  int unpinned = 0;
};

struct Bench {
  explicit Bench(
      const std::function<void(NicConfig&)>& change = [](NicConfig&) {}, ContextIf* contexts = nullptr) {
    change(config);
    observers.add(observer);
    windows = std::make_unique<WindowStore>(config);
    unit = std::make_unique<AddressConversion>("conversion", context, config, Bytes{kPage}, NodeId{0}, *windows,
                                               observers);
    unit->lookup.bind(table);
    unit->delivery.bind(delivery);
    unit->dma.bind(dma);
    unit->writer.bind(writer);
    unit->credit.bind(credit);
    if (contexts != nullptr) unit->contexts.bind(*contexts);
  }
  /// A window of `mailbox` that nothing fills, known to the table.
  WindowId window(std::uint64_t mailbox = 1, std::uint32_t key = 0, std::uint64_t threshold = kManyOps * kPage,
                  Placement placement = Placement::steered) {
    const WindowId slot = test::open_window(*windows, mailbox, threshold, key, placement);
    table.know(Mailbox{mailbox}, slot);
    return slot;
  }
  /// Buffer over `count` scattered pages whose list is at `list`.
  BufferId scattered(WindowId slot, std::uint64_t head, std::uint64_t size, std::uint64_t list, std::uint64_t first) {
    const std::size_t count = (head % kPage + size + kPage - 1) / kPage;
    dma.store_list(PhysicalAddress{list}, pages(first, count));
    return test::post(*windows, slot, head, size, list, false);
  }
  /// The parser's part: lookup in time, packet ready at cycle `ready`; done now.
  void hand(const PacketSpec& spec, std::int64_t ready, RdmaOperation operation = RdmaOperation::none) {
    PacketPtr packet = data_packet(pool, spec);
    packet->data.rdma.operation = operation;
    table.lookup(packet->data.destination_pid, packet->data.mailbox, Cycles{ready - 2});
    unit->convert(std::move(packet), Cycles{ready});
  }

  SimContext context{1};
  NicConfig config;
  PacketPool pool;
  ObserverList observers;
  test::FakeObserver observer;
  test::Script script{"script", context};
  test::FakeTable table;
  test::FakeDelivery delivery;
  test::FakeDma dma{"dma", context, script};
  test::FakeWriter writer;
  test::FakeCredit credit;
  std::unique_ptr<WindowStore> windows;
  std::unique_ptr<AddressConversion> unit;
};

// ---------------------------------------------------------------------------------------------------------- timing

TEST(AddressConversion, DecidesWhenReadyAndPlacesAfterItsLatency) {
  Bench bench;
  const WindowId slot = bench.window();
  test::post(*bench.windows, slot, 0x10'0040, 1024, 0x7000, true);
  bench.script.at(cycle(0), [&] { bench.hand(single(0, 64, 8), 10); });
  run_until(Time::from_ps(9'999));
  EXPECT_TRUE(bench.delivery.admitted.empty());
  run_until(cycle(10));
  ASSERT_EQ(bench.writer.calls.size(), 1U);
  const auto& call = bench.writer.calls[0];
  EXPECT_EQ(bench.delivery.admitted[0].second, cycle(10));
  EXPECT_EQ(call.at, Cycles{14});  // nic.receive.conversion_latency
  EXPECT_EQ(call.packet.left[static_cast<std::size_t>(Stage::address_conversion)], cycle(14));
  ASSERT_EQ(call.to.count(), 1U);
  EXPECT_EQ(call.to.segments[0].address, PhysicalAddress{0x7000 + 0x40 + 8});  // head's place in its page, offset
  EXPECT_EQ(call.to.segments[0].bytes, 64U);
  EXPECT_EQ(call.packet.buffer_offset, 8U);
  EXPECT_EQ(call.packet.wire_bytes, 164U);
  EXPECT_TRUE(bench.dma.reads.empty());
  EXPECT_TRUE(bench.credit.calls.empty());  // the packet stays in the input buffer until it is written
  EXPECT_EQ(bench.pool.in_use(), 0U);
}

TEST(AddressConversion, DecidesOnePacketACycle) {
  Bench bench;
  const WindowId slot = bench.window();
  test::post(*bench.windows, slot, 0x10'0000, 4096, 0x7000, true);
  bench.script.at(cycle(0), [&] {
    for (std::uint32_t i = 0; i < 8; ++i) bench.hand(single(i, 64), 10 + i);
  });
  run_until(cycle(40));
  ASSERT_EQ(bench.writer.calls.size(), 8U);
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(bench.writer.calls[static_cast<std::size_t>(i)].at, Cycles{14 + i});
  EXPECT_EQ(bench.unit->stats().decide.busy(), cycle(8));
  EXPECT_EQ(bench.unit->stats().queue.value(), 8U);
}

TEST(AddressConversion, PacketsThatWaitForAContextKeepTheirOrderAndOthersOvertake) {
  FakeContexts contexts;
  Bench bench([](NicConfig&) {}, &contexts);
  const WindowId spilled = test::open_window(*bench.windows, 1, kManyOps * kPage, 0, Placement::steered);
  test::post(*bench.windows, spilled, 0x10'0000, 4096, 0x7000, true);
  const WindowId here = bench.window(2);
  test::post(*bench.windows, here, 0x20'0000, 4096, 0x7000, true);
  PacketSpec other = single(2, 64);
  other.mailbox = 2;
  bench.script.at(cycle(0), [&] {
    bench.hand(single(0, 64), 10);
    bench.hand(single(1, 64), 11);
    bench.hand(other, 12);
  });
  bench.script.at(cycle(50), [&] {
    // The table knows the mailbox from here on; what looks now is ready a cycle later at the earliest.
    bench.table.know(Mailbox{1}, spilled);
    bench.hand(single(3, 64), 51);
    contexts.tell(ContextIf::Fetched::found, spilled);
  });
  run_until(cycle(49));
  EXPECT_EQ(contexts.fetches.size(), 2U);
  EXPECT_EQ(bench.unit->stats().held.value(), 2U);
  run_until(cycle(80));
  std::vector<std::pair<std::uint32_t, Time>> order{{2, cycle(12)}, {0, cycle(50)}, {1, cycle(51)}, {3, cycle(52)}};
  EXPECT_EQ(bench.delivery.admitted, order);
  EXPECT_EQ(contexts.waited, (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(contexts.unpinned, 2);
  EXPECT_EQ(bench.writer.calls.size(), 4U);
  EXPECT_EQ(bench.writer.calls[1].packet.left[static_cast<std::size_t>(Stage::context)], cycle(50));
}

TEST(AddressConversion, WithoutAnAnswerAMissIsNoMailboxOrBusy) {
  FakeContexts contexts;
  Bench bench([](NicConfig&) {}, &contexts);
  bench.script.at(cycle(0), [&] {
    for (std::uint32_t i = 0; i < 3; ++i) bench.hand(single(i, 64), 10 + 20 * i);
  });
  bench.script.at(cycle(20), [&] { contexts.tell(ContextIf::Fetched::unknown, {}); });
  bench.script.at(cycle(40), [&] {
    contexts.tell(ContextIf::Fetched::no_room, {});
    contexts.takes = false;
  });
  run_until(cycle(80));
  ASSERT_EQ(bench.delivery.refusals.size(), 3U);
  EXPECT_EQ(bench.delivery.refusals[0].reason, Outcome::no_mailbox);
  EXPECT_EQ(bench.delivery.refusals[0].at, cycle(20));
  EXPECT_EQ(bench.delivery.refusals[1].reason, Outcome::busy);
  EXPECT_EQ(bench.delivery.refusals[1].at, cycle(40));
  EXPECT_EQ(bench.delivery.refusals[2].reason, Outcome::busy);
  EXPECT_EQ(bench.delivery.refusals[2].at, cycle(50));
  EXPECT_EQ(contexts.unpinned, 0);
}

TEST(AddressConversion, WaitsForRoomWhoseTimeIsKnown) {
  Bench bench;
  const WindowId slot = bench.window();
  test::post(*bench.windows, slot, 0x10'0000, 4096, 0x7000, true);
  bench.dma.room_at = Time::from_ps(20'300);
  bench.script.at(cycle(0), [&] {
    bench.hand(single(0, 64), 10);
    bench.hand(single(1, 64), 11);
  });
  run_until(Time::from_ps(20'999));
  EXPECT_TRUE(bench.delivery.admitted.empty());
  run_until(cycle(40));
  ASSERT_EQ(bench.delivery.admitted.size(), 2U);
  EXPECT_EQ(bench.delivery.admitted[0].second, cycle(21));  // the first edge with room
  EXPECT_EQ(bench.delivery.admitted[1].second, cycle(22));
  EXPECT_EQ(bench.unit->stats().stalled_on_writes_ns.value(), cycle(11));
  EXPECT_EQ(bench.unit->stats().stalled_on_misses_ns.value(), Time::zero());
}

TEST(AddressConversion, WaitsForRoomThatIsAnnounced) {
  Bench bench;
  const WindowId slot = bench.window();
  test::post(*bench.windows, slot, 0x10'0000, 4096, 0x7000, true);
  bench.dma.room_at = Time::max();
  bench.script.at(cycle(0), [&] { bench.hand(single(0, 64), 10); });
  bench.script.at(Time::from_ps(30'500), [&] {
    EXPECT_TRUE(bench.delivery.admitted.empty());
    bench.dma.give_room();
  });
  run_until(cycle(60));
  ASSERT_EQ(bench.delivery.admitted.size(), 1U);
  EXPECT_EQ(bench.delivery.admitted[0].second, cycle(31));
}

// ------------------------------------------------------------------------------------------------------- decisions

TEST(AddressConversion, StopsWhatDeliveryStops) {
  Bench bench;
  const WindowId slot = bench.window();
  test::post(*bench.windows, slot, 0x10'0000, 4096, 0x7000, true);
  bench.delivery.verdicts = {
      {0, DeliveryIf::Verdict::duplicate}, {1, DeliveryIf::Verdict::stale}, {2, DeliveryIf::Verdict::closed}};
  bench.script.at(cycle(0), [&] {
    for (std::uint32_t i = 0; i < 4; ++i) bench.hand(single(i, 64), 10 + i);
  });
  run_until(cycle(40));
  ASSERT_EQ(bench.writer.calls.size(), 1U);
  EXPECT_EQ(bench.writer.calls[0].packet.sequence, 3U);
  ASSERT_EQ(bench.observer.ignored.size(), 3U);
  EXPECT_EQ(bench.observer.ignored[0].why, "duplicate");
  EXPECT_EQ(bench.observer.ignored[1].why, "stale");
  EXPECT_EQ(bench.observer.ignored[2].why, "closed");
  EXPECT_TRUE(bench.delivery.disposals.empty());  // Delivery has seen to them
  EXPECT_EQ(bench.credit.total(), 3U * 164);
  EXPECT_EQ(bench.unit->stats().duplicates.value(), 1U);
  EXPECT_EQ(bench.unit->stats().stale.value(), 1U);
  EXPECT_EQ(bench.unit->stats().late.value(), 1U);
}

TEST(AddressConversion, RefusesWithEachReason) {
  Bench bench;
  const WindowId keyed = bench.window(1, 99);
  test::post(*bench.windows, keyed, 0x10'0000, 128, 0x7000, true);
  bench.window(2);  // empty bucket
  bench.script.at(cycle(0), [&] {
    bench.hand({0, 0, 3, 0, 64, 0, 0, 64}, 10);
    bench.hand({1, 1, 1, 98, 64, 0, 0, 64}, 11);
    bench.hand({2, 2, 2, 0, 64, 0, 0, 64}, 12);
    bench.hand({3, 3, 1, 99, 64, 65, 0, 64}, 13);
    bench.hand({4, 4, 1, 99, 64, 64, 0, 64}, 14);
  });
  run_until(cycle(40));
  const std::vector<Outcome> reasons{Outcome::no_mailbox, Outcome::bad_key, Outcome::no_buffer, Outcome::bounds};
  ASSERT_EQ(bench.delivery.refusals.size(), 4U);
  ASSERT_EQ(bench.observer.refused.size(), 4U);
  ASSERT_EQ(bench.delivery.disposals.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(bench.delivery.refusals[i].message, MessageId{i});
    EXPECT_EQ(bench.delivery.refusals[i].reason, reasons[i]);
    EXPECT_EQ(bench.delivery.refusals[i].at, cycle(10 + i));
    EXPECT_EQ(bench.observer.refused[i], std::make_pair(MessageId{i}, reasons[i]));
    EXPECT_EQ(bench.delivery.disposals[i].sequence, i);
  }
  EXPECT_EQ(bench.credit.total(), 4U * 164);
  const AddressConversionStats& stats = bench.unit->stats();
  EXPECT_EQ(stats.refused_no_mailbox.value(), 1U);
  EXPECT_EQ(stats.refused_bad_key.value(), 1U);
  EXPECT_EQ(stats.refused_no_buffer.value(), 1U);
  EXPECT_EQ(stats.refused_bounds.value(), 1U);
  EXPECT_EQ(stats.bindings.value(), 1U);
  ASSERT_EQ(bench.writer.calls.size(), 1U);
}

TEST(AddressConversion, ARefusedMessageStaysRefusedWhateverIsPosted) {
  Bench bench;
  const WindowId slot = bench.window();
  bench.script.at(cycle(0), [&] {
    bench.hand({0, 0, 1, 0, 8192, 0, 1, 4096}, 10);
    bench.hand({1, 0, 1, 0, 8192, 0, 0, 4096}, 20);
  });
  bench.script.at(cycle(15), [&] { bench.scattered(slot, 0x10'0000, 8192, kList, 0x100'0000); });
  run_until(cycle(40));
  EXPECT_EQ(bench.delivery.refusals.size(), 1U);
  EXPECT_EQ(bench.delivery.disposals.size(), 2U);
  EXPECT_TRUE(bench.writer.calls.empty());
  EXPECT_EQ(bench.unit->stats().refused_packets.value(), 1U);
  EXPECT_EQ(bench.credit.total(), 2U * 4196);
}

TEST(AddressConversion, LaterPacketsFollowTheBindingNotTheTable) {
  Bench bench;
  const WindowId slot = bench.window(1, 0, 8192);
  const BufferId first = test::post(*bench.windows, slot, 0x20'0000, 1 << 20, 0x10'0000, true);
  const BufferId second = test::post(*bench.windows, slot, 0x40'0000, 1 << 20, 0x20'0000, true);
  bench.script.at(cycle(0), [&] {
    bench.hand({0, 0, 1, 0, 8192, 0, 1, 4096}, 10);   // binds message 0, and retires the first buffer
    bench.hand({1, 1, 1, 0, 8192, 0, 1, 4096}, 11);   // binds message 1 to the second
    bench.hand({2, 0, 1, 0, 8192, 0, 0, 4096}, 12);   // to the first, which is no longer active
    bench.hand({3, 1, 1, 0, 8192, 64, 0, 4096}, 13);  // another offset than its message's: changes nothing
    bench.hand({4, 1, 1, 0, 8192, 0, 0, 4096}, 14);
  });
  run_until(cycle(60));
  ASSERT_EQ(bench.writer.calls.size(), 4U);
  EXPECT_EQ(bench.writer.of(0).packet.buffer, first);
  EXPECT_EQ(bench.writer.of(0).packet.buffer_offset, 4096U);
  EXPECT_TRUE(bench.writer.of(0).packet.has_binding);
  EXPECT_EQ(bench.writer.of(1).packet.buffer, second);
  EXPECT_EQ(bench.writer.of(2).packet.buffer, first);
  EXPECT_EQ(bench.writer.of(2).packet.buffer_offset, 0U);
  EXPECT_EQ(bench.writer.of(4).packet.buffer, second);
  ASSERT_EQ(bench.observer.ignored.size(), 1U);
  EXPECT_EQ(bench.observer.ignored[0].why, "mismatch");
  ASSERT_EQ(bench.delivery.disposals.size(), 1U);
  EXPECT_EQ(bench.delivery.disposals[0].sequence, 3U);
  ASSERT_EQ(bench.observer.bound.size(), 2U);
  ASSERT_EQ(bench.observer.retired.size(), 2U);
  EXPECT_EQ(bench.observer.retired[0].buffer, first);
  EXPECT_EQ(bench.observer.retired[1].buffer, second);
  EXPECT_EQ(bench.observer.retired[1].epoch, Epoch{1});
  EXPECT_FALSE(bench.observer.retired[0].by_call);
}

TEST(AddressConversion, ABadlyCutFirstPacketLeavesItsMessageUnseen) {
  Bench bench;
  const WindowId slot = bench.window();
  test::post(*bench.windows, slot, 0x10'0000, 4096, 0x7000, true);
  bench.script.at(cycle(0), [&] {
    bench.hand({0, 0, 1, 0, 64, 0, 0, 63}, 10);
    bench.hand({1, 0, 1, 0, 64, 0, 0, 64}, 11);
  });
  run_until(cycle(40));
  EXPECT_TRUE(bench.delivery.refusals.empty());
  ASSERT_EQ(bench.delivery.disposals.size(), 1U);
  EXPECT_EQ(bench.delivery.disposals[0].sequence, 0U);
  ASSERT_EQ(bench.writer.calls.size(), 1U);
  EXPECT_EQ(bench.unit->stats().mismatches.value(), 1U);
}

TEST(AddressConversion, PacketsOfAnotherKindOfNicChangeNothing) {
  Bench bench;
  const WindowId window = bench.window();
  test::post(*bench.windows, window, 0x10'0000, 4096, 0x7000, true);
  bench.script.at(cycle(0), [&] {
    for (std::uint32_t i = 1; i <= 5; ++i) {
      bench.hand({i - 1, i - 1, 1, 0, 64, 0, 0, 64}, 9 + i, static_cast<RdmaOperation>(i));
    }
  });
  run_until(cycle(40));
  EXPECT_TRUE(bench.writer.calls.empty());
  EXPECT_TRUE(bench.observer.bound.empty());
  EXPECT_EQ(bench.delivery.disposals.size(), 5U);
  EXPECT_EQ(bench.unit->stats().mismatches.value(), 5U);
}

TEST(AddressConversion, EmptyPutTouchesNoMemory) {
  Bench bench;
  const WindowId slot = bench.window();
  bench.scattered(slot, 0x10'0000, 8192, kList, 0x100'0000);
  bench.script.at(cycle(0), [&] { bench.hand(single(0, 0, 8192), 10); });
  run_until(cycle(40));
  ASSERT_EQ(bench.writer.calls.size(), 1U);
  EXPECT_EQ(bench.writer.calls[0].to.count(), 0U);
  EXPECT_EQ(bench.writer.calls[0].at, Cycles{14});
  EXPECT_TRUE(bench.dma.reads.empty());
}

// ------------------------------------------------------------------------------------------------ page translation

TEST(AddressConversion, SplitsAtPagesAndFetchesTheirList) {
  Bench bench;
  const WindowId slot = bench.window();
  // The head stands 256 bytes into its page, so a packet of a page crosses a border.
  bench.scattered(slot, 0x10'0100, 3 * kPage, kList, 0x100'0000);
  bench.script.at(cycle(0), [&] { bench.hand(single(0, 4096, 4096), 10); });
  bench.script.at(cycle(600), [&] { bench.hand(single(1, 4096, 0), 610); });
  run_until(cycle(509));
  EXPECT_TRUE(bench.writer.calls.empty());
  ASSERT_EQ(bench.dma.reads.size(), 1U);
  EXPECT_EQ(bench.dma.reads[0].address, PhysicalAddress{kList});
  EXPECT_EQ(bench.dma.reads[0].bytes, 4U * 8);  // the buffer touches four pages: nothing is read behind the list
  EXPECT_EQ(bench.dma.reads[0].at, cycle(10));
  run_until(cycle(700));
  ASSERT_EQ(bench.writer.calls.size(), 2U);
  const auto& missed = bench.writer.of(0);
  EXPECT_EQ(missed.at, Cycles{10 + 500 + 4});
  ASSERT_EQ(missed.to.count(), 2U);
  EXPECT_EQ(missed.to.segments[0].address, PhysicalAddress{0x100'0000 + 16 * kPage + 256});
  EXPECT_EQ(missed.to.segments[0].bytes, 4096U - 256);
  EXPECT_EQ(missed.to.segments[1].address, PhysicalAddress{0x100'0000 + 32 * kPage});
  EXPECT_EQ(missed.to.segments[1].bytes, 256U);
  EXPECT_EQ(bench.writer.of(1).at, Cycles{614});  // the line is here now
  EXPECT_EQ(bench.dma.reads.size(), 1U);
  EXPECT_EQ(bench.unit->stats().page_misses.value(), 1U);
  EXPECT_EQ(bench.unit->stats().page_hits.value(), 3U);
  EXPECT_EQ(bench.unit->stats().translation_wait_ns.value(), ns(500));
}

TEST(AddressConversion, HitsOvertakeAMiss) {
  Bench bench;
  const WindowId slot = bench.window(1);
  bench.scattered(slot, 0x10'0000, 4 * kPage, kList, 0x100'0000);
  const WindowId other = bench.window(2);
  test::post(*bench.windows, other, 0x30'0000, 4096, 0x7000, true);
  bench.script.at(cycle(0), [&] {
    bench.hand(single(0, 64), 10);
    bench.hand({1, 1, 2, 0, 64, 0, 0, 64}, 11);
  });
  run_until(cycle(600));
  ASSERT_EQ(bench.writer.calls.size(), 2U);
  EXPECT_EQ(bench.writer.calls[0].packet.sequence, 1U);
  EXPECT_EQ(bench.writer.calls[0].at, Cycles{15});
  EXPECT_EQ(bench.writer.calls[1].packet.sequence, 0U);
  EXPECT_EQ(bench.writer.calls[1].at, Cycles{514});
}

TEST(AddressConversion, MissesOnOneLineShareItsFetch) {
  Bench bench;
  const WindowId slot = bench.window(1);
  bench.scattered(slot, 0x10'0000, 8 * kPage, kList, 0x100'0000);
  bench.script.at(cycle(0), [&] {
    for (std::uint32_t i = 0; i < 5; ++i) bench.hand(single(i, 64, i * kPage), 10 + i);
  });
  run_until(cycle(600));
  EXPECT_EQ(bench.dma.reads.size(), 1U);
  ASSERT_EQ(bench.writer.calls.size(), 5U);
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(bench.writer.calls[i].packet.sequence, i);  // in the order in which they came
    EXPECT_EQ(bench.writer.calls[i].at, Cycles{514 + i});
    EXPECT_EQ(bench.writer.calls[i].to.segments[0].address, PhysicalAddress{0x100'0000 + i * 16 * kPage});
  }
  EXPECT_EQ(bench.unit->stats().waiting.value(), 5U);
  EXPECT_EQ(bench.unit->stats().line_fetches.value(), 1U);
}

TEST(AddressConversion, DecisionsWaitWhenMissesAreUsedUp) {
  Bench bench{[](NicConfig& config) { config.receive.page_misses = 2; }};
  const WindowId slot = bench.window(1);
  bench.scattered(slot, 0x10'0000, 64 * kPage, kList, 0x100'0000);
  bench.script.at(cycle(0), [&] {
    for (std::uint32_t i = 0; i < 3; ++i) bench.hand(single(i, 64, i * 8 * kPage), 10 + i);  // three lines
    bench.hand(single(3, 64, kPage), 13);                                                    // the first one's line
  });
  run_until(cycle(505));
  EXPECT_EQ(bench.dma.reads.size(), 2U);
  EXPECT_EQ(bench.delivery.admitted.size(), 3U);
  EXPECT_TRUE(bench.writer.calls.empty());
  run_until(cycle(510));
  EXPECT_EQ(bench.dma.reads.size(), 3U);  // the first fetch has come back: the third line takes its place
  run_until(cycle(1100));
  ASSERT_EQ(bench.delivery.admitted.size(), 4U);
  EXPECT_EQ(bench.delivery.admitted[3].second, cycle(510));
  EXPECT_EQ(bench.writer.of(3).at, Cycles{515});  // behind packet 0, which goes on in the same cycle
  EXPECT_EQ(bench.writer.of(2).at, Cycles{510 + 500 + 4});
  EXPECT_EQ(bench.unit->stats().stalled_on_misses_ns.value(), cycle(510 - 13));
}

TEST(AddressConversion, TheSmallestCacheStillMakesProgress) {
  Bench bench{[](NicConfig& config) {
    config.page_cache.on_chip = 1;
    config.receive.page_misses = 1;
  }};
  const WindowId slot = bench.window(1);
  bench.scattered(slot, 0x10'0100, 16 * kPage, kList, 0x100'0000);
  // Both packets cross from line 0 to line 1, and push out each other's lines.
  bench.script.at(cycle(0), [&] {
    bench.hand(single(0, 4096, 7 * kPage), 10);
    bench.hand(single(1, 4096, 7 * kPage), 11);
  });
  run_until(cycle(5'000));
  ASSERT_EQ(bench.writer.calls.size(), 2U);
  for (const auto& call : bench.writer.calls) {
    ASSERT_EQ(call.to.count(), 2U);
    EXPECT_EQ(call.to.segments[0].address, PhysicalAddress{0x100'0000 + 7 * 16 * kPage + 256});
    EXPECT_EQ(call.to.segments[1].address, PhysicalAddress{0x100'0000 + 8 * 16 * kPage});
  }
}

TEST(AddressConversion, ARepostedBufferNeverUsesOldTranslations) {
  Bench bench;
  const WindowId slot = bench.window(1, 0, 64);
  bench.scattered(slot, 0x10'0000, 2 * kPage, kList, 0x100'0000);
  bench.script.at(cycle(0), [&] { bench.hand(single(0, 64), 10); });
  bench.script.at(cycle(600), [&] {
    // It completes, and another is posted with the same list in the same place, over other pages.
    bench.windows->count(bench.writer.calls.at(0).packet);
    std::vector<Completion> completions;
    bench.windows->take_completions(completions);
    ASSERT_EQ(completions.size(), 1U);
    bench.scattered(slot, 0x10'0000, 2 * kPage, kList, 0x500'0000);
    bench.hand(single(1, 64), 610);
  });
  run_until(cycle(1'200));
  ASSERT_EQ(bench.writer.calls.size(), 2U);
  EXPECT_EQ(bench.writer.of(0).to.segments[0].address, PhysicalAddress{0x100'0000});
  EXPECT_EQ(bench.writer.of(1).to.segments[0].address, PhysicalAddress{0x500'0000});
}

TEST(AddressConversion, RandomPlacesAreTranslatedByteForByte) {
  constexpr std::uint64_t kSeed = 60'921;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random{kSeed};
  Bench bench{[](NicConfig& config) {
    config.page_cache.on_chip = 24;
    config.receive.page_misses = 3;
  }};
  const WindowId slot = bench.window(1);
  constexpr std::uint64_t kHead = 0x10'0000 + 1'234;
  constexpr std::uint64_t kSize = 100 * kPage;
  bench.scattered(slot, kHead, kSize, kList, 0x100'0000);
  std::vector<PacketSpec> specs;
  std::int64_t ready = 10;
  for (std::uint32_t i = 0; i < 500; ++i) {
    const auto length = static_cast<std::uint16_t>(random.below(4'097));
    specs.push_back(single(i, length, random.below(kSize - length + 1)));
    ready += 1 + static_cast<std::int64_t>(random.below(120));
    const std::int64_t at = ready;
    bench.script.at(cycle(at - 4), [&bench, &specs, i, at] { bench.hand(specs[i], at); });
  }
  run_until(ns(400'000));
  ASSERT_EQ(bench.writer.calls.size(), specs.size());
  for (const auto& call : bench.writer.calls) {
    const PacketSpec& spec = specs[call.packet.sequence];
    ASSERT_EQ(call.to.total_bytes(), spec.length);
    std::uint64_t position = kHead % kPage + spec.offset;
    for (std::uint32_t s = 0; s < call.to.count(); ++s) {
      const Segment& segment = call.to.segments[s];
      ASSERT_EQ(segment.address.value(), 0x100'0000 + position / kPage * 16 * kPage + position % kPage);
      ASSERT_LE(position % kPage + segment.bytes, kPage);
      position += segment.bytes;
    }
  }
  EXPECT_GT(bench.unit->stats().page_misses.value(), 100U);
  EXPECT_EQ(bench.delivery.admitted.size(), specs.size());
}

}  // namespace
}  // namespace rvma
