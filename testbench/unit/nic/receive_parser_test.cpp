#include "nic/receive_parser.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::cycle;
using test::PacketSpec;

struct Bench {
  explicit Bench(bool with_credit = true) {
    observers.add(observer);
    parser.lookup.bind(table);
    parser.conversion.bind(conversion);
    parser.acknowledgements.bind(acks);
    if (with_credit) parser.credit.bind(credit);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  void deliver(const PacketSpec& spec, Time at) { parser.deliver(data_packet(pool, spec), at); }

  SimContext context{1};
  NicConfig config;
  PacketPool pool;
  ObserverList observers;
  test::FakeObserver observer;
  test::FakeTable table;
  test::FakeConversion conversion;
  test::FakeAckSink acks;
  test::FakeCredit credit;
  ReceiveParser parser{"parser", context, config, NodeId{0}, observers};
};

TEST(ReceiveParser, TakesAHeaderEveryCycle) {
  Bench bench;
  for (std::uint32_t i = 0; i < 3; ++i) bench.deliver(test::single(i, 0), Time::zero());
  ASSERT_EQ(bench.conversion.calls.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bench.conversion.calls[i].sequence, i);
    EXPECT_EQ(bench.conversion.calls[i].ready, Cycles{4 + i});  // nic.receive.parse_latency
    EXPECT_EQ(bench.table.lookups[i].at, Cycles{2 + i});        // the table answers two cycles later
  }
  EXPECT_EQ(bench.parser.stats().wait_ns.value(), cycle(1 + 2));
  EXPECT_EQ(bench.parser.stats().parse.busy(), cycle(3));
}

TEST(ReceiveParser, PayloadStreamsAtTheDatapathsWidth) {
  Bench bench;
  const std::vector<std::pair<std::uint16_t, std::int64_t>> occupancy{{0, 1},   {1, 1},     {64, 1},   {65, 2},
                                                                      {128, 2}, {4095, 64}, {4096, 64}};
  std::uint32_t number = 0;
  for (const auto& packet : occupancy) bench.deliver(test::single(number++, packet.first), Time::zero());
  std::int64_t ready = 4;
  for (std::size_t i = 0; i < occupancy.size(); ++i) {
    EXPECT_EQ(bench.conversion.calls[i].ready, Cycles{ready}) << i;
    ready += occupancy[i].second;
  }
  EXPECT_EQ(bench.parser.stats().parse.work(), 8U * (1 + 64 + 65 + 128 + 4095 + 4096));
  EXPECT_EQ(bench.parser.stats().payload_bytes.value(), 1U + 64 + 65 + 128 + 4095 + 4096);
}

TEST(ReceiveParser, TakesThePacketAtTheNextEdge) {
  Bench bench;
  bench.deliver(test::single(0, 64), Time::from_ps(7'000));
  bench.deliver(test::single(1, 64), Time::from_ps(8'001));
  ASSERT_EQ(bench.conversion.calls.size(), 2U);
  EXPECT_EQ(bench.conversion.calls[0].ready, Cycles{7 + 4});
  EXPECT_EQ(bench.conversion.calls[1].ready, Cycles{9 + 4});
  const StageTimes& left = bench.conversion.calls[1].left;
  EXPECT_EQ(left[static_cast<std::size_t>(Stage::fabric)], Time::from_ps(8'001));
  EXPECT_EQ(left[static_cast<std::size_t>(Stage::parse)], cycle(13));
}

TEST(ReceiveParser, DropsADamagedPacketBeforeItsLookup) {
  Bench bench;
  PacketPtr packet = data_packet(bench.pool, test::single(5, 64));
  packet->corrupted = true;
  bench.parser.deliver(std::move(packet), cycle(10));
  bench.deliver(test::single(6, 64), cycle(10));
  EXPECT_EQ(bench.table.lookups.size(), 1U);
  ASSERT_EQ(bench.conversion.calls.size(), 1U);
  EXPECT_EQ(bench.conversion.calls[0].sequence, 6U);
  EXPECT_EQ(bench.conversion.calls[0].ready, Cycles{15});  // the damaged one took its cycle all the same
  ASSERT_EQ(bench.observer.ignored.size(), 1U);
  EXPECT_EQ(bench.observer.ignored[0].why, "crc");
  EXPECT_EQ(bench.observer.ignored[0].at, cycle(14));
  ASSERT_EQ(bench.credit.calls.size(), 1U);
  EXPECT_EQ(bench.credit.calls[0], std::make_pair(164U, cycle(14)));
  EXPECT_EQ(bench.parser.stats().corrupt_packets.value(), 1U);
}

TEST(ReceiveParser, AcknowledgementsLeaveWithoutALookup) {
  Bench bench;
  PacketPtr packet = bench.pool.acquire();
  packet->transport.type = PacketType::acknowledgement;
  packet->ack.cumulative = 77;
  packet->wire_bytes = 120;
  bench.parser.deliver(std::move(packet), cycle(3));
  ASSERT_EQ(bench.acks.calls.size(), 1U);
  EXPECT_EQ(bench.acks.calls[0], std::make_pair(77U, cycle(7)));
  EXPECT_TRUE(bench.table.lookups.empty());
  ASSERT_EQ(bench.credit.calls.size(), 1U);
  EXPECT_EQ(bench.credit.calls[0], std::make_pair(120U, cycle(7)));
  EXPECT_EQ(bench.observer.arrived.size(), 1U);
}

TEST(ReceiveParser, WorksWithoutCredits) {
  Bench bench{false};
  PacketPtr packet = data_packet(bench.pool, test::single(5, 64));
  packet->corrupted = true;
  bench.parser.deliver(std::move(packet), Time::zero());
  EXPECT_EQ(bench.parser.stats().corrupt_packets.value(), 1U);
  EXPECT_EQ(bench.pool.in_use(), 0U);
}

TEST(ReceiveParser, RandomTrafficFollowsTheOccupancyModel) {
  constexpr std::uint64_t kSeed = 20'211'004;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random{kSeed};
  Bench bench;
  Time at;
  std::int64_t free_at = 0;
  std::vector<std::int64_t> expected;
  for (std::uint32_t i = 0; i < 2'000; ++i) {
    at += Time::from_ps(static_cast<std::int64_t>(random.below(20'000)));
    const auto length = static_cast<std::uint16_t>(random.below(1'500));
    const std::int64_t taken = std::max((at.ps() + 999) / 1'000, free_at);
    free_at = taken + std::max(1, (length + 63) / 64);
    expected.push_back(taken + 4);
    bench.deliver(test::single(i, length), at);
  }
  ASSERT_EQ(bench.conversion.calls.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(bench.conversion.calls[i].ready, Cycles{expected[i]}) << i;
  }
}

}  // namespace
}  // namespace rvma
