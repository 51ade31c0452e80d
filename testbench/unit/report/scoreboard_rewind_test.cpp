// The scoreboard's rules on rewinds, each from both sides.
#include <string>
#include <vector>

#include "scoreboard_fixture.hpp"

namespace rvma::test {
namespace {

class RewindTest : public ScoreboardTest {
 protected:
  /// Epoch 0 has completed, the second packet of a message in epoch 1 is on its way.
  void prepare() {
    first_ = open();
    second_ = nic().post(4096);
    Put whole = nic().put(2048);
    nic().bind(whole, first_, 0, 0);
    nic().retire(first_, 0);
    nic().place_all(whole, first_, 0);
    nic().count(whole, first_);
    nic().end(whole);
    nic().complete(first_, 0, 2048);
    settle();
    cut_ = nic().put(1500);
    nic().bind(cut_, second_, 1, 0);
    nic().place(cut_, second_, 0, 0);
  }
  /// Epochs 0 and 1 come again, the first under another number.
  void rewind() {
    nic().begin_rewind();
    nic().place(cut_, second_, 0, 1);
    first_.id = BufferId{7};
    nic().end_rewind(0, {first_, second_});
    nic().end(cut_, Outcome::stale);
  }
  void fill(const Buffer& buffer, std::uint64_t epoch) {
    Put again = nic().put(2048, 100);
    nic().bind(again, buffer, epoch, 100);
    nic().retire(buffer, epoch);
    nic().place_all(again, buffer, 100);
    nic().count(again, buffer);
    nic().end(again);
    nic().complete(buffer, epoch, 2048);
    settle();
  }

  Buffer first_;
  Buffer second_;
  Put cut_;
};

TEST_F(RewindTest, PassesWhenEpochsComeAgain) {
  prepare();
  rewind();
  fill(first_, 0);
  fill(second_, 1);
  finish();
  expect_passed();
  EXPECT_EQ(scoreboard().checked_completions(), 3U);
}

TEST_F(RewindTest, ReportsABufferThatDoesNotCompleteAgain) {
  prepare();
  rewind();
  Put again = nic().put(2048);
  nic().bind(again, first_, 0, 0);
  nic().retire(first_, 0);
  nic().place_all(again, first_, 0);
  nic().count(again, first_);
  nic().end(again);
  finish();
  expect_only("retired and whole but never completed");
}

TEST_F(RewindTest, ReportsAMessageBoundMeanwhile) {
  prepare();
  nic().begin_rewind();
  const Put early = nic().put(100, 1600);
  nic().bind(early, second_, 1, 1600);
  expect_only("while its window was being rewound");
}

TEST_F(RewindTest, ReportsACutOffMessageThatCounts) {
  prepare();
  nic().begin_rewind();
  nic().place(cut_, second_, 0, 1);
  nic().count(cut_, second_);
  EXPECT_FALSE(scoreboard().passed());
  EXPECT_THAT(scoreboard().failures()[0], testing::HasSubstr("was counted after it was cut off"));
}

TEST_F(RewindTest, ReportsAWordThatIsNotZero) {
  prepare();
  nic().begin_rewind();
  first_.id = BufferId{7};
  nic().claim_rewound(0, {{first_.id, first_.word}, {second_.id, second_.word}});
  expect_only("left a word that is not zero");
}

TEST_F(RewindTest, ReportsPayloadThatIsNotVisible) {
  prepare();
  nic().begin_rewind();
  nic().claim_placed(cut_, second_, 1024, 476);
  nic().end_rewind(0, {first_, second_});
  expect_only("byte 1024 is");
}

TEST_F(RewindTest, ReportsABufferThatIsMissingOrWrong) {
  prepare();
  nic().begin_rewind();
  nic().end_rewind(0, {first_});
  expect_only("brought back 1 buffers");
  build(true);
  prepare();
  nic().begin_rewind();
  nic().end_rewind(0, {second_, first_});
  EXPECT_THAT(scoreboard().failures()[0], testing::HasSubstr("brought back another buffer than was posted there"));
}

TEST_F(RewindTest, ReportsAChangeBetweenCompletionAndRewind) {
  prepare();
  nic().host().byte(first_.head, 3000) = 1;
  rewind();
  expect_only("changed after its completion");
}

TEST_F(RewindTest, KeepsWhatABufferHeldBefore) {
  prepare();
  rewind();
  // Byte 50 was written in epoch 0's first life, and by nobody since.
  nic().host().byte(first_.head, 50) ^= 1U;
  fill(first_, 0);
  finish();
  expect_only("byte 50 is");
}

TEST_F(RewindTest, ReportsARewindThatWasNotBegun) {
  prepare();
  nic().claim_rewound(0, {});
  expect_only("was not begun");
}

}  // namespace
}  // namespace rvma::test
