#include "nic/payload_writer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::cycle;
using test::ns;

struct Bench {
  Bench() {
    observers.add(observer);
    unit.dma.bind(dma);
    unit.delivery.bind(delivery);
    unit.counter.bind(counter);
    unit.credit.bind(credit);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  void place(std::uint32_t sequence, std::uint32_t bytes, std::int64_t at) {
    PlacedPacket packet;
    packet.sequence = sequence;
    packet.payload_length = bytes;
    packet.buffer_offset = 1'000U + sequence;
    packet.wire_bytes = bytes + 100;
    if (bytes > 0) packet.payload = payloads.acquire();
    SegmentList to;
    if (bytes > 0) to.add(PhysicalAddress{0x7000}, bytes);
    unit.place(std::move(packet), to, Cycles{at});
  }

  SimContext context{1};
  NicConfig config;
  PayloadPool payloads{4096};
  ObserverList observers;
  test::FakeObserver observer;
  test::Script script{"script", context};
  test::FakeDma dma{"dma", context, script};
  test::FakeDelivery delivery;
  test::FakeCounter counter;
  test::FakeCredit credit;
  PayloadWriter unit{"writer", context, config, NodeId{0}, observers};
};

TEST(PayloadWriter, WritesAtOnceAndTellsInOneTime) {
  Bench bench;
  bench.dma.write_time = ns(5);
  bench.place(0, 64, 10);
  ASSERT_EQ(bench.dma.writes.size(), 1U);
  EXPECT_EQ(bench.dma.writes[0].at, cycle(10));
  EXPECT_TRUE(bench.dma.writes[0].write.relaxed_ordering);
  EXPECT_FALSE(bench.dma.writes[0].write.is_word);
  EXPECT_EQ(bench.dma.writes[0].write.to.segments[0].address, PhysicalAddress{0x7000});
  ASSERT_EQ(bench.counter.calls.size(), 1U);
  EXPECT_EQ(bench.counter.calls[0].at, cycle(15));
  EXPECT_EQ(bench.counter.calls[0].packet.left[static_cast<std::size_t>(Stage::dma_write)], cycle(15));
  ASSERT_EQ(bench.delivery.disposals.size(), 1U);
  EXPECT_EQ(bench.delivery.disposals[0].at, cycle(15));
  ASSERT_EQ(bench.observer.placed.size(), 1U);
  EXPECT_EQ(bench.observer.placed[0].offset, 1'000U);
  ASSERT_EQ(bench.credit.calls.size(), 1U);
  EXPECT_EQ(bench.credit.calls[0], std::make_pair(164U, cycle(15)));
  EXPECT_EQ(bench.unit.stats().channel_ns.value(), ns(5));
}

TEST(PayloadWriter, PacketKeepsItsPlaceUntilTheCountersHaveRoom) {
  Bench bench;
  bench.dma.write_time = ns(5);
  bench.counter.room = ns(40);
  bench.place(0, 64, 10);
  bench.counter.room = ns(3);
  bench.place(1, 0, 20);
  ASSERT_EQ(bench.counter.calls.size(), 2U);
  EXPECT_EQ(bench.counter.calls[0].at, cycle(40));
  EXPECT_EQ(bench.credit.calls[0], std::make_pair(164U, cycle(40)));
  EXPECT_EQ(bench.delivery.disposals[0].at, cycle(40));
  EXPECT_EQ(bench.counter.calls[1].at, cycle(40)) << "in the order of the writes";
}

TEST(PayloadWriter, PayloadOccupiesTheDatapath) {
  Bench bench;
  for (const std::uint32_t bytes : {64U, 65U, 4096U, 1U}) bench.place(0, bytes, 10);
  ASSERT_EQ(bench.dma.writes.size(), 4U);
  EXPECT_EQ(bench.dma.writes[0].at, cycle(10));
  EXPECT_EQ(bench.dma.writes[1].at, cycle(11));
  EXPECT_EQ(bench.dma.writes[2].at, cycle(13));
  EXPECT_EQ(bench.dma.writes[3].at, cycle(77));
  EXPECT_EQ(bench.unit.stats().write.busy(), cycle(1 + 2 + 64 + 1));
  EXPECT_EQ(bench.unit.stats().wait_ns.value(), cycle(1 + 3 + 67));
}

TEST(PayloadWriter, AFastBusDoesNotFinishBeforeTheLastByteHasLeft) {
  Bench bench;
  bench.dma.write_time = ns(2);
  bench.place(0, 4096, 10);
  ASSERT_EQ(bench.counter.calls.size(), 1U);
  EXPECT_EQ(bench.counter.calls[0].at, cycle(10 + 64));
}

TEST(PayloadWriter, TellsInWriteOrderWhateverOrderTheBusAnswers) {
  Bench bench;
  bench.dma.write_time = Time::max();
  for (std::uint32_t i = 0; i < 3; ++i) bench.place(i, 64, 10 + i);
  ASSERT_EQ(bench.dma.writes.size(), 3U);
  EXPECT_EQ(bench.unit.stats().pending.value(), 3U);
  bench.unit.dma_written(bench.dma.writes[2].write.tag, cycle(30), Time::max());
  bench.unit.dma_written(bench.dma.writes[1].write.tag, cycle(40), Time::max());
  EXPECT_TRUE(bench.counter.calls.empty());
  bench.unit.dma_written(bench.dma.writes[0].write.tag, cycle(35), Time::max());
  ASSERT_EQ(bench.counter.calls.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(bench.counter.calls[i].packet.sequence, i);
  EXPECT_EQ(bench.counter.calls[0].at, cycle(35));
  EXPECT_EQ(bench.counter.calls[1].at, cycle(40));
  EXPECT_EQ(bench.counter.calls[2].at, cycle(40));
}

TEST(PayloadWriter, AnEmptyPacketPassesButNotAheadOfEarlierOnes) {
  Bench bench;
  bench.place(0, 0, 10);
  ASSERT_EQ(bench.counter.calls.size(), 1U);
  EXPECT_EQ(bench.counter.calls[0].at, cycle(10));
  EXPECT_TRUE(bench.dma.writes.empty());

  bench.dma.write_time = ns(100);
  bench.place(1, 64, 20);
  bench.place(2, 0, 21);
  ASSERT_EQ(bench.counter.calls.size(), 3U);
  EXPECT_EQ(bench.counter.calls[2].at, cycle(120));

  bench.dma.write_time = Time::max();
  bench.place(3, 64, 200);
  bench.place(4, 0, 201);
  EXPECT_EQ(bench.counter.calls.size(), 3U);
  bench.unit.dma_written(bench.dma.writes[1].write.tag, cycle(202), Time::max());
  ASSERT_EQ(bench.counter.calls.size(), 5U);
  EXPECT_EQ(bench.counter.calls[4].packet.sequence, 4U);
  EXPECT_EQ(bench.counter.calls[4].at, cycle(202));
  EXPECT_EQ(bench.unit.stats().empty_packets.value(), 3U);
}

TEST(PayloadWriter, LetsGoOfThePayload) {
  Bench bench;
  bench.dma.write_time = Time::max();
  bench.place(0, 64, 10);
  EXPECT_EQ(bench.payloads.in_use(), 1U);
  bench.dma.writes[0].write.payload.reset();  // the DMA engine's own reference
  bench.unit.dma_written(bench.dma.writes[0].write.tag, cycle(20), Time::max());
  EXPECT_EQ(bench.payloads.in_use(), 0U);
}

}  // namespace
}  // namespace rvma
