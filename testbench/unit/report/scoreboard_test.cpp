// The scoreboard: passes what is right, and reports exactly the rule that is broken. The tests tell it a run as an RNIC
// would, and break one rule at a time.
#include "report/scoreboard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/random.hpp"
#include "scoreboard_fixture.hpp"

namespace rvma {
namespace {

using test::Buffer;
using test::FakeNic;
using test::kMtu;
using test::kPid;
using test::kReceiver;
using test::Put;
using test::ScoreboardTest;
using testing::HasSubstr;

// ----------------------------------------------------------------------------------------------------- right runs

TEST_F(ScoreboardTest, PassesARightRun) {
  const Buffer first = open();
  const Buffer second = nic().post(4096);
  Put a = nic().put(1500, 2000);
  Put b = nic().put(600, 100);
  Put c = nic().put(2048, 0);
  // Interleaved, the second packet first.
  nic().bind(a, first, 0, 2000);
  nic().place(a, first, 2000, 1);
  nic().bind(b, first, 0, 100);
  nic().retire(first, 0);
  nic().bind(c, second, 1, 0);
  nic().retire(second, 1);
  nic().place(c, second, 0, 0);
  nic().place(b, first, 100, 0);
  nic().count(b, first);
  nic().place(c, second, 0, 1);
  nic().count(c, second);
  nic().place(a, first, 2000, 0);
  nic().count(a, first);
  nic().complete(first, 0, 2100);
  nic().complete(second, 1, 2048);
  for (const Put& put : {a, b, c}) nic().end(put);
  ASSERT_EQ(asked_for_.size(), 2U);
  scoreboard().settle(asked_for_[0] - Time::from_ps(1));
  EXPECT_EQ(scoreboard().checked_completions(), 0U);
  scoreboard().settle(asked_for_[0]);
  EXPECT_EQ(scoreboard().checked_completions(), 1U);
  finish();
  expect_passed();
  EXPECT_EQ(scoreboard().checked_completions(), 2U);
  EXPECT_EQ(scoreboard().checked_bytes(), 8192U);
}

TEST_F(ScoreboardTest, PassesManagedMisfitsRefusalsEmptyPutsAndAClose) {
  const Buffer first = open(Placement::managed);
  const Buffer second = nic().post(4096);
  Put a = nic().put(1900, 77);
  nic().deliver(a, first, 0, 0);
  Put empty = nic().put(0);
  nic().deliver(empty, first, 0, 1900);
  // Does not fit behind 1,900 bytes: the next buffer takes it.
  Put b = nic().put(2300);
  nic().retire(first, 0);
  nic().bind(b, second, 1, 0);
  nic().retire(second, 1);
  nic().complete(first, 0, 1900);
  nic().place_all(b, second, 0);
  nic().count(b, second);
  nic().end(b);
  nic().complete(second, 1, 2300);
  const Buffer third = nic().post(4096);
  Put c = nic().put(10);
  nic().deliver(c, third, 2, 0);
  // No buffer behind it: retired, and the message refused.
  Put d = nic().put(4096);
  nic().retire(third, 2);
  nic().refuse(d, Outcome::no_buffer);
  nic().complete(third, 2, 10);
  const Buffer fourth = nic().post(4096);
  const Buffer fifth = nic().post(64);
  nic().send(d);  // its retry, a new message
  nic().refuse(d, Outcome::no_buffer);
  nic().end(d, Outcome::no_buffer);
  nic().close({fourth.id, fifth.id});
  finish();
  expect_passed();
  EXPECT_EQ(scoreboard().checked_completions(), 3U);
}

TEST_F(ScoreboardTest, PassesOpsSeedsKeysAndCallsThatRetire) {
  nic().open_window(2, Placement::steered, ThresholdType::ops, 7);
  const Buffer buffer = nic().issue_post(5000, nullptr, nullptr, true, 99);
  nic().take_post(buffer);
  const Buffer last = nic().post(64);
  Put a = nic().put(3000, 1000, 7);
  Put b = nic().put(100, 1000, 7);  // over the same bytes
  nic().deliver(a, buffer, 0, 1000);
  nic().bind(b, buffer, 0, 1000);
  nic().retire(buffer, 0);
  nic().place_all(b, buffer, 1000);
  nic().count(b, buffer);
  nic().end(b);
  nic().complete(buffer, 0, 3100);
  nic().retire(last, 1, true);
  nic().complete(last, 1, 0);
  finish();
  expect_passed();
}

TEST_F(ScoreboardTest, ARetiredBufferCompletesAfterTheClose) {
  const Buffer buffer = open();
  const Buffer unused = nic().post(64);
  Put put = nic().put(2048);
  nic().bind(put, buffer, 0, 0);
  nic().retire(buffer, 0);
  nic().close({unused.id});
  nic().place_all(put, buffer, 0);
  nic().count(put, buffer);
  nic().end(put);
  nic().complete(buffer, 0, 2048);
  finish();
  expect_passed();
}

TEST_F(ScoreboardTest, WithoutBytesItChecksCountsOnly) {
  build(false);
  const Buffer buffer = open();
  Put put = nic().put(2048);
  nic().bind(put, buffer, 0, 0);
  nic().retire(buffer, 0);
  nic().place_all(put, buffer, 0);
  nic().host().byte(buffer.head, 3) ^= 1U;
  nic().count(put, buffer);
  nic().end(put);
  nic().complete(buffer, 0, 2048);
  finish();
  expect_passed();
  EXPECT_EQ(scoreboard().checked_completions(), 1U);
  EXPECT_EQ(scoreboard().checked_bytes(), 0U);
}

TEST_F(ScoreboardTest, APutThatTimedOutMayYetBeCounted) {
  const Buffer buffer = open();
  Put put = nic().put(2048);
  nic().end(put, Outcome::timeout);
  Put other = nic().put(1);
  nic().bind(put, buffer, 0, 0);
  nic().retire(buffer, 0);
  nic().place_all(put, buffer, 0);
  nic().count(put, buffer);
  nic().complete(buffer, 0, 2048);
  nic().refuse(other, Outcome::no_buffer);
  nic().end(other, Outcome::no_buffer);
  finish();
  expect_passed();
}

TEST_F(ScoreboardTest, ABuffersIdMayBeAnothersBeforeItsCompletionIsTold) {
  const Buffer first = open();
  Put a = nic().put(2048);
  nic().bind(a, first, 0, 0);
  nic().retire(first, 0);
  nic().place_all(a, first, 0);
  nic().count(a, first);
  nic().end(a);
  // The NIC has handed the completion to its writer, with all that it says; the buffer's descriptor is free.
  Buffer second = nic().issue_post(4096);
  second.id = first.id;
  nic().take_post(second);
  nic().complete(first, 0, 2048);
  Put b = nic().put(2048);
  nic().bind(b, second, 1, 0);
  nic().retire(second, 1);
  nic().place_all(b, second, 0);
  nic().count(b, second);
  nic().end(b);
  nic().complete(second, 1, 2048);
  finish();
  expect_passed();
}

TEST_F(ScoreboardTest, RandomRightRunsPass) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    build(true);
    const bool managed = random.below(2) == 0;
    const std::uint64_t threshold = 1 + random.below(6000);
    nic().open_window(threshold, managed ? Placement::managed : Placement::steered);
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
      const Buffer buffer = nic().post(20'000);
      std::uint64_t reserved = 0;
      struct Open {
        Put put;
        std::uint64_t offset;
        std::vector<std::uint64_t> packets;
      };
      std::vector<Open> open;
      while (reserved < threshold) {
        const std::uint64_t size = random.below(5000);
        Put put = nic().put(size, random.below(10'000));
        const std::uint64_t offset = managed ? reserved : put.offset;
        nic().bind(put, buffer, epoch, offset);
        reserved += size;
        Open message{put, offset, {}};
        for (std::uint64_t i = 0; i < FakeNic::packets_of(put); ++i) message.packets.push_back(i);
        open.push_back(message);
      }
      nic().retire(buffer, epoch);
      while (!open.empty()) {
        const std::size_t which = random.below(open.size());
        Open& message = open[which];
        const std::size_t packet = random.below(message.packets.size());
        nic().place(message.put, buffer, message.offset, message.packets[packet]);
        message.packets.erase(message.packets.begin() + static_cast<std::ptrdiff_t>(packet));
        if (!message.packets.empty()) continue;
        nic().count(message.put, buffer);
        nic().end(message.put);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
      }
      nic().complete(buffer, epoch, reserved);
    }
    finish();
    expect_passed();
    EXPECT_EQ(scoreboard().checked_completions(), 10U);
  }
}

// ---------------------------------------------------------------------------------------------------- broken: binding

TEST_F(ScoreboardTest, ReportsAMessageBoundTwice) {
  const Buffer buffer = open();
  Put put = nic().put(1100);
  nic().bind(put, buffer, 0, 0);
  nic().bind(put, buffer, 0, 0);
  expect_only("was bound twice");
}

TEST_F(ScoreboardTest, ReportsAMessageBoundAgainAfterItWasCounted) {
  const Buffer buffer = open();
  Put put = nic().put(100);
  nic().bind(put, buffer, 0, 0);
  nic().place_all(put, buffer, 0);
  nic().count(put, buffer);
  nic().bind(put, buffer, 0, 0);
  expect_only("was bound twice");
}

TEST_F(ScoreboardTest, ReportsABufferThatIsNotActive) {
  open();
  const Buffer second = nic().post(4096);
  Put put = nic().put(100);
  nic().bind(put, second, 0, 0);
  expect_only("was not bound to the active buffer");
}

TEST_F(ScoreboardTest, ReportsARetiredBuffer) {
  const Buffer first = open();
  nic().post(4096);
  nic().retire(first, 0, true);
  Put put = nic().put(100);
  nic().bind(put, first, 0, 0);
  expect_only("was not bound to the active buffer");
}

TEST_F(ScoreboardTest, ReportsAWrongEpoch) {
  const Buffer buffer = open();
  Put put = nic().put(100);
  nic().bind(put, buffer, 1, 0);
  expect_only("was bound to epoch 1, the active one is 0");
}

TEST_F(ScoreboardTest, ReportsAWrongManagedOffset) {
  const Buffer buffer = open(Placement::managed);
  Put a = nic().put(100, 50);
  Put b = nic().put(100, 50);
  nic().bind(a, buffer, 0, 0);
  nic().bind(b, buffer, 0, 50);
  expect_only("was bound at offset 50, it belongs at 100");
}

TEST_F(ScoreboardTest, ReportsAWrongSteeredOffset) {
  const Buffer buffer = open();
  Put put = nic().put(100, 50);
  nic().bind(put, buffer, 0, 0);
  expect_only("was bound at offset 0, it belongs at 50");
}

TEST_F(ScoreboardTest, ReportsAMessageBeyondItsBuffer) {
  const Buffer buffer = open();
  Put fits = nic().put(100, 3996);
  nic().bind(fits, buffer, 0, 3996);
  expect_passed();
  Put put = nic().put(100, 3997);
  nic().bind(put, buffer, 0, 3997);
  expect_only("was bound beyond the end of its buffer");
  // Its packets do not bring the scoreboard down.
  nic().claim_placed(put, buffer, 3997, 100);
  Put wraps = nic().put(100, ~std::uint64_t{0} - 10);
  nic().bind(wraps, buffer, 0, ~std::uint64_t{0} - 10);
  EXPECT_EQ(scoreboard().failure_count(), 2U);
}

TEST_F(ScoreboardTest, ReportsAWrongKey) {
  nic().open_window(2048, Placement::steered, ThresholdType::bytes, 7);
  const Buffer buffer = nic().post(4096);
  Put put = nic().put(100, 0, 8);
  nic().bind(put, buffer, 0, 0);
  expect_only("was bound with a wrong key");
}

TEST_F(ScoreboardTest, ReportsAWrongMailbox) {
  const Buffer buffer = open();
  Put put = nic().issue(100, 0, 0, Mailbox{0xdead});
  nic().send(put);
  nic().bind(put, buffer, 0, 0);
  expect_only("was bound to another mailbox than it names");
}

TEST_F(ScoreboardTest, ReportsAMailboxOfAnotherProcess) {
  const Buffer buffer = open();
  Put put = nic().issue(100, 0, 0, test::kMailbox, Pid{1});
  nic().send(put);
  nic().bind(put, buffer, 0, 0);
  expect_only("was bound to another mailbox than it names");
}

TEST_F(ScoreboardTest, ReportsAWrongMessageLength) {
  const Buffer buffer = open();
  Put put = nic().put(100);
  put.size = 99;
  nic().bind(put, buffer, 0, 0);
  expect_only("was bound with a wrong length");
}

TEST_F(ScoreboardTest, ReportsAMessageThatNobodySent) {
  const Buffer buffer = open();
  Put put;
  put.message = MessageRef{test::kSender, 1, 1, MessageId{77}};
  nic().bind(put, buffer, 0, 0);
  expect_only("was bound but no open put sends it");
}

TEST_F(ScoreboardTest, ReportsASlotThatIsNotOpen) {
  const Buffer buffer = open();
  nic().close({buffer.id});
  Put put = nic().put(100);
  nic().bind(put, buffer, 0, 0);
  expect_only("was bound to a slot that is not open");
}

TEST_F(ScoreboardTest, ReportsARefusalAfterTheBinding) {
  const Buffer buffer = open();
  Put put = nic().put(1100);
  nic().bind(put, buffer, 0, 0);
  nic().refuse(put, Outcome::bounds);
  expect_only("was refused after it was bound");
}

// ------------------------------------------------------------------------------------------------- broken: retirement

TEST_F(ScoreboardTest, ReportsABufferThatIsNotRetiredAtItsThreshold) {
  const Buffer buffer = open();
  Put a = nic().put(2047);
  Put b = nic().put(1);
  nic().bind(a, buffer, 0, 0);
  nic().bind(b, buffer, 0, 0);
  expect_passed();
  Put c = nic().put(1);
  nic().bind(c, buffer, 0, 0);
  expect_only("reserved 2048 of 2048 and was not retired");
}

TEST_F(ScoreboardTest, ReportsABufferThatIsNeverRetired) {
  const Buffer buffer = open();
  Put put = nic().put(2048);
  nic().deliver(put, buffer, 0, 0);
  finish();
  expect_only("reserved 2048 of 2048 and was not retired");
}

TEST_F(ScoreboardTest, ReportsASteeredBufferRetiredEarly) {
  const Buffer buffer = open();
  nic().post(4096);
  Put put = nic().put(2047);
  nic().bind(put, buffer, 0, 0);
  nic().retire(buffer, 0);
  expect_only("was retired at 2047 of 2048");
}

TEST_F(ScoreboardTest, ReportsAMisfitThatFitted) {
  const Buffer first = open(Placement::managed);
  const Buffer second = nic().post(4096);
  Put a = nic().put(1000);
  nic().bind(a, first, 0, 0);
  nic().retire(first, 0);
  Put b = nic().put(3096);
  nic().bind(b, second, 1, 0);
  expect_only("fitted the buffer that was retired because it did not fit");
}

TEST_F(ScoreboardTest, ReportsAnEmptyManagedBufferRetiredAsAMisfit) {
  const Buffer first = open(Placement::managed);
  nic().retire(first, 0);
  expect_only("was retired at 0 of 2048");
}

TEST_F(ScoreboardTest, ReportsAMisfitThatNothingExplains) {
  const Buffer first = open(Placement::managed);
  Put a = nic().put(1000);
  nic().deliver(a, first, 0, 0);
  nic().retire(first, 0);
  nic().complete(first, 0, 1000);
  finish();
  expect_only("was retired for a message that never came");
}

TEST_F(ScoreboardTest, ReportsEpochsRetiredOutOfOrder) {
  const Buffer first = open();
  nic().retire(first, 1, true);
  expect_only("epoch 1 was retired out of order");
}

TEST_F(ScoreboardTest, ReportsTheRetirementOfABufferThatIsNotActive) {
  open();
  const Buffer second = nic().post(4096);
  nic().retire(second, 0, true);
  expect_only("a buffer was retired that is not active");
}

// --------------------------------------------------------------------------------------------------- broken: placement

TEST_F(ScoreboardTest, ReportsAPacketPlacedTwice) {
  const Buffer buffer = open();
  Put put = nic().put(1500);
  nic().bind(put, buffer, 0, 0);
  nic().place(put, buffer, 0, 1);
  nic().place(put, buffer, 0, 1);
  expect_only("was placed twice at 1024");
}

TEST_F(ScoreboardTest, ReportsASinglePacketPlacedTwice) {
  const Buffer buffer = open();
  Put put = nic().put(0);
  nic().bind(put, buffer, 0, 0);
  nic().claim_placed(put, buffer, 0, 0);
  nic().claim_placed(put, buffer, 0, 0);
  expect_only("was placed twice at 0");
}

TEST_F(ScoreboardTest, ReportsAPacketAtAWrongPlace) {
  const struct {
    std::uint64_t offset;
    std::uint32_t bytes;
  } wrong[] = {{1, 1024}, {1025, 476}, {2048, 0}, {~std::uint64_t{0}, 1024}, {99, 1024}};
  for (const auto& claim : wrong) {
    SCOPED_TRACE(claim.offset);
    build(true);
    const Buffer buffer = open();
    Put put = nic().put(1500, 100);
    nic().bind(put, buffer, 0, 100);
    nic().claim_placed(put, buffer, 100 + claim.offset, claim.bytes);
    expect_only("was placed at");
  }
}

TEST_F(ScoreboardTest, ReportsAPacketOfWrongLength) {
  const struct {
    std::uint64_t offset;
    std::uint32_t bytes;
  } wrong[] = {{0, 1023}, {0, 1500}, {1024, 475}, {1024, 477}, {1024, 1024}};
  for (const auto& claim : wrong) {
    SCOPED_TRACE(claim.bytes);
    build(true);
    const Buffer buffer = open();
    Put put = nic().put(1500);
    nic().bind(put, buffer, 0, 0);
    nic().claim_placed(put, buffer, claim.offset, claim.bytes);
    expect_only("was placed at");
  }
}

TEST_F(ScoreboardTest, ReportsAPacketOfAnUnboundMessage) {
  const Buffer buffer = open();
  Put put = nic().put(1500);
  nic().place(put, buffer, 0, 0);
  expect_only("was placed, but its message is not bound");
}

// ---------------------------------------------------------------------------------------------------- broken: counting

TEST_F(ScoreboardTest, ReportsAMessageCountedBeforeAllItsPackets) {
  const Buffer buffer = open();
  Put put = nic().put(1500);
  nic().bind(put, buffer, 0, 0);
  nic().place(put, buffer, 0, 0);
  nic().count(put, buffer);
  expect_only("was counted after 1 of 2 packets");
}

TEST_F(ScoreboardTest, ReportsASinglePacketMessageCountedBeforeItsPacket) {
  const Buffer buffer = open();
  Put put = nic().put(0);
  nic().bind(put, buffer, 0, 0);
  nic().count(put, buffer);
  expect_only("was counted after 0 of 1 packets");
}

TEST_F(ScoreboardTest, ReportsAMessageCountedTwice) {
  const Buffer buffer = open();
  Put put = nic().put(10);
  nic().bind(put, buffer, 0, 0);
  nic().place_all(put, buffer, 0);
  nic().count(put, buffer);
  nic().count(put, buffer);
  expect_only("is not bound (or was counted before)");
}

TEST_F(ScoreboardTest, ReportsAMessageCountedIntoAnotherBuffer) {
  const Buffer buffer = open();
  const Buffer other = nic().post(4096);
  Put put = nic().put(10);
  nic().bind(put, buffer, 0, 0);
  nic().place_all(put, buffer, 0);
  nic().count(put, other);
  expect_only("was counted into another buffer");
}

TEST_F(ScoreboardTest, ReportsAnIdThatIsGivenAwayTooEarly) {
  const Buffer first = open();
  Put a = nic().put(2048);
  nic().bind(a, first, 0, 0);
  nic().retire(first, 0);
  Buffer second = nic().issue_post(4096);
  second.id = first.id;
  nic().take_post(second);
  expect_only("was given to a second buffer before the first had its messages");
}

// ------------------------------------------------------------------------------------------------- broken: completions

class CompletionTest : public ScoreboardTest {
 protected:
  /// One epoch, delivered and retired.
  void SetUp() override {
    buffer_ = open();
    second_ = nic().post(4096);
    put_ = nic().put(2048, 10);
    nic().bind(put_, buffer_, 0, 10);
    nic().retire(buffer_, 0);
    nic().place(put_, buffer_, 10, 0);
    nic().place(put_, buffer_, 10, 1);
    nic().count(put_, buffer_);
    nic().end(put_);
    expect_passed();
  }
  Buffer buffer_;
  Buffer second_;
  Put put_;
};

TEST_F(CompletionTest, PassesAsItIs) {
  nic().complete(buffer_, 0, 2048);
  finish();
  expect_passed();
}

TEST_F(ScoreboardTest, ReportsACompletionBeforeRetirement) {
  const Buffer buffer = open();
  Put put = nic().put(2000);
  nic().deliver(put, buffer, 0, 0);
  nic().complete(buffer, 0, 2000);
  expect_only("came before the buffer was retired");
}

TEST_F(CompletionTest, ReportsASecondCompletion) {
  nic().complete(buffer_, 0, 2048);
  nic().complete(buffer_, 0, 2048);
  finish();
  expect_only("came twice");
}

TEST_F(CompletionTest, ReportsASecondCompletionAfterTheClose) {
  nic().complete(buffer_, 0, 2048);
  settle();
  nic().close({second_.id});
  nic().complete(buffer_, 0, 2048);
  expect_only("came twice");
}

TEST_F(CompletionTest, ReportsAWrongLength) {
  nic().complete(buffer_, 0, 2047);
  settle();
  expect_only("says 2047 bytes, 2048 were delivered");
}

TEST_F(CompletionTest, ReportsAWrongHead) {
  Completion completion = FakeNic::completion_of(buffer_, 0, 2048);
  completion.head = VirtualAddress{completion.head.value() + 1};
  nic().claim(completion);
  expect_only("has a wrong head");
}

TEST_F(CompletionTest, ReportsAWrongEpoch) {
  Completion completion = FakeNic::completion_of(buffer_, 3, 2048);
  nic().claim(completion);
  EXPECT_EQ(scoreboard().failure_count(), 2U) << "another epoch than was retired, and not the next";
  EXPECT_THAT(scoreboard().failures()[0], HasSubstr("names another epoch than was retired"));
}

TEST_F(CompletionTest, ReportsAnotherBuffersId) {
  Completion completion = FakeNic::completion_of(buffer_, 0, 2048);
  completion.buffer = second_.id;
  nic().claim(completion);
  expect_only("names another buffer");
}

TEST_F(CompletionTest, ReportsAWordOfNoBuffer) {
  Completion completion = FakeNic::completion_of(buffer_, 0, 2048);
  completion.word = PhysicalAddress{8};
  nic().claim(completion);
  expect_only("went to a word that belongs to no buffer");
}

TEST_F(CompletionTest, ReportsCompletionsOutOfEpochOrder) {
  nic().retire(second_, 1, true);
  nic().complete(second_, 1, 0);
  expect_only("came before that of epoch 0");
}

TEST_F(CompletionTest, ReportsUnfinishedMessages) {
  Put put = nic().put(1500);
  nic().bind(put, second_, 1, 0);
  nic().retire(second_, 1, true);
  nic().place(put, second_, 0, 0);
  nic().complete(buffer_, 0, 2048);
  nic().complete(second_, 1, 0);
  expect_only("came with 1 messages unfinished");
}

TEST_F(ScoreboardTest, ReportsACompletionBeforeItsPayload) {
  const Buffer buffer = open();
  Put put = nic().put(2048);
  nic().bind(put, buffer, 0, 0);
  nic().retire(buffer, 0);
  nic().place_all(put, buffer, 0);
  nic().count(put, buffer);
  // The payload entered the posted channel later than the word.
  nic().wait(Time::zero() - Time::from_ns(10));
  nic().complete(buffer, 0, 2048);
  expect_only("was written before the payload");
}

TEST_F(CompletionTest, ReportsAWordThatIsWrittenAlready) {
  nic().write_word(buffer_, 2048);
  nic().complete(buffer_, 0, 2048);
  settle();
  expect_only("found its word already written");
}

TEST_F(CompletionTest, ReportsAWrongWordInMemory) {
  nic().claim(FakeNic::completion_of(buffer_, 0, 2048));
  nic().write_word(buffer_, 2049);
  settle();
  expect_only("the completion word is not (head, length)");
}

TEST_F(CompletionTest, ReportsAWordThatNeverAppears) {
  nic().claim(FakeNic::completion_of(buffer_, 0, 2048));
  settle();
  expect_only("the completion word is not (head, length)");
}

TEST_F(CompletionTest, ReportsOneWrongByteOfAMessage) {
  nic().host().byte(buffer_.head, 10 + 2047) ^= 0x80U;
  nic().complete(buffer_, 0, 2048);
  settle();
  expect_only("byte 2057 is");
}

TEST_F(CompletionTest, ReportsOneStrayByteElsewhereInTheBuffer) {
  for (const std::uint64_t offset : {std::uint64_t{9}, std::uint64_t{10 + 2048}, std::uint64_t{4095}}) {
    SCOPED_TRACE(offset);
    build(true);
    SetUp();
    nic().host().byte(buffer_.head, offset) = 1;
    nic().complete(buffer_, 0, 2048);
    settle();
    expect_only("byte " + std::to_string(offset) + " is 0x01, expected 0x00");
  }
}

TEST_F(CompletionTest, ReportsAStrayByteInAnUnusedBuffer) {
  nic().complete(buffer_, 0, 2048);
  nic().host().byte(second_.head, 4000) = 1;
  finish();
  expect_only("byte 4000 is 0x01, expected 0x00");
}

TEST_F(CompletionTest, ReportsAByteThatChangesAfterTheCompletion) {
  nic().complete(buffer_, 0, 2048);
  settle();
  expect_passed();
  nic().host().byte(buffer_.head, 0) = 1;
  finish();
  expect_only("changed after its completion");
}

TEST_F(CompletionTest, ReportsItWhenTheBufferIsFreed) {
  nic().complete(buffer_, 0, 2048);
  settle();
  nic().host().byte(buffer_.head, 0) = 1;
  scoreboard().buffer_freed(kReceiver, buffer_.word);
  expect_only("changed after its completion");
  // Afterwards its memory belongs to others.
  nic().host().byte(buffer_.head, 1) = 1;
  finish();
  expect_only("changed after its completion");
}

TEST_F(CompletionTest, ReportsAWholeBufferThatNeverCompletes) {
  finish();
  expect_only("is retired and whole but never completed");
}

// ----------------------------------------------------------------------------------------------- broken: calls, totals

TEST_F(CompletionTest, ReportsMiscountedReturnedBuffers) {
  nic().complete(buffer_, 0, 2048);
  nic().close({});
  expect_only("close_window returned 0 buffers");
}

TEST_F(CompletionTest, ReportsAnotherReturnedBuffer) {
  nic().complete(buffer_, 0, 2048);
  nic().close({BufferId{99}});
  expect_only("close_window returned another buffer");
}

TEST_F(CompletionTest, ReportsACompletionOfAReturnedBuffer) {
  nic().complete(buffer_, 0, 2048);
  nic().close({second_.id});
  nic().complete(second_, 0, 0);
  expect_only("that close_window returned");
}

TEST_F(ScoreboardTest, ReportsASlotOpenedTwiceAndClosedTwice) {
  open();
  nic().open_window(1);
  expect_only("slot 5 was opened twice");
  nic().close({});
  nic().close({});
  EXPECT_EQ(scoreboard().failure_count(), 2U);
  EXPECT_THAT(scoreboard().failures().back(), HasSubstr("was closed but not open"));
}

TEST_F(ScoreboardTest, ReportsABufferThatChangesOnItsWay) {
  nic().open_window(1);
  Buffer buffer = nic().issue_post(64);
  ++buffer.size;
  nic().take_post(buffer);
  expect_only("changed its place or size on the way");
}

TEST_F(ScoreboardTest, ReportsABufferThatNobodyPosted) {
  nic().open_window(1);
  nic().take_post(Buffer{BufferId{1}, VirtualAddress{1}, 1, PhysicalAddress{16}});
  expect_only("a buffer was posted that no program issued");
}

TEST_F(ScoreboardTest, ReportsABufferPostedToAClosedSlot) {
  nic().post(64);
  expect_only("a buffer was posted to closed slot 5");
}

TEST_F(CompletionTest, ReportsACompletionThatNeverBecomesVisible) {
  scoreboard().completion_written(kReceiver, FakeNic::completion_of(buffer_, 0, 2048), nic().now(), Time::max());
  finish();
  expect_only("1 completions, 0 checked");
}

TEST_F(CompletionTest, ReportsALostPacket) {
  nic().complete(buffer_, 0, 2048);
  ++nic().totals().packets_sent;
  finish();
  expect_only("3 packets were sent, 0 copied and 0 lost by the fabric, 2 arrived");
}

TEST_F(CompletionTest, ReportsAPutThatNeverEnded) {
  nic().complete(buffer_, 0, 2048);
  ++nic().totals().puts;
  finish();
  expect_only("2 puts were issued, 1 ended, failed or are unfinished");
}

TEST_F(CompletionTest, ReportsALostMessage) {
  nic().complete(buffer_, 0, 2048);
  ++nic().totals().messages_opened;
  finish();
  expect_only("2 messages were opened, 1 delivered, refused or bound");
}

TEST_F(CompletionTest, ReportsAMessageOutOfNothing) {
  nic().complete(buffer_, 0, 2048);
  ++nic().totals().messages_delivered;
  finish();
  expect_only("1 messages were opened, 2 delivered, refused or bound");
}

TEST_F(CompletionTest, ReportsAPutThatIsOkButWasRefused) {
  nic().complete(buffer_, 0, 2048);
  Put put = nic().put(1);
  nic().refuse(put, Outcome::busy);
  nic().end(put);
  finish();
  expect_only("2 puts ended ok, 1 messages were delivered");
}

TEST_F(CompletionTest, ShowsTheFirstFailuresAndCountsAll) {
  for (int i = 0; i < 30; ++i) nic().claim_placed(Put{}, buffer_, 0, 0);
  EXPECT_EQ(scoreboard().failure_count(), 30U);
  EXPECT_EQ(scoreboard().failures().size(), Scoreboard::kShown);
  EXPECT_THAT(scoreboard().failures()[0], HasSubstr(" ns: "));
}

// --------------------------------------------------------------------------------------------------- stopped in the
// middle

TEST_F(CompletionTest, ARunThatWasStoppedIsNotBlamedForWhatIsOnItsWay) {
  nic().complete(buffer_, 0, 2048);
  Put put = nic().put(1500);
  nic().bind(put, second_, 1, 0);
  // Half of the packet's bytes are visible; a packet is on the wire.
  nic().claim_placed(put, second_, 0, kMtu);
  nic().host().write_pattern(second_.head, 0, 512, put.seed, 0);
  ++nic().totals().packets_sent;
  ++nic().totals().ended[static_cast<std::size_t>(Outcome::unfinished)];
  finish(false);
  expect_passed();
}

/// RDMA's sender knows from an acknowledgement, the receiver when its software has polled.
TEST_F(CompletionTest, ASenderMayKnowBeforeTheReceiverWhenTheRunIsStopped) {
  nic().complete(buffer_, 0, 2048);
  Put put = nic().put(1500);
  nic().bind(put, second_, 1, 0);
  nic().place(put, second_, 0, 0);
  nic().place(put, second_, 0, 1);
  nic().end(put);
  finish(false);
  expect_passed();
}

TEST_F(CompletionTest, AtTheEndOfARunItMayNot) {
  nic().complete(buffer_, 0, 2048);
  Put put = nic().put(1500);
  nic().bind(put, second_, 1, 0);
  nic().place(put, second_, 0, 0);
  nic().place(put, second_, 0, 1);
  nic().end(put);
  finish();
  expect_only("2 puts ended ok, 1 messages were delivered");
}

TEST_F(CompletionTest, NorMayItKnowOfWhatHasNotComeWhole) {
  nic().complete(buffer_, 0, 2048);
  Put put = nic().put(1500);
  nic().bind(put, second_, 1, 0);
  nic().place(put, second_, 0, 0);
  nic().end(put);
  finish(false);
  expect_only("2 puts ended ok, 1 messages were delivered");
}

TEST_F(CompletionTest, ButForWrongBytesItIs) {
  nic().complete(buffer_, 0, 2048);
  Put put = nic().put(1500);
  nic().bind(put, second_, 1, 0);
  nic().place(put, second_, 0, 0);
  nic().host().byte(second_.head, 100) ^= 1U;
  ++nic().totals().ended[static_cast<std::size_t>(Outcome::unfinished)];
  finish(false);
  expect_only("byte 100 is");
}

}  // namespace
}  // namespace rvma
