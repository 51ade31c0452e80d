// What a run reports becomes totals, distributions and rows.
#include "report/recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <memory>
#include <sstream>
#include <string>

#include "base/random.hpp"
#include "fake_nic.hpp"

namespace rvma {
namespace {

using test::Buffer;
using test::FakeNic;
using test::kReceiver;
using test::kSender;
using test::Put;
using testing::ElementsAre;
using testing::HasSubstr;

// Names of rank 1, by first definition.
const NameRef kW{0, {}};
const NameRef kV{1, {}};
const NameRef kB0{2, {}};
const NameRef kB1{3, {}};

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() {
    ErrorList errors;
    trace_ = Trace::from_text(
        "rvma-trace 1\nranks 2\nrank 1\ninit_window w mailbox=1 threshold=1\ninit_window v mailbox=2 threshold=1\n"
        "post_buffer w as=b0 size=4KiB\npost_buffer w as=b1 size=4KiB\nrank 0\nput as=p rank=1 mailbox=1 size=1\n",
        "test", errors);
    for (const Error& error : errors.shown()) ADD_FAILURE() << error.to_string();
    build(true);
  }
  void build(bool with_bytes) {
    nic_.reset();
    recorder_.reset();
    registry_ = std::make_unique<PutRegistry>();
    completions_.str({});
    puts_.str({});
    calls_.str({});
    RunRecorder::ReadBuffer read;
    if (with_bytes) {
      read = [this](NodeId, Pid, VirtualAddress from, std::uint64_t bytes, std::vector<std::uint8_t>& to) {
        nic().host().read(from, bytes, to);
      };
    }
    recorder_ = std::make_unique<RunRecorder>(*trace_, *registry_, RunRecorder::Files{&completions_, &puts_, &calls_},
                                              read, [this](Time when) { asked_for_.push_back(when); });
    nic_ = std::make_unique<FakeNic>(*registry_, std::vector<NicObserver*>{recorder_.get()},
                                     std::vector<PlayerObserver*>{recorder_.get()});
    nic_->recorder_issues = true;
  }
  FakeNic& nic() { return *nic_; }
  RunRecorder& recorder() { return *recorder_; }

  static std::vector<std::string> rows_of(const std::ostringstream& out) {
    std::vector<std::string> rows;
    std::istringstream in(out.str());
    for (std::string row; std::getline(in, row);) rows.push_back(row);
    rows.erase(rows.begin());
    return rows;
  }
  std::vector<std::string> completions() const { return rows_of(completions_); }
  std::vector<std::string> puts() const { return rows_of(puts_); }
  std::vector<std::string> calls() const { return rows_of(calls_); }
  void claim_at(const Buffer& buffer, std::uint64_t epoch, std::int64_t visible_ns) {
    recorder().completion_written(kReceiver, FakeNic::completion_of(buffer, epoch, 0), Time::from_ns(visible_ns - 1),
                                  Time::from_ns(visible_ns));
  }

