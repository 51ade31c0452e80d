// Contexts as plain classes, and the delivery unit with its acknowledgement timing.
#include "nic/delivery.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "nic/delivery_unit.hpp"
#include "nic/transmit_context.hpp"
#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::ns;
using test::run_until;
using test::Script;
using Verdict = DeliveryIf::Verdict;

const Time kNow = Time::from_us(1);

ReceiveContext context(std::uint32_t window = 64, std::uint32_t messages = 16, std::uint32_t told = 64) {
  return ReceiveContext{1, 1, ReceiveLimits{window, messages, told}};
}

AckHeader filled(ReceiveContext& receive, Time at = kNow) {
  AckHeader ack;
  receive.fill(ack, at);
  return ack;
}

TEST(ReceiveContext, TellsDuplicatesAndOrderApart) {
  ReceiveContext receive = context();
  EXPECT_TRUE(receive.admit(0, MessageId{0}, 0).in_order);
  EXPECT_FALSE(receive.admit(2, MessageId{0}, 0).in_order);
  EXPECT_FALSE(receive.admit(1, MessageId{0}, 0).in_order);
  EXPECT_TRUE(receive.admit(3, MessageId{0}, 0).in_order);
  for (std::uint32_t sequence = 0; sequence < 4; ++sequence) {
    EXPECT_EQ(receive.admit(sequence, MessageId{0}, 0).admission.verdict, Verdict::duplicate);
    receive.dispose(sequence, kNow);
    EXPECT_EQ(receive.admit(sequence, MessageId{0}, 0).admission.verdict, Verdict::duplicate);
  }
  EXPECT_EQ(filled(receive).cumulative, 4U);
  EXPECT_EQ(receive.admit(0, MessageId{0}, 0).admission.verdict, Verdict::duplicate);
}

TEST(ReceiveContext, AcknowledgesWhatWasDisposedOfAndNotWhatWasSeen) {
  ReceiveContext receive = context(256);
  for (std::uint32_t sequence = 0; sequence < 200; ++sequence) receive.admit(sequence, MessageId{0}, 0);
  EXPECT_EQ(filled(receive).cumulative, 0U);
  EXPECT_TRUE(filled(receive).selective.empty());
  receive.dispose(0, kNow);
  receive.dispose(2, kNow);
  receive.dispose(70, kNow);
  receive.dispose(130, kNow);
  const AckHeader ack = filled(receive);
  EXPECT_EQ(ack.cumulative, 1U);
  ASSERT_EQ(ack.selective.size(), 3U);
  EXPECT_EQ(ack.selective[0], 1ULL << 1U);
  EXPECT_EQ(ack.selective[1], 1ULL << (70 - 1 - 64));
  EXPECT_EQ(ack.selective[2], 1ULL << (130 - 1 - 128));
}

TEST(ReceiveContext, DisposalsOfTheFutureAreToldInTheFuture) {
  ReceiveContext receive = context();
  receive.admit(0, MessageId{0}, 0);
  receive.dispose(0, kNow + ns(10));
  receive.end(MessageId{0}, kNow + ns(20));
  AckHeader ack;
  ReceiveContext::LeftOut left = receive.fill(ack, kNow + ns(9));
  EXPECT_EQ(ack.cumulative, 0U);
  EXPECT_EQ(left.not_yet, kNow + ns(10));
  EXPECT_EQ(left.packets, 1U);
  left = receive.fill(ack, kNow + ns(10));
  EXPECT_EQ(ack.cumulative, 1U);
  EXPECT_EQ(ack.outcomes_from, MessageId{0});
  EXPECT_EQ(left.not_yet, kNow + ns(20));
  left = receive.fill(ack, kNow + ns(20));
  EXPECT_EQ(ack.outcomes_from, MessageId{1});
  EXPECT_TRUE(left.not_yet.is_never());
}

