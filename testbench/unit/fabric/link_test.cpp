#include "fabric/link.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/int128.hpp"
#include "base/random.hpp"
#include "traffic.hpp"

namespace rvma {
namespace {

using test::data_packet;
using test::Receiver;
using test::Sender;

constexpr std::uint64_t kSeed = 7;
/// Of a data packet without payload.
constexpr std::uint32_t kSmall = kDataOverheadBytes;

TEST(Link, LatencyOfOnePacket) {
  SimContext context{1};
  PacketPool pool;
  Receiver receiver;
  Link link{LinkConfig{}, receiver, {Bytes::kib(64)}};
  // 64 bytes of payload: 194 bytes at 400 Gb/s (20 ps each), then 40 ns of flight.
  EXPECT_EQ(link.earliest_start(194, Time::from_ns(7)), Time::from_ns(7));
  EXPECT_EQ(link.send(data_packet(pool, 0, 1, 0, 64), Time::from_ns(7)), Time::from_ns(7));
  ASSERT_EQ(receiver.arrivals.size(), 1U);
  EXPECT_EQ(receiver.arrivals[0].at, Time::from_ps(7'000 + 194 * 20 + 40'000));
  // The next one starts when this one's last bit has left, neither earlier nor later.
  EXPECT_EQ(link.earliest_start(194, Time::from_ps(7'000 + 194 * 20 - 1)), Time::from_ps(7'000 + 194 * 20));
  EXPECT_EQ(link.earliest_start(194, Time::from_ps(7'000 + 194 * 20 + 1)), Time::from_ps(7'000 + 194 * 20 + 1));
}

TEST(Link, RateIsExactOverManyPackets) {
  SimContext context{1};
  PacketPool pool;
  Receiver receiver;
  LinkConfig config;
  config.rate = Rate::gbps(333);  // 24.024... ps a byte
  Link link{config, receiver, {Bytes::kib(64)}};
  receiver.credit = &link;
  Random random{kSeed};
  std::uint64_t bytes = 0;
  std::uint64_t payload = 0;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    PacketPtr packet = data_packet(pool, 0, 1, i, static_cast<std::uint16_t>(random.below(4097)));
    bytes += packet->wire_bytes;
    payload += packet->data.payload_length;
    link.send(std::move(packet), Time::zero());
  }
  const auto bits_ps = static_cast<detail::uint128>(bytes) * 8 * 1'000'000'000'000U;
  const auto expected = static_cast<std::int64_t>((bits_ps + 332'999'999'999U) / 333'000'000'000U);
  // 64 KiB of credit cover more than the round trip, so nothing ever stalls.
  EXPECT_EQ(receiver.arrivals.back().at, Time::from_ps(expected + 40'000));
  EXPECT_TRUE(receiver.ordered);
  EXPECT_EQ(link.stats().packets.value(), 100'000U);
  EXPECT_EQ(link.stats().wire_bytes.value(), bytes);
  EXPECT_EQ(link.stats().payload_bytes.value(), payload);
  EXPECT_EQ(link.stats().credit_stall_ns.value(), Time::zero());
  EXPECT_EQ(link.stats().wire.busy(), Time::from_ps(expected));
  EXPECT_EQ(link.stats().wire.work(), 8 * bytes);
  EXPECT_EQ(context.activations(), 0U);
}

TEST(Link, StallsExactlyUntilTheCreditIsKnown) {
  SimContext context{1};
  PacketPool pool;
  Receiver receiver;
  Link link{LinkConfig{}, receiver, {Bytes{2 * kSmall}}};
  int told = 0;
  link.on_credit([&told] { ++told; });
  link.send(data_packet(pool, 0, 1, 0, 0), Time::zero());
  link.send(data_packet(pool, 0, 1, 1, 0), Time::zero());
  EXPECT_TRUE(link.earliest_start(kSmall, Time::zero()).is_never());
  // Space free from 500 ns on is known one flight later. One byte short is not enough.
  link.return_credit(kSmall - 1, Time::from_ns(500));
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(link.earliest_start(kSmall, Time::zero()).is_never());
  EXPECT_EQ(link.earliest_start(kSmall - 1, Time::zero()), Time::from_ns(540));
  link.return_credit(1, Time::from_ns(600));
  EXPECT_EQ(told, 2);
  EXPECT_EQ(link.send(data_packet(pool, 0, 1, 2, 0), Time::zero()), Time::from_ns(640));
  EXPECT_EQ(link.stats().credit_stall_ns.value(), Time::from_ns(640) - Time::from_ps(2 * 20 * kSmall));
  // Nobody asked in vain since: nobody is told.
  link.return_credit(kSmall, Time::from_ns(700));
  EXPECT_EQ(told, 2);
}

TEST(Link, CreditsMayReturnInAnyOrder) {
  SimContext context{1};
  PacketPool pool;
  Receiver receiver;
  Link link{LinkConfig{}, receiver, {Bytes{2 * kSmall}}};
  link.send(data_packet(pool, 0, 1, 0, 0), Time::zero());
  link.send(data_packet(pool, 0, 1, 1, 0), Time::zero());
  link.return_credit(kSmall, Time::from_ns(900));
  link.return_credit(kSmall, Time::from_ns(300));
  EXPECT_EQ(link.earliest_start(2 * kSmall, Time::zero()), Time::from_ns(940));
  EXPECT_EQ(link.send(data_packet(pool, 0, 1, 2, 0), Time::zero()), Time::from_ns(340));
  EXPECT_EQ(link.send(data_packet(pool, 0, 1, 3, 0), Time::zero()), Time::from_ns(940));
}

TEST(Link, AskingForLaterDoesNotSpendCreditOfLater) {
  SimContext context{1};
  PacketPool pool;
  Receiver receiver;
  Link link{LinkConfig{}, receiver, {Bytes{kSmall}}};
  link.send(data_packet(pool, 0, 1, 0, 0), Time::zero());
  link.return_credit(kSmall, Time::from_ns(500));
  EXPECT_EQ(link.earliest_start(kSmall, Time::from_us(5)), Time::from_us(5));
  EXPECT_EQ(link.earliest_start(kSmall, Time::from_ns(1)), Time::from_ns(540));
}

TEST(Link, RandomTrafficThroughASmallBufferNeverStops) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  SimContext context{1};
  PacketPool pool;
  // Gives space back by events, in random order.
  struct SlowReceiver : Component, PacketSinkIf {
    explicit SlowReceiver(SimContext& sim)
        : Component("receiver", sim, Frequency::mhz(1000)),
          random(kSeed),
          wakeup(*this, "wakeup", [this] { work(); }) {}
    void deliver(PacketPtr packet, Time at) override {
      held_bytes += packet->wire_bytes;
      most_held = std::max(most_held, held_bytes);
      sequence_is_right = sequence_is_right && packet->transport.sequence == received++;
      due.emplace_back(at + Time::from_ps(static_cast<std::int64_t>(random.below(2'000'000))), packet->wire_bytes);
      wakeup.at(due.back().first);
    }
    void work() {
      Time next = Time::max();
      std::vector<std::pair<Time, std::uint32_t>> ripe;
      for (std::size_t i = 0; i < due.size();) {
        if (due[i].first <= now()) {
          ripe.push_back(due[i]);
          due[i] = due.back();
          due.pop_back();
        } else {
          next = std::min(next, due[i++].first);
        }
      }
      if (!next.is_never()) wakeup.at(next);
      for (const auto& [time, bytes] : ripe) {
        held_bytes -= bytes;
        link->return_credit(bytes, now());
      }
    }
    Random random;
    Link* link = nullptr;
    std::vector<std::pair<Time, std::uint32_t>> due;
    std::uint64_t held_bytes = 0;
    std::uint64_t most_held = 0;
    std::uint32_t received = 0;
    bool sequence_is_right = true;
    Wakeup wakeup;
  };
  SlowReceiver receiver{context};
  Link link{LinkConfig{}, receiver, {Bytes{9000}}};
  receiver.link = &link;
  Sender sender{link};
  Random sizes{kSeed + 1};
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    sender.push(data_packet(pool, 0, 1, i, static_cast<std::uint16_t>(sizes.below(4097))));
  }
  sender.pump();
  sc_core::sc_start();
  EXPECT_EQ(sender.left(), 0U);
  EXPECT_EQ(receiver.received, 10'000U);
  EXPECT_TRUE(receiver.sequence_is_right);
  EXPECT_EQ(receiver.held_bytes, 0U);
  EXPECT_LE(receiver.most_held, 9000U);
  EXPECT_GT(receiver.most_held, 4500U);
  EXPECT_GT(link.stats().credit_stall_ns.value(), Time::zero());
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(LinkDeathTest, APacketThatCouldNeverGoIsAnAssertion) {
  SimContext context{1};
  Receiver receiver;
  Link link{LinkConfig{}, receiver, {Bytes{1000}}};
  EXPECT_EXIT(link.earliest_start(1001, Time::zero()), testing::ExitedWithCode(3), "longer than the buffer");
}

}  // namespace
}  // namespace rvma
