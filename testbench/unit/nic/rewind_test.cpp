// What a rewind does to a window, its buffers and its messages (semantics 5).
#include <gtest/gtest.h>

#include <vector>

#include "window_store_rig.hpp"

namespace rvma::test {
namespace {

struct RewindRig : Rig {
  using Rig::Rig;
  WindowStore::RewindAnswer rewind(std::uint64_t n, std::uint64_t oldest = 0) {
    return store.begin_rewind(window, n, Epoch{oldest}, [this] { ++drained; });
  }
  std::vector<std::uint64_t> words() const {
    std::vector<RewoundBuffer> buffers;
    store.rewound_buffers(window, buffers);
    std::vector<std::uint64_t> words;
    for (const RewoundBuffer& buffer : buffers) words.push_back(buffer.word.value());
    return words;
  }
  /// Post i has the word 16 (i + 1).
  static std::vector<std::uint64_t> words_of(std::vector<std::uint64_t> posts) {
    for (std::uint64_t& post : posts) post = 16 * (post + 1);
    return posts;
  }
  int drained = 0;
};

TEST(Rewind, CompletedRetiredAndActiveBuffersReturnInOrder) {
  RewindRig rig{WindowSpec{128}};
  for (int i = 0; i < 6; ++i) rig.post(1024);
  rig.deliver(message(128));          // 0 completes
  rig.deliver(message(128));          // 1 completes
  const Message late = message(128);  // 2 is retired, a packet is missing
  const BindAnswer bound = rig.bind(late);
  rig.count(bound.place, late);
  rig.deliver(message(128));  // 3 is retired and whole, held back
  rig.deliver(message(100));  // 4 is active
  ASSERT_EQ(rig.completions().size(), 2U);
  const auto answer = rig.rewind(2);
  ASSERT_EQ(answer.status, Status::ok);
  EXPECT_TRUE(answer.drained);
  ASSERT_EQ(answer.cut_off.size(), 1U);
  EXPECT_EQ(answer.cut_off[0].message, late.header.message);
  EXPECT_EQ(rig.words(), RewindRig::words_of({0, 1, 2, 3, 4}));
  EXPECT_EQ(rig.outcome(message(8)), Outcome::busy);
  EXPECT_EQ(rig.store.finish_rewind(rig.window), Epoch{0});
  EXPECT_FALSE(rig.place(bound, late, 1)) << "its later packets are not its any more";
  // Counters and tails are zero: each buffer takes its whole threshold again, in the old order, to the last one.
  for (std::uint64_t i = 0; i < 6; ++i) {
    EXPECT_FALSE(rig.deliver(message(127)).retired);
    EXPECT_TRUE(rig.deliver(message(1)).retired);
    const std::vector<Completion> done = rig.completions();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].epoch, Epoch{i});
    EXPECT_EQ(done[0].length, 128U);
    EXPECT_EQ(done[0].word.value(), 16 * (i + 1));
    EXPECT_EQ(done[0].head.value(), 0x10000 * (i + 1));
  }
  EXPECT_EQ(rig.outcome(message(8)), Outcome::no_buffer);
}

TEST(Rewind, WaitsForWhatIsOnTheWayAndCountsNothingOfIt) {
  RewindRig rig{WindowSpec{4096}};
  rig.post(4096);
  const Message large = message(192);
  const BindAnswer first = rig.bind(large);
  const auto second = rig.place(first, large, 1);
  ASSERT_TRUE(second);
  const Message small = message(64);
  const BindAnswer single = rig.bind(small);
  EXPECT_FALSE(rig.rewind(0).drained);
  EXPECT_FALSE(rig.count(first.place, large, 0));
  EXPECT_FALSE(rig.count(single.place, small)) << "a message of one packet is cut off on its way";
  EXPECT_EQ(rig.drained, 0);
  EXPECT_FALSE(rig.count(*second, large, 1));
  EXPECT_EQ(rig.drained, 1);
  EXPECT_EQ(rig.store.stats().messages_cut_off.value(), 2U);
  rig.store.finish_rewind(rig.window);
  rig.deliver(message(4096));
  const std::vector<Completion> done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].length, 4096U);
}