TEST(ReceiveContext, MessagesGoTheirWaysAndClosedIdsChangeNothing) {
  ReceiveContext receive = context();
  std::uint32_t sequence = 0;
  EXPECT_EQ(receive.admit(sequence++, MessageId{0}, 0).admission.state, MessageState::unseen);
  receive.bind(MessageId{0}, 77);
  const auto bound = receive.admit(sequence++, MessageId{0}, 0).admission;
  EXPECT_EQ(bound.state, MessageState::bound);
  EXPECT_EQ(bound.binding, 77U);
  receive.admit(sequence++, MessageId{1}, 1);
  receive.refuse(MessageId{1}, Outcome::bad_key, true, kNow);
  EXPECT_EQ(receive.admit(sequence++, MessageId{1}, 1).admission.state, MessageState::refused);
  receive.end(MessageId{1}, kNow);  // a refusal stands
  EXPECT_EQ(receive.admit(sequence++, MessageId{1}, 1).admission.state, MessageState::refused);
  receive.end(MessageId{0}, kNow);
  EXPECT_EQ(receive.admit(sequence++, MessageId{0}, 0).admission.verdict, Verdict::closed);
  // The sender has closed 0 and 1.
  EXPECT_EQ(receive.admit(sequence++, MessageId{2}, 0).admission.verdict, Verdict::fresh);
  EXPECT_EQ(receive.oldest_open(), MessageId{2});
  EXPECT_EQ(receive.admit(sequence++, MessageId{1}, 0).admission.verdict, Verdict::closed);
}

TEST(ReceiveContext, OutcomesAreRepeatedUntilTheOldestOpenIdHasPassed) {
  ReceiveContext receive = context();
  for (std::uint32_t id = 0; id < 5; ++id) receive.admit(id, MessageId{id}, static_cast<std::uint16_t>(id));
  receive.end(MessageId{0}, kNow);
  receive.end(MessageId{1}, kNow);
  receive.refuse(MessageId{3}, Outcome::bounds, true, kNow);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const AckHeader ack = filled(receive);
    EXPECT_EQ(ack.outcomes_from, MessageId{2});
    EXPECT_EQ(ack.outcomes, (std::vector<Outcome>{Outcome::pending, Outcome::bounds}));
  }
  receive.admit(5, MessageId{5}, 1);  // the oldest open one is 4
  EXPECT_EQ(filled(receive).outcomes_from, MessageId{4});
  EXPECT_TRUE(filled(receive).outcomes.empty());
}

TEST(ReceiveContext, WhatNoHonestSenderSendsChangesNothing) {
  ReceiveContext receive = context(64, 16);
  EXPECT_EQ(receive.admit(64, MessageId{0}, 0).admission.verdict, Verdict::stale);   // beyond the window
  EXPECT_EQ(receive.admit(0, MessageId{16}, 16).admission.verdict, Verdict::stale);  // too many open
  EXPECT_EQ(receive.admit(0, MessageId{15}, 15).admission.verdict, Verdict::fresh);
  receive.dispose(5, kNow);  // never seen
  EXPECT_TRUE(filled(receive).selective.empty());
  receive.bind(MessageId{400}, 1);
  receive.refuse(MessageId{400}, Outcome::busy, true, kNow);
  receive.end(MessageId{400}, kNow);
  EXPECT_TRUE(filled(receive).outcomes.empty());
}

TEST(ReceiveContext, RefusalsAreToldAtTheirRateAndInTheEndAll) {
  ReceiveContext receive = context(1024, 256, 64);
  for (std::uint32_t id = 0; id < 150; ++id) {
    receive.admit(id, MessageId{id}, static_cast<std::uint16_t>(id));
    receive.refuse(MessageId{id}, id % 2 == 0 ? Outcome::no_buffer : Outcome::bad_key, true, kNow);
  }
  AckHeader ack;
  ReceiveContext::LeftOut left = receive.fill(ack, kNow);
  EXPECT_EQ(ack.outcomes.size(), 64U);
  EXPECT_EQ(left.held_back, kNow + Time::from_us(10));
  receive.fill(ack, left.held_back - Time::from_ps(1));
  EXPECT_EQ(ack.outcomes.size(), 64U);  // repeats cost nothing, but no new one is told
  left = receive.fill(ack, left.held_back);
  EXPECT_EQ(ack.outcomes.size(), 128U);
  left = receive.fill(ack, left.held_back);
  ASSERT_EQ(ack.outcomes.size(), 150U);
  EXPECT_EQ(ack.outcomes[149], Outcome::bad_key);
  EXPECT_TRUE(left.held_back.is_never());
}

