#include "nic/transmit_context.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "nic/delivery.hpp"

namespace rvma {
namespace {

using EndedList = std::vector<TransmitContext::Ended>;
using Patience = TransmitContext::Patience;
using Verdict = DeliveryIf::Verdict;
constexpr Time kNow = Time::from_us(100);
constexpr Time ns(std::int64_t n) { return Time::from_ns(n); }
constexpr Time kInstant = Time::from_ps(1);

TransmitLimits limits_of(std::uint32_t window, std::uint32_t messages) {
  TransmitLimits limits;
  limits.window = window;
  limits.messages = messages;
  return limits;
}

AckHeader ack(std::uint32_t cumulative, std::uint32_t outcomes_from = 0, std::vector<Outcome> outcomes = {},
              std::vector<std::uint64_t> selective = {}) {
  AckHeader header;
  header.cumulative = cumulative;
  header.outcomes_from = MessageId{outcomes_from};
  header.outcomes = std::move(outcomes);
  header.selective = std::move(selective);
  return header;
}

/// A context with one message of `packets`, sent 10 ns apart from kNow on.
struct Sending {
  explicit Sending(std::uint32_t packets, const TransmitLimits& its_limits = {}) : limits(its_limits) {
    const MessageId id = context.open(7);
    for (std::uint32_t i = 0; i < packets; ++i) context.take_sequence(id, i + 1 == packets);
    for (std::uint32_t i = 0; i < packets; ++i) context.sent(i, kNow + ns(10) * i);
  }
  std::vector<std::uint32_t> take_resends() {
    std::vector<std::uint32_t> sequences;
    TransmitContext::Resend resend;
    while (context.next_resend(resend)) {
      sequences.push_back(resend.sequence);
      context.pop_resend();
    }
    return sequences;
  }
  TransmitLimits limits;
  TransmitContext context{limits};
  EndedList ended;
};

/// Whoever changes these says so in docs/explanation/reliability.md, `State in bytes`.
TEST(TransmitContext, StateIsWhatTheManualSays) {
  TransmitLimits limits;
  TransmitContext context(limits);
  EXPECT_EQ(sizeof(TransmitContext), 344U);
  EXPECT_EQ(context.state_bytes(), 344U);
  for (std::uint32_t message = 0; message < 1024; ++message) {
    context.take_sequence(context.open(message), true);
    if (message == 0) {
      EXPECT_EQ(context.state_bytes(), 344U + 2U * 16U + 2U * 24U);
    }
  }
  EXPECT_EQ(context.state_bytes(), 344U + 1024U * (16U + 24U));
  for (std::uint32_t sequence = 0; sequence < 1024; ++sequence) context.sent(sequence, Time::from_us(1));
  context.send_all_again();
  EXPECT_EQ(context.state_bytes(), 344U + 1024U * (16U + 24U + 20U));
}

TEST(TransmitContext, EndsMessagesOnTheirOutcomesAlone) {
  const TransmitLimits limits = limits_of(64, 16);
  TransmitContext transmit{limits};
  EndedList ended;
  for (std::uint32_t put = 10; put < 14; ++put) EXPECT_EQ(transmit.take_sequence(transmit.open(put), true), put - 10);
  EXPECT_TRUE(transmit.acknowledge(ack(4), kNow, ended));  // all packets, no outcome
  EXPECT_TRUE(ended.empty());
  const AckHeader newer = ack(4, 1, {Outcome::pending, Outcome::no_buffer});
  transmit.acknowledge(newer, kNow, ended);
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended[0].put, 10U);
  EXPECT_EQ(ended[0].outcome, Outcome::ok);
  EXPECT_EQ(ended[1].put, 12U);
  EXPECT_EQ(ended[1].outcome, Outcome::no_buffer);
  EXPECT_EQ(transmit.open_span(MessageId{3}), 2);  // 1 is the oldest open one
  // The same again, and an older one, change nothing.
  ended.clear();
  transmit.acknowledge(newer, kNow, ended);
  transmit.acknowledge(ack(0), kNow, ended);
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(transmit.open_span(MessageId{3}), 2);
  transmit.acknowledge(ack(4, 4), kNow, ended);
  EXPECT_EQ(ended.size(), 2U);
  EXPECT_TRUE(transmit.idle());
}

TEST(TransmitContext, ImpossibleAcknowledgementsAreIgnored) {
  const TransmitLimits limits = limits_of(64, 16);
  TransmitContext transmit{limits};
  EndedList ended;
  transmit.take_sequence(transmit.open(1), true);
  EXPECT_FALSE(transmit.acknowledge(ack(2), kNow, ended));
  EXPECT_FALSE(transmit.acknowledge(ack(1, 2), kNow, ended));
  // Numbers and outcomes of what was never sent.
  EXPECT_TRUE(transmit.acknowledge(ack(0, 0, {}, {~std::uint64_t{1}}), kNow, ended));
  EXPECT_EQ(transmit.in_flight(), 1U);
  EXPECT_TRUE(transmit.acknowledge(ack(1, 0, std::vector<Outcome>(40, Outcome::bad_key)), kNow, ended));
  EXPECT_EQ(ended.size(), 1U);
}

TEST(TransmitContext, KeepsItsLimits) {
  const TransmitLimits limits = limits_of(4, 2);
  TransmitContext transmit{limits};
  EndedList ended;
  const MessageId first = transmit.open(0);
  transmit.open(1);
  EXPECT_FALSE(transmit.message_room());
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(transmit.packet_room());
    transmit.take_sequence(first, i == 3);
  }
  EXPECT_FALSE(transmit.packet_room());
  // What is acknowledged out of order opens no room: the receiver's window starts at the first missing one.
  transmit.acknowledge(ack(0, 0, {}, {0b1110}), kNow, ended);
  EXPECT_FALSE(transmit.packet_room());
  transmit.acknowledge(ack(1), kNow, ended);
  EXPECT_TRUE(transmit.packet_room());
}

