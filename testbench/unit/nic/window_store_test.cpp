// The rules of semantics 2-5, each from both sides, and random histories against a plain reference.
#include "nic/window_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "window_store_rig.hpp"

namespace rvma::test {
namespace {

// ----------------------------------------------------------------------------------------------------------- calls

TEST(WindowCallsOfStore, RefuseBadArguments) {
  WindowStore store(small_config());
  WindowSpec spec;
  spec.threshold = 0;
  EXPECT_EQ(store.allocate_window(init_call(kMailbox, spec), kPid).status, Status::bad_argument);
  Descriptor one_time = init_call(kMailbox, {1});
  one_time.opcode = Opcode::post_one_time_buffer;
  one_time.length = 64;
  one_time.window_flags = kWindowCatchAll;
  EXPECT_EQ(store.allocate_window(one_time, kPid).status, Status::bad_argument);
  spec.threshold = 1;
  spec.flags = kWindowReadable | kWindowInterrupt;
  const auto allocated = store.allocate_window(init_call(kMailbox, spec), kPid);
  ASSERT_EQ(allocated.status, Status::ok);
  EXPECT_EQ(store.post_buffer(allocated.window, post_call(0, 1)).status, Status::bad_argument);
}

TEST(WindowCallsOfStore, MailboxIsUniquePerProcess) {
  Rig rig;
  EXPECT_EQ(rig.store.allocate_window(init_call(kMailbox, {}), kPid).status, Status::exists);
  EXPECT_EQ(rig.store.allocate_window(init_call(kMailbox, {}), Pid{4}).status, Status::ok);
  EXPECT_EQ(rig.store.find_window(kPid, kMailbox).window, rig.window);
  EXPECT_EQ(rig.store.find_window(kPid, Mailbox{1}).status, Status::no_window);
  EXPECT_EQ(rig.store.find_window(Pid{4}, kMailbox).status, Status::no_window) << "not open yet";
}

TEST(WindowCallsOfStore, WindowsAndBuffersAreFinite) {
  Rig rig;
  for (std::uint64_t i = 1; i < 4; ++i) rig.open(Mailbox{i}, {});
  EXPECT_EQ(rig.store.allocate_window(init_call(Mailbox{9}, {}), kPid).status, Status::full);
  for (int i = 0; i < 16; ++i) rig.post(256);
  EXPECT_EQ(rig.store.post_buffer(rig.window, post_call(256, 99)).status, Status::full);
  rig.deliver(message(256));
  EXPECT_EQ(rig.completions().size(), 1U);
  EXPECT_EQ(rig.store.post_buffer(rig.window, post_call(256, 99)).status, Status::ok) << "a completed buffer is free";
}

TEST(WindowCallsOfStore, AbandonedWindowLeavesNothing) {
  Rig rig;
  Descriptor call = init_call(Mailbox{5}, {});
  call.opcode = Opcode::post_one_time_buffer;
  call.length = 64;
  for (int i = 0; i < 100; ++i) {
    const auto allocated = rig.store.allocate_window(call, kPid);
    ASSERT_EQ(allocated.status, Status::ok);
    ASSERT_EQ(rig.store.post_buffer(allocated.window, call).status, Status::ok);
    rig.store.abandon_window(allocated.window);
  }
  EXPECT_EQ(rig.store.find_window(kPid, Mailbox{5}).status, Status::no_window);
}

TEST(WindowCallsOfStore, HistoryIsNewestFirstAndBounded) {
  Rig rig({64});
  std::vector<WindowStore::CompletedBuffer> list;
  EXPECT_EQ(rig.store.completed_buffers(rig.window, 0, list), Status::ok);
  EXPECT_EQ(rig.store.completed_buffers(rig.window, 1, list), Status::history);
  for (int i = 0; i < 6; ++i) {
    rig.post(64);
    rig.deliver(message(64));
  }
  EXPECT_EQ(rig.store.completed_buffers(rig.window, 5, list), Status::history);
  EXPECT_TRUE(list.empty());
  ASSERT_EQ(rig.store.completed_buffers(rig.window, 4, list), Status::ok);
  ASSERT_EQ(list.size(), 4U);
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(list[i].epoch, Epoch{5 - i});
    EXPECT_EQ(list[i].head, VirtualAddress{0x10000 * (6 - i)});
    EXPECT_EQ(list[i].length, 64U);
  }
  EXPECT_EQ(rig.store.completed_epochs(rig.window), 6U);
}

TEST(WindowCallsOfStore, HistoryOfZeroRemembersNothing) {
  NicConfig config = small_config();
  config.history = 0;
  Rig rig({64}, config);
  rig.post(64);
  rig.deliver(message(64));
  std::vector<WindowStore::CompletedBuffer> list;
  EXPECT_EQ(rig.store.completed_buffers(rig.window, 0, list), Status::ok);
  EXPECT_EQ(rig.store.completed_buffers(rig.window, 1, list), Status::history);
  EXPECT_EQ(rig.store.completed_epochs(rig.window), 1U);
}

TEST(WindowCallsOfStore, IncEpochCompletesAtOnceOrWhenDrained) {
  Rig rig;
  int told = 0;
  rig.store.on_completion_due([&] { ++told; });
  BufferId retired;
  Epoch epoch;
  EXPECT_EQ(rig.store.inc_epoch(rig.window, retired, epoch), Status::no_buffer);
  const BufferId first = rig.post(256);
  const BufferId second = rig.post(256);
  EXPECT_EQ(rig.store.inc_epoch(rig.window, retired, epoch), Status::ok);
  EXPECT_EQ(retired, first);
  EXPECT_EQ(epoch, Epoch{0});
  EXPECT_EQ(told, 1);
  auto done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].length, 0U);
  EXPECT_EQ(done[0].word, PhysicalAddress{16});

  const Message put = message(40);
  const BindAnswer bound = rig.bind(put);
  EXPECT_EQ(bound.place.buffer, second);
  EXPECT_EQ(rig.store.inc_epoch(rig.window, retired, epoch), Status::ok);
  EXPECT_EQ(epoch, Epoch{1});
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(rig.completions().empty());
  EXPECT_EQ(rig.store.completed_epochs(rig.window), 1U);
  EXPECT_TRUE(rig.count(bound.place, put));
  done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].length, 40U);
  EXPECT_EQ(done[0].epoch, Epoch{1});
  EXPECT_EQ(rig.store.completed_epochs(rig.window), 2U);
}

// --------------------------------------------------------------------------------------------------------- refusals

