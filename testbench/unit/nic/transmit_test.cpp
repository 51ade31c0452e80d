#include "nic/transmit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "fabric/wire.hpp"
#include "host/interfaces.hpp"
#include "nic/window_store.hpp"
#include "transmit_mocks.hpp"

namespace rvma {
namespace {

using test::cycle;
using test::MemoryDma;
using test::ns;
using test::run_until;
using test::Script;

constexpr NodeId kSelf{7};
constexpr std::uint32_t kBoot = 3;
constexpr std::uint64_t kWords = 0x1000;   ///< completion words, 16 B each
constexpr std::uint64_t kSource = 0x8000;  ///< pages with the puts' data

/// Keeps the packets; they depart at once, or when told.
class FakeEgress : public sc_core::sc_object, public EgressIf {
 public:
  void send_data(PacketPtr packet, Time ready) override {
    const Egress::Departure departure{packet->transport.destination, packet->transport.generation,
                                      packet->transport.sequence, packet->data.payload_length, ready};
    sent.emplace_back(std::move(packet), ready);
    if (hold) {
      held.push_back(departure);
    } else {
      transmit->departed(departure);
    }
  }
  void send_acknowledgement(PacketPtr /*packet*/, Time /*ready*/) override { FAIL(); }
  const Packet& packet(std::size_t i) const { return *sent.at(i).first; }