TEST(TransmitContext, APacketIsLostWhenOneSentAWindowLaterHasArrived) {
  TransmitLimits limits;
  limits.reorder_window = ns(25);
  Sending s{5, limits};
  // Sent at 0, 10, 20, 30, 40. The fourth has arrived: only the first was sent more than 25 ns before it.
  s.context.acknowledge(ack(0, 0, {}, {0b01000}), kNow + ns(500), s.ended);
  TransmitContext::Resend resend;
  ASSERT_TRUE(s.context.next_resend(resend));
  EXPECT_EQ(resend.sequence, 0U);
  EXPECT_EQ(resend.put, 7U);
  EXPECT_EQ(resend.packet_index, 0U);
  EXPECT_EQ(s.take_resends(), (std::vector<std::uint32_t>{0}));
  // The fifth, too: the second was sent 30 ns before it, the third 20 ns.
  s.context.acknowledge(ack(0, 0, {}, {0b11000}), kNow + ns(501), s.ended);
  EXPECT_EQ(s.take_resends(), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(s.context.take_counts().lost_by_evidence, 2U);
}

TEST(TransmitContext, WhatIsSentAgainIsNotLostBeforeSomethingSentLaterArrives) {
  TransmitLimits limits;
  limits.reorder_window = ns(5);
  Sending s{3, limits};
  s.context.acknowledge(ack(0, 0, {}, {0b100}), kNow + ns(500), s.ended);
  EXPECT_EQ(s.take_resends(), (std::vector<std::uint32_t>{0, 1}));
  s.context.sent(0, kNow + ns(510));
  s.context.sent(1, kNow + ns(520));
  s.context.acknowledge(ack(0, 0, {}, {0b100}), kNow + ns(600), s.ended);  // the same again says nothing new
  EXPECT_TRUE(s.take_resends().empty());
  s.context.acknowledge(ack(0, 0, {}, {0b110}), kNow + ns(1100), s.ended);  // the second resending has arrived
  EXPECT_EQ(s.take_resends(), (std::vector<std::uint32_t>{0}));
}

TEST(TransmitContext, AnAcknowledgementCancelsAResendingAndWidensTheWindow) {
  TransmitLimits limits;
  limits.reorder_window = ns(5);
  Sending s{3, limits};
  s.context.acknowledge(ack(0, 0, {}, {0b100}), kNow + ns(500), s.ended);
  s.context.acknowledge(ack(1, 0, {}, {0b10}), kNow + ns(510), s.ended);  // the first was only late
  EXPECT_EQ(s.take_resends(), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(s.context.times().reorder_window(), ns(10));
  // The second was sent again; an answer sooner than any round trip belongs to its first sending.
  s.context.sent(1, kNow + ns(520));
  s.context.acknowledge(ack(3), kNow + ns(600), s.ended);
  EXPECT_EQ(s.context.times().reorder_window(), ns(20));
  EXPECT_EQ(s.context.take_counts().in_vain, 2U);
}

TEST(TransmitContext, TheReorderWindowGoesBackWhenResendingWasRight) {
  RetransmitTimes times{Time::from_us(100), ns(10)};
  times.sample(Time::from_us(1));
  for (int i = 0; i < 3; ++i) times.resent_in_vain();
  EXPECT_EQ(times.reorder_window(), ns(80));
  for (std::uint32_t i = 0; i + 1 < RetransmitTimes::kForget; ++i) times.resent_rightly();
  EXPECT_EQ(times.reorder_window(), ns(80));
  times.resent_rightly();
  EXPECT_EQ(times.reorder_window(), ns(40));
  for (std::uint32_t i = 0; i < 5 * RetransmitTimes::kForget; ++i) times.resent_rightly();
  EXPECT_EQ(times.reorder_window(), ns(10));
}

TEST(TransmitContext, AnAnswerThatWasTakenForTooSoonIsBelievedTheNextTime) {
  RetransmitTimes times{Time::from_us(100), ns(10)};
  EXPECT_FALSE(times.is_too_soon(ns(1))) << "nothing is known yet";
  times.sample(Time::from_us(20));  // under load
  EXPECT_TRUE(times.is_too_soon(Time::from_us(2)));
  times.taken_for_too_soon(Time::from_us(2));
  EXPECT_FALSE(times.is_too_soon(Time::from_us(2)));
  EXPECT_TRUE(times.is_too_soon(Time::from_us(1)));
}

TEST(TransmitContext, APacketTimesOutAndNotBefore) {
  TransmitLimits limits;
  limits.reorder_window = ns(15);
  Sending s{3, limits};
  const Time due = kNow + s.limits.rto;
  EXPECT_EQ(s.context.deadline(), due);
  EXPECT_EQ(s.context.check(due - kInstant, s.ended), Patience::has);
  EXPECT_TRUE(s.take_resends().empty());
  EXPECT_EQ(s.context.check(due, s.ended), Patience::has);
  // With it what was sent within the reorder window: the second, not the third.
  EXPECT_EQ(s.take_resends(), (std::vector<std::uint32_t>{0, 1}));
  s.context.sent(0, due + ns(1));
  s.context.sent(1, due + ns(2));
  // The next time-out is twice as long, and runs from the last sending.
  EXPECT_EQ(s.context.deadline(), due + ns(2) + s.limits.rto * 2);
  // The arrival of what was sent again shows the third to be lost, and progress makes the time-out short again.
  s.context.acknowledge(ack(2), due + ns(300), s.ended);
  EXPECT_TRUE(s.context.deadline().is_never()) << "nothing is on its way";
  EXPECT_EQ(s.take_resends(), (std::vector<std::uint32_t>{2}));
  s.context.sent(2, due + ns(310));
  EXPECT_EQ(s.context.deadline(), due + ns(310) + s.limits.rto);
}

TEST(TransmitContext, TheTimeOutFollowsTheRoundTrips) {
  TransmitLimits limits;
  limits.rto = ns(100);
  Sending s{1, limits};
  s.context.acknowledge(ack(1), kNow + Time::from_us(1), s.ended);
  EXPECT_EQ(s.context.times().smoothed_round_trip(), Time::from_us(1));
  EXPECT_EQ(s.context.times().time_out(), Time::from_us(3));  // 1 + 4 x 0.5
}

TEST(TransmitContext, ALostAnswerDoesNotCountAsALongRoundTrip) {
  TransmitLimits limits;
  limits.rto = ns(100);
  Sending s{2, limits};
  // No answer comes: both packets are sent again.
  s.context.check(kNow + Time::from_us(8), s.ended);
  EXPECT_EQ(s.take_resends(), (std::vector<std::uint32_t>{0, 1}));
  s.context.sent(0, kNow + Time::from_us(8));
  s.context.acknowledge(ack(2), kNow + Time::from_us(9), s.ended);
  EXPECT_EQ(s.context.times().smoothed_round_trip(), Time::zero());
  EXPECT_EQ(s.context.times().time_out(), ns(100));
}

TEST(TransmitContext, TheTimeOutHasABound) {
  TransmitLimits limits;
  limits.rto = ns(100);
  Sending s{1, limits};
  s.context.acknowledge(ack(1), kNow + Time::from_us(8000), s.ended);
  EXPECT_EQ(s.context.times().time_out(), ns(6400));
}

TEST(TransmitContext, GivesUpAfterSoManySendingsThatNothingAnswers) {
  TransmitLimits limits;
  limits.max_tries = 3;
  Sending s{1, limits};
  Time at = kNow;
  for (int i = 0; i < 2; ++i) {
    at = s.context.deadline();
    EXPECT_EQ(s.context.check(at, s.ended), Patience::has);
    EXPECT_EQ(s.take_resends(), (std::vector<std::uint32_t>{0}));
    s.context.sent(0, at);
  }
  at = s.context.deadline();
  EXPECT_EQ(at, kNow + limits.patience());
  EXPECT_EQ(s.context.check(at - kInstant, s.ended), Patience::has);
  EXPECT_EQ(s.context.check(at, s.ended), Patience::ended);
  s.context.give_up(s.ended);
  ASSERT_EQ(s.ended.size(), 1U);
  EXPECT_EQ(s.ended[0].outcome, Outcome::timeout);
  EXPECT_EQ(s.context.generation(), 2U);
  EXPECT_TRUE(s.context.idle());
  EXPECT_TRUE(s.context.deadline().is_never());
  const MessageId again = s.context.open(5);
  EXPECT_EQ(again, MessageId{0});
  EXPECT_EQ(s.context.take_sequence(again, true), 0U);
}

TEST(TransmitContext, AskForAnOutcomeThatIsNotToldAndInTheEndDoesWithoutIt) {
  TransmitLimits limits;
  limits.max_tries = 3;
  Sending s{2, limits};
  s.context.acknowledge(ack(2), kNow + ns(500), s.ended);
  const Time first = kNow + ns(500) + limits.rto;
  EXPECT_EQ(s.context.deadline(), first);
  s.context.check(first - kInstant, s.ended);
  EXPECT_TRUE(s.take_resends().empty());
  s.context.check(first, s.ended);
  TransmitContext::Resend probe;
  ASSERT_TRUE(s.context.next_resend(probe));
  EXPECT_TRUE(probe.is_probe);
  EXPECT_EQ(probe.sequence, 1U);  // the message's last packet
  EXPECT_EQ(probe.packet_index, 1U);
  EXPECT_EQ(s.take_resends().size(), 1U);
  s.context.check(first + limits.rto * 2, s.ended);
  EXPECT_EQ(s.take_resends().size(), 1U);
  EXPECT_TRUE(s.ended.empty());
  s.context.check(first + limits.rto * 6, s.ended);
  ASSERT_EQ(s.ended.size(), 1U);
  EXPECT_EQ(s.ended[0].outcome, Outcome::timeout);
  EXPECT_TRUE(s.context.idle());
}

TEST(TransmitContext, ANumberWhoseMessageHasEndedIsFilledWithoutItsPut) {
  Sending s{2};
  s.context.acknowledge(ack(0, 0, {Outcome::bad_key}), kNow + ns(500), s.ended);
  ASSERT_EQ(s.ended.size(), 1U);
  s.context.check(s.context.deadline(), s.ended);
  TransmitContext::Resend resend;
  ASSERT_TRUE(s.context.next_resend(resend));
  EXPECT_EQ(resend.sequence, 0U);
  EXPECT_EQ(resend.put, TransmitContext::kNoPut);
}

/// Both ends over a path that loses, doubles, delays and reorders packets and acknowledgements: every message ends
/// once, with its own outcome, and every packet is handled once.
TEST(Contexts, EndEveryMessageOnceUnderLoss) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    const std::uint64_t loss_ppb = random.below(300'000'000);
    TransmitLimits limits = limits_of(64, 16);
    limits.rto = Time::from_us(20);
    limits.reorder_window = ns(static_cast<std::int64_t>(random.below(5'000)));
    limits.max_tries = 30;
    TransmitContext transmit{limits};
    ReceiveContext receive{1, 1, ReceiveLimits{64, 16, 64}};
    struct Travelling {
      Time at;
      bool is_packet = false;
      std::uint32_t sequence = 0;
      MessageId message;
      std::uint16_t span = 0;
      AckHeader ack;
    };
    std::vector<Travelling> path;
    std::vector<std::uint32_t> packets_of;  ///< by message number
    std::vector<std::uint32_t> handled;
    std::vector<Outcome> seen;
    EndedList ended;
    Time at = kNow;
    const auto travel = [&](Travelling what) {
      for (int copies = random.below(10) == 0 ? 2 : 1; copies > 0; --copies) {
        if (random.chance(loss_ppb)) continue;
        what.at = at + ns(500 + static_cast<std::int64_t>(random.below(3'000)));
        path.push_back(what);
      }
    };
    const auto send = [&](std::uint32_t sequence, MessageId message) {
      transmit.sent(sequence, at);
      Travelling packet;
      packet.is_packet = true;
      packet.sequence = sequence;
      packet.message = message;
      packet.span = transmit.open_span(message);
      travel(packet);
    };
    MessageId sending;
    std::uint32_t left = 0;
    constexpr std::uint32_t kMessages = 200;
    for (int step = 0; step < 400'000 && seen.size() < kMessages; ++step) {
      at += ns(50);
      // 1. The sender: what is lost first.
      TransmitContext::Resend resend;
      if (transmit.next_resend(resend)) {
        transmit.pop_resend();
        send(resend.sequence, resend.message);
      } else if (left > 0 && transmit.packet_room()) {
        send(transmit.take_sequence(sending, --left == 0), sending);
      } else if (left == 0 && transmit.message_room() && packets_of.size() < kMessages) {
        sending = transmit.open(static_cast<std::uint32_t>(packets_of.size()));
        left = 1 + static_cast<std::uint32_t>(random.below(6));
        packets_of.push_back(left);
        handled.push_back(0);
      }
      ASSERT_EQ(transmit.check(at, ended), Patience::has);
      // 2. What arrives now.
      for (std::size_t i = 0; i < path.size();) {
        if (path[i].at > at) {
          ++i;
          continue;
        }
        const Travelling arrived = path[i];
        path.erase(path.begin() + static_cast<std::ptrdiff_t>(i));
        if (!arrived.is_packet) {
          ASSERT_TRUE(transmit.acknowledge(arrived.ack, at, ended));
          continue;
        }
        const auto answer = receive.admit(arrived.sequence, arrived.message, arrived.span);
        if (answer.admission.verdict == Verdict::fresh) {
          const std::uint32_t id = arrived.message.value();
          if (answer.admission.state == MessageState::unseen && id % 5 == 0) {
            receive.refuse(arrived.message, Outcome::bad_key, true, at);
          }
          if (++handled[id] == packets_of[id] && id % 5 != 0) receive.end(arrived.message, at);
          ASSERT_LE(handled[id], packets_of[id]) << "a packet was handled twice";
          receive.dispose(arrived.sequence, at);
        } else if (answer.admission.verdict == Verdict::closed) {
          receive.dispose(arrived.sequence, at);
        }
        Travelling answer_packet;
        receive.fill(answer_packet.ack, at);
        travel(answer_packet);
      }
      for (const auto& end : ended) {
        seen.resize(std::max<std::size_t>(seen.size(), end.put + 1), Outcome::pending);
        ASSERT_EQ(seen[end.put], Outcome::pending) << "ended twice";
        ASSERT_EQ(end.outcome, end.put % 5 == 0 ? Outcome::bad_key : Outcome::ok);
        seen[end.put] = end.outcome;
        if (end.message == sending) left = 0;
      }
      ended.clear();
    }
    ASSERT_EQ(seen.size(), kMessages);
  }
}

}  // namespace
}  // namespace rvma