/// Whoever changes these says so in docs/explanation/reliability.md, `State in bytes`.
TEST(ReceiveContext, StateIsWhatTheManualSays) {
  ReceiveContext receive = context(1024, 1024);
  EXPECT_EQ(sizeof(ReceiveContext), 216U);
  EXPECT_EQ(receive.state_bytes(), 216U + 256U);
  receive.admit(0, MessageId{0}, 0);
  EXPECT_EQ(receive.state_bytes(), 216U + 256U + 2U * 16U);
  for (std::uint32_t id = 1; id < 1024; ++id) receive.admit(id, MessageId{id}, static_cast<std::uint16_t>(id));
  EXPECT_EQ(receive.state_bytes(), 216U + 256U + 1024U * 16U);
}

TransmitLimits limits_of(std::uint32_t window, std::uint32_t messages) {
  TransmitLimits limits;
  limits.window = window;
  limits.messages = messages;
  return limits;
}

using EndedList = std::vector<TransmitContext::Ended>;

/// Both ends of a context, with packets and acknowledgements overtaking one another at random: every message ends once,
/// with its own outcome.
TEST(Contexts, AgreeUnderAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    ReceiveContext receive = context(64, 16);
    const TransmitLimits limits = limits_of(64, 16);
    TransmitContext transmit{limits};
    struct Sent {
      std::uint32_t sequence;
      MessageId message;
      std::uint16_t span;
    };
    std::vector<Sent> packets;
    std::vector<AckHeader> acks;
    std::vector<Outcome> truth;
    std::vector<Outcome> seen;
    EndedList ended;
    Time at = kNow;
    for (int step = 0; step < 20'000 && seen.size() < 2'000; ++step) {
      at += ns(200);
      const std::uint64_t what = random.below(3);
      if (what == 0 && transmit.message_room() && transmit.packet_room()) {
        const MessageId id = transmit.open(static_cast<std::uint32_t>(truth.size()));
        truth.push_back(random.below(4) == 0 ? Outcome::bad_key : Outcome::ok);
        const std::uint32_t sequence = transmit.take_sequence(id, true);
        packets.push_back({sequence, id, transmit.open_span(id)});
      } else if (what == 1 && !packets.empty()) {
        const std::size_t pick = random.below(packets.size());
        const Sent packet = packets[pick];
        packets.erase(packets.begin() + static_cast<std::ptrdiff_t>(pick));
        ASSERT_EQ(receive.admit(packet.sequence, packet.message, packet.span).admission.verdict, Verdict::fresh);
        receive.dispose(packet.sequence, at);
        if (truth[packet.message.value()] == Outcome::ok) {
          receive.end(packet.message, at);
        } else {
          receive.refuse(packet.message, Outcome::bad_key, true, at);
        }
        acks.push_back(filled(receive, at));
      } else if (what == 2 && !acks.empty()) {
        const std::size_t pick = random.below(acks.size());
        ended.clear();
        ASSERT_TRUE(transmit.acknowledge(acks[pick], at, ended));
        if (random.below(2) == 0) acks.erase(acks.begin() + static_cast<std::ptrdiff_t>(pick));  // else it comes again
        if (acks.size() > 8) acks.erase(acks.begin());
        for (const auto& end : ended) {
          if (seen.size() <= end.put) seen.resize(end.put + 1, Outcome::pending);
          ASSERT_EQ(seen[end.put], Outcome::pending) << "ended twice";
          ASSERT_EQ(end.outcome, truth[end.put]);
          seen[end.put] = end.outcome;
        }
        if (ended.empty()) acks.push_back(filled(receive, at));
      }
    }
    EXPECT_GT(seen.size(), 500U);
  }
}

