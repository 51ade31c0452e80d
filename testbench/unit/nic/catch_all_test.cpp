// A catch-all window: what it takes, and how records count (semantics 5).
#include <gtest/gtest.h>

#include <vector>

#include "window_store_rig.hpp"

namespace rvma::test {
namespace {

constexpr Mailbox kUnknown{0x1234};

WindowSpec catch_all(std::uint64_t threshold, std::uint32_t key = 0) {
  WindowSpec spec{threshold};
  spec.flags = kWindowCatchAll;
  spec.key = key;
  return spec;
}

struct CatchRig : Rig {
  using Rig::Rig;
  /// The table knows nothing of it.
  BindAnswer miss(const Message& what, bool sweeping = false, std::uint32_t index = 0) {
    return store.bind(what.source, what.packet(index), WindowLookup{false, {}, sweeping});
  }
  bool count_record(const BindAnswer& bound) {
    PlacedPacket record;
    record.buffer = bound.place.buffer;
    record.binding = bound.place.binding;
    record.has_binding = true;
    record.is_record = true;
    record.payload_length = kRecordBytes;
    return store.count(record);
  }
};

TEST(CatchAll, TakesWhatNobodyKnowsAndNothingElse) {
  CatchRig rig{catch_all(4096, 5)};
  rig.post(4096);
  const BindAnswer caught = rig.miss(message(100, 999, 5, kUnknown));
  EXPECT_EQ(caught.outcome, Outcome::pending);
  EXPECT_TRUE(caught.has_record);
  EXPECT_EQ(caught.message_offset, 32U) << "managed, whatever the call and the put say";
  EXPECT_EQ(caught.place.offset, 32U);
  EXPECT_EQ(rig.miss(message(100, 0, 6, kUnknown)).outcome, Outcome::bad_key);
  EXPECT_EQ(rig.miss(message(100, 0, 5, kUnknown), true).outcome, Outcome::busy) << "the table may yet know it";
  Message stranger = message(100, 0, 5, kUnknown);
  stranger.header.destination_pid = Pid{9};
  EXPECT_EQ(rig.miss(stranger).outcome, Outcome::no_mailbox) << "another process's";
  // A mailbox that is open, or was closed lately, is not caught.
  const WindowId other = rig.open(Mailbox{77}, {});
  EXPECT_EQ(rig.miss(message(100, 0, 5, Mailbox{77})).outcome, Outcome::busy);
  std::vector<BufferId> returned;
  rig.store.begin_close(other, returned, [] {});
  rig.store.release_window(other);
  EXPECT_EQ(rig.miss(message(100, 0, 5, Mailbox{77})).outcome, Outcome::closed);
  // Its own mailbox gets records, too.
  EXPECT_TRUE(rig.bind(message(10, 0, 5)).has_record);
}

TEST(CatchAll, OneAProcessUntilItIsReleased) {
  CatchRig rig{catch_all(64)};
  EXPECT_EQ(rig.store.allocate_window(init_call(Mailbox{2}, catch_all(64)), kPid).status, Status::exists);
  EXPECT_EQ(rig.store.allocate_window(init_call(Mailbox{2}, catch_all(64)), Pid{8}).status, Status::ok);
  std::vector<BufferId> returned;
  rig.store.begin_close(rig.window, returned, [] {});
  EXPECT_EQ(rig.miss(message(1, 0, 0, kUnknown)).outcome, Outcome::no_mailbox) << "what closes catches nothing";
  EXPECT_EQ(rig.store.allocate_window(init_call(Mailbox{2}, catch_all(64)), kPid).status, Status::exists);
  rig.store.release_window(rig.window);
  const auto again = rig.store.allocate_window(init_call(Mailbox{2}, catch_all(64)), kPid);
  ASSERT_EQ(again.status, Status::ok);
  EXPECT_EQ(rig.miss(message(1, 0, 0, kUnknown)).outcome, Outcome::no_mailbox) << "not open yet";
  rig.store.abandon_window(again.window);
  EXPECT_EQ(rig.store.allocate_window(init_call(Mailbox{2}, catch_all(64)), kPid).status, Status::ok);
}

TEST(CatchAll, RecordAndPayloadAreOneUnit) {
  CatchRig rig{catch_all(1000)};
  rig.post(128);
  rig.post(128);
  EXPECT_EQ(rig.miss(message(97, 0, 0, kUnknown)).outcome, Outcome::bounds);
  EXPECT_EQ(rig.miss(message(kMax, 0, 0, kUnknown)).outcome, Outcome::bounds) << "its length wraps";
  EXPECT_EQ(rig.miss(message(60, 0, 0, kUnknown)).message_offset, 32U);
  // 92 bytes are taken: an empty message needs 32 and still fits, one of 5 does not.
  const BindAnswer misfit = rig.miss(message(5, 0, 0, kUnknown));
  EXPECT_TRUE(misfit.retired);
  EXPECT_EQ(misfit.message_offset, 32U);
  // By threshold: 32 + 10.
  CatchRig exact{catch_all(42)};
  exact.post(128);
  EXPECT_TRUE(exact.miss(message(10, 0, 0, kUnknown)).retired);
  CatchRig more{catch_all(43)};
  more.post(128);
  EXPECT_FALSE(more.miss(message(10, 0, 0, kUnknown)).retired);
}

TEST(CatchAll, AMessageEndsWithRecordAndPayloadInEitherOrder) {
  for (const bool record_first : {true, false}) {
    for (const std::uint64_t length : {0U, 10U}) {
      CatchRig rig{catch_all(32 + length)};
      rig.post(128);
      const Message what = message(length, 0, 0, kUnknown);
      const BindAnswer bound = rig.miss(what);
      ASSERT_TRUE(bound.place.has_binding) << "the record is a packet of its own";
      if (record_first) {
        EXPECT_FALSE(rig.count_record(bound));
        EXPECT_TRUE(rig.count(bound.place, what));
      } else {
        EXPECT_FALSE(rig.count(bound.place, what));
        EXPECT_TRUE(rig.count_record(bound));
      }
      const std::vector<Completion> done = rig.completions();
      ASSERT_EQ(done.size(), 1U);
      EXPECT_EQ(done[0].length, 32 + length);
    }
  }
}

TEST(CatchAll, ACutOffMessageTakesItsRecordBack) {
  CatchRig rig{catch_all(4096)};
  rig.post(4096);
  const Message lost = message(200, 0, 0, kUnknown);
  const BindAnswer bound = rig.miss(lost);
  EXPECT_FALSE(rig.count_record(bound));
  EXPECT_TRUE(rig.store.cut_off(bound.place.binding).retired_now);
  EXPECT_FALSE(rig.count(bound.place, lost));
  EXPECT_EQ(rig.store.stats().messages_counted.value(), 0U);
}

// ------------------------------------------------------------------------------------------------------- requests

Message request(std::uint64_t length, std::uint64_t offset = 0, std::uint32_t key = 0, Mailbox mailbox = kMailbox) {
  Message made = message(0, offset, key, mailbox);
  made.header.is_get = true;
  made.header.ask.length = length;
  return made;
}

TEST(ReadRequest, RefusalsInTheirOrder) {
  WindowSpec spec{4096};
  spec.key = 3;
  spec.flags = kWindowReadable;
  Rig rig{spec};
  const auto read = [&](const Message& what, bool hit = true) {
    return rig.store.read(what.header, WindowLookup{hit, rig.window, false}).outcome;
  };
  EXPECT_EQ(read(request(1, 0, 3, kUnknown), false), Outcome::no_mailbox);
  EXPECT_EQ(read(request(1, 0, 4)), Outcome::bad_key);
  EXPECT_EQ(read(request(1, 0, 3)), Outcome::no_buffer);
  rig.post(100);
  EXPECT_EQ(read(request(101, 0, 3)), Outcome::bounds);
  EXPECT_EQ(read(request(1, 100, 3)), Outcome::bounds);
  EXPECT_EQ(read(request(kMax, 2, 3)), Outcome::bounds);
  EXPECT_EQ(read(request(2, kMax, 3)), Outcome::bounds);
  EXPECT_EQ(read(request(100, 0, 3)), Outcome::pending);
  EXPECT_EQ(read(request(0, 100, 3)), Outcome::pending);
  Message malformed = request(1, 0, 3);
  malformed.header.message_length = 1;
  EXPECT_TRUE(rig.store.read(malformed.header, WindowLookup{true, rig.window, false}).malformed);
  // Nothing is reserved.
  EXPECT_EQ(rig.store.stats().messages_bound.value(), 0U);
  ASSERT_TRUE(rig.store.begin_rewind(rig.window, 0, Epoch{0}, [] {}).drained);
  EXPECT_EQ(read(request(1, 0, 3)), Outcome::busy);
  rig.store.finish_rewind(rig.window);
  std::vector<BufferId> returned;
  rig.store.begin_close(rig.window, returned, [] {});
  EXPECT_EQ(read(request(1, 0, 3)), Outcome::closed);
}

TEST(ReadRequest, NeedsTheReadableFlagAndIsNeverCaught) {
  Rig rig{catch_all(4096)};
  rig.post(4096);
  EXPECT_EQ(rig.store.read(request(1).header, WindowLookup{true, rig.window, false}).outcome, Outcome::bad_key);
  EXPECT_EQ(rig.store.read(request(1, 0, 0, kUnknown).header, WindowLookup{}).outcome, Outcome::no_mailbox);
}

TEST(ReadRequest, ABufferMayBeReadAsLongAsItsWindowRemembersIt) {
  WindowSpec spec{64};
  spec.flags = kWindowReadable;
  Rig rig{spec};
  const BufferId first = rig.post(64);
  const std::uint64_t posting = rig.store.buffer(first).posting;
  for (int i = 0; i < 5; ++i) rig.post(64);
  EXPECT_TRUE(rig.store.may_read(rig.window, first, posting));
  for (int i = 0; i < 4; ++i) rig.deliver(message(64));
  EXPECT_TRUE(rig.store.may_read(rig.window, first, posting)) << "remembered: history is 4";
  rig.deliver(message(64));
  EXPECT_FALSE(rig.store.may_read(rig.window, first, posting));
}

}  // namespace
}  // namespace rvma::test