TEST(Refusals, FirstReasonThatAppliesIsGiven) {
  WindowSpec spec;
  spec.key = 5;
  Rig rig(spec);
  const Message wrong = message(1000, 0, 6);
  const Message long_one = message(1000, 0, 5);
  const Message good = message(128, 0, 5);
  const Message stranger = message(1000, 0, 6, Mailbox{42});
  EXPECT_EQ(rig.store.bind(kSource, stranger.packet(0), WindowLookup{}).outcome, Outcome::no_mailbox);
  EXPECT_EQ(rig.store.bind(kSource, wrong.packet(0), WindowLookup{}).outcome, Outcome::busy)
      << "opened since its lookup";
  EXPECT_EQ(rig.outcome(wrong), Outcome::bad_key);
  EXPECT_EQ(rig.outcome(long_one), Outcome::no_buffer);
  rig.post(256);
  EXPECT_EQ(rig.outcome(wrong), Outcome::bad_key);
  EXPECT_EQ(rig.outcome(long_one), Outcome::bounds);
  EXPECT_EQ(rig.outcome(good), Outcome::pending);
}

TEST(Refusals, KeyZeroAcceptsAnyKey) {
  Rig rig;
  rig.post(256);
  EXPECT_EQ(rig.outcome(message(16, 0, 77)), Outcome::pending);
}

TEST(Refusals, MissDuringASweepIsBusy) {
  Rig rig;
  const Message stranger = message(16, 0, 0, Mailbox{42});
  EXPECT_EQ(rig.store.bind(kSource, stranger.packet(0), WindowLookup{false, {}, true}).outcome, Outcome::busy);
  EXPECT_EQ(rig.store.bind(kSource, stranger.packet(0), WindowLookup{false, {}, false}).outcome, Outcome::no_mailbox);
}

TEST(Refusals, SlotOfAnotherMailboxIsAMiss) {
  Rig rig;
  rig.post(256);
  EXPECT_EQ(rig.outcome(message(16, 0, 0, Mailbox{42})), Outcome::no_mailbox);
  Message other_process = message(16);
  other_process.header.destination_pid = Pid{4};
  EXPECT_EQ(rig.outcome(other_process), Outcome::no_mailbox);
  EXPECT_EQ(rig.bind_at(WindowId{60000}, message(16)).outcome, Outcome::busy) << "open, but not where the table said";
  EXPECT_EQ(rig.outcome(message(16)), Outcome::pending);
}

TEST(Refusals, BadlyCutPacketsChangeNothing) {
  Rig rig;
  rig.post(256);
  const Message put = message(200);
  const auto bind = [&](const DataHeader& header) {
    return rig.store.bind(kSource, header, WindowLookup{true, rig.window, false});
  };
  DataHeader cut = put.packet(0);
  cut.payload_length = 63;
  EXPECT_TRUE(bind(cut).malformed);
  cut = put.packet(3);
  cut.payload_length = 64;
  EXPECT_TRUE(bind(cut).malformed);
  cut = put.packet(3);
  cut.packet_index = 4;
  EXPECT_TRUE(bind(cut).malformed);
  cut.packet_index = 0xffffffff;
  EXPECT_TRUE(bind(cut).malformed);
  cut = message(0).packet(0);
  cut.payload_length = 1;
  EXPECT_TRUE(bind(cut).malformed);
  cut = message(0).packet(0);
  cut.packet_index = 1;
  EXPECT_TRUE(bind(cut).malformed);
  EXPECT_EQ(rig.store.stats().messages_bound.value(), 0U);
  const BindAnswer bound = rig.deliver(put);
  EXPECT_EQ(bound.place.offset, 0U);
  EXPECT_FALSE(bound.malformed);
}

TEST(Refusals, ForBusyLeaveNoTrace) {
  NicConfig config = small_config();
  config.binding.on_chip = 1;
  Rig rig({400}, config);
  rig.post(1000);
  const Message first = message(130);
  const BindAnswer bound = rig.bind(first);
  ASSERT_EQ(bound.outcome, Outcome::pending);
  EXPECT_EQ(rig.outcome(message(300)), Outcome::busy) << "would have reached the threshold";
  EXPECT_EQ(rig.outcome(message(64)), Outcome::pending) << "a single packet needs no entry; nothing was reserved";
  EXPECT_EQ(rig.outcome(message(65)), Outcome::busy);
  EXPECT_FALSE(rig.count(bound.place, first));
  EXPECT_FALSE(rig.count(*rig.place(bound, first, 1), first, 1));
  EXPECT_EQ(rig.outcome(message(65)), Outcome::busy);
  EXPECT_TRUE(rig.count(*rig.place(bound, first, 2), first, 2));
  EXPECT_EQ(rig.outcome(message(65)), Outcome::pending) << "the entry is free once its message is counted whole";
}

TEST(Refusals, NoFreeCounterIsBusy) {
  NicConfig config = small_config();
  config.counters.on_chip = 1;
  Rig rig({64}, config);
  const WindowId other = rig.open(Mailbox{2}, {});
  rig.post(64);
  rig.post_to(other, 64);
  const Message held = message(64);
  const BindAnswer bound = rig.bind(held);
  ASSERT_EQ(bound.outcome, Outcome::pending);
  const Message put = message(10, 0, 0, Mailbox{2});
  EXPECT_EQ(rig.bind_at(other, put).outcome, Outcome::busy);
  EXPECT_TRUE(rig.count(bound.place, held));
  EXPECT_EQ(rig.completions().size(), 1U);
  EXPECT_EQ(rig.bind_at(other, put).outcome, Outcome::pending);
  EXPECT_EQ(rig.bind_at(other, put).outcome, Outcome::pending) << "the buffer has its counter";
}

// ------------------------------------------------------------------------------------- reserve, retire, count,
// complete

TEST(Threshold, RetiresWhenReservedNotWhenDelivered) {
  Rig rig({200});
  const BufferId first = rig.post(256);
  const BufferId second = rig.post(256);
  const Message a = message(100);
  const Message b = message(100, 100);
  const BindAnswer bound_a = rig.bind(a);
  EXPECT_FALSE(bound_a.retired);
  const BindAnswer bound_b = rig.bind(b, 1);
  EXPECT_TRUE(bound_b.retired);
  EXPECT_EQ(bound_b.retired_buffer, first);
  EXPECT_EQ(bound_b.retired_epoch, Epoch{0});
  EXPECT_EQ(bound_b.place.offset, 164U);
  EXPECT_EQ(rig.bind(message(10)).place.buffer, second);
  // The second message is delivered whole before the first one's last packet.
  EXPECT_FALSE(rig.count(bound_b.place, b, 1));
  EXPECT_TRUE(rig.count(*rig.place(bound_b, b, 0), b, 0));
  EXPECT_FALSE(rig.count(bound_a.place, a, 0));
  EXPECT_TRUE(rig.completions().empty());
  EXPECT_TRUE(rig.count(*rig.place(bound_a, a, 1), a, 1));
  const auto done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].buffer, first);
  EXPECT_EQ(done[0].length, 200U);
}