  std::vector<std::pair<PacketPtr, Time>> sent;
  bool hold = false;
  std::deque<Egress::Departure> held;
  void let_go(Time at) {
    Egress::Departure departure = held.front();
    held.pop_front();
    departure.at = at;
    transmit->departed(departure);
  }
  Transmit* transmit = nullptr;
};

class PutObserver : public NicObserver {
 public:
  void message_opened(NodeId /*node*/, PhysicalAddress put, NodeId /*destination*/, const MessageRef& message,
                      Time /*at*/) override {
    opened.emplace_back(put.value(), message);
  }
  void put_ended(NodeId /*node*/, PhysicalAddress put, Outcome outcome, std::uint32_t tries, Time at) override {
    ended.push_back({put.value(), outcome, tries, at});
  }
  struct Ended {
    std::uint64_t put;
    Outcome outcome;
    std::uint32_t tries;
    Time at;
  };
  std::vector<std::pair<std::uint64_t, MessageRef>> opened;
  std::vector<Ended> ended;
};

struct FakeGets : GetSinkIf {
  void ended(const PutRequest& /*request*/, Outcome outcome, std::uint32_t /*tries*/, Time /*at*/) override {
    outcomes.push_back(outcome);
  }
  bool may_read(const PutRequest& /*answer*/) override { return true; }
  std::vector<Outcome> outcomes;
};

struct Bench {
  explicit Bench(const std::function<void(NicConfig&)>& change = {}, bool timing_only = false) {
    if (change) change(config);
    payloads = std::make_unique<PayloadPool>(static_cast<std::uint32_t>(config.mtu->count()));
    observers.add(observer);
    transmit = std::make_unique<Transmit>("transmit", context,
                                          Transmit::Parameters{config, Bytes{4096}, kSelf, kBoot, timing_only}, packets,
                                          *payloads, arm, observers);
    transmit->dma(dma);
    transmit->egress(egress);
    transmit->gets(gets);
    transmit->on_room([this] { ++rooms; });
    egress.transmit = transmit.get();
    for (std::size_t i = kSource; i < dma.memory.size(); ++i) {
      dma.memory[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    }
  }
  ~Bench() { egress.sent.clear(); }

  /// A put of `length` bytes that lie in one page, number `n`.
  static PutRequest put(std::uint32_t n, std::uint64_t length, NodeId to = NodeId{1}) {
    PutRequest request;
    request.descriptor.opcode = Opcode::put;
    request.descriptor.mailbox = Mailbox{0xbeef};
    request.descriptor.key = 99;
    request.descriptor.offset = 5;
    request.descriptor.length = length;
    request.descriptor.local = VirtualAddress{0x7000'0000};
    request.descriptor.page_list = PhysicalAddress{kSource};
    request.descriptor.single_page = true;
    request.descriptor.completion = PhysicalAddress{kWords + std::uint64_t{16} * n};
    request.descriptor.destination_node = to;
    request.descriptor.destination_pid = Pid{2};
    request.pid = Pid{4};
    request.doorbell = ns(90);
    return request;
  }
  /// Message number `n` of an RDMA queue pair; its address is its number.
  static PutRequest message(std::uint32_t n, std::uint32_t queue_pair, RdmaOperation operation = RdmaOperation::send) {
    PutRequest request = put(n, 64);
    request.purpose = Purpose::rdma;
    request.descriptor.mailbox = Mailbox{n};
    request.descriptor.offset = 0;
    request.rdma = {operation, queue_pair, 0};
    return request;
  }
  void submit(Time when, const PutRequest& request, bool expected = true) {
    script.at(when, [=] { EXPECT_EQ(transmit->submit(request, Cycles{when.ps() / 1000}), expected); });
  }
  /// Packets below `cumulative`, messages below `outcomes_from` ok, then the list.
  void acknowledge(Time when, std::uint32_t cumulative, std::uint32_t outcomes_from, std::vector<Outcome> outcomes = {},
                   std::uint32_t generation = 1, NodeId from = NodeId{1}) {
    script.at(when, [=] {
      PacketPtr packet = packets.acquire();
      packet->transport.type = PacketType::acknowledgement;
      packet->transport.source = from;
      packet->transport.destination = kSelf;
      packet->transport.source_incarnation = 8;
      packet->transport.destination_incarnation = kBoot;
      packet->transport.generation = generation;
      packet->ack.cumulative = cumulative;
      packet->ack.outcomes_from = MessageId{outcomes_from};
      packet->ack.outcomes = outcomes;
      transmit->acknowledgement(std::move(packet), when);
    });
  }
  /// From a packet's sending to giving its receiver up. Payload is read anew for each sending.
  Time patience() const {
    TransmitLimits limits;
    limits.max_tries = config.reliability.max_tries;
    limits.rto = config.reliability.rto;
    return limits.patience();
  }
  Outcome ended(std::uint32_t n) const {
    const MemoryDma::WordWrite* word = dma.word_at(kWords + std::uint64_t{16} * n);
    return word == nullptr ? Outcome::pending : static_cast<Outcome>(word->first);
  }

  SimContext context{1};
  NicConfig config;
  PacketPool packets;
  std::unique_ptr<PayloadPool> payloads;
  InterruptArm arm;
  ObserverList observers;
  PutObserver observer;
  Script script{"script", context};
  MemoryDma dma{"dma", context, script};
  FakeEgress egress;
  FakeGets gets;
  std::unique_ptr<Transmit> transmit;
  int rooms = 0;
};

TEST(Transmit, OnePutFromDescriptorToCompletionWord) {
  Bench bench;
  bench.submit(ns(100), Bench::put(0, 64));
  run_until(ns(599));
  EXPECT_TRUE(bench.egress.sent.empty());
  run_until(ns(601));
  ASSERT_EQ(bench.egress.sent.size(), 1U);
  EXPECT_EQ(bench.egress.sent[0].second, ns(600));
  const Packet& packet = bench.egress.packet(0);
  EXPECT_EQ(packet.transport.source, kSelf);
  EXPECT_EQ(packet.transport.destination, NodeId{1});
  EXPECT_EQ(packet.transport.source_incarnation, kBoot);
  EXPECT_EQ(packet.transport.destination_incarnation, 0U);
  EXPECT_EQ(packet.transport.generation, 1U);
  EXPECT_EQ(packet.transport.sequence, 0U);
  EXPECT_EQ(packet.data.destination_pid, Pid{2});
  EXPECT_EQ(packet.data.source_pid, Pid{4});
  EXPECT_EQ(packet.data.mailbox, Mailbox{0xbeef});
  EXPECT_EQ(packet.data.key, 99U);
  EXPECT_EQ(packet.data.message, MessageId{0});
  EXPECT_EQ(packet.data.message_length, 64U);
  EXPECT_EQ(packet.data.offset, 5U);
  EXPECT_EQ(packet.data.packet_index, 0U);
  EXPECT_EQ(packet.data.payload_length, 64U);
  EXPECT_EQ(packet.wire_bytes, data_wire_bytes(64));
  EXPECT_EQ(packet.left[static_cast<std::size_t>(Stage::doorbell)], ns(90));
  EXPECT_EQ(packet.left[static_cast<std::size_t>(Stage::command)], ns(100));
  EXPECT_EQ(packet.left[static_cast<std::size_t>(Stage::payload_read)], ns(600));
  ASSERT_TRUE(packet.payload);
  EXPECT_EQ(std::memcmp(packet.payload->data(), bench.dma.memory.data() + kSource, 64), 0);

  bench.acknowledge(ns(2000), 1, 1);
  run_until(ns(1999));
  EXPECT_EQ(bench.ended(0), Outcome::pending);
  run_until(ns(2001));
  EXPECT_EQ(bench.ended(0), Outcome::ok);
  EXPECT_EQ(bench.dma.words.back().second, 64U);
  EXPECT_FALSE(bench.dma.words.back().relaxed);
  ASSERT_EQ(bench.observer.ended.size(), 1U);
  EXPECT_EQ(bench.observer.ended[0].tries, 1U);
  EXPECT_EQ(bench.transmit->open_puts(), 0U);
  const std::uint64_t before = bench.context.activations();
  run_until(Time::from_us(100'000));
  EXPECT_EQ(bench.context.activations(), before);  // no timer is armed
}

TEST(Transmit, TheWaitForTheWindowIsAStageOfItsOwn) {
  Bench bench([](NicConfig& config) { config.reliability.window = 1; });
  bench.submit(ns(100), Bench::put(0, 64));
  bench.submit(ns(200), Bench::put(1, 64));
  bench.submit(ns(300), Bench::put(2, 64));
  bench.acknowledge(ns(2000), 1, 1);
  bench.acknowledge(ns(5000), 2, 2);
  run_until(ns(6000));
  ASSERT_EQ(bench.egress.sent.size(), 3U);
  const auto left = [&](std::size_t i, Stage stage) {
    return bench.egress.packet(i).left[static_cast<std::size_t>(stage)];
  };
  EXPECT_EQ(left(0, Stage::turn), ns(100));
  EXPECT_EQ(left(0, Stage::window), ns(100));
  // Nothing but the window held the second and the third back: all their time is the window's.
  EXPECT_EQ(left(1, Stage::command), ns(200));
  EXPECT_EQ(left(1, Stage::turn), ns(200));
  EXPECT_EQ(left(1, Stage::window), ns(2000));
  EXPECT_EQ(left(2, Stage::turn), ns(300));
  EXPECT_EQ(left(2, Stage::window), ns(5000));
  EXPECT_EQ(left(2, Stage::payload_read), ns(5500));
  EXPECT_EQ(bench.transmit->stats().window_wait_ns.value(), ns(1800 + 4700));
}

TEST(Transmit, TheWaitForTheTransmitBufferIsTheTurns) {
  Bench bench([](NicConfig& config) { config.transmit.buffer = Bytes{4096}; });
  bench.egress.hold = true;
  bench.submit(ns(100), Bench::put(0, 4096));
  bench.submit(ns(200), Bench::put(1, 4096));
  bench.script.at(ns(3000), [&] { bench.egress.let_go(ns(3000)); });
  run_until(ns(4000));
  ASSERT_EQ(bench.egress.sent.size(), 2U);
  const StageTimes& left = bench.egress.packet(1).left;
  EXPECT_EQ(left[static_cast<std::size_t>(Stage::turn)], ns(3000));
  EXPECT_EQ(left[static_cast<std::size_t>(Stage::window)], ns(3000));
  EXPECT_EQ(bench.transmit->stats().window_wait_ns.value(), Time::zero());
}

// A message can end (`no_buffer` is always told) while earlier packets of it were refused before the receiver had a
// context, and so never answered: their numbers hold the window. Empty packets fill them; if nobody answers those
// either, the peer is given up.
TEST(Transmit, NumbersOfAnEndedMessageAreFilledByEmptyPackets) {
  Bench bench([](NicConfig& config) {
    config.reliability.window = 2;
    config.reliability.rnr_tries = 0;
  });
  bench.submit(ns(100), Bench::put(0, 2 * 4096));
  bench.acknowledge(ns(2000), 0, 0, {Outcome::no_buffer});
  bench.submit(ns(3000), Bench::put(1, 64));
  run_until(Time::from_us(105));
  EXPECT_EQ(bench.ended(0), Outcome::no_buffer);
  ASSERT_EQ(bench.egress.sent.size(), 3U);
  const Packet& filler = bench.egress.packet(2);
  EXPECT_EQ(filler.transport.sequence, 0U);
  EXPECT_EQ(filler.data.message, MessageId{0});
  EXPECT_EQ(filler.data.payload_length, 0U);
  EXPECT_FALSE(filler.payload);
  // Should nothing of the message have arrived before, it must not bind: not even a message of no bytes to mailbox 0.
  EXPECT_FALSE(is_well_cut(filler.data, 4096));
  EXPECT_EQ(bench.transmit->stats().fillers.value(), 1U);
  // It is answered: the window opens for the next put.
  bench.acknowledge(Time::from_us(106), 2, 1);
  run_until(Time::from_us(108));
  ASSERT_EQ(bench.egress.sent.size(), 4U);
  EXPECT_EQ(bench.egress.packet(3).data.message, MessageId{1});
  EXPECT_EQ(bench.egress.packet(3).data.payload_length, 64U);
}

TEST(Transmit, FillersThatNobodyAnswersGiveThePeerUp) {
  Bench bench([](NicConfig& config) {
    config.reliability.window = 2;
    config.reliability.rnr_tries = 0;
  });
  bench.submit(ns(100), Bench::put(0, 2 * 4096));
  bench.acknowledge(ns(2000), 0, 0, {Outcome::no_buffer});
  bench.submit(ns(3000), Bench::put(1, 64));
  run_until(bench.patience());
  EXPECT_EQ(bench.ended(1), Outcome::pending);
  run_until(bench.patience() + Time::from_us(10));
  EXPECT_EQ(bench.ended(1), Outcome::timeout);
  EXPECT_EQ(bench.transmit->open_puts(), 0U);
  // The next put is in a new generation, and goes out at once.
  const Time later = bench.patience() + Time::from_us(20);
  const std::size_t sent = bench.egress.sent.size();
  bench.submit(later, Bench::put(2, 64));
  run_until(later + ns(1000));
  ASSERT_EQ(bench.egress.sent.size(), sent + 1);
  EXPECT_EQ(bench.egress.packet(sent).transport.generation, 2U);
}

// The put has ended by then, and the program may have written to its memory: such bytes must not be delivered.
TEST(Transmit, PayloadThatIsReadWhenThePeerIsGivenUpIsNotSent) {
  Bench bench([](NicConfig& config) {
    config.transmit.buffer = Bytes{4096};
    config.reliability.rto = Time::from_ns(300);
    config.reliability.max_tries = 1;
  });
  bench.submit(ns(100), Bench::put(0, 2 * 4096));
  // The first packet leaves at 600 and is never answered; the second is read from 600 to 1100.
  run_until(ns(899));
  EXPECT_EQ(bench.ended(0), Outcome::pending);
  run_until(Time::from_us(5));
  EXPECT_EQ(bench.ended(0), Outcome::timeout);
  EXPECT_EQ(bench.egress.sent.size(), 1U);
  EXPECT_EQ(bench.transmit->stats().abandoned.value(), 1U);
  // Its place in the transmit buffer is free again.
  bench.submit(Time::from_us(6), Bench::put(1, 4096));
  run_until(Time::from_us(7));
  ASSERT_EQ(bench.egress.sent.size(), 2U);
  EXPECT_EQ(bench.egress.packet(1).transport.generation, 2U);
}

// Patience begins when the packet leaves: nobody can have heard of it before.
TEST(Transmit, ReadingPayloadForLongIsNotSilenceOfThePeer) {
  Bench bench([](NicConfig& config) {
    config.reliability.rto = Time::from_ns(300);
    config.reliability.max_tries = 1;
  });
  bench.submit(ns(100), Bench::put(0, 64));  // read until 600, though patience is 300
  bench.acknowledge(ns(890), 1, 1);          // 290 after it left
  run_until(ns(889));
  ASSERT_EQ(bench.egress.sent.size(), 1U);
  EXPECT_EQ(bench.ended(0), Outcome::pending);
  run_until(ns(892));
  EXPECT_EQ(bench.ended(0), Outcome::ok);
}

TEST(Transmit, AnAcknowledgementAnnouncedForLaterActsLater) {
  Bench bench;
  bench.submit(ns(100), Bench::put(0, 64));
  bench.script.at(ns(1000), [&] {
    PacketPtr packet = bench.packets.acquire();
    packet->transport.source = NodeId{1};
    packet->transport.source_incarnation = 8;
    packet->transport.destination_incarnation = kBoot;
    packet->transport.generation = 1;
    packet->ack.cumulative = 1;
    packet->ack.outcomes_from = MessageId{1};
    bench.transmit->acknowledgement(std::move(packet), ns(1300));
  });
  run_until(ns(1299));
  EXPECT_EQ(bench.ended(0), Outcome::pending);
  run_until(ns(1301));
  EXPECT_EQ(bench.ended(0), Outcome::ok);
}

TEST(Transmit, CutsAtTheMtuAndReadsScatteredPages) {
  Bench bench;
  // 10,000 bytes from byte 100 of the first of three pages, the pages out of order.
  const std::vector<std::uint64_t> pages{kSource + 5 * 4096, kSource + 2 * 4096, kSource + 9 * 4096};
  for (std::size_t i = 0; i < pages.size(); ++i) bench.dma.store64(0x4000 + 8 * i, pages[i]);
  PutRequest request = Bench::put(0, 10'000);
  request.descriptor.local = VirtualAddress{0x7000'0000 + 100};
  request.descriptor.page_list = PhysicalAddress{0x4000};
  request.descriptor.single_page = false;
  bench.submit(ns(100), request);
  run_until(Time::from_us(5));
  ASSERT_EQ(bench.egress.sent.size(), 3U);
  ASSERT_EQ(bench.dma.reads.size(), 4U);
  EXPECT_EQ(bench.dma.reads[0].from.total_bytes(), 24U);  // the page list, once
  EXPECT_EQ(bench.egress.sent[0].second, ns(1100));       // list, then payload
  std::uint64_t position = 0;
  for (std::uint32_t k = 0; k < 3; ++k) {
    const Packet& packet = bench.egress.packet(k);
    EXPECT_EQ(packet.data.packet_index, k);
    EXPECT_EQ(packet.data.payload_length, k < 2 ? 4096 : 10'000 - 8192);
    EXPECT_EQ(packet.transport.sequence, k);
    for (std::uint32_t i = 0; i < packet.data.payload_length; ++i, ++position) {
      const std::uint64_t in_buffer = 100 + position;
      ASSERT_EQ(packet.payload->data()[i], bench.dma.memory[pages[in_buffer / 4096] + in_buffer % 4096]);
    }
  }
  EXPECT_EQ(position, 10'000U);
}

TEST(Transmit, LongPageListsAreFetchedInPiecesAheadOfTheirUse) {
  Bench bench;
  constexpr std::uint64_t kPages = 200;
  for (std::uint64_t i = 0; i < kPages; ++i) bench.dma.store64(0x4000 + 8 * i, kSource + 4096 * (i * 37 % kPages));
  PutRequest request = Bench::put(0, kPages * 4096);
  request.descriptor.page_list = PhysicalAddress{0x4000};
  request.descriptor.single_page = false;
  bench.submit(ns(100), request);
  run_until(Time::from_us(50));
  ASSERT_EQ(bench.egress.sent.size(), kPages);
  for (std::uint64_t i = 0; i < kPages; ++i) {
    ASSERT_EQ(std::memcmp(bench.egress.packet(i).payload->data(),
                          bench.dma.memory.data() + kSource + 4096 * (i * 37 % kPages), 4096),
              0);
  }
  EXPECT_EQ(bench.transmit->stats().list_reads.value(), 4U);
}

TEST(Transmit, ZeroLengthIsOnePacketAndNoRead) {
  Bench bench;
  bench.submit(ns(100), Bench::put(0, 0));
  run_until(ns(101));
  EXPECT_TRUE(bench.dma.reads.empty());
  ASSERT_EQ(bench.egress.sent.size(), 1U);
  EXPECT_EQ(bench.egress.packet(0).data.payload_length, 0U);
  EXPECT_EQ(bench.egress.packet(0).data.message_length, 0U);
}

TEST(Transmit, PayloadThatCameWithTheDescriptorIsNotRead) {
  Bench bench;
  const auto with_payload = [&](std::uint32_t n) {
    PutRequest request = Bench::put(n, 64);
    request.descriptor.payload_follows = true;
    request.payload = bench.payloads->acquire(64);
    for (std::uint8_t i = 0; i < 64; ++i) request.payload->data()[i] = static_cast<std::uint8_t>(200 + n - i);
    return request;
  };
  bench.submit(ns(100), with_payload(0));
  run_until(ns(100) - Time::from_ps(1));
  EXPECT_TRUE(bench.egress.sent.empty());
  run_until(ns(100));
  ASSERT_EQ(bench.egress.sent.size(), 1U);
  EXPECT_EQ(bench.egress.sent[0].second, ns(100));
  EXPECT_EQ(bench.egress.packet(0).left[static_cast<std::size_t>(Stage::payload_read)], ns(100));
  EXPECT_TRUE(bench.dma.reads.empty());
  // Refused, and sent again from what the entry has kept.
  bench.acknowledge(Time::from_us(2), 1, 0, {Outcome::no_buffer});
  run_until(Time::from_us(8));
  ASSERT_EQ(bench.egress.sent.size(), 2U);
  for (std::size_t sent = 0; sent < 2; ++sent) {
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(bench.egress.packet(sent).payload->data()[i], 200 - i);
  }
  bench.acknowledge(Time::from_us(9), 2, 2);
  // It does not pass what is being read before it.
  bench.submit(Time::from_us(10), Bench::put(1, 64));
  bench.submit(Time::from_us(10) + ns(1), with_payload(2));
  run_until(Time::from_us(11));
  ASSERT_EQ(bench.egress.sent.size(), 4U);
  EXPECT_EQ(bench.egress.sent[3].second, Time::from_us(10) + ns(500));
  EXPECT_EQ(bench.egress.packet(3).payload->data()[0], 202);
  bench.acknowledge(Time::from_us(12), 4, 4);
  run_until(Time::from_us(13));
  EXPECT_EQ(bench.transmit->open_puts(), 0U);
  bench.egress.sent.clear();
  EXPECT_EQ(bench.payloads->in_use(), 0U);
}

TEST(Transmit, TimingOnlyReadsCarryNothing) {
  Bench bench{{}, true};
  bench.submit(ns(100), Bench::put(0, 4096));
  run_until(Time::from_us(2));
  ASSERT_EQ(bench.egress.sent.size(), 1U);
  EXPECT_FALSE(bench.egress.packet(0).payload);
  ASSERT_EQ(bench.dma.reads.size(), 1U);
  EXPECT_FALSE(bench.dma.reads[0].carries_bytes);
  EXPECT_EQ(bench.egress.sent[0].second, ns(600));
}

TEST(Transmit, CutsOnePacketACycleAndSendsInOrderOfCutting) {
  Bench bench;
  bench.dma.slow_read = 1;
  for (std::uint32_t n = 0; n < 4; ++n) bench.submit(ns(100), Bench::put(n, n == 2 ? 0 : 64));
  run_until(Time::from_us(5));
  ASSERT_EQ(bench.dma.reads.size(), 3U);
  EXPECT_EQ(bench.dma.reads[0].at, cycle(100));
  EXPECT_EQ(bench.dma.reads[1].at, cycle(101));
  EXPECT_EQ(bench.dma.reads[2].at, cycle(103));
  ASSERT_EQ(bench.egress.sent.size(), 4U);
  for (std::uint32_t n = 0; n < 4; ++n) {
    EXPECT_EQ(bench.egress.packet(n).transport.sequence, n);
    EXPECT_EQ(bench.egress.packet(n).data.message, MessageId{n});
    EXPECT_EQ(bench.egress.sent[n].second, ns(1600));
  }
}

TEST(Transmit, PeersTakeTurns) {
  Bench bench;
  PutRequest large = Bench::put(0, 4096 * 4, NodeId{1});
  large.descriptor.single_page = true;
  bench.submit(ns(100), large);
  bench.submit(ns(100), Bench::put(1, 64, NodeId{2}));
  bench.submit(ns(100), Bench::put(2, 64, NodeId{2}));
  run_until(ns(150));
  // The buffer fills with the next put; from then on the two peers share what becomes free.
  bench.submit(ns(200), Bench::put(3, 4096 * 16, NodeId{1}));
  bench.submit(ns(200), Bench::put(4, 4096 * 16, NodeId{2}));
  run_until(Time::from_us(20));
  ASSERT_EQ(bench.egress.sent.size(), 4U + 2U + 16U + 16U);
  for (std::size_t i = 18; i < 26; ++i) {
    EXPECT_NE(bench.egress.packet(i).transport.destination, bench.egress.packet(i - 1).transport.destination) << i;
  }
}

TEST(Transmit, HoldsNoMoreThanItsBuffer) {
  Bench bench{[](NicConfig& config) { config.transmit.buffer = Bytes{10'000}; }};
  bench.egress.hold = true;
  bench.submit(ns(100), Bench::put(0, 4096 * 5));
  run_until(Time::from_us(5));
  EXPECT_EQ(bench.egress.sent.size(), 2U);  // a third would exceed it
  bench.script.at(Time::from_us(6), [&] { bench.egress.let_go(Time::from_us(6)); });
  run_until(Time::from_us(8));
  EXPECT_EQ(bench.egress.sent.size(), 3U);
  EXPECT_EQ(bench.transmit->stats().buffer.value(), 8192U);
}

TEST(Transmit, OneMtuIsAlwaysAllowed) {
  Bench bench{[](NicConfig& config) { config.transmit.buffer = Bytes{64}; }};
  bench.submit(ns(100), Bench::put(0, 4096 * 2));
  run_until(Time::from_us(5));
  EXPECT_EQ(bench.egress.sent.size(), 2U);
  EXPECT_GE(bench.egress.sent[1].second, bench.egress.sent[0].second + ns(500));
}

TEST(Transmit, KeepsTheWindowAndTheOpenMessages) {
  Bench bench{[](NicConfig& config) {
    config.reliability.window = 4;
    config.reliability.messages = 2;
  }};
  bench.submit(ns(100), Bench::put(0, 4096 * 6));
  bench.submit(ns(100), Bench::put(1, 64));
  bench.submit(ns(100), Bench::put(2, 64));
  run_until(Time::from_us(3));
  EXPECT_EQ(bench.egress.sent.size(), 4U);
  bench.acknowledge(Time::from_us(4), 4, 0);
  run_until(Time::from_us(6));
  ASSERT_EQ(bench.egress.sent.size(), 7U);  // the rest, and message 1; a third message may not be open
  EXPECT_EQ(bench.egress.packet(6).data.open_span, 1U);
  bench.acknowledge(Time::from_us(7), 7, 1);
  run_until(Time::from_us(9));
  ASSERT_EQ(bench.egress.sent.size(), 8U);
  EXPECT_EQ(bench.egress.packet(7).data.message, MessageId{2});
  EXPECT_EQ(bench.egress.packet(7).data.open_span, 1U);  // 1 is the oldest open one
  EXPECT_EQ(bench.egress.packet(7).transport.destination_incarnation, 8U);
}

TEST(Transmit, TurnsPutsAwayWhenFullAndTellsWhenThereIsRoom) {
  Bench bench{[](NicConfig& config) { config.transmit.open_puts = 2; }};
  bench.submit(ns(100), Bench::put(0, 64));
  bench.submit(ns(101), Bench::put(1, 64));
  bench.submit(ns(102), Bench::put(2, 64), false);
  bench.acknowledge(Time::from_us(2), 1, 1);
  run_until(Time::from_us(1));
  EXPECT_EQ(bench.rooms, 0);
  run_until(Time::from_us(3));
  EXPECT_EQ(bench.rooms, 1);
  bench.submit(Time::from_us(4), Bench::put(2, 64));
  bench.acknowledge(Time::from_us(5), 3, 3);
  run_until(Time::from_us(6));
  EXPECT_EQ(bench.ended(2), Outcome::ok);
  EXPECT_EQ(bench.rooms, 1);
}

TEST(Transmit, AnswersHaveEntriesOfTheirOwn) {
  Bench bench{[](NicConfig& config) {
    config.transmit.open_puts = 1;
    config.get.queue = 2;
  }};
  // 1. The only entry belongs to a request that is refused, and waits to be sent again.
  PutRequest request = Bench::put(0, 0);
  request.purpose = Purpose::get_request;
  bench.submit(ns(100), request);
  bench.acknowledge(Time::from_us(2), 1, 0, {Outcome::busy});
  bench.submit(Time::from_us(3), Bench::put(1, 64), false);
  // 2. As many answers as there may be are sent all the same.
  PutRequest answer = Bench::put(2, 64);
  answer.purpose = Purpose::get_answer;
  bench.submit(Time::from_us(3), answer);
  bench.submit(Time::from_us(3), answer);
  run_until(Time::from_us(4));
  EXPECT_EQ(bench.transmit->open_puts(), 3U);
  EXPECT_EQ(bench.transmit->stats().open_puts.value(), 1U);
  ASSERT_EQ(bench.egress.sent.size(), 3U);
  EXPECT_EQ(bench.egress.packet(2).data.message, MessageId{2});
  // 3. Their ends make no room for a put, and that of the request does.
  bench.acknowledge(Time::from_us(5), 3, 3);
  run_until(Time::from_us(6));
  EXPECT_EQ(bench.gets.outcomes, (std::vector<Outcome>{Outcome::ok, Outcome::ok}));
  EXPECT_EQ(bench.rooms, 0);
  bench.acknowledge(Time::from_us(8), 4, 4);
  run_until(Time::from_us(9));
  EXPECT_EQ(bench.gets.outcomes.size(), 3U);
  EXPECT_EQ(bench.rooms, 1);
  EXPECT_EQ(bench.transmit->open_puts(), 0U);
}

TEST(Transmit, ARefusalStopsTheRestOfItsMessage) {
  Bench bench{[](NicConfig& config) { config.reliability.window = 4; }};
  bench.submit(ns(100), Bench::put(0, 4096 * 100));
  bench.submit(ns(101), Bench::put(1, 64));
  bench.acknowledge(Time::from_us(2), 1, 0, {Outcome::bad_key});
  run_until(Time::from_us(4));
  EXPECT_EQ(bench.ended(0), Outcome::bad_key);
  EXPECT_EQ(bench.dma.word_at(kWords)->second, 0U);
  ASSERT_EQ(bench.egress.sent.size(), 5U);
  EXPECT_EQ(bench.egress.packet(4).data.message, MessageId{1});
  EXPECT_EQ(bench.egress.packet(4).data.open_span, 0U);
}

TEST(Transmit, RetriesAsANewMessageAfterThePauseAndGivesUpAfterItsTries) {
  Bench bench{[](NicConfig& config) { config.reliability.rnr_tries = 2; }};
  bench.submit(ns(100), Bench::put(0, 64));
  bench.acknowledge(Time::from_us(2), 1, 0, {Outcome::no_buffer});
  run_until(Time::from_us(7) - ns(1));
  EXPECT_EQ(bench.egress.sent.size(), 1U);
  EXPECT_EQ(bench.ended(0), Outcome::pending);
  run_until(Time::from_us(8));
  ASSERT_EQ(bench.egress.sent.size(), 2U);
  EXPECT_EQ(bench.egress.sent[1].second, Time::from_us(7) + ns(500));
  EXPECT_EQ(bench.egress.packet(1).data.message, MessageId{1});
  EXPECT_EQ(bench.egress.packet(1).data.open_span, 0U);
  bench.acknowledge(Time::from_us(10), 2, 1, {Outcome::busy});
  run_until(Time::from_us(16));
  ASSERT_EQ(bench.egress.sent.size(), 3U);
  bench.acknowledge(Time::from_us(20), 3, 2, {Outcome::busy});
  run_until(Time::from_us(40));
  EXPECT_EQ(bench.egress.sent.size(), 3U);
  EXPECT_EQ(bench.ended(0), Outcome::busy);
  ASSERT_EQ(bench.observer.ended.size(), 1U);
  EXPECT_EQ(bench.observer.ended[0].tries, 3U);
  EXPECT_EQ(bench.observer.opened.size(), 3U);
  EXPECT_EQ(bench.transmit->stats().retries.value(), 2U);
}

// ---------------------------------------------------------------------------------------------- stopped queue pairs

/// Four messages of a queue pair, sent at once, and the first pause after refusals at 2 us.
struct StoppedBench : Bench {
  explicit StoppedBench(const std::function<void(NicConfig&)>& change = {}) : Bench(change) {
    for (std::uint32_t n = 0; n < 4; ++n) submit(ns(100), message(n, 30));
    run_until(Time::from_us(1));
    EXPECT_EQ(take_sent(), (Numbers{0, 1, 2, 3}));
  }
  using Numbers = std::vector<std::uint64_t>;
  /// Messages that were sent since the last call.
  Numbers take_sent() {
    Numbers numbers;
    for (const auto& [packet, at] : egress.sent) numbers.push_back(packet->data.mailbox.value());
    numbers.erase(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(taken));
    taken += numbers.size();
    return numbers;
  }
  std::size_t taken = 0;
};
using Numbers = StoppedBench::Numbers;
constexpr Outcome kRefused = Outcome::no_buffer;

TEST(Transmit, OneMessageOfAQueuePairAsksForAReceive) {
  StoppedBench bench;
  bench.acknowledge(Time::from_us(2), 4, 0, {kRefused, kRefused, kRefused, kRefused});
  run_until(Time::from_us(7) - ns(1));
  EXPECT_EQ(bench.take_sent(), Numbers{});
  run_until(Time::from_us(8));
  EXPECT_EQ(bench.take_sent(), Numbers{0});
  EXPECT_EQ(bench.egress.packet(4).data.offset, 0U) << "its place stays";
  // As often as it takes, whatever nic.reliability.rnr_tries says.
  for (std::uint32_t i = 0; i < 20; ++i) {
    bench.acknowledge(Time::from_us(10 + 10 * i), 5 + i, 4 + i, {kRefused});
    run_until(Time::from_us(18 + 10 * i));
    EXPECT_EQ(bench.take_sent(), Numbers{0});
  }
  bench.acknowledge(Time::from_us(300), 25, 25);
  run_until(Time::from_us(302));
  EXPECT_EQ(bench.take_sent(), (Numbers{1, 2})) << "at once, in their order";
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(bench.egress.packet(25 + i).data.offset, i + 1);
  bench.acknowledge(Time::from_us(303), 27, 25, {Outcome::ok, kRefused});
  run_until(Time::from_us(320));
  EXPECT_EQ(bench.take_sent(), Numbers{2}) << "one again";
  bench.acknowledge(Time::from_us(321), 28, 28);
  run_until(Time::from_us(323));
  EXPECT_EQ(bench.take_sent(), Numbers{3});
  bench.acknowledge(Time::from_us(324), 29, 29);
  run_until(Time::from_us(325));
  EXPECT_EQ(bench.transmit->open_puts(), 0U);
  const std::uint64_t before = bench.context.activations();
  run_until(Time::from_us(100'000));
  EXPECT_EQ(bench.context.activations(), before) << "no timer is armed";
}

TEST(Transmit, WhatComesBehindAMessageWithoutReceiveWaits) {
  StoppedBench bench([](NicConfig& config) { config.reliability.window = 6; });
  const auto submit = [&](std::uint32_t n, std::uint32_t queue_pair, RdmaOperation operation) {
    bench.submit(ns(1100), Bench::message(n, queue_pair, operation));
  };
  // Two of these are sent; the others wait for the window.
  submit(4, 30, RdmaOperation::write);
  submit(5, 31, RdmaOperation::send);
  submit(6, 30, RdmaOperation::write);
  submit(7, 30, RdmaOperation::read);
  submit(8, 30, RdmaOperation::read_answer);
  submit(9, 31, RdmaOperation::send);
  run_until(Time::from_us(2) - ns(1));
  EXPECT_EQ(bench.take_sent(), (Numbers{4, 5}));
  bench.acknowledge(Time::from_us(2), 6, 0, {kRefused, kRefused, kRefused, kRefused, Outcome::ok, Outcome::ok});
  bench.submit(Time::from_us(3), Bench::message(10, 30));
  run_until(Time::from_us(6));
  EXPECT_EQ(bench.take_sent(), (Numbers{7, 8, 9})) << "reads and answers, and another queue pair";
  run_until(Time::from_us(8));
  EXPECT_EQ(bench.take_sent(), Numbers{0});
  bench.acknowledge(Time::from_us(9), 10, 10);
  run_until(Time::from_us(11));
  EXPECT_EQ(bench.take_sent(), (Numbers{1, 2}));
  bench.acknowledge(Time::from_us(12), 12, 11);
  bench.submit(Time::from_us(13), Bench::message(11, 30));
  run_until(Time::from_us(14));
  EXPECT_EQ(bench.take_sent(), Numbers{}) << "both must have been taken";
  bench.acknowledge(Time::from_us(15), 12, 12);
  run_until(Time::from_us(17));
  EXPECT_EQ(bench.take_sent(), (Numbers{3, 6, 10, 11}));
  bench.submit(Time::from_us(18), Bench::message(12, 30));
  run_until(Time::from_us(20));
  EXPECT_EQ(bench.take_sent(), Numbers{12}) << "none is held";
}

TEST(Transmit, TheFirstOfThoseThatFoundNoReceiveGoesFirst) {
  StoppedBench bench;
  // What became of the first two is told later.
  bench.acknowledge(Time::from_us(2), 4, 0, {Outcome::pending, Outcome::pending, kRefused, kRefused});
  bench.acknowledge(Time::from_us(4), 4, 0, {Outcome::pending, kRefused, kRefused, kRefused});
  run_until(Time::from_us(8));
  EXPECT_EQ(bench.take_sent(), Numbers{1});
  bench.acknowledge(Time::from_us(9), 4, 0, {kRefused, kRefused, kRefused, kRefused});
  bench.acknowledge(Time::from_us(10), 5, 4, {kRefused});
  run_until(Time::from_us(16));
  EXPECT_EQ(bench.take_sent(), Numbers{0});
  bench.acknowledge(Time::from_us(17), 6, 6);
  run_until(Time::from_us(18));
  EXPECT_EQ(bench.take_sent(), (Numbers{1, 2}));
}

TEST(Transmit, AQueuePairGoesOnHoweverTheMessageThatAsksEnds) {
  // 1. Refused for another reason.
  StoppedBench bench([](NicConfig& config) { config.reliability.max_tries = 2; });
  bench.acknowledge(Time::from_us(2), 4, 0, {kRefused, kRefused, kRefused, kRefused});
  bench.acknowledge(Time::from_us(9), 5, 4, {Outcome::bounds});
  run_until(Time::from_us(11));
  EXPECT_EQ(bench.gets.outcomes, std::vector<Outcome>{Outcome::bounds});
  EXPECT_EQ(bench.take_sent(), (Numbers{0, 1, 2}));
  // 2. Its outcome is never told.
  bench.acknowledge(Time::from_us(12), 7, 5, {kRefused, kRefused});
  run_until(Time::from_us(18));
  EXPECT_EQ(bench.take_sent(), Numbers{1});
  bench.acknowledge(Time::from_us(19), 8, 7);
  run_until(Time::from_us(400));
  EXPECT_EQ(bench.gets.outcomes.back(), Outcome::timeout);
  EXPECT_EQ(bench.take_sent(), (Numbers{1, 2, 3})) << "the first one asks for its outcome";
}

// Those that were to go again may wait for the window when the queue pair stops anew.
TEST(Transmit, AQueuePairThatStopsTwiceGoesOn) {
  StoppedBench bench([](NicConfig& config) { config.reliability.window = 4; });
  bench.acknowledge(Time::from_us(2), 2, 0, {kRefused, kRefused});
  run_until(Time::from_us(8));
  EXPECT_EQ(bench.take_sent(), Numbers{0});
  // 0 is taken: 1 is to go again, but waits, since another queue pair has filled the window. Then 2 and 3 are refused.
  bench.submit(ns(8500), Bench::message(5, 31));
  bench.acknowledge(Time::from_us(9), 2, 0, {kRefused, kRefused, Outcome::pending, Outcome::pending, Outcome::ok});
  run_until(Time::from_us(10));
  EXPECT_EQ(bench.take_sent(), Numbers{5});
  bench.acknowledge(Time::from_us(11), 2, 0, {kRefused, kRefused, kRefused, kRefused, Outcome::ok});
  run_until(Time::from_us(12));
  EXPECT_EQ(bench.take_sent(), Numbers{});
  bench.acknowledge(Time::from_us(13), 6, 6);
  run_until(Time::from_us(18));
  EXPECT_EQ(bench.take_sent(), Numbers{1});
  bench.acknowledge(Time::from_us(19), 7, 7);
  run_until(Time::from_us(21));
  EXPECT_EQ(bench.take_sent(), (Numbers{2, 3}));
}

TEST(Transmit, AStoppedQueuePairEndsWithItsPeer) {
  StoppedBench bench;
  bench.acknowledge(Time::from_us(2), 4, 0, {kRefused, kRefused, kRefused, kRefused});
  bench.submit(Time::from_us(3), Bench::message(4, 30));
  // Nobody answers the one that goes again.
  run_until(Time::from_us(7) + bench.patience() + Time::from_us(10));
  EXPECT_EQ(bench.gets.outcomes, std::vector<Outcome>(5, Outcome::timeout));
  EXPECT_EQ(bench.transmit->open_puts(), 0U);
  bench.take_sent();
  const Time later = Time::from_us(6000);
  bench.submit(later, Bench::message(5, 30));
  bench.submit(later, Bench::message(6, 30));
  run_until(later + Time::from_us(2));
  EXPECT_EQ(bench.take_sent(), (Numbers{5, 6}));
}

TEST(Transmit, APutWhoseOutcomeIsNeverToldEndsTimeoutAlone) {
  Bench bench;
  bench.submit(ns(100), Bench::put(0, 64));
  bench.submit(ns(100), Bench::put(1, 64));
  bench.acknowledge(Time::from_us(2), 2, 0, {Outcome::pending, Outcome::ok});
  // Its last packet asks for it, again and again.
  run_until(Time::from_us(102) - ns(1));
  EXPECT_EQ(bench.egress.sent.size(), 2U);
  run_until(Time::from_us(103));
  ASSERT_EQ(bench.egress.sent.size(), 3U);
  EXPECT_EQ(bench.egress.packet(2).transport.sequence, 0U);
  EXPECT_TRUE(bench.egress.packet(2).is_resent);
  const Time limit = Time::from_us(2) + bench.patience();
  run_until(limit - ns(1));
  EXPECT_EQ(bench.ended(1), Outcome::ok);
  EXPECT_EQ(bench.ended(0), Outcome::pending);
  run_until(limit + ns(1));
  EXPECT_EQ(bench.ended(0), Outcome::timeout);
  EXPECT_EQ(bench.transmit->stats().peers_given_up.value(), 0U);
  EXPECT_EQ(bench.transmit->stats().probes.value(), 7U);
  const std::size_t sent = bench.egress.sent.size();
  bench.submit(limit + ns(100), Bench::put(2, 64));
  run_until(limit + ns(1000));
  ASSERT_EQ(bench.egress.sent.size(), sent + 1);
  EXPECT_EQ(bench.egress.packet(sent).transport.generation, 1U);
  EXPECT_EQ(bench.egress.packet(sent).data.open_span, 0U);
}

TEST(Transmit, ASilentPeerIsGivenUpAndTheNextPutOpensANewGeneration) {
  Bench bench{[](NicConfig& config) { config.reliability.messages = 2; }};
  for (std::uint32_t n = 0; n < 4; ++n) bench.submit(ns(100), Bench::put(n, 64));
  bench.submit(ns(100), Bench::put(9, 64, NodeId{2}));
  bench.acknowledge(Time::from_us(700), 1, 1, {}, 1, NodeId{2});
  // Eight sendings; the first left at 600 ns, and each reads its payload (500 ns) before it leaves.
  const Time limit = bench.patience();
  run_until(limit);
  EXPECT_EQ(bench.ended(0), Outcome::pending);
  run_until(limit + Time::from_us(10));
  for (std::uint32_t n = 0; n < 4; ++n) EXPECT_EQ(bench.ended(n), Outcome::timeout);
  EXPECT_EQ(bench.ended(9), Outcome::ok);
  EXPECT_EQ(bench.transmit->open_puts(), 0U);
  EXPECT_EQ(bench.transmit->stats().peers_given_up.value(), 1U);
  const Time later = limit + Time::from_us(100);
  bench.submit(later, Bench::put(5, 64));
  run_until(later + Time::from_us(2));
  const Packet& packet = bench.egress.packet(bench.egress.sent.size() - 1);
  EXPECT_EQ(packet.transport.generation, 2U);
  EXPECT_EQ(packet.transport.sequence, 0U);
  EXPECT_EQ(packet.data.message, MessageId{0});
  // A late acknowledgement of the old generation says nothing about the new one.
  bench.acknowledge(later + Time::from_us(3), 1, 1, {}, 1);
  run_until(later + Time::from_us(4));
  EXPECT_EQ(bench.ended(5), Outcome::pending);
  bench.acknowledge(later + Time::from_us(5), 1, 1, {}, 2);
  run_until(later + Time::from_us(6));
  EXPECT_EQ(bench.ended(5), Outcome::ok);
}

// A message of an RDMA queue pair states its place in the queue pair's order.
TEST(Transmit, MessagesOfAQueuePairAreNumberedAnewInEachGeneration) {
  Bench bench;
  const auto message = [&](std::uint32_t n, std::uint32_t queue_pair, RdmaOperation operation = RdmaOperation::send) {
    return Bench::message(n, queue_pair, operation);
  };
  bench.submit(ns(100), message(0, 30));
  bench.submit(ns(100), message(1, 30, RdmaOperation::read));
  bench.submit(ns(100), message(2, 31));
  bench.submit(ns(100), message(3, 30, RdmaOperation::read_answer));
  bench.submit(ns(100), message(4, 30, RdmaOperation::write));
  PutRequest elsewhere = message(5, 30);
  elsewhere.descriptor.destination_node = NodeId{2};
  bench.submit(ns(100), elsewhere);
  run_until(ns(2000));
  const auto places = [&](std::uint32_t generation) {
    std::map<std::uint64_t, std::uint64_t> all;
    for (const auto& [packet, at] : bench.egress.sent) {
      if (packet->transport.generation == generation) all[packet->data.mailbox.value()] = packet->data.offset;
    }
    return all;
  };
  EXPECT_EQ(places(1), (std::map<std::uint64_t, std::uint64_t>{{0, 0}, {1, 0}, {2, 0}, {3, 1}, {4, 2}, {5, 0}}));
  const Time later = bench.patience() + Time::from_us(20);
  bench.submit(later, message(6, 30));
  bench.submit(later, message(7, 30));
  run_until(later + ns(2000));
  EXPECT_EQ(bench.transmit->stats().peers_given_up.value(), 2U);
  EXPECT_EQ(places(2), (std::map<std::uint64_t, std::uint64_t>{{6, 0}, {7, 1}}));
}

// Whoever waits for room asks again as soon as the first put has ended.
TEST(Transmit, WhatIsSubmittedWhileAPeerIsGivenUpIsNotGivenUpWithIt) {
  Bench bench([](NicConfig& config) { config.transmit.open_puts = 3; });
  for (std::uint32_t n = 0; n < 3; ++n) bench.submit(ns(100), Bench::put(n, 64));
  bench.submit(ns(100), Bench::put(3, 64), false);
  std::uint32_t next = 3;
  bench.transmit->on_room([&] {
    while (next < 6 && bench.transmit->submit(Bench::put(next, 64), Cycles{SimContext::now().ps() / 1000})) ++next;
  });
  run_until(bench.patience() + Time::from_us(20));
  for (std::uint32_t n = 0; n < 3; ++n) EXPECT_EQ(bench.ended(n), Outcome::timeout);
  EXPECT_GE(next, 4U);
  for (std::uint32_t n = 3; n < 6; ++n) EXPECT_EQ(bench.ended(n), Outcome::pending);
  EXPECT_EQ(bench.egress.sent.back().first->transport.generation, 2U);
}

TEST(Transmit, ALostPacketIsReadAndSentAgainFromItsOwnPlace) {
  const PutRequest put = Bench::put(0, 3 * 64);
  Bench small([](NicConfig& config) {
    config.mtu = Bytes{64};
    config.reliability.reorder_window = Time::from_ns(5);
    config.transmit.buffer = Bytes{64};
  });
  small.submit(ns(100), put);
  // One packet at a time in the transmit buffer: they leave 500 ns apart. The first is missing.
  small.script.at(ns(2000), [&] {
    PacketPtr packet = small.packets.acquire();
    packet->transport.source = NodeId{1};
    packet->transport.source_incarnation = 8;
    packet->transport.destination_incarnation = kBoot;
    packet->transport.generation = 1;
    packet->ack.selective = {0b110};
    small.transmit->acknowledgement(std::move(packet), ns(2000));
  });
  run_until(ns(2001));
  ASSERT_EQ(small.egress.sent.size(), 3U);
  run_until(ns(2600));
  ASSERT_EQ(small.egress.sent.size(), 4U);
  const Packet& again = small.egress.packet(3);
  EXPECT_EQ(again.transport.sequence, 0U);
  EXPECT_EQ(again.data.packet_index, 0U);
  EXPECT_TRUE(again.is_resent);
  ASSERT_TRUE(again.payload);
  EXPECT_TRUE(std::equal(again.payload->data(), again.payload->data() + 64, small.dma.memory.data() + kSource));
  EXPECT_EQ(small.transmit->stats().lost_by_evidence.value(), 1U);
  EXPECT_EQ(small.transmit->stats().resent.value(), 1U);
}

TEST(Transmit, APeerThatHasRestartedEndsItsPutsAndGetsANewGeneration) {
  Bench bench;
  bench.submit(ns(100), Bench::put(0, 64));
  bench.acknowledge(ns(2000), 1, 1);
  bench.submit(ns(3000), Bench::put(1, 64));
  bench.script.at(ns(5000), [&] {
    PacketPtr packet = bench.packets.acquire();
    packet->transport.source = NodeId{1};
    packet->transport.source_incarnation = 9;
    packet->transport.destination_incarnation = kBoot;
    packet->transport.generation = 1;
    bench.transmit->acknowledgement(std::move(packet), ns(5000));
  });
  run_until(ns(5002));
  EXPECT_EQ(bench.ended(1), Outcome::timeout);
  bench.submit(ns(6000), Bench::put(2, 64));
  run_until(ns(7000));
  const Packet& packet = bench.egress.packet(bench.egress.sent.size() - 1);
  EXPECT_EQ(packet.transport.generation, 2U);
  EXPECT_EQ(packet.transport.destination_incarnation, 9U);
  EXPECT_EQ(bench.transmit->stats().peers_restarted.value(), 1U);
  EXPECT_EQ(bench.transmit->stats().peers_given_up.value(), 0U);
}

/// The put's packet is cut at 101 ns; at 5,000 ns a NIC that is at least age_us - 1 old says who it is.
void meet_a_peer_of_a_later_life(std::uint32_t age_us, bool before) {
  Bench bench;
  bench.submit(ns(100), Bench::put(0, 64));
  const auto introduce = [&] {
    PacketPtr packet = bench.packets.acquire();
    packet->transport.source = NodeId{1};
    packet->transport.source_incarnation = 9;
    packet->transport.destination_incarnation = kBoot;
    packet->transport.generation = 1;
    packet->ack.age_us = age_us;
    bench.transmit->acknowledgement(std::move(packet), bench.context.now());
  };
  bench.script.at(ns(5000), introduce);
  bench.script.at(ns(5500), introduce);  // told twice: it is known by then
  bench.submit(ns(6000), Bench::put(1, 64));
  run_until(ns(7000));
  EXPECT_EQ(bench.ended(0), before ? Outcome::timeout : Outcome::pending);
  EXPECT_EQ(bench.transmit->stats().peers_restarted.value(), before ? 1U : 0U);
  EXPECT_EQ(bench.transmit->stats().resent.value(), before ? 0U : 1U);
  EXPECT_EQ(bench.transmit->stats().ignored_acknowledgements.value(), 1U);
  ASSERT_EQ(bench.egress.sent.size(), before ? 2U : 3U);
  for (std::size_t i = 1; i < bench.egress.sent.size(); ++i) {
    EXPECT_EQ(bench.egress.packet(i).transport.destination_incarnation, 9U);
    EXPECT_EQ(bench.egress.packet(i).transport.generation, before ? 2U : 1U);
  }
}

TEST(Transmit, APeerOfALaterLifeGetsWhatWasCutSinceItBegan) { meet_a_peer_of_a_later_life(6, false); }

TEST(Transmit, APeerOfALaterLifeGetsNothingThatWasCutBefore) { meet_a_peer_of_a_later_life(5, true); }

TEST(Transmit, IgnoresAcknowledgementsThatAreNotForIt) {
  Bench bench;
  bench.submit(ns(100), Bench::put(0, 64));
  bench.acknowledge(Time::from_us(2), 1, 1, {}, 2);             // another generation
  bench.acknowledge(Time::from_us(2), 1, 1, {}, 1, NodeId{6});  // a stranger
  bench.acknowledge(Time::from_us(2), 9, 9);                    // about what was never sent
  run_until(Time::from_us(3));
  EXPECT_EQ(bench.ended(0), Outcome::pending);
  EXPECT_EQ(bench.transmit->stats().ignored_acknowledgements.value(), 3U);
}

TEST(Transmit, AnArmedWordInterruptsOnce) {
  Bench bench;
  bench.arm.arm(PhysicalAddress{kWords});
  bench.submit(ns(100), Bench::put(0, 64));
  bench.submit(ns(100), Bench::put(1, 64));
  bench.acknowledge(Time::from_us(2), 2, 2);
  run_until(Time::from_us(3));
  ASSERT_EQ(bench.dma.words.size(), 3U);
  EXPECT_EQ(bench.dma.words[0].address, kWords);
  EXPECT_EQ(bench.dma.words[1].address, interrupt_address(Pid{4}).value());
  EXPECT_EQ(bench.arm.size(), 0U);
}

TEST(Transmit, AMessageThatNumbersCannotSpanEndsBounds) {
  Bench bench;
  PutRequest endless = Bench::put(0, ~std::uint64_t{0});
  bench.submit(ns(100), endless);
  run_until(ns(200));
  EXPECT_EQ(bench.ended(0), Outcome::bounds);
  EXPECT_TRUE(bench.egress.sent.empty());
}

TEST(Transmit, RandomPutsAllEndOnceWithTheirOutcome) {
  const std::uint64_t seed = 42;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random{seed};
  Bench bench{[](NicConfig& config) {
    config.reliability.window = 16;
    config.reliability.messages = 8;
    config.transmit.buffer = Bytes{9000};
  }};
  constexpr std::uint32_t kPuts = 300;
  for (std::uint32_t n = 0; n < kPuts; ++n) {
    bench.submit(ns(100 + 50 * std::int64_t{n}),
                 Bench::put(n, random.below(20'000), NodeId{static_cast<std::uint32_t>(1 + random.below(3))}));
  }
  // Each peer acknowledges all that it has got so far every 2 us; one message in five is refused.
  std::map<std::uint32_t, std::uint32_t> next_sequence;
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint64_t>> bytes_missing;
  std::map<std::uint32_t, std::vector<Outcome>> outcomes;
  std::size_t looked_at = 0;
  for (std::int64_t us = 2; us < 3000; us += 2) {
    bench.script.at(Time::from_us(us), [&] {
      for (; looked_at < bench.egress.sent.size(); ++looked_at) {
        const Packet& packet = bench.egress.packet(looked_at);
        const std::uint32_t peer = packet.transport.destination.value();
        ASSERT_EQ(packet.transport.sequence, next_sequence[peer]++);
        auto [left, first] = bytes_missing[peer].try_emplace(packet.data.message.value(), packet.data.message_length);
        left->second -= packet.data.payload_length;
        if (first) outcomes[peer].push_back(random.below(5) == 0 ? Outcome::bad_key : Outcome::pending);
        Outcome& outcome = outcomes[peer].at(packet.data.message.value());
        if (left->second == 0 && outcome == Outcome::pending) outcome = Outcome::ok;
      }
      for (auto& [peer, sequence] : next_sequence) {
        PacketPtr ack = bench.packets.acquire();
        ack->transport.source = NodeId{peer};
        ack->transport.source_incarnation = 8;
        ack->transport.destination_incarnation = kBoot;
        ack->transport.generation = 1;
        ack->ack.cumulative = sequence;
        ack->ack.outcomes = outcomes[peer];
        bench.transmit->acknowledgement(std::move(ack), bench.transmit->now());
      }
    });
  }
  run_until(Time::from_us(3000));
  EXPECT_EQ(bench.observer.ended.size(), kPuts);
  EXPECT_EQ(bench.transmit->open_puts(), 0U);
  std::size_t refused = 0;
  for (const auto& put : bench.observer.ended) refused += put.outcome == Outcome::bad_key ? 1 : 0;
  std::size_t expected = 0;
  for (const auto& [peer, list] : outcomes)
    expected += static_cast<std::size_t>(std::count(list.begin(), list.end(), Outcome::bad_key));
  EXPECT_EQ(refused, expected);
  EXPECT_GT(refused, 20U);
  EXPECT_LE(bench.transmit->stats().buffer.value(), 9000U);
}

}  // namespace
}  // namespace rvma