// --------------------------------------------------------------------------------------------------- the unit

class FakeEgress : public sc_core::sc_object, public EgressIf {
 public:
  struct Sent {
    AckHeader ack;
    TransportHeader transport;
    std::uint32_t wire_bytes;
    Time at;
  };
  void send_data(PacketPtr /*packet*/, Time /*ready*/) override { FAIL() << "the delivery unit sends no data"; }
  void send_acknowledgement(PacketPtr packet, Time ready) override {
    acks.push_back({packet->ack, packet->transport, packet->wire_bytes, ready});
  }
  std::vector<Sent> acks;
};

struct UnitBench {
  explicit UnitBench(bool nack = true) {
    config.nack = nack;
    unit = std::make_unique<DeliveryUnit>("delivery", context, config, NodeId{7}, 3, packets);
    unit->egress(egress);
  }
  PacketPtr packet(std::uint32_t sequence, std::uint32_t message, std::uint16_t span = 0,
                   std::uint32_t generation = 1) {
    PacketPtr made = packets.acquire();
    made->transport.source = NodeId{1};
    made->transport.source_incarnation = 5;
    made->transport.destination_incarnation = 3;
    made->transport.generation = generation;
    made->transport.sequence = sequence;
    made->data.message = MessageId{message};
    made->data.open_span = span;
    return made;
  }
  static MessageRef ref(std::uint32_t message, std::uint32_t generation = 1) {
    return MessageRef{NodeId{1}, 5, generation, MessageId{message}};
  }
  /// A single-packet message arrives and is counted at `at`.
  void deliver(std::uint32_t number) {
    EXPECT_EQ(unit->admit(*packet(number, number)).verdict, Verdict::fresh);
    unit->dispose(ref(number), number, SimContext::now());
    unit->end(ref(number), SimContext::now());
  }

  SimContext context{1};
  NicConfig config;
  PacketPool packets;
  FakeEgress egress;
  Script script{"script", context};
  std::unique_ptr<DeliveryUnit> unit;
};

TEST(DeliveryUnit, AcknowledgesAfterTheDelayAndNotBefore) {
  UnitBench bench;
  bench.script.at(ns(100), [&] { bench.deliver(0); });
  run_until(ns(100) + ns(400) - Time::from_ps(1));
  EXPECT_TRUE(bench.egress.acks.empty());
  run_until(ns(500));
  run_until(ns(501));
  ASSERT_EQ(bench.egress.acks.size(), 1U);
  const FakeEgress::Sent& sent = bench.egress.acks[0];
  EXPECT_EQ(sent.at, ns(500));
  EXPECT_EQ(sent.ack.cumulative, 1U);
  EXPECT_EQ(sent.ack.outcomes_from, MessageId{1});
  EXPECT_EQ(sent.transport.source, NodeId{7});
  EXPECT_EQ(sent.transport.destination, NodeId{1});
  EXPECT_EQ(sent.transport.source_incarnation, 3U);
  EXPECT_EQ(sent.transport.destination_incarnation, 5U);
  EXPECT_EQ(sent.transport.generation, 1U);
  EXPECT_EQ(sent.wire_bytes, ack_wire_bytes(0, 0));
  const std::uint64_t before = bench.context.activations();
  run_until(Time::from_us(1000));
  EXPECT_EQ(bench.egress.acks.size(), 1U);  // nothing more to tell
  EXPECT_EQ(bench.context.activations(), before);
}