TEST(Threshold, OvershootCompletesWithAllThatWasBound) {
  Rig rig({200});
  rig.post(1000);
  const Message a = message(199);
  const Message b = message(300, 500);
  const BindAnswer bound_a = rig.bind(a, 3);
  const BindAnswer bound_b = rig.bind(b);
  EXPECT_FALSE(bound_a.retired);
  EXPECT_TRUE(bound_b.retired);
  EXPECT_EQ(rig.outcome(message(1)), Outcome::no_buffer);
  // Delivered passes the threshold by b alone: an epoch that looked at it would complete here.
  rig.count(bound_b.place, b, 0);
  for (std::uint32_t k = 1; k < b.packets(); ++k) rig.count(*rig.place(bound_b, b, k), b, k);
  EXPECT_TRUE(rig.completions().empty());
  rig.count(bound_a.place, a, 3);
  for (std::uint32_t k = 0; k < 3; ++k) rig.count(*rig.place(bound_a, a, k), a, k);
  const auto done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].length, 499U);
}

TEST(Threshold, OfOpsCountsMessagesAndReportsBytes) {
  Rig rig({3, ThresholdType::ops});
  rig.post(100);
  EXPECT_FALSE(rig.deliver(message(90)).retired);
  EXPECT_FALSE(rig.deliver(message(0)).retired);
  EXPECT_TRUE(rig.completions().empty());
  EXPECT_TRUE(rig.deliver(message(90)).retired);
  const auto done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].length, 180U) << "two puts to the same bytes both count";
}

TEST(Threshold, ZeroLengthPutCountsNoByte) {
  Rig rig({1});
  rig.post(10);
  EXPECT_FALSE(rig.deliver(message(0)).retired);
  EXPECT_TRUE(rig.completions().empty());
  EXPECT_TRUE(rig.deliver(message(1)).retired);
  ASSERT_EQ(rig.completions().size(), 1U);
}

TEST(Threshold, AboveTheBuffersSizeIsLegal) {
  Rig rig({kMax});
  rig.post(128);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(rig.deliver(message(128)).retired);
  BufferId retired;
  Epoch epoch;
  rig.store.inc_epoch(rig.window, retired, epoch);
  EXPECT_EQ(rig.completions().at(0).length, 640U);
}

TEST(Completion, OfOneWindowComeInEpochOrder) {
  Rig rig({100});
  std::vector<Message> puts;
  std::vector<BindAnswer> bound;
  for (int i = 0; i < 4; ++i) {
    rig.post(100);
    puts.push_back(message(100));
    bound.push_back(rig.bind(puts.back(), 1));
    EXPECT_EQ(bound.back().epoch, Epoch{static_cast<std::uint64_t>(i)});
  }
  const auto finish = [&](std::size_t i) {
    rig.count(bound[i].place, puts[i], 1);
    rig.count(*rig.place(bound[i], puts[i], 0), puts[i], 0);
  };
  finish(3);
  finish(1);
  EXPECT_TRUE(rig.completions().empty());
  EXPECT_EQ(rig.store.completed_epochs(rig.window), 0U);
  finish(0);
  auto done = rig.completions();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].epoch, Epoch{0});
  EXPECT_EQ(done[1].epoch, Epoch{1});
  finish(2);
  done = rig.completions();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].epoch, Epoch{2});
  EXPECT_EQ(done[1].epoch, Epoch{3});
  EXPECT_TRUE(rig.completions().empty());
}

TEST(Completion, CarriesTheInterruptFlag) {
  WindowSpec spec;
  spec.threshold = 1;
  spec.flags = kWindowInterrupt;
  Rig rig(spec);
  rig.post(64);
  rig.deliver(message(1));
  const auto done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_TRUE(done[0].interrupt);
  EXPECT_EQ(done[0].pid, kPid);
  EXPECT_EQ(done[0].mailbox, kMailbox);
  EXPECT_EQ(done[0].window, rig.window);
}

// ---------------------------------------------------------------------------------------------------------- binding

TEST(BindingRules, LaterPacketsMustAgree) {
  Rig rig({1000});
  rig.post(1000);
  const Message put = message(200, 300);
  const BindAnswer bound = rig.bind(put, 2);
  EXPECT_EQ(bound.place.offset, 428U);
  EXPECT_EQ(bound.message_offset, 300U);
  const auto place = [&](NodeId source, const DataHeader& header) {
    BufferPlace where;
    return rig.store.place(bound.place.binding, source, header, where);
  };
  const DataHeader good = put.packet(1);
  EXPECT_FALSE(place(NodeId{8}, good));
  DataHeader bad = good;
  bad.mailbox = Mailbox{1};
  EXPECT_FALSE(place(kSource, bad));
  bad = good;
  bad.destination_pid = Pid{9};
  EXPECT_FALSE(place(kSource, bad));
  bad = good;
  bad.source_pid = Pid{9};
  EXPECT_FALSE(place(kSource, bad));
  bad = good;
  bad.key = 1;
  EXPECT_FALSE(place(kSource, bad));
  bad = good;
  bad.offset = 301;
  EXPECT_FALSE(place(kSource, bad));
  bad = good;
  bad.message_length = 201;
  EXPECT_FALSE(place(kSource, bad));
  bad = good;
  bad.message = MessageId{bad.message.value() + 1};
  EXPECT_FALSE(place(kSource, bad));
  bad = good;
  bad.payload_length = 63;
  EXPECT_FALSE(place(kSource, bad));
  bad = good;
  bad.packet_index = 4;
  EXPECT_FALSE(place(kSource, bad));
  BufferPlace where;
  EXPECT_FALSE(rig.store.place(bound.place.binding + 1, kSource, good, where)) << "no such entry";
  EXPECT_FALSE(place(kSource, put.packet(2))) << "placed by the bind";
  EXPECT_TRUE(place(kSource, good));
  EXPECT_FALSE(place(kSource, good)) << "a repeated index never counts twice";
}

TEST(BindingRules, OutliveRetirementAndTheTablesAnswer) {
  Rig rig({100});
  const BufferId first = rig.post(100);
  rig.post(100);
  const Message put = message(100);
  const BindAnswer bound = rig.bind(put, 1);
  EXPECT_TRUE(bound.retired);
  const Message next = message(100);
  const BindAnswer next_bound = rig.bind(next, 1);
  EXPECT_NE(next_bound.place.buffer, first);
  const auto where = rig.place(bound, put, 0);
  ASSERT_TRUE(where);
  EXPECT_EQ(where->buffer, first);
}

TEST(BindingRules, LongMessageInReverse) {
  NicConfig config = small_config();
  Rig rig({1}, config);
  constexpr std::uint64_t kLength = 3000 * kMtu + 1;
  rig.post(kLength);
  const Message put = message(kLength);
  std::uint32_t k = put.packets() - 1;
  const BindAnswer bound = rig.bind(put, k);
  ASSERT_EQ(bound.outcome, Outcome::pending);
  EXPECT_FALSE(rig.count(bound.place, put, k));
  while (k-- > 0) {
    const auto where = rig.place(bound, put, k);
    ASSERT_TRUE(where);
    EXPECT_EQ(where->offset, k * kMtu);
    EXPECT_FALSE(rig.place(bound, put, k));
    EXPECT_EQ(rig.store.ends_message(Rig::placed(*where, put, k)), k == 0);
    EXPECT_EQ(rig.count(*where, put, k), k == 0);
  }
  EXPECT_EQ(rig.completions().at(0).length, kLength);
}

