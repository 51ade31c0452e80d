#include "nic/egress.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::ns;
using test::run_until;
using test::Script;

constexpr NodeId kSelf{7};
constexpr NodeId kPeer{1};

/// Every packet takes 100 ns; without credit it can never start.
class FakeLink : public sc_core::sc_object, public LinkIf {
 public:
  struct Sent {
    PacketType type;
    std::uint32_t sequence;
    Time start;
    Time stamped;
  };
  Time earliest_start(std::uint32_t /*wire_bytes*/, Time not_before) override {
    return has_credit ? std::max(not_before, free_at_) : Time::max();
  }
  Time send(PacketPtr packet, Time not_before) override {
    const Time start = earliest_start(packet->wire_bytes, not_before);
    sent.push_back({packet->transport.type, packet->transport.sequence, start,
                    packet->left[static_cast<std::size_t>(Stage::transmit)]});
    free_at_ = start + ns(100);
    return start;
  }
  void on_credit(std::function<void()> ready) override { ready_ = std::move(ready); }
  void give_credit() {
    has_credit = true;
    ready_();
  }
  bool has_credit = true;
  std::vector<Sent> sent;

 private:
  Time free_at_;
  std::function<void()> ready_;
};

class FakeSink : public sc_core::sc_object, public PacketSinkIf {
 public:
  void deliver(PacketPtr packet, Time at) override { arrived.emplace_back(std::move(packet), at); }
  std::vector<std::pair<PacketPtr, Time>> arrived;
};

class SentObserver : public NicObserver {
 public:
  void packet_sent(NodeId /*node*/, const Packet& packet, Time at) override {
    sent.emplace_back(packet.transport.sequence, at);
  }
  std::vector<std::pair<std::uint32_t, Time>> sent;
};

struct Bench {
  explicit Bench(std::uint64_t datapath_bytes = 64) {
    config.datapath = Bytes{datapath_bytes};
    observers.add(observer);
    egress = std::make_unique<Egress>("egress", context, config, kSelf, observers);
    egress->link(link);
    egress->turn_round(sink);
    egress->on_departure([this](const Egress::Departure& departure) {
      departures.emplace_back(departure.payload_bytes, departure.at);
      last_departure = departure;
    });
  }
  Egress::Departure last_departure;
  PacketPtr packet(PacketType type, std::uint32_t sequence, std::uint16_t payload = 64, NodeId destination = kPeer) {
    PacketPtr made = packets.acquire();
    made->transport.type = type;
    made->transport.destination = destination;
    made->transport.sequence = sequence;
    made->data.payload_length = payload;
    made->wire_bytes = 100U + payload;
    return made;
  }
  void data(Time when, std::uint32_t sequence, std::uint16_t payload = 64, NodeId destination = kPeer) {
    script.at(when, [=] { egress->send_data(packet(PacketType::data, sequence, payload, destination), when); });
  }
  void ack(Time when, std::uint32_t sequence) {
    script.at(when, [=] { egress->send_acknowledgement(packet(PacketType::acknowledgement, sequence, 0), when); });
  }

  SimContext context{1};
  NicConfig config;
  PacketPool packets;
  ObserverList observers;
  SentObserver observer;
  FakeLink link;
  FakeSink sink;
  Script script{"script", context};
  std::unique_ptr<Egress> egress;
  std::vector<std::pair<std::uint32_t, Time>> departures;
};

TEST(Egress, IdleItHandsOnAtItsLatencyWithoutAnActivation) {
  Bench bench;
  bench.data(ns(50), 1);
  run_until(ns(60));
  ASSERT_EQ(bench.link.sent.size(), 1U);
  EXPECT_EQ(bench.link.sent[0].start, ns(54));
  EXPECT_EQ(bench.link.sent[0].stamped, ns(54));
  ASSERT_EQ(bench.observer.sent.size(), 1U);
  EXPECT_EQ(bench.observer.sent[0].second, ns(54));
  ASSERT_EQ(bench.departures.size(), 1U);
  EXPECT_EQ(bench.departures[0], std::make_pair(64U, ns(54)));
  EXPECT_EQ(bench.context.activations(), 1U);  // the script's
}

TEST(Egress, BehindABusyLinkOnePacketCostsOneActivation) {
  Bench bench;
  for (std::uint32_t i = 0; i < 10; ++i) bench.data(ns(50), i);
  run_until(Time::from_us(5));
  ASSERT_EQ(bench.link.sent.size(), 10U);
  for (std::uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(bench.link.sent[i].sequence, i);
    EXPECT_EQ(bench.link.sent[i].start, ns(54 + 100 * std::int64_t{i}));
  }
  EXPECT_LE(bench.context.activations(), 1U + 9U);
  EXPECT_EQ(bench.egress->stats().queue.value(), 9U);
}

TEST(Egress, AcknowledgementsOvertakeWaitingData) {
  Bench bench;
  for (std::uint32_t i = 0; i < 3; ++i) bench.data(ns(50), i);
  bench.ack(ns(60), 90);
  bench.ack(ns(61), 91);
  run_until(Time::from_us(5));
  ASSERT_EQ(bench.link.sent.size(), 5U);
  EXPECT_EQ(bench.link.sent[1].sequence, 90U);
  EXPECT_EQ(bench.link.sent[1].start, ns(154));
  EXPECT_EQ(bench.link.sent[2].sequence, 91U);
  EXPECT_EQ(bench.link.sent[3].sequence, 1U);
  EXPECT_EQ(bench.departures.size(), 3U);  // acknowledgements hold no transmit buffer
}

TEST(Egress, WaitsForCreditWithoutPolling) {
  Bench bench;
  bench.link.has_credit = false;
  bench.data(ns(50), 0);
  bench.data(ns(50), 1);
  run_until(Time::from_us(100));
  EXPECT_TRUE(bench.link.sent.empty());
  EXPECT_EQ(bench.context.activations(), 1U);
  EXPECT_EQ(bench.egress->stats().credit_stalls.value(), 1U);
  bench.script.at(Time::from_us(200), [&] { bench.link.give_credit(); });
  run_until(Time::from_us(300));
  ASSERT_EQ(bench.link.sent.size(), 2U);
  EXPECT_EQ(bench.link.sent[0].start, Time::from_us(200));
  EXPECT_EQ(bench.link.sent[1].start, Time::from_us(200) + ns(100));
}

TEST(Egress, TheDatapathLimitsWhatItIsTooNarrowFor) {
  Bench bench{8};  // 1,600 B take 200 cycles
  for (std::uint32_t i = 0; i < 4; ++i) bench.data(ns(50), i, 1600);
  run_until(Time::from_us(5));
  ASSERT_EQ(bench.link.sent.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(bench.link.sent[i].start, ns(54 + 200 * std::int64_t{i}));
  EXPECT_EQ(bench.egress->stats().datapath.busy(), ns(800));
}

TEST(Egress, OwnNodesPacketsTurnRoundBeforeTheLink) {
  Bench bench;
  bench.link.has_credit = false;
  bench.data(ns(50), 3, 64, kSelf);
  run_until(ns(60));
  EXPECT_TRUE(bench.link.sent.empty());
  ASSERT_EQ(bench.sink.arrived.size(), 1U);
  EXPECT_EQ(bench.sink.arrived[0].second, ns(54));
  EXPECT_EQ(bench.sink.arrived[0].first->wire_bytes, 0U);  // no credit to be returned for it
  EXPECT_EQ(bench.departures.size(), 1U);
  EXPECT_EQ(bench.egress->stats().turned_round.value(), 1U);
  bench.sink.arrived.clear();
}

}  // namespace
}  // namespace rvma