TEST(DeliveryUnit, AcknowledgesAtOnceWhenEnoughPacketsAreUntold) {
  UnitBench bench;
  bench.script.at(ns(100), [&] {
    for (std::uint32_t i = 0; i < 15; ++i) bench.deliver(i);
  });
  bench.script.at(ns(110), [&] { bench.deliver(15); });
  run_until(ns(109));
  EXPECT_TRUE(bench.egress.acks.empty());
  run_until(ns(111));
  ASSERT_EQ(bench.egress.acks.size(), 1U);
  EXPECT_EQ(bench.egress.acks[0].ack.cumulative, 16U);
  EXPECT_EQ(bench.egress.acks[0].ack.outcomes_from, MessageId{16});
}

TEST(DeliveryUnit, AnOutcomeThatComesLateIsToldByItself) {
  UnitBench bench;
  bench.script.at(ns(100), [&] {
    bench.unit->admit(*bench.packet(0, 0));
    bench.unit->dispose(UnitBench::ref(0), 0, ns(100));
  });
  bench.script.at(Time::from_us(50), [&] { bench.unit->end(UnitBench::ref(0), Time::from_us(50) + ns(2)); });
  run_until(Time::from_us(60));
  ASSERT_EQ(bench.egress.acks.size(), 2U);
  EXPECT_EQ(bench.egress.acks[0].ack.outcomes_from, MessageId{0});
  EXPECT_EQ(bench.egress.acks[1].ack.outcomes_from, MessageId{1});
  EXPECT_EQ(bench.egress.acks[1].at, Time::from_us(50) + ns(402));
}

TEST(DeliveryUnit, DuplicatesAreAcknowledgedAgain) {
  UnitBench bench;
  bench.script.at(ns(100), [&] { bench.deliver(0); });
  bench.script.at(Time::from_us(5),
                  [&] { EXPECT_EQ(bench.unit->admit(*bench.packet(0, 0)).verdict, Verdict::duplicate); });
  run_until(Time::from_us(10));
  ASSERT_EQ(bench.egress.acks.size(), 2U);
  EXPECT_EQ(bench.egress.acks[1].ack.cumulative, 1U);
  EXPECT_EQ(bench.unit->stats().duplicate.value(), 1U);
}

TEST(DeliveryUnit, OlderGenerationsAndOtherIncarnationsAreStale) {
  UnitBench bench;
  bench.script.at(ns(100), [&] {
    EXPECT_EQ(bench.unit->admit(*bench.packet(0, 0, 0, 2)).verdict, Verdict::fresh);
    EXPECT_EQ(bench.unit->admit(*bench.packet(1, 0, 0, 1)).verdict, Verdict::stale);
    PacketPtr older = bench.packet(1, 0, 0, 9);
    older->transport.source_incarnation = 4;
    EXPECT_EQ(bench.unit->admit(*older).verdict, Verdict::stale);
    PacketPtr misaddressed = bench.packet(1, 0, 0, 2);
    misaddressed->transport.destination_incarnation = 2;
    EXPECT_EQ(bench.unit->admit(*misaddressed).verdict, Verdict::stale);
    misaddressed->transport.destination_incarnation = 3;
    EXPECT_EQ(bench.unit->admit(*misaddressed).verdict, Verdict::fresh);
    // A newer generation starts afresh; what is said about the older one goes nowhere.
    EXPECT_EQ(bench.unit->admit(*bench.packet(0, 0, 0, 3)).verdict, Verdict::fresh);
    bench.unit->dispose(UnitBench::ref(0, 2), 0, ns(100));
  });
  run_until(Time::from_us(5));
  // Whoever speaks to an earlier incarnation is told of the present one, and nothing else.
  ASSERT_EQ(bench.egress.acks.size(), 1U);
  EXPECT_EQ(bench.egress.acks[0].transport.source_incarnation, 3U);
  EXPECT_EQ(bench.egress.acks[0].transport.destination_incarnation, 5U);
  EXPECT_EQ(bench.egress.acks[0].ack.cumulative, 0U);
  EXPECT_EQ(bench.unit->stats().incarnations_told.value(), 1U);
}