  std::unique_ptr<Trace> trace_;
  std::unique_ptr<PutRegistry> registry_;
  std::ostringstream completions_;
  std::ostringstream puts_;
  std::ostringstream calls_;
  std::unique_ptr<RunRecorder> recorder_;
  std::unique_ptr<FakeNic> nic_;
  std::vector<Time> asked_for_;
};

// ----------------------------------------------------------------------------------------------------- completions.csv

TEST_F(RecorderTest, RowsAreInTimeOrderAndTiesByRankWindowEpoch) {
  const Buffer w0 = nic().issue_post(64, nullptr, &kW);
  const Buffer w1 = nic().issue_post(64, nullptr, &kW);
  const Buffer w2 = nic().issue_post(64, nullptr, &kW);
  const Buffer v0 = nic().issue_post(64, nullptr, &kV);
  for (const Buffer& buffer : {w0, w1, w2, v0}) recorder().buffer_unnamed(kReceiver, buffer.word);
  claim_at(w2, 2, 40);
  claim_at(w1, 1, 30);
  claim_at(v0, 0, 30);
  claim_at(w0, 0, 30);
  recorder().settle(Time::from_ps(29'999));
  EXPECT_TRUE(completions().empty()) << "not visible yet";
  recorder().settle(Time::from_ns(30));
  EXPECT_THAT(completions(), ElementsAre("1,v,0,,0,00000000,30,", "1,w,0,,0,00000000,30,", "1,w,1,,0,00000000,30,"));
  recorder().settle(Time::from_ns(40));
  EXPECT_EQ(completions().size(), 4U);
  EXPECT_THAT(asked_for_, ElementsAre(Time::from_ns(40), Time::from_ns(30), Time::from_ns(30), Time::from_ns(30)));
}

TEST_F(RecorderTest, ARowWaitsForItsWaitAndHoldsTheOthersBack) {
  const Buffer first = nic().issue_post(64, &kB0, &kW);
  const Buffer second = nic().issue_post(64, &kB1, &kW);
  const Buffer third = nic().issue_post(64, nullptr, &kW);
  recorder().buffer_unnamed(kReceiver, third.word);
  claim_at(first, 0, 10);
  claim_at(second, 1, 20);
  claim_at(third, 2, 30);
  recorder().settle(Time::from_ns(30));
  recorder().wait_seen(kReceiver, second.word, Time::from_ns(50));
  EXPECT_TRUE(completions().empty()) << "b0 may still be waited for";
  recorder().wait_seen(kReceiver, first.word, Time::from_ns(60));
  EXPECT_THAT(completions(),
              ElementsAre("1,w,0,b0,0,00000000,10,60", "1,w,1,b1,0,00000000,20,50", "1,w,2,,0,00000000,30,"));
  recorder().wait_seen(kReceiver, first.word, Time::from_ns(99));  // a second wait changes nothing
  recorder().finish(Time::from_ns(100));
  EXPECT_EQ(completions().size(), 3U);
}

TEST_F(RecorderTest, NumbersInRecordsAreLeftOutOfASecondChecksum) {
  ErrorList errors;
  trace_ = Trace::from_text(
      "rvma-trace 1\nranks 2\nrank 1\ninit_window w mailbox=1 threshold=1 catch_all\n"
      "init_window v mailbox=2 threshold=1\npost_buffer w as=b0 size=4KiB\npost_buffer w as=b1 size=4KiB\n",
      "test", errors);
  ASSERT_TRUE(errors.empty());
  const auto rows = [&](std::uint8_t number) {
    build(true);
    const Buffer caught = nic().issue_post(64, &kB0, &kW);
    const Buffer plain = nic().issue_post(64, &kB1, &kW);
    for (const Buffer& buffer : {caught, plain}) {
      nic().take_post(buffer);
      recorder().buffer_unnamed(kReceiver, buffer.word);
    }
    for (std::uint64_t i = 0; i < 64; ++i) nic().host().byte(caught.head, i) = 1;
    nic().host().byte(caught.head, 8 + 24) = number;
    PlacedPacket record;
    record.buffer = caught.id;
    record.payload_length = 32;
    recorder().record_placed(kReceiver, record, 8, nic().now());
    recorder().completion_written(kReceiver, FakeNic::completion_of(caught, 0, 64), Time::from_ns(9),
                                  Time::from_ns(10));
    recorder().completion_written(kReceiver, FakeNic::completion_of(plain, 1, 0), Time::from_ns(9), Time::from_ns(10));
    recorder().finish(Time::from_ns(20));
    return completions();
  };
  const std::vector<std::string> one = rows(1);
  const std::vector<std::string> two = rows(2);
  ASSERT_EQ(one.size(), 2U);
  EXPECT_NE(one[0], two[0]);
  const auto field = [](const std::string& row, std::size_t place) {
    std::istringstream in(row);
    std::string text;
    for (std::size_t i = 0; i <= place; ++i) std::getline(in, text, ',');
    return text;
  };
  EXPECT_NE(field(one[0], 5), field(two[0], 5));
  EXPECT_EQ(field(one[0], 8), field(two[0], 8));
  EXPECT_NE(field(one[0], 8), field(one[0], 5));
  EXPECT_EQ(one[1], "1,w,1,b1,0,00000000,10,,00000000");
}

TEST_F(RecorderTest, ABufferThatIsNamedNoMoreHoldsNothingBack) {
  const Buffer first = nic().issue_post(64, &kB0, &kW);
  const Buffer second = nic().issue_post(64, &kB1, &kW);
  claim_at(first, 0, 10);
  claim_at(second, 1, 20);
  recorder().settle(Time::from_ns(20));
  recorder().buffer_unnamed(kReceiver, first.word);
  EXPECT_THAT(completions(), ElementsAre("1,w,0,b0,0,00000000,10,"));
  recorder().finish(Time::from_ns(100));
  EXPECT_THAT(completions(), ElementsAre("1,w,0,b0,0,00000000,10,", "1,w,1,b1,0,00000000,20,"));
}

TEST_F(RecorderTest, RowsThatNobodyWaitsForDoNotPileUp) {
  for (std::uint32_t epoch = 0; epoch < 1000; ++epoch) {
    const Buffer buffer = nic().issue_post(64, nullptr, &kW);
    recorder().buffer_unnamed(kReceiver, buffer.word);
    claim_at(buffer, epoch, 10 * (epoch + 1));
    recorder().settle(Time::from_ns(10 * (epoch + 1)));
    ASSERT_EQ(completions().size(), epoch + 1) << "the row is out";
    recorder().buffer_freed(kReceiver, buffer.word);
  }
}

TEST_F(RecorderTest, TheChecksumIsZlibsOfTheDeliveredBytesOnceTheyAreVisible) {
  const Buffer buffer = nic().issue_post(3000, nullptr, &kW);
  const Buffer overfull = nic().issue_post(100, nullptr, &kW);
  for (const Buffer& each : {buffer, overfull}) recorder().buffer_unnamed(kReceiver, each.word);
  const Time at = Time::from_ns(5);
  recorder().completion_written(kReceiver, FakeNic::completion_of(buffer, 0, 2000), at, Time::from_ns(10));
  recorder().completion_written(kReceiver, FakeNic::completion_of(overfull, 1, 250), at, Time::from_ns(11));
  nic().host().write_pattern(buffer.head, 0, 3000, 42, 0);
  nic().host().write_pattern(overfull.head, 0, 200, 43, 0);
  recorder().settle(Time::from_ns(20));
  std::vector<std::uint8_t> bytes;
  nic().host().read(buffer.head, 2000, bytes);
  char first[16];
  std::snprintf(first, sizeof first, "%08lx", crc32(0, bytes.data(), 2000));
  nic().host().read(overfull.head, 100, bytes);
  char second[16];
  std::snprintf(second, sizeof second, "%08lx", crc32(0, bytes.data(), 100));
  EXPECT_THAT(completions(),
              ElementsAre("1,w,0,,2000," + std::string(first) + ",10,", "1,w,1,,250," + std::string(second) + ",11,"));
}

TEST_F(RecorderTest, WithoutBytesThereIsNoChecksum) {
  build(false);
  const Buffer buffer = nic().issue_post(64, nullptr, &kW);
  recorder().buffer_unnamed(kReceiver, buffer.word);
  claim_at(buffer, 0, 10);
  recorder().settle(Time::from_ns(10));
  EXPECT_THAT(completions(), ElementsAre("1,w,0,,0,-,10,"));
}

TEST_F(RecorderTest, AOneTimeWindowHasItsBuffersName) {
  const Buffer buffer = nic().issue_post(64, &kB0, nullptr);
  claim_at(buffer, 0, 10);
  recorder().finish(Time::from_ns(10));
  EXPECT_THAT(completions(), ElementsAre("1,b0,0,b0,0,00000000,10,"));
}

TEST_F(RecorderTest, AWordThatIsNotVisibleAtTheEndIsNoRow) {
  const Buffer buffer = nic().issue_post(64, nullptr, &kW);
  claim_at(buffer, 0, 10);
  recorder().finish(Time::from_ns(9));
  EXPECT_TRUE(completions().empty());
}

// ------------------------------------------------------------------------------------------------- puts.csv, calls.csv

TEST_F(RecorderTest, PutsAreRowsAsTheyEndAndThenThoseThatDidNot) {
  nic().wait(Time::from_ps(1500));
  Put a = nic().put(10);
  Put b = nic().put(20);
  Put c = nic().put(30);
  nic().issue(40);
  nic().refuse(b, Outcome::no_buffer);
  nic().send(b);
  nic().end(c);
  nic().end(a, Outcome::bad_key);
  recorder().finish(nic().now());
  EXPECT_THAT(puts(), ElementsAre("0,put,,1,0x000000000000beef,30,ok,5.5,11.5,1",
                                  "0,put,,1,0x000000000000beef,10,bad_key,1.5,12.5,1",
                                  "0,put,,1,0x000000000000beef,20,unfinished,3.5,,2",
                                  "0,put,,1,0x000000000000beef,40,unfinished,7.5,,0"));
  const RunTotals& totals = recorder().totals();
  EXPECT_EQ(totals.puts, 4U);
  EXPECT_EQ(totals.messages_opened, 4U);
  EXPECT_EQ(totals.ended[static_cast<std::size_t>(Outcome::ok)], 1U);
  EXPECT_EQ(totals.ended[static_cast<std::size_t>(Outcome::bad_key)], 1U);
  EXPECT_EQ(totals.ended[static_cast<std::size_t>(Outcome::unfinished)], 2U);
  EXPECT_EQ(totals.refused[static_cast<std::size_t>(Outcome::no_buffer)], 1U);
  EXPECT_EQ(recorder().unmatched_count(), 3U);
  EXPECT_THAT(recorder().unmatched()[0], HasSubstr("ended bad_key"));
}

TEST_F(RecorderTest, CallsAreRows) {
  recorder().call_returned(RankId{1}, OperationKind::get_epoch, &kV, Status::ok, "3", Time::from_ns(7));
  recorder().call_returned(RankId{1}, OperationKind::put, nullptr, Status::bad_argument, "", Time::from_ps(7001));
  const Buffer buffer = nic().issue_post(64, &kB0, &kW);
  const Buffer one_time = nic().issue_post(64, &kB1, nullptr);
  Descriptor call;
  call.opcode = Opcode::post_buffer;
  call.completion = buffer.word;
  recorder().call_answered(RankId{1}, call, Status::ok, 0, Time::from_ns(8));
  recorder().call_answered(RankId{1}, call, Status::full, 0, Time::from_ns(9));
  call.opcode = Opcode::post_one_time_buffer;
  call.completion = one_time.word;
  recorder().call_answered(RankId{1}, call, Status::exists, 0, Time::from_ns(10));
  recorder().call_answered(RankId{0}, call, Status::exists, 0, Time::from_ns(11));  // not rank 0's buffer
  recorder().finish(Time::from_ns(20));
  EXPECT_THAT(calls(), ElementsAre("1,get_epoch,v,ok,3,7", "1,put,,bad_argument,,7.001", "1,post_buffer,w,full,,9",
                                   "1,post_one_time_buffer,,exists,,10"));
  EXPECT_EQ(recorder().unmatched_count(), 0U) << "buffers that the NIC refused are not unfilled ones";
}

TEST_F(RecorderTest, UnfilledBuffersAreUnmatched) {
  for (int i = 0; i < 12; ++i) nic().issue_post(64, i == 0 ? &kB0 : nullptr, &kW);
  recorder().finish(Time::from_ns(20));
  EXPECT_EQ(recorder().unmatched_count(), 12U);
  EXPECT_EQ(recorder().unmatched().size(), 8U);
  EXPECT_EQ(recorder().unmatched()[0], "rank 1: buffer b0 was not filled");
}

// ------------------------------------------------------------------------------------------------ distributions,
// totals

TEST_F(RecorderTest, CountsPackets) {
  Put put = nic().put(2000);
  Packet packet;
  packet.transport.type = PacketType::data;
  packet.transport.source = kSender;
  packet.transport.destination = kReceiver;
  packet.transport.source_incarnation = 1;
  packet.transport.generation = 1;
  packet.data.message = put.message.message;
  packet.wire_bytes = 1100;
  recorder().packet_sent(kSender, packet, nic().now());
  recorder().packet_sent(kSender, packet, nic().now());
  Packet ack;
  ack.transport.type = PacketType::acknowledgement;
  recorder().packet_sent(kReceiver, ack, nic().now());
  recorder().packet_ignored(kReceiver, ack, "crc", nic().now());
  recorder().packet_ignored(kReceiver, packet, "crc", nic().now());
  recorder().packet_ignored(kReceiver, packet, "duplicate", nic().now());
  recorder().packet_ignored(kReceiver, packet, "duplicate", nic().now());
  for (const char* why : {"stale", "closed", "mismatch"}) {
    recorder().packet_ignored(kReceiver, packet, why, nic().now());
  }
  const RunTotals& totals = recorder().totals();
  EXPECT_EQ(totals.packets_sent, 2U);
  EXPECT_EQ(totals.wire_bytes_sent, 2200U);
  EXPECT_EQ(totals.acknowledgements_sent, 1U);
  EXPECT_EQ(totals.packets_corrupt, 1U);
  EXPECT_EQ(totals.packets_duplicate, 2U);
  EXPECT_EQ(totals.packets_ignored, 3U);
  EXPECT_EQ(recorder().region().wire_bytes, 0U) << "the region ends with the last count";
  recorder().message_counted(kReceiver, put.message, BufferId{0}, nic().now());
  EXPECT_EQ(recorder().region().wire_bytes, 2200U);
}

TEST_F(RecorderTest, TheRegionIsFromTheFirstIssueToTheLastCount) {
  const Buffer buffer = nic().post(4096);
  nic().wait(Time::from_ns(100));
  Put a = nic().put(1000);
  Put b = nic().put(500);
  nic().deliver(a, buffer, 0, 0);
  nic().bind(b, buffer, 0, 0);
  nic().place_all(b, buffer, 0);
  nic().wait(Time::from_ns(40));
  nic().count(b, buffer);
  const Time counted = nic().now();
  nic().wait(Time::from_ns(40));
  nic().end(b);
  EXPECT_EQ(recorder().region().first, Time::from_ns(100));
  EXPECT_EQ(recorder().region().last, counted);
  EXPECT_EQ(recorder().region().payload_bytes, 1500U);
  EXPECT_EQ(recorder().region().messages, 2U);
  EXPECT_EQ(recorder().delivered().total(), 1500U);
  EXPECT_EQ(recorder().totals().bytes_delivered, 1500U);
  EXPECT_EQ(recorder().put_to_ack().count(), 2U);
  EXPECT_EQ(recorder().put_to_ack().max(), nic().now() - Time::from_ns(102));
}

TEST_F(RecorderTest, OnlyWhatWasIssuedInsideTheMarksIsMeasured) {
  const Buffer first = nic().post(4096);
  const Buffer second = nic().post(4096);
  const Buffer third = nic().post(4096);
  Put before = nic().put(1000);
  nic().bind(before, first, 0, 0);
  nic().place_all(before, first, 0);
  nic().count(before, first);
  EXPECT_FALSE(recorder().has_marks());
  recorder().marked(RankId{0}, true, nic().now());
  EXPECT_TRUE(recorder().has_marks());
  EXPECT_EQ(recorder().region().messages, 0U) << "what came before the first mark counts no more";
  nic().end(before);
  nic().complete(first, 0, 1000);
  const Time begin = nic().now();
  Put inside = nic().put(300);
  recorder().marked(RankId{0}, false, nic().now());
  Put after = nic().put(10);
  nic().deliver(after, second, 1, 0);
  nic().complete(second, 1, 10);
  nic().deliver(inside, third, 2, 0);
  nic().complete(third, 2, 300);
  EXPECT_EQ(recorder().region().payload_bytes, 300U);
  EXPECT_EQ(recorder().region().messages, 1U);
  EXPECT_EQ(recorder().region().first, begin);
  EXPECT_EQ(recorder().put_to_completion().count(), 1U);
  EXPECT_EQ(recorder().put_to_ack().count(), 1U);
  EXPECT_EQ(recorder().breakdown().samples, 1U);
  EXPECT_EQ(recorder().totals().messages_delivered, 3U) << "totals are of the whole run";
}

TEST_F(RecorderTest, TheSampleIsThePutWhoseDeliveryCompletedTheEpoch) {
  const Buffer buffer = nic().post(4096);
  Put a = nic().put(1000);
  nic().wait(Time::from_ns(1000));
  Put b = nic().put(1000);
  nic().bind(a, buffer, 0, 0);
  nic().bind(b, buffer, 0, 0);
  nic().place_all(b, buffer, 0);
  nic().place_all(a, buffer, 0);
  nic().count(b, buffer);
  nic().count(a, buffer);
  nic().complete(buffer, 0, 2000);
  EXPECT_EQ(recorder().put_to_completion().count(), 1U);
  EXPECT_EQ(recorder().put_to_completion().max(), nic().now() + FakeNic::kVisible) << "a was issued at 0";
  // An epoch that a call completed has none.
  const Buffer next = nic().post(4096);
  Put c = nic().put(10);
  nic().deliver(c, next, 1, 0);
  Completion completion = FakeNic::completion_of(next, 1, 10);
  completion.left = {};
  nic().claim(completion);
  EXPECT_EQ(recorder().put_to_completion().count(), 1U);
}

TEST_F(RecorderTest, APutIsSeenWhenTheFirstWaitForItsBufferEnds) {
  const auto complete = [&](const Buffer& buffer, std::uint64_t epoch) {
    Put put = nic().put(100);
    nic().deliver(put, buffer, epoch, 0);
    nic().complete(buffer, epoch, 100);
  };
  const Buffer buffer = nic().post(100);
  complete(buffer, 0);
  EXPECT_EQ(recorder().put_to_seen().count(), 0U) << "nobody waits";
  const Time known = nic().now() + Time::from_us(1);
  recorder().wait_seen(kReceiver, buffer.word, known);
  recorder().wait_seen(kReceiver, buffer.word, known + Time::from_us(1));
  EXPECT_EQ(recorder().put_to_seen().count(), 1U);
  EXPECT_EQ(recorder().put_to_seen().max(), known) << "the put was issued at 0";
  // What a rewind takes back has not been seen, and what came before the first mark does not count.
  const Buffer rewound = nic().post(100);
  complete(rewound, 1);
  recorder().window_rewound(kReceiver, test::kSlot, Epoch{1}, {RewoundBuffer{rewound.id, rewound.word}}, nic().now());
  recorder().wait_seen(kReceiver, rewound.word, known);
  EXPECT_EQ(recorder().put_to_seen().count(), 1U);
  const Buffer before = nic().post(100);
  complete(before, 2);
  recorder().marked(RankId{0}, true, nic().now());
  recorder().wait_seen(kReceiver, before.word, nic().now());
  EXPECT_EQ(recorder().put_to_seen().count(), 0U);
}

TEST_F(RecorderTest, StagesAreThoseOfTheLastPacketAndWaitingForAnEarlierEpochIsCompletionWrite) {
  const Buffer buffer = nic().post(4096);
  Put put = nic().put(1000);
  for (std::size_t stage = 1; stage < kStages; ++stage) {
    nic().left[stage] = Time::from_ns(10 * static_cast<std::int64_t>(stage));
  }
  nic().bind(put, buffer, 0, 0);
  nic().place_all(put, buffer, 0);
  nic().wait(Time::from_ns(200) - nic().now());
  recorder().message_counted(kReceiver, put.message, buffer.id, Time::from_ns(135));
  // The completion carries the times of another packet: of the one that made the earlier epoch whole.
  Completion completion = FakeNic::completion_of(buffer, 0, 1000);
  completion.left.fill(Time::from_ns(500));
  recorder().completion_written(kReceiver, completion, Time::from_ns(630), Time::from_ns(880));
  const auto means = recorder().breakdown().means();
  const auto mean = [&](Stage stage) { return means[static_cast<std::size_t>(stage)]; };
  EXPECT_EQ(mean(Stage::doorbell), Time::from_ns(10));
  for (const Stage stage :
       {Stage::command, Stage::retry, Stage::turn, Stage::window, Stage::payload_read, Stage::transmit, Stage::fabric,
        Stage::parse, Stage::context, Stage::address_conversion, Stage::dma_write}) {
    EXPECT_EQ(mean(stage), Time::from_ns(10)) << static_cast<int>(stage);
  }
  EXPECT_EQ(mean(Stage::count), Time::from_ns(15));
  EXPECT_EQ(mean(Stage::completion_write), Time::from_ns(495));
  EXPECT_EQ(mean(Stage::visible), Time::from_ns(250));
}

TEST_F(RecorderTest, ABuffersIdMayBeAnothersBeforeItsCompletionIsTold) {
  const Buffer first = nic().post(4096);
  Put a = nic().put(100);
  nic().deliver(a, first, 0, 0);
  Buffer second = nic().issue_post(4096);
  second.id = first.id;
  nic().take_post(second);
  nic().wait(Time::from_ns(1000));
  Put b = nic().put(100);
  nic().deliver(b, second, 1, 0);
  nic().complete(first, 0, 100);
  EXPECT_EQ(recorder().put_to_completion().max(), nic().now() + FakeNic::kVisible) << "a was issued at 0";
  nic().complete(second, 1, 100);
  EXPECT_EQ(recorder().put_to_completion().count(), 2U);
}

TEST_F(RecorderTest, RandomBreakdownsAddUpExactly) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    build(false);
    const std::uint64_t samples = 1 + random.below(20);
    for (std::uint64_t i = 0; i < samples; ++i) {
      const Buffer buffer = nic().post(4096);
      Put put = nic().put(random.below(100));
      Time at = nic().now();
      for (Time& left : nic().left) {
        at += Time::from_ps(static_cast<std::int64_t>(random.below(1'000'000)));
        left = at;
      }
      nic().claim_placed(put, buffer, 0, static_cast<std::uint32_t>(put.size));
      nic().wait(at - nic().now());
      nic().count(put, buffer);
      nic().end(put);
      nic().wait(Time::from_ps(static_cast<std::int64_t>(random.below(1000))));
      nic().complete(buffer, i, put.size);
    }
    ASSERT_EQ(recorder().breakdown().samples, samples);
    Time total;
    for (const Time mean : recorder().breakdown().means()) {
      EXPECT_GE(mean, Time::zero());
      total += mean;
    }
    EXPECT_EQ(total, recorder().put_to_completion().mean());
  }
}

}  // namespace
}  // namespace rvma