// -------------------------------------------------------------------------------------------------- steered, managed

TEST(Steered, BoundsAreOfTheWholeMessage) {
  Rig rig({kMax});
  rig.post(256);
  EXPECT_EQ(rig.outcome(message(256, 0)), Outcome::pending);
  EXPECT_EQ(rig.outcome(message(257, 0)), Outcome::bounds);
  EXPECT_EQ(rig.outcome(message(1, 255)), Outcome::pending);
  EXPECT_EQ(rig.outcome(message(1, 256)), Outcome::bounds);
  EXPECT_EQ(rig.outcome(message(0, 256)), Outcome::pending);
  EXPECT_EQ(rig.outcome(message(0, 257)), Outcome::bounds);
  EXPECT_EQ(rig.outcome(message(2, kMax)), Outcome::bounds) << "wraps";
  EXPECT_EQ(rig.outcome(message(64, kMax - 63)), Outcome::bounds) << "wraps to 0 exactly";
  const BindAnswer inside = rig.bind(message(128, 100), 1);
  EXPECT_EQ(inside.place.offset, 164U);
  // A length that wraps with the offset, carried by a well-cut packet.
  Message huge = message(kMax, 16);
  EXPECT_EQ(rig.outcome(huge), Outcome::bounds);
}

WindowSpec managed(std::uint64_t threshold = kMax) {
  WindowSpec spec;
  spec.threshold = threshold;
  spec.placement = Placement::managed;
  return spec;
}

TEST(Managed, AppendsAndIgnoresTheOffset) {
  Rig rig(managed());
  rig.post(300);
  const Message first = message(100, kMax);
  const BindAnswer a = rig.bind(first, 1);
  EXPECT_EQ(a.message_offset, 0U);
  EXPECT_EQ(a.place.offset, 64U);
  const BindAnswer b = rig.bind(message(200, 5), 3);
  EXPECT_EQ(b.message_offset, 100U);
  EXPECT_EQ(b.place.offset, 292U);
  EXPECT_EQ(rig.bind(message(0)).message_offset, 300U);
  EXPECT_EQ(rig.place(a, first, 0)->offset, 0U);
}

TEST(Managed, MisfitOfAnEmptyBufferIsBounds) {
  Rig rig(managed());
  rig.post(100);
  rig.post(1000);
  const BindAnswer answer = rig.bind(message(101));
  EXPECT_EQ(answer.outcome, Outcome::bounds);
  EXPECT_FALSE(answer.retired);
}

TEST(Managed, MisfitMovesToANextBufferThatTakesIt) {
  Rig rig(managed());
  int told = 0;
  rig.store.on_completion_due([&] { ++told; });
  const BufferId first = rig.post(100);
  const BufferId second = rig.post(120);
  rig.deliver(message(60));
  const BindAnswer moved = rig.bind(message(41));
  ASSERT_EQ(moved.outcome, Outcome::pending);
  EXPECT_TRUE(moved.retired);
  EXPECT_EQ(moved.retired_buffer, first);
  EXPECT_EQ(moved.retired_epoch, Epoch{0});
  EXPECT_FALSE(moved.retired_next);
  EXPECT_EQ(moved.place.buffer, second);
  EXPECT_EQ(moved.epoch, Epoch{1});
  EXPECT_EQ(moved.message_offset, 0U);
  EXPECT_EQ(told, 1) << "the first epoch completes by the misfit alone";
  const auto done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].length, 60U);
}

TEST(Managed, MisfitMayFillTheNextBufferToo) {
  Rig rig(managed(100));
  rig.post(100);
  const BufferId second = rig.post(120);
  rig.deliver(message(60));
  const BindAnswer moved = rig.bind(message(100));
  EXPECT_TRUE(moved.retired);
  EXPECT_TRUE(moved.retired_next);
  EXPECT_EQ(moved.place.buffer, second);
  EXPECT_EQ(rig.outcome(message(1)), Outcome::no_buffer);
}

TEST(Managed, MisfitOfTheNextBufferTooIsBounds) {
  Rig rig(managed());
  const BufferId first = rig.post(100);
  rig.post(90);
  rig.deliver(message(60));
  const BindAnswer answer = rig.bind(message(95));
  EXPECT_EQ(answer.outcome, Outcome::bounds);
  EXPECT_FALSE(answer.retired);
  EXPECT_EQ(rig.bind(message(40)).place.buffer, first) << "nothing was retired";
}

TEST(Managed, MisfitWithoutANextBuffer) {
  Rig rig(managed());
  const BufferId first = rig.post(100);
  rig.deliver(message(60));
  EXPECT_EQ(rig.outcome(message(101)), Outcome::bounds);
  EXPECT_TRUE(rig.completions().empty());
  const BindAnswer answer = rig.bind(message(100));
  EXPECT_EQ(answer.outcome, Outcome::no_buffer);
  EXPECT_TRUE(answer.retired);
  EXPECT_EQ(answer.retired_buffer, first);
  ASSERT_EQ(rig.completions().size(), 1U);
  const BufferId second = rig.post(100);
  EXPECT_EQ(rig.bind(message(100)).place.buffer, second) << "the sender's retry";
}

TEST(Managed, MisfitMayUseTheCounterThatItFrees) {
  NicConfig config = small_config();
  config.counters.on_chip = 1;
  Rig rig(managed(), config);
  rig.post(100);
  rig.post(100);
  const Message put = message(60);
  const BindAnswer bound = rig.bind(put);
  EXPECT_EQ(rig.outcome(message(60)), Outcome::busy) << "the first epoch still needs the counter";
  EXPECT_EQ(rig.store.stats().epochs_retired.value(), 0U);
  rig.count(bound.place, put);
  EXPECT_EQ(rig.outcome(message(60)), Outcome::pending);
  EXPECT_EQ(rig.completions().size(), 1U);
}

// ------------------------------------------------------------------------------------------------ one-time, close

struct OneTime {
  explicit OneTime(Rig& rig, std::uint64_t threshold = 64, Mailbox name = Mailbox{77}) : mailbox(name) {
    Descriptor call = post_call(128, 50);
    call.opcode = Opcode::post_one_time_buffer;
    call.mailbox = mailbox;
    call.threshold = threshold;
    const auto allocated = rig.store.allocate_window(call, kPid);
    EXPECT_EQ(allocated.status, Status::ok);
    window = allocated.window;
    EXPECT_EQ(rig.store.post_buffer(window, call).status, Status::ok);
    rig.store.open_window(window);
  }
  Mailbox mailbox;
  WindowId window;
};