TEST(DeliveryUnit, ALaterLifeCountsNothingThatNamesNoneAndSaysHowOldItIs) {
  UnitBench bench;
  DeliveryUnit first("first", bench.context, bench.config, NodeId{7}, 1, bench.packets);
  first.egress(bench.egress);
  const auto age_told_at = [&](Time at) {
    bench.script.at(at, [&] {
      PacketPtr blind = bench.packet(0, 0);
      blind->transport.destination_incarnation = 0;
      EXPECT_FALSE(bench.unit->is_first(*blind));
      EXPECT_EQ(bench.unit->admit(*blind).verdict, Verdict::stale);
    });
    run_until(at + ns(1));
    return bench.egress.acks.back().ack.age_us;
  };
  bench.unit->power_on(Time::from_us(10));
  // One more than its age in whole microseconds.
  EXPECT_EQ(age_told_at(Time::from_us(13) - ns(1)), 3U);
  EXPECT_EQ(age_told_at(Time::from_us(14)), 5U);
  EXPECT_EQ(bench.unit->stats().incarnations_told.value(), 2U);
  EXPECT_EQ(bench.unit->contexts(), 0U);

  PacketPtr blind = bench.packet(0, 0);
  blind->transport.destination_incarnation = 0;
  EXPECT_EQ(first.admit(*blind).verdict, Verdict::fresh);
}

TEST(DeliveryUnit, TellsItsIncarnationAtARate) {
  UnitBench bench;
  const auto ask = [&] {
    PacketPtr packet = bench.packet(0, 0);
    packet->transport.destination_incarnation = 2;
    bench.unit->admit(*packet);
  };
  for (int i = 0; i < 1000; ++i) bench.script.at(ns(100 + i), ask);
  run_until(Time::from_us(5));
  EXPECT_EQ(bench.egress.acks.size(), 3U);  // one in 400 ns
  EXPECT_EQ(bench.unit->contexts(), 0U);
}

/// Notes what is cut off.
class FakeBindings : public sc_core::sc_object, public CutOffIf {
 public:
  void cut_off(const MessageRef& message, std::uint32_t binding, Time at) override {
    cuts.push_back({message, binding, at});
  }
  struct Cut {
    MessageRef message;
    std::uint32_t binding;
    Time at;
  };
  std::vector<Cut> cuts;
};

struct CutOffBench : UnitBench {
  CutOffBench() {
    config.reliability.idle = Time::from_us(50);
    unit->bindings(bindings);
  }
  /// The first packet of message `number` arrives and is bound to entry 10 + number.
  void bind(std::uint32_t number, std::uint16_t span, std::uint32_t generation = 1) {
    EXPECT_EQ(unit->admit(*packet(number, number, span, generation)).verdict, Verdict::fresh);
    unit->bind(ref(number, generation), 10 + number);
    unit->dispose(ref(number, generation), number, SimContext::now());
  }
  FakeBindings bindings;
};

TEST(DeliveryUnit, ANewGenerationCutsOffWhatTheOldOneHasBound) {
  CutOffBench bench;
  bench.script.at(ns(100), [&] {
    bench.bind(0, 0);
    bench.bind(1, 1);
    bench.unit->end(CutOffBench::ref(0), ns(100));
  });
  bench.script.at(ns(200), [&] { bench.unit->admit(*bench.packet(0, 0, 0, 2)); });
  run_until(Time::from_us(200));
  ASSERT_EQ(bench.bindings.cuts.size(), 1U) << "message 0 has ended";
  EXPECT_EQ(bench.bindings.cuts[0].binding, 11U);
  EXPECT_EQ(bench.bindings.cuts[0].message.message, MessageId{1});
  EXPECT_EQ(bench.bindings.cuts[0].message.generation, 1U);
  EXPECT_EQ(bench.bindings.cuts[0].at, ns(200));
  EXPECT_EQ(bench.unit->stats().silences.value(), 0U);
}