TEST(Rewind, OfManagedBuffersBeginsAtTheirHeads) {
  WindowSpec spec{256};
  spec.placement = Placement::managed;
  RewindRig rig{spec};
  rig.post(256);
  rig.deliver(message(200));
  ASSERT_TRUE(rig.rewind(0).drained);
  rig.store.finish_rewind(rig.window);
  const BindAnswer bound = rig.deliver(message(256));
  EXPECT_EQ(bound.outcome, Outcome::pending);
  EXPECT_EQ(bound.message_offset, 0U);
}

TEST(Rewind, OfNothingFreesAWindowWithABrokenBuffer) {
  RewindRig rig{WindowSpec{128}};
  rig.post(1024);
  rig.post(1024);
  const Message lost = message(128);
  const BindAnswer bound = rig.bind(lost);
  rig.count(bound.place, lost);
  ASSERT_TRUE(rig.store.cut_off(bound.place.binding).is_broken);
  rig.deliver(message(128));
  EXPECT_TRUE(rig.completions().empty());
  ASSERT_TRUE(rig.rewind(0).drained);
  EXPECT_EQ(rig.store.finish_rewind(rig.window), Epoch{0});
  rig.deliver(message(128));
  rig.deliver(message(128));
  EXPECT_EQ(rig.completions().size(), 2U);
}

TEST(Rewind, NoFurtherThanIsRemembered) {
  RewindRig rig{WindowSpec{64}};  // remembers 4
  for (int i = 0; i < 8; ++i) rig.post(64);
  for (int i = 0; i < 6; ++i) rig.deliver(message(64));
  EXPECT_EQ(rig.rewind(5).status, Status::history);
  EXPECT_EQ(rig.rewind(4, 3).status, Status::history) << "epoch 2 was posted again";
  EXPECT_EQ(rig.outcome(message(65)), Outcome::bounds) << "a refused rewind leaves no trace";
  ASSERT_EQ(rig.rewind(3, 3).status, Status::ok);
  EXPECT_EQ(rig.store.finish_rewind(rig.window), Epoch{3});
  // Of the epochs before, one is left; those that come again are remembered anew.
  EXPECT_EQ(rig.rewind(2).status, Status::history);
  for (int i = 0; i < 3; ++i) rig.deliver(message(64));
  std::vector<WindowStore::CompletedBuffer> last;
  EXPECT_EQ(rig.store.completed_buffers(rig.window, 4, last), Status::ok);
  ASSERT_EQ(last.size(), 4U);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(last[i].epoch, Epoch{5 - i});
}

TEST(Rewind, NeedsDescriptorsForWhatHasCompleted) {
  NicConfig config = small_config();
  config.buffers.on_chip = 2;
  RewindRig rig{WindowSpec{64}, config};
  rig.post(64);
  rig.deliver(message(64));
  rig.post(64);
  rig.post(64);
  EXPECT_EQ(rig.rewind(1).status, Status::full);
  rig.deliver(message(64));
  EXPECT_EQ(rig.rewind(1).status, Status::ok);
}

TEST(Rewind, GivesCountersBack) {
  RewindRig rig{WindowSpec{1024}};
  rig.post(1024);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(rig.deliver(message(64)).outcome, Outcome::pending);
    ASSERT_TRUE(rig.rewind(0).drained);
    rig.store.finish_rewind(rig.window);
  }
  std::vector<WindowId> others;
  for (std::uint64_t i = 1; i < 4; ++i) {
    others.push_back(rig.open(Mailbox{i}, WindowSpec{1}));
    for (int k = 0; k < 3; ++k) rig.post_to(others.back(), 64);
  }
  // 8 counters: none is still held by the rewound buffer.
  int bound = 0;
  for (std::uint64_t i = 1; i < 4; ++i) {
    for (int k = 0; k < 3; ++k) {
      if (rig.bind_at(others[i - 1], message(1, 0, 0, Mailbox{i})).outcome == Outcome::pending) ++bound;
    }
  }
  EXPECT_EQ(bound, 8);
}

TEST(Rewind, OfAnEmptyBucket) {
  RewindRig rig;
  ASSERT_TRUE(rig.rewind(0).drained);
  EXPECT_TRUE(rig.words().empty());
  EXPECT_EQ(rig.store.finish_rewind(rig.window), Epoch{0});
  EXPECT_EQ(rig.outcome(message(8)), Outcome::no_buffer);
}

}  // namespace
}  // namespace rvma::test