TEST(OneTimeWindow, RefusesClosedFromRetirementAndFreesItself) {
  Rig rig;
  const OneTime window(rig);
  int told = 0;
  rig.store.on_expired([&] { ++told; });
  EXPECT_EQ(rig.store.post_buffer(window.window, post_call(64, 60)).status, Status::bad_argument);
  const Message put = message(100, 0, 0, window.mailbox);
  const BindAnswer bound = rig.bind_at(window.window, put);
  EXPECT_TRUE(bound.retired);
  EXPECT_EQ(rig.bind_at(window.window, message(1, 0, 0, window.mailbox)).outcome, Outcome::closed);
  rig.count(bound.place, put);
  EXPECT_EQ(told, 0);
  EXPECT_EQ(rig.store.find_window(kPid, window.mailbox).status, Status::ok);
  rig.count(*rig.place(bound, put, 1), put, 1);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(rig.completions().size(), 1U);
  std::vector<WindowStore::Expired> expired;
  rig.store.take_expired(expired);
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].window, window.window);
  EXPECT_EQ(expired[0].mailbox, window.mailbox);
  EXPECT_EQ(rig.store.find_window(kPid, window.mailbox).status, Status::closed);
  EXPECT_EQ(rig.bind_at(window.window, message(1, 0, 0, window.mailbox)).outcome, Outcome::closed);
  // The mailbox may be opened again before the old slot is released, and the old slot never receives for it.
  const OneTime again(rig);
  EXPECT_NE(again.window, window.window);
  EXPECT_EQ(rig.bind_at(window.window, message(1, 0, 0, window.mailbox)).outcome, Outcome::busy);
  rig.store.release_window(window.window);
  EXPECT_EQ(rig.store.find_window(kPid, window.mailbox).window, again.window);
  EXPECT_EQ(rig.bind_at(again.window, message(1, 0, 0, window.mailbox)).outcome, Outcome::pending);
}

TEST(OneTimeWindow, ExpiresByIncEpochToo) {
  Rig rig;
  const OneTime window(rig);
  BufferId retired;
  Epoch epoch;
  EXPECT_EQ(rig.store.inc_epoch(window.window, retired, epoch), Status::ok);
  std::vector<WindowStore::Expired> expired;
  rig.store.take_expired(expired);
  EXPECT_EQ(expired.size(), 1U);
  EXPECT_EQ(rig.completions().size(), 1U);
}

TEST(CutOff, OfAnActiveSteeredBufferTakesBackWhatWasReservedAndDelivered) {
  Rig rig{{256}};
  rig.post(1024);
  const Message lost = message(192);
  const BindAnswer bound = rig.bind(lost);
  EXPECT_FALSE(rig.count(bound.place, lost));
  const WindowStore::CutOff cut = rig.store.cut_off(bound.place.binding);
  EXPECT_FALSE(cut.retired_now);
  EXPECT_FALSE(cut.is_broken);
  EXPECT_FALSE(rig.place(bound, lost, 1)) << "its later packets are not its any more";
  // 192 bytes are free again: a message of 255 does not retire the buffer, one more byte does.
  EXPECT_FALSE(rig.deliver(message(255)).retired);
  EXPECT_TRUE(rig.deliver(message(1)).retired);
  const std::vector<Completion> done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].length, 256U);
}

TEST(CutOff, WaitsForWhatIsOnTheWayAndDoesNotCountIt) {
  Rig rig{{64}};
  rig.post(1024);
  const Message lost = message(192);
  const BindAnswer bound = rig.bind(lost);
  EXPECT_TRUE(bound.retired);
  const std::optional<BufferPlace> second = rig.place(bound, lost, 1);
  ASSERT_TRUE(second);
  EXPECT_TRUE(rig.store.cut_off(bound.place.binding).is_broken);
  // Two packets are on the way to memory: the entry and the window's descriptor stay until they have landed.
  bool drained = false;
  std::vector<BufferId> returned;
  rig.store.begin_close(rig.window, returned, [&] { drained = true; });
  EXPECT_FALSE(rig.count(bound.place, lost, 0));
  EXPECT_FALSE(drained);
  EXPECT_FALSE(rig.count(*second, lost, 1));
  EXPECT_TRUE(drained);
  EXPECT_TRUE(rig.completions().empty());
}

TEST(CutOff, WhereAllAreBoundAMessageOfOnePacketCanBeCutOffToo) {
  Rig rig{{256}};
  rig.store.bind_all();
  rig.post(1024);
  EXPECT_EQ(rig.deliver(message(64)).outcome, Outcome::pending);
  EXPECT_EQ(rig.deliver(message(0)).outcome, Outcome::pending);
  const Message lost = message(10);
  const BindAnswer bound = rig.bind(lost);
  ASSERT_TRUE(bound.place.has_binding);
  rig.store.cut_off(bound.place.binding);
  bool drained = false;
  std::vector<BufferId> returned;
  rig.store.begin_close(rig.window, returned, [&] { drained = true; });
  EXPECT_FALSE(drained);
  EXPECT_FALSE(rig.count(bound.place, lost));
  EXPECT_TRUE(drained);
}

TEST(CutOff, ARetiredBufferHoldsLaterEpochsBackUntilTheWindowCloses) {
  Rig rig{{128}};
  const BufferId first = rig.post(1024);
  rig.post(1024);
  rig.post(1024);
  const Message lost = message(128);
  const BindAnswer bound = rig.bind(lost);
  rig.count(bound.place, lost);
  const WindowStore::CutOff cut = rig.store.cut_off(bound.place.binding);
  EXPECT_EQ(cut.buffer, first);
  EXPECT_TRUE(cut.is_broken);
  rig.deliver(message(128));
  EXPECT_TRUE(rig.completions().empty());
  EXPECT_EQ(rig.store.completed_epochs(rig.window), 0U);
  std::vector<BufferId> returned;
  bool drained = false;
  rig.store.begin_close(rig.window, returned, [&] { drained = true; });
  EXPECT_TRUE(drained);
  const std::vector<Completion> done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].epoch, Epoch{1});
}

TEST(CutOff, AHoleInAManagedBufferRetiresIt) {
  WindowSpec spec{1024};
  spec.placement = Placement::managed;
  Rig rig{spec};
  const BufferId first = rig.post(1024);
  const BufferId second = rig.post(1024);
  const Message lost = message(128);
  const BindAnswer bound = rig.bind(lost);
  const WindowStore::CutOff cut = rig.store.cut_off(bound.place.binding);
  EXPECT_TRUE(cut.retired_now);
  EXPECT_TRUE(cut.is_broken);
  EXPECT_EQ(cut.buffer, first);
  EXPECT_EQ(cut.epoch, Epoch{0});
  EXPECT_EQ(rig.bind(message(64)).place.buffer, second);
}

TEST(CutOff, OfOpsTakesBackOneOperation) {
  WindowSpec spec{2};
  spec.type = ThresholdType::ops;
  Rig rig{spec};
  rig.post(1024);
  const BindAnswer bound = rig.bind(message(192));
  rig.store.cut_off(bound.place.binding);
  EXPECT_FALSE(rig.deliver(message(64)).retired);
  EXPECT_TRUE(rig.deliver(message(64)).retired);
}