TEST(DeliveryUnit, CountsWhatIsBoundHoweverThatEnds) {
  CutOffBench bench;
  const auto most = [&] { return bench.unit->stats().bound.value(); };
  const auto both = [&](std::uint32_t generation) {
    bench.bind(0, 0, generation);
    bench.bind(1, 1, generation);
    EXPECT_EQ(most(), 2U) << generation;
  };
  // Two at a time, each time after what was there has ended, been cut off by a new generation, been given up by its
  // sender, or fallen silent.
  bench.script.at(ns(100), [&] {
    both(1);
    bench.unit->end(CutOffBench::ref(0), ns(100));
    bench.unit->admit(*bench.packet(0, 0, 0, 2));
    bench.unit->bind(CutOffBench::ref(0, 2), 10);
    bench.unit->admit(*bench.packet(1, 1, 0, 2));
    bench.unit->bind(CutOffBench::ref(1, 2), 11);
    bench.unit->bind(CutOffBench::ref(1, 2), 11);
    EXPECT_EQ(most(), 2U);
  });
  bench.script.at(Time::from_us(100), [&] { both(3); });
  bench.script.at(Time::from_us(101), [&] { bench.bind(2, 2, 3); });
  run_until(Time::from_us(200));
  EXPECT_EQ(most(), 3U);
  EXPECT_EQ(bench.bindings.cuts.size(), 6U);
}

TEST(DeliveryUnit, ASourceThatIsSilentForTooLongIsCutOffAndNotBefore) {
  CutOffBench bench;
  bench.script.at(Time::from_us(1), [&] { bench.bind(0, 0); });
  bench.script.at(Time::from_us(31), [&] { bench.unit->admit(*bench.packet(0, 0)); });  // a duplicate is a sign of life
  run_until(Time::from_us(81) - Time::from_ps(1));
  EXPECT_TRUE(bench.bindings.cuts.empty());
  run_until(Time::from_us(81));
  run_until(Time::from_us(81) + ns(1));
  ASSERT_EQ(bench.bindings.cuts.size(), 1U);
  EXPECT_EQ(bench.bindings.cuts[0].at, Time::from_us(81));
  // A later packet of the message is refused, and its sender told.
  bench.script.at(Time::from_us(90), [&] {
    EXPECT_EQ(bench.unit->admit(*bench.packet(1, 0)).state, MessageState::refused);
    bench.unit->dispose(CutOffBench::ref(0), 1, Time::from_us(90));
  });
  run_until(Time::from_us(95));
  EXPECT_EQ(bench.egress.acks.back().ack.outcomes, std::vector<Outcome>{Outcome::stale});
}

TEST(DeliveryUnit, NothingWatchesASourceWithoutBoundMessages) {
  CutOffBench bench;
  bench.script.at(Time::from_us(1), [&] {
    bench.bind(0, 0);
    bench.unit->end(CutOffBench::ref(0), Time::from_us(1));
  });
  run_until(Time::from_us(10));
  const std::uint64_t before = bench.context.activations();
  EXPECT_FALSE(sc_core::sc_pending_activity());
  run_until(Time::from_us(200));
  EXPECT_EQ(bench.context.activations(), before);
  EXPECT_TRUE(bench.bindings.cuts.empty());
}

TEST(DeliveryUnit, AMessageWhoseSenderHasClosedItIsCutOff) {
  CutOffBench bench;
  bench.script.at(ns(100), [&] {
    bench.bind(0, 0);
    bench.unit->admit(*bench.packet(1, 1, 0));  // its sender's oldest open id is 1
  });
  run_until(Time::from_us(1));
  ASSERT_EQ(bench.bindings.cuts.size(), 1U);
  EXPECT_EQ(bench.bindings.cuts[0].binding, 10U);
}

