// The receive path's units together: parser, address conversion, payload writer, up to the counter unit's input, with a
// DMA engine that never limits.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/random.hpp"
#include "nic/address_conversion.hpp"
#include "nic/payload_writer.hpp"
#include "nic/receive_parser.hpp"
#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::cycle;
using test::ns;
using test::run_until;
using test::single;

constexpr std::uint64_t kPage = 4096;
// Cycles from a packet's last bit: parsed, converted, in the posted channel (written in its first cycle on the
// datapath).
constexpr std::int64_t kParse = 4;
constexpr std::int64_t kConversion = 4;
constexpr std::int64_t kDma = 2;

struct Bench {
  Bench() {
    observers.add(observer);
    const WindowId slot = test::open_window(windows, 1, std::uint64_t{1} << 40U);
    table.know(Mailbox{1}, slot);
    test::post(windows, slot, 0x10'0000, std::uint64_t{1} << 20U, 0x4000'0000, true);
    parser.lookup.bind(table);
    parser.conversion.bind(conversion);
    parser.acknowledgements.bind(acks);
    parser.credit.bind(credit);
    conversion.lookup.bind(table);
    conversion.delivery.bind(delivery);
    conversion.dma.bind(dma);
    conversion.writer.bind(writer);
    conversion.credit.bind(credit);
    writer.dma.bind(dma);
    writer.delivery.bind(delivery);
    writer.counter.bind(counter);
    writer.credit.bind(credit);
    dma.write_time = cycle(kDma);
  }
  /// `count` packets of `bytes`, each as soon as the one before leaves the input: the last bits all arrive at `at`.
  void burst(std::uint32_t count, std::uint16_t bytes, Time at) {
    script.at(at, [this, count, bytes, at] {
      for (std::uint32_t i = 0; i < count; ++i) parser.deliver(data_packet(pool, single(next_++, bytes)), at);
    });
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
  test::FakeAckSink acks;
  test::FakeCounter counter;
  test::FakeCredit credit;
  WindowStore windows{config};
  ReceiveParser parser{"parser", context, config, NodeId{0}, observers};
  AddressConversion conversion{"conversion", context, config, Bytes{kPage}, NodeId{0}, windows, observers};
  PayloadWriter writer{"writer", context, config, NodeId{0}, observers};

 private:
  std::uint32_t next_ = 0;
};

/// Packet n's write starts exactly n x `cycles` after the first one's, from end to end of a long burst.
void expect_rate(std::uint16_t bytes, std::int64_t cycles) {
  SCOPED_TRACE(bytes);
  Bench bench;
  constexpr std::uint32_t kPackets = 200;
  bench.burst(kPackets, bytes, cycle(100));
  run_until(ns(100'000));
  ASSERT_EQ(bench.counter.calls.size(), kPackets);
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    const StageTimes& left = bench.counter.calls[i].packet.left;
    const Time parsed = cycle(100 + kParse + i * cycles);
    ASSERT_EQ(left[static_cast<std::size_t>(Stage::parse)], parsed) << i;
    ASSERT_EQ(left[static_cast<std::size_t>(Stage::address_conversion)], parsed + cycle(kConversion)) << i;
    if (bytes > 0) {
      ASSERT_EQ(bench.dma.writes[i].at, parsed + cycle(kConversion)) << i;
    }
    ASSERT_EQ(bench.counter.calls[i].packet.sequence, i);
  }
  EXPECT_EQ(bench.parser.stats().parse.busy(), cycle(kPackets * cycles));
  EXPECT_EQ(bench.writer.stats().write.busy(), cycle(kPackets * cycles));
  EXPECT_EQ(bench.writer.stats().wait_ns.value(), Time::zero());
  EXPECT_EQ(bench.conversion.stats().stalled_on_writes_ns.value(), Time::zero());
  EXPECT_EQ(bench.credit.total(), std::uint64_t{kPackets} * (100U + bytes));
  EXPECT_EQ(bench.pool.in_use(), 0U);
}

TEST(ReceivePipeline, AcceptsAHeaderEveryCycle) { expect_rate(0, 1); }
TEST(ReceivePipeline, Accepts64BytesEveryCycle) { expect_rate(64, 1); }
TEST(ReceivePipeline, Accepts65BytesEveryOtherCycle) { expect_rate(65, 2); }
TEST(ReceivePipeline, Accepts4KiBEvery64Cycles) { expect_rate(4096, 64); }

TEST(ReceivePipeline, LatencyStageByStage) {
  Bench bench;
  bench.burst(1, 64, Time::from_ps(99'400));  // taken at edge 100
  run_until(cycle(100 + kParse) - Time::from_ps(1));
  EXPECT_TRUE(bench.delivery.admitted.empty());
  EXPECT_TRUE(bench.dma.writes.empty());
  run_until(cycle(100 + kParse));
  ASSERT_EQ(bench.delivery.admitted.size(), 1U);
  EXPECT_EQ(bench.delivery.admitted[0].second, cycle(100 + kParse));
  ASSERT_EQ(bench.counter.calls.size(), 1U);
  const StageTimes& left = bench.counter.calls[0].packet.left;
  EXPECT_EQ(left[static_cast<std::size_t>(Stage::fabric)], Time::from_ps(99'400));
  EXPECT_EQ(left[static_cast<std::size_t>(Stage::parse)], cycle(100 + kParse));
  EXPECT_EQ(left[static_cast<std::size_t>(Stage::address_conversion)], cycle(100 + kParse + kConversion));
  EXPECT_EQ(left[static_cast<std::size_t>(Stage::dma_write)], cycle(100 + kParse + kConversion + kDma));
  EXPECT_EQ(bench.counter.calls[0].at, cycle(100 + kParse + kConversion + kDma));
}

TEST(ReceivePipeline, CostsOneActivationAPacket) {
  Bench bench;
  constexpr std::uint32_t kPackets = 100;
  for (std::uint32_t i = 0; i < kPackets; ++i) bench.burst(1, 64, cycle(100 + 50 * i));
  run_until(ns(100'000));
  EXPECT_EQ(bench.counter.calls.size(), kPackets);
  EXPECT_EQ(bench.context.activations(), 2U * kPackets);  // one of them is the script's
}

TEST(ReceivePipeline, MixedTrafficKeepsOrderAndOccupancy) {
  constexpr std::uint64_t kSeed = 3'141;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random{kSeed};
  Bench bench;
  std::vector<std::uint16_t> lengths;
  Time at = cycle(10);
  for (std::uint32_t i = 0; i < 1'000; ++i) {
    lengths.push_back(static_cast<std::uint16_t>(random.below(4) == 0 ? random.below(4'097) : random.below(65)));
    at += Time::from_ps(static_cast<std::int64_t>(random.below(9'000)));
    bench.burst(1, lengths.back(), at);
  }
  run_until(ns(200'000));
  ASSERT_EQ(bench.counter.calls.size(), lengths.size());
  std::int64_t busy = 0;
  for (std::uint32_t i = 0; i < lengths.size(); ++i) {
    ASSERT_EQ(bench.counter.calls[i].packet.sequence, i);
    busy += std::max(1, (lengths[i] + 63) / 64);
  }
  EXPECT_EQ(bench.parser.stats().parse.busy(), cycle(busy));
  EXPECT_EQ(bench.writer.stats().write.busy(), cycle(busy));
}

}  // namespace
}  // namespace rvma