TEST(CutOff, FreesTheBindingEntry) {
  Rig rig{{1 << 20}};
  rig.post(1 << 20);
  for (int i = 0; i < 100; ++i) {
    const Message lost = message(192);
    const BindAnswer bound = rig.bind(lost);
    ASSERT_EQ(bound.outcome, Outcome::pending) << "entry " << i;
    rig.store.cut_off(bound.place.binding);
    rig.count(bound.place, lost);
  }
}

TEST(Close, ReturnsBuffersInOrderAndRefusesClosed) {
  Rig rig;
  const BufferId first = rig.post(256);
  const BufferId second = rig.post(256);
  const BufferId third = rig.post(256);
  rig.deliver(message(100));
  std::vector<BufferId> returned;
  bool drained = false;
  rig.store.begin_close(rig.window, returned, [&] { drained = true; });
  EXPECT_TRUE(drained) << "what was bound has ended";
  EXPECT_EQ(returned, (std::vector<BufferId>{first, second, third}));
  EXPECT_TRUE(rig.completions().empty());
  EXPECT_EQ(rig.outcome(message(1)), Outcome::closed);
  EXPECT_EQ(rig.store.find_window(kPid, kMailbox).status, Status::closed);
  EXPECT_EQ(rig.store.allocate_window(init_call(kMailbox, {}), kPid).status, Status::exists) << "not released yet";
  rig.store.release_window(rig.window);
  EXPECT_EQ(rig.store.bind(kSource, message(1).packet(0), WindowLookup{}).outcome, Outcome::closed);
  const WindowId reopened = rig.open(kMailbox, {});
  EXPECT_EQ(rig.bind_at(reopened, message(1)).outcome, Outcome::no_buffer);
  EXPECT_EQ(rig.store.completed_epochs(reopened), 0U);
}

TEST(Close, DrainsRetiredBuffersInOrder) {
  Rig rig({100});
  std::vector<Message> puts;
  std::vector<BindAnswer> bound;
  for (int i = 0; i < 3; ++i) {
    rig.post(100);
    puts.push_back(message(i == 2 ? 99 : 100));
    bound.push_back(rig.bind(puts.back(), 1));
  }
  const BufferId active = bound[2].place.buffer;
  const BufferId unused = rig.post(100);
  std::vector<BufferId> returned;
  bool drained = false;
  rig.store.begin_close(rig.window, returned, [&] { drained = true; });
  EXPECT_EQ(returned, (std::vector<BufferId>{active, unused}));
  for (const std::size_t i : {2U, 1U, 0U}) {
    EXPECT_FALSE(drained);
    EXPECT_TRUE(rig.completions().empty());
    rig.count(bound[i].place, puts[i], 1);
    EXPECT_EQ(rig.outcome(message(1)), Outcome::closed);
    const auto where = rig.place(bound[i], puts[i], 0);
    ASSERT_TRUE(where) << "bound messages go on";
    rig.count(*where, puts[i], 0);
  }
  EXPECT_TRUE(drained);
  const auto done = rig.completions();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].epoch, Epoch{0});
  EXPECT_EQ(done[1].epoch, Epoch{1});
  rig.store.release_window(rig.window);
  const WindowId other = rig.open(Mailbox{1}, {});
  for (int i = 0; i < 16; ++i) rig.post_to(other, 8);
}

TEST(Close, IsRememberedForTheLastFewMailboxes) {
  Rig rig;  // remembers 2
  const auto refusal = [&](std::uint64_t mailbox) {
    return rig.store.bind(kSource, message(1, 0, 0, Mailbox{mailbox}).packet(0), WindowLookup{}).outcome;
  };
  for (std::uint64_t mailbox = 1; mailbox <= 3; ++mailbox) {
    const WindowId slot = rig.open(Mailbox{mailbox}, {});
    std::vector<BufferId> returned;
    rig.store.begin_close(slot, returned, nullptr);
    rig.store.release_window(slot);
  }
  EXPECT_EQ(refusal(1), Outcome::no_mailbox);
  EXPECT_EQ(refusal(2), Outcome::closed);
  EXPECT_EQ(refusal(3), Outcome::closed);
  EXPECT_EQ(rig.store.find_window(kPid, Mailbox{1}).status, Status::no_window);
  EXPECT_EQ(rig.store.find_window(kPid, Mailbox{3}).status, Status::closed);
}

TEST(Close, OfAnOpenedAgainMailboxGivesItsPlaceBack) {
  Rig rig;  // remembers 2
  const auto close = [&](WindowId slot) {
    std::vector<BufferId> returned;
    rig.store.begin_close(slot, returned, nullptr);
    rig.store.release_window(slot);
  };
  close(rig.open(Mailbox{1}, {}));
  for (int i = 0; i < 3; ++i) close(rig.open(Mailbox{2}, {}));
  EXPECT_TRUE(rig.store.is_closed(kPid, Mailbox{1})) << "2 has one place, however often it was closed";
  rig.open(Mailbox{2}, {});
  EXPECT_FALSE(rig.store.is_closed(kPid, Mailbox{2}));
  close(rig.open(Mailbox{3}, {}));
  EXPECT_TRUE(rig.store.is_closed(kPid, Mailbox{1})) << "3 has the place that 2 gave back";
  close(rig.open(Mailbox{4}, {}));
  EXPECT_FALSE(rig.store.is_closed(kPid, Mailbox{1})) << "the oldest";
  EXPECT_TRUE(rig.store.is_closed(kPid, Mailbox{3}));
}

TEST(Close, OfWindowsOfGetsIsRememberedApart) {
  Rig rig;  // remembers 2, and 2
  const auto close = [&](std::uint64_t mailbox, bool is_gets) {
    Descriptor call;
    call.opcode = is_gets ? Opcode::post_one_time_buffer : Opcode::init_window;
    call.mailbox = Mailbox{mailbox};
    call.threshold = 1;
    call.length = 8;
    call.window_flags = is_gets ? kWindowAnswer : 0;
    const WindowId slot = rig.store.allocate_window(call, kPid).window;
    rig.store.open_window(slot);
    std::vector<BufferId> returned;
    rig.store.begin_close(slot, returned, nullptr);
    rig.store.release_window(slot);
  };
  const auto remembered = [&rig] {
    std::vector<std::uint64_t> mailboxes;
    for (std::uint64_t mailbox = 1; mailbox < 20; ++mailbox) {
      if (rig.store.is_closed(kPid, Mailbox{mailbox})) mailboxes.push_back(mailbox);
    }
    return mailboxes;
  };
  close(1, false);
  for (std::uint64_t mailbox = 11; mailbox < 15; ++mailbox) close(mailbox, true);
  EXPECT_EQ(remembered(), (std::vector<std::uint64_t>{1, 13, 14}));
  close(2, false);
  close(3, false);
  EXPECT_EQ(remembered(), (std::vector<std::uint64_t>{2, 3, 13, 14}));
}