TEST(DeliveryUnit, WithNackOffARefusalOpensNothingAndIsNotTold) {
  UnitBench bench{false};
  bench.script.at(ns(100), [&] {
    bench.unit->admit(*bench.packet(0, 0));
    bench.unit->refuse(UnitBench::ref(0), Outcome::bad_key, ns(100));
    bench.unit->dispose(UnitBench::ref(0), 0, ns(100));
    EXPECT_EQ(bench.unit->contexts(), 0U);
  });
  run_until(Time::from_us(5));
  EXPECT_TRUE(bench.egress.acks.empty());
  // In an open context its packet is acknowledged, its outcome is not told; busy is always told.
  bench.script.at(Time::from_us(6), [&] {
    bench.deliver(0);
    bench.unit->admit(*bench.packet(1, 1));
    bench.unit->refuse(UnitBench::ref(1), Outcome::bad_key, Time::from_us(6));
    bench.unit->dispose(UnitBench::ref(1), 1, Time::from_us(6));
    EXPECT_EQ(bench.unit->admit(*bench.packet(2, 1)).state, MessageState::refused);
    bench.unit->dispose(UnitBench::ref(1), 2, Time::from_us(6));
    bench.unit->admit(*bench.packet(3, 2, 2));
    bench.unit->refuse(UnitBench::ref(2), Outcome::busy, Time::from_us(6));
    bench.unit->dispose(UnitBench::ref(2), 3, Time::from_us(6));
  });
  run_until(Time::from_us(10));
  ASSERT_EQ(bench.egress.acks.size(), 1U);
  EXPECT_EQ(bench.egress.acks[0].ack.cumulative, 4U);
  EXPECT_EQ(bench.egress.acks[0].ack.outcomes_from, MessageId{1});
  EXPECT_EQ(bench.egress.acks[0].ack.outcomes, (std::vector<Outcome>{Outcome::pending, Outcome::busy}));
}

TEST(DeliveryUnit, WithNackOffALaterRefusalLeavesTheContextAlone) {
  UnitBench bench{false};
  bench.script.at(ns(100), [&] {
    bench.unit->admit(*bench.packet(0, 0));  // a single-packet message: bound, its write is under way
    bench.unit->admit(*bench.packet(1, 1, 1));
    bench.unit->refuse(UnitBench::ref(1), Outcome::bad_key, ns(100));
    bench.unit->dispose(UnitBench::ref(1), 1, ns(100));
  });
  bench.script.at(ns(150), [&] {
    bench.unit->dispose(UnitBench::ref(0), 0, ns(150));
    bench.unit->end(UnitBench::ref(0), ns(152));
  });
  run_until(Time::from_us(5));
  ASSERT_FALSE(bench.egress.acks.empty());
  EXPECT_EQ(bench.egress.acks.back().ack.cumulative, 2U);
  EXPECT_EQ(bench.egress.acks.back().ack.outcomes_from, MessageId{1});
}

TEST(DeliveryUnit, HeldBackRefusalsFollowWhenTheBudgetAllows) {
  UnitBench bench;
  bench.script.at(ns(100), [&] {
    for (std::uint32_t i = 0; i < 70; ++i) {
      bench.unit->admit(*bench.packet(i, i, static_cast<std::uint16_t>(i)));
      bench.unit->refuse(UnitBench::ref(i), Outcome::no_mailbox, ns(100));
      bench.unit->dispose(UnitBench::ref(i), i, ns(100));
    }
  });
  run_until(Time::from_us(30));
  ASSERT_EQ(bench.egress.acks.size(), 2U);
  EXPECT_EQ(bench.egress.acks[0].ack.outcomes.size(), 64U);
  EXPECT_EQ(bench.egress.acks[1].ack.outcomes.size(), 70U);
  EXPECT_EQ(bench.egress.acks[1].at, bench.egress.acks[0].at + Time::from_us(10));
  EXPECT_EQ(bench.unit->stats().refusals_held_back.value(), 1U);
}

}  // namespace
}  // namespace rvma