TEST(SlotReuse, NeverReceivesAnotherMailboxsData) {
  NicConfig config = small_config();
  config.windows.on_chip = 1;
  config.windows.spill = false;
  Rig rig({64}, config);
  std::vector<BufferId> returned;
  rig.store.begin_close(rig.window, returned, nullptr);
  rig.store.release_window(rig.window);
  const WindowId reused = rig.open(Mailbox{2}, {64});
  ASSERT_EQ(reused, rig.window);
  rig.post_to(reused, 64);
  EXPECT_EQ(rig.bind_at(reused, message(64)).outcome, Outcome::closed) << "looked up before the slot was reused";
  EXPECT_EQ(rig.store.stats().messages_bound.value(), 0U);
}

TEST(Postings, AreNumberedApart) {
  Rig rig({64});
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 50; ++i) {
    const BufferId id = rig.post(64);
    EXPECT_TRUE(seen.insert(rig.store.buffer(id).posting).second);
    EXPECT_EQ(rig.store.buffer(id).size, 64U);
    EXPECT_EQ(rig.store.buffer(id).pid, kPid);
    rig.deliver(message(64));
  }
}

// ------------------------------------------------------------------------------------------------ plain reference

/// Semantics 3 and 5 for one window, as plainly as can be: nothing is ever freed, everything is searched.
class Reference {
 public:
  struct Buffer {
    std::uint64_t number = 0;
    std::uint64_t size = 0;
    std::uint64_t reserved = 0;
    std::uint64_t tail = 0;
    std::uint64_t delivered = 0;
    std::set<std::uint32_t> unfinished;
    bool was_bound = false;
    bool retired = false;
    bool completed = false;
    bool returned = false;
  };
  struct Bound {
    std::size_t buffer = 0;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::set<std::uint32_t> missing;
  };
  struct Done {
    std::uint64_t number = 0;
    std::uint64_t epoch = 0;
    std::uint64_t length = 0;
    bool operator==(const Done& o) const { return number == o.number && epoch == o.epoch && length == o.length; }
  };

  Reference(const WindowSpec& spec, std::size_t counters, std::size_t bindings)
      : spec_(spec), counters_(counters), bindings_(bindings) {}

  std::vector<Buffer> buffers;
  std::map<std::uint32_t, Bound> bound;  // messages of one packet too
  std::vector<Done> done;                // all that have completed
  bool closed = false;

  std::optional<std::size_t> active() const {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (!buffers[i].retired && !buffers[i].returned) return i;
    }
    return std::nullopt;
  }
  void post(std::uint64_t number, std::uint64_t size) {
    Buffer buffer;
    buffer.number = number;
    buffer.size = size;
    buffers.push_back(buffer);
  }
  Outcome bind(const Message& put) {
    const std::uint64_t length = put.header.message_length;
    if (closed) return Outcome::closed;
    if (spec_.key != 0 && put.header.key != spec_.key) return Outcome::bad_key;
    const auto first = active();
    if (!first) return Outcome::no_buffer;
    std::size_t to = *first;
    std::uint64_t offset = put.header.offset;
    const bool has_next = *first + 1 < buffers.size();
    bool moves = false;
    if (spec_.placement == Placement::steered) {
      if (offset + length > buffers[to].size) return Outcome::bounds;  // the histories' offsets never wrap
    } else {
      offset = buffers[to].tail;
      if (offset + length > buffers[to].size) {
        if (offset == 0) return Outcome::bounds;
        if (has_next) {
          if (length > buffers[to + 1].size) return Outcome::bounds;
          moves = true;
        } else {
          if (length > buffers[to].size) return Outcome::bounds;
          retire(to);
          return Outcome::no_buffer;
        }
      }
    }
    const std::vector<Buffer> before = buffers;
    const std::vector<Done> done_before = done;
    if (moves) {
      retire(to);
      offset = 0;
      ++to;
    }
    if ((put.packets() > 1 && long_messages() >= bindings_) ||
        (!buffers[to].was_bound && counters_in_use() >= counters_)) {
      buffers = before;
      done = done_before;
      return Outcome::busy;
    }
    Buffer& buffer = buffers[to];
    buffer.was_bound = true;
    buffer.reserved += spec_.type == ThresholdType::bytes ? length : 1;
    buffer.tail += length;
    buffer.unfinished.insert(put.header.message.value());
    Bound entry{to, offset, length, {}};
    for (std::uint32_t k = 0; k < put.packets(); ++k) entry.missing.insert(k);
    bound[put.header.message.value()] = entry;
    if (buffer.reserved >= spec_.threshold) retire(to);
    return Outcome::pending;
  }
  bool count(const Message& put, std::uint32_t index) {
    Bound& entry = bound.at(put.header.message.value());
    Buffer& buffer = buffers[entry.buffer];
    buffer.delivered += put.packet(index).payload_length;
    entry.missing.erase(index);
    if (!entry.missing.empty()) return false;
    buffer.unfinished.erase(put.header.message.value());
    complete();
    return true;
  }
  void retire(std::size_t index) {
    buffers[index].retired = true;
    complete();
  }
  std::vector<std::uint64_t> close() {
    closed = true;
    std::vector<std::uint64_t> numbers;
    for (Buffer& buffer : buffers) {
      if (buffer.retired) continue;
      buffer.returned = true;
      numbers.push_back(buffer.number);
    }
    return numbers;
  }
  bool drained() const {
    return std::all_of(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.unfinished.empty(); });
  }

 private:
  void complete() {
    for (Buffer& buffer : buffers) {
      if (buffer.completed) continue;
      if (!buffer.retired || !buffer.unfinished.empty()) return;
      buffer.completed = true;
      done.push_back({buffer.number, done.size(), buffer.delivered});
    }
  }
  std::size_t long_messages() const {
    return static_cast<std::size_t>(std::count_if(bound.begin(), bound.end(), [](const auto& entry) {
      return entry.second.length > kMtu && !entry.second.missing.empty();
    }));
  }
  std::size_t counters_in_use() const {
    return static_cast<std::size_t>(std::count_if(buffers.begin(), buffers.end(), [](const Buffer& b) {
      return b.was_bound && !b.completed && !(b.returned && b.unfinished.empty());
    }));
  }

  WindowSpec spec_;
  std::size_t counters_;
  std::size_t bindings_;
};

/// One random history: messages whose packets come and are counted in any order, among posts, inc_epoch and close.
class RandomHistory {
 public:
  explicit RandomHistory(std::uint64_t seed)
      : random_(seed),
        config_(random_config()),
        spec_(random_spec()),
        rig_(spec_, config_),
        reference_(spec_, config_.counters.on_chip, config_.binding.on_chip) {}

  void run() {
    for (int step = 0; step < 400 && !testing::Test::HasFailure(); ++step) {
      const std::uint64_t dice = random_.below(100);
      if (dice < 12) {
        post();
      } else if (dice < 27) {
        send();
      } else if (dice < 62) {
        arrive();
      } else if (dice < 94) {
        count();
      } else if (dice < 98) {
        inc_epoch();
      } else if (dice < 99 && random_.below(4) == 0) {
        close();
      }
      check();
    }
    while (!testing::Test::HasFailure() && !(arriving_.empty() && placed_.empty())) {
      if (!arriving_.empty()) arrive();
      if (!placed_.empty()) count();
      check();
    }
    if (!reference_.closed && !testing::Test::HasFailure()) close();
    check();
    EXPECT_TRUE(drained_);
  }
  std::size_t completions() const { return reference_.done.size(); }

 private:
  struct Arriving {
    std::size_t put;
    std::uint32_t index;
  };
  struct Put {
    Message message;
    enum class State { unseen, bound, refused } state = State::unseen;
    BindAnswer bound;
  };
  struct Placed {
    BufferPlace where;
    std::size_t put;
    std::uint32_t index;
  };

  NicConfig random_config() {
    NicConfig config = small_config();
    config.buffers.on_chip = 64;
    config.counters.on_chip = static_cast<std::uint32_t>(1 + random_.below(6));
    config.binding.on_chip = static_cast<std::uint32_t>(1 + random_.below(10));
    return config;
  }
  WindowSpec random_spec() {
    WindowSpec spec;
    spec.type = random_.below(2) == 0 ? ThresholdType::bytes : ThresholdType::ops;
    spec.threshold = spec.type == ThresholdType::bytes ? 1 + random_.below(700) : 1 + random_.below(5);
    spec.placement = random_.below(2) == 0 ? Placement::steered : Placement::managed;
    spec.key = static_cast<std::uint32_t>(random_.below(2));
    return spec;
  }
  void post() {
    if (reference_.closed) return;
    const std::uint64_t size = 1 + random_.below(600);
    const auto posted = rig_.store.post_buffer(rig_.window, post_call(size, ++number_));
    if (posted.status != Status::ok) {
      EXPECT_EQ(posted.status, Status::full);
      return;
    }
    number_of_[posted.buffer.value()] = number_;
    reference_.post(number_, size);
  }
  void send() {
    Put put;
    const std::uint64_t length = random_.below(8) == 0 ? 0 : random_.below(330);
    put.message = message(length, random_.below(300), random_.below(10) == 0 ? 9 : spec_.key);
    for (std::uint32_t k = 0; k < put.message.packets(); ++k) arriving_.push_back({puts_.size(), k});
    puts_.push_back(put);
  }
  void arrive() {
    if (arriving_.empty()) return;
    const std::size_t pick = random_.below(arriving_.size());
    const Arriving packet = arriving_[pick];
    arriving_.erase(arriving_.begin() + static_cast<std::ptrdiff_t>(pick));
    Put& put = puts_[packet.put];
    if (put.state == Put::State::refused) return;
    if (put.state == Put::State::unseen) {
      put.bound = rig_.bind(put.message, packet.index);
      ASSERT_EQ(put.bound.outcome, reference_.bind(put.message));
      put.state = put.bound.outcome == Outcome::pending ? Put::State::bound : Put::State::refused;
      if (put.state == Put::State::refused) return;
      expect_place(put, put.bound.place, packet.index);
      placed_.push_back({put.bound.place, packet.put, packet.index});
      return;
    }
    const auto where = rig_.place(put.bound, put.message, packet.index);
    ASSERT_TRUE(where);
    EXPECT_FALSE(rig_.place(put.bound, put.message, packet.index)) << "the second copy";
    expect_place(put, *where, packet.index);
    placed_.push_back({*where, packet.put, packet.index});
  }
  void expect_place(const Put& put, const BufferPlace& where, std::uint32_t index) {
    const Reference::Bound& entry = reference_.bound.at(put.message.header.message.value());
    EXPECT_EQ(number_of_.at(where.buffer.value()), reference_.buffers[entry.buffer].number);
    EXPECT_EQ(where.offset, entry.offset + index * kMtu);
    EXPECT_EQ(where.has_binding, put.message.packets() > 1);
  }
  void count() {
    if (placed_.empty()) return;
    const std::size_t pick = random_.below(placed_.size());
    const Placed packet = placed_[pick];
    placed_.erase(placed_.begin() + static_cast<std::ptrdiff_t>(pick));
    const Message& put = puts_[packet.put].message;
    EXPECT_EQ(rig_.count(packet.where, put, packet.index), reference_.count(put, packet.index));
  }
  void inc_epoch() {
    if (reference_.closed) return;
    BufferId retired;
    Epoch epoch;
    const auto active = reference_.active();
    ASSERT_EQ(rig_.store.inc_epoch(rig_.window, retired, epoch), active ? Status::ok : Status::no_buffer);
    if (!active) return;
    EXPECT_EQ(number_of_.at(retired.value()), reference_.buffers[*active].number);
    reference_.retire(*active);
  }
  void close() {
    if (reference_.closed) return;
    std::vector<BufferId> returned;
    rig_.store.begin_close(rig_.window, returned, [this] { drained_ = true; });
    std::vector<std::uint64_t> numbers;
    for (const BufferId id : returned) numbers.push_back(number_of_.at(id.value()));
    EXPECT_EQ(numbers, reference_.close());
  }
  void check() {
    for (const Completion& completion : rig_.completions()) {
      done_.push_back({completion.head.value() / 0x10000, completion.epoch.value(), completion.length});
    }
    ASSERT_EQ(done_.size(), reference_.done.size());
    EXPECT_TRUE(done_ == reference_.done);
    EXPECT_EQ(rig_.store.completed_epochs(rig_.window), done_.size());
    EXPECT_EQ(drained_, reference_.closed && reference_.drained());
    std::vector<WindowStore::CompletedBuffer> history;
    const std::size_t remembered = std::min<std::size_t>(4, done_.size());
    EXPECT_EQ(rig_.store.completed_buffers(rig_.window, remembered + 1, history), Status::history);
    ASSERT_EQ(rig_.store.completed_buffers(rig_.window, remembered, history), Status::ok);
    for (std::size_t i = 0; i < remembered; ++i) {
      EXPECT_EQ(history[i].epoch.value(), done_.size() - 1 - i);
      EXPECT_EQ(history[i].length, done_[done_.size() - 1 - i].length);
    }
  }

  Random random_;
  NicConfig config_;
  WindowSpec spec_;
  Rig rig_;
  Reference reference_;
  std::uint64_t number_ = 0;
  std::map<std::uint32_t, std::uint64_t> number_of_;  // of the buffer that has this id now
  std::vector<Put> puts_;
  std::vector<Arriving> arriving_;
  std::vector<Placed> placed_;
  std::vector<Reference::Done> done_;
  bool drained_ = false;
};

TEST(RandomHistories, AgreeWithThePlainReference) {
  std::size_t completions = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomHistory history(seed);
    history.run();
    completions += history.completions();
    if (HasFailure()) return;
  }
  EXPECT_GT(completions, 5000U) << "the histories did little";
}

}  // namespace
}  // namespace rvma::test
