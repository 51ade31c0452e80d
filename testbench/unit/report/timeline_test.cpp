// What NICs report becomes slices, and slices become trace events.
#include "report/timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <memory>
#include <sstream>

#include "fake_nic.hpp"
#include "report/timeline_writer.hpp"

namespace rvma {
namespace {

using test::Buffer;
using test::FakeNic;
using test::kReceiver;
using test::kSender;
using test::Put;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint32_t kNone = TimelineSlice::kNone;

class TimelineTest : public testing::Test {
 protected:
  TimelineTest() {
    ErrorList errors;
    trace_ = Trace::from_text("rvma-trace 1\nranks 2\nrank 0\nput as=p rank=1 mailbox=1 size=1\n", "test", errors);
    build({});
  }
  void build(const Timeline::Options& options) {
    registry_ = std::make_unique<PutRegistry>();
    timeline_ = std::make_unique<Timeline>(options, *registry_, *trace_);
    nic_ = std::make_unique<FakeNic>(*registry_, std::vector<NicObserver*>{timeline_.get()},
                                     std::vector<PlayerObserver*>{});
  }
  FakeNic& nic() { return *nic_; }
  Timeline& timeline() { return *timeline_; }
  /// Stage s of the next packets ends at first + step * s.
  void stamp(Time first, Time step) {
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      nic().left[stage] = first + step * static_cast<std::int64_t>(stage);
    }
  }
  std::vector<const TimelineSlice*> of_stage(Stage stage) const {
    std::vector<const TimelineSlice*> found;
    for (const TimelineSlice& slice : timeline_->slices()) {
      if (slice.stage == stage) found.push_back(&slice);
    }
    return found;
  }
  std::string text(const std::vector<std::string>& problems = {}) {
    TimelineRun run{"a \"trace\"", "rvma", false, 2, 1, nic().now(), problems};
    timeline().finish(nic().now());
    std::ostringstream out;
    write_timeline(out, timeline(), run);
    return out.str();
  }
  boost::json::array events(const std::vector<std::string>& problems = {}) {
    return boost::json::parse(text(problems)).at("traceEvents").as_array();
  }
  static std::vector<boost::json::object> with_phase(const boost::json::array& events, std::string_view phase) {
    std::vector<boost::json::object> found;
    for (const auto& event : events) {
      if (event.at("ph").as_string() == phase) found.push_back(event.as_object());
    }
    return found;
  }
  static double number(const boost::json::object& event, std::string_view key) {
    return event.at(key).to_number<double>();
  }

 private:
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<PutRegistry> registry_;
  std::unique_ptr<Timeline> timeline_;
  std::unique_ptr<FakeNic> nic_;
};

TEST_F(TimelineTest, AStageIsTheStayInAUnit) {
  const Buffer buffer = nic().post(4096);
  Put put = nic().put(1000);
  stamp(Time::from_ns(0), Time::from_ns(10));
  nic().wait(Time::from_ns(150));
  nic().place_all(put, buffer, 0);
  const Time placed = nic().now();
  nic().count(put, buffer);
  const Time counted = nic().now();
  nic().complete(buffer, 0, 1000);
  const Time written = nic().now();
  ASSERT_EQ(timeline().slices().size(), kStages - 1);
  for (std::size_t stage = 1; stage < kStages; ++stage) {
    const TimelineSlice& slice = timeline().slices()[stage - 1];
    EXPECT_EQ(slice.stage, static_cast<Stage>(stage));
    EXPECT_EQ(slice.node, slice.stage <= Stage::fabric ? kSender : kReceiver);
    EXPECT_EQ(slice.message, 0U);
    EXPECT_EQ(slice.packet == kNone, slice.stage <= Stage::retry || slice.stage >= Stage::count);
    if (slice.stage >= Stage::dma_write) continue;
    EXPECT_EQ(slice.left, Time::from_ns(10 * static_cast<std::int64_t>(stage)));
  }
  EXPECT_EQ(of_stage(Stage::dma_write)[0]->left, placed) << "as it is told, not as it is stamped";
  EXPECT_EQ(of_stage(Stage::count)[0]->entered, placed);
  EXPECT_EQ(of_stage(Stage::count)[0]->left, counted);
  EXPECT_EQ(of_stage(Stage::completion_write)[0]->left, written);
  EXPECT_EQ(of_stage(Stage::visible)[0]->left, written + FakeNic::kVisible);
  EXPECT_EQ(timeline().messages()[0].end_slice, kStages - 2);
}

TEST_F(TimelineTest, NothingRunsBackwardsAndWhatTakesNoTimeIsNotDrawn) {
  const Buffer buffer = nic().post(4096);
  Put put = nic().put(1000);
  stamp(Time::from_ns(0), Time::from_ns(10));
  nic().left[static_cast<std::size_t>(Stage::context)] = Time::from_ns(15);
  nic().wait(Time::from_ns(150));
  nic().place_all(put, buffer, 0);
  EXPECT_TRUE(of_stage(Stage::context).empty());
  EXPECT_EQ(of_stage(Stage::address_conversion)[0]->entered, Time::from_ns(90));
}

TEST_F(TimelineTest, CallAndCommandAreDrawnOnceAMessage) {
  const Buffer buffer = nic().post(8192);
  Put put = nic().put(3 * test::kMtu);
  stamp(Time::from_ns(10), Time::from_ns(10));
  nic().wait(Time::from_ns(200));
  nic().place_all(put, buffer, 0);
  EXPECT_EQ(of_stage(Stage::doorbell).size(), 1U);
  EXPECT_EQ(of_stage(Stage::command).size(), 1U);
  EXPECT_EQ(of_stage(Stage::turn).size(), 3U);
  EXPECT_EQ(of_stage(Stage::turn)[2]->packet, 2U);
}

TEST_F(TimelineTest, OneCompletionTellsOfAllMessagesOfItsEpoch) {
  const Buffer buffer = nic().post(8192);
  const Buffer next = nic().post(8192);
  Put a = nic().put(100);
  Put b = nic().put(100);
  Put c = nic().put(100);
  stamp(Time::from_ns(10), Time::from_ns(10));
  nic().wait(Time::from_ns(500));
  nic().deliver(a, buffer, 0, 0);
  nic().deliver(b, buffer, 0, 100);
  nic().deliver(c, next, 1, 0);
  nic().complete(buffer, 0, 200);
  const std::uint32_t visible = static_cast<std::uint32_t>(timeline().slices().size() - 1);
  EXPECT_EQ(timeline().messages()[0].end_slice, visible);
  EXPECT_EQ(timeline().messages()[1].end_slice, visible);
  EXPECT_EQ(timeline().messages()[2].end_slice, kNone);
  EXPECT_EQ(timeline().slices()[visible].message, 1U) << "the last one that was counted";
  // The buffer's number may be another's by now.
  EXPECT_EQ(timeline().epochs().size(), 1U);
  EXPECT_EQ(timeline().epochs()[0].length, 200U);
}

TEST_F(TimelineTest, AUnitIsAtOneThingAtATime) {
  const Buffer buffer = nic().post(8192);
  Put a = nic().put(100);
  Put b = nic().put(100);
  stamp(Time::from_ns(100), Time::from_ns(100));
  nic().wait(Time::from_ns(3000));
  nic().place_all(a, buffer, 0);
  stamp(Time::from_ns(130), Time::from_ns(100));
  nic().place_all(b, buffer, 100);
  std::vector<std::pair<double, double>> parses;
  for (const auto& slice : with_phase(events(), "X")) {
    if (slice.at("cat").as_string() == "parse") parses.emplace_back(number(slice, "ts"), number(slice, "dur"));
  }
  // Entered at 900 and 930, left at 1000 and 1030: of the second the unit is free from 1000 on.
  EXPECT_THAT(parses, ElementsAre(std::make_pair(0.9, 0.1), std::make_pair(1.0, 0.03)));
  std::vector<double> levels;
  for (const auto& counter : with_phase(events(), "C")) {
    if (counter.at("name").as_string() == "fabric, from this node (packets)") {
      levels.push_back(counter.at("args").at("packets").to_number<double>());
    }
  }
  EXPECT_THAT(levels, ElementsAre(1, 2, 1, 0));
}

TEST_F(TimelineTest, TheFileTellsWhatItDoesNotHave) {
  Timeline::Options options;
  options.limit = 100;
  build(options);
  const Buffer buffer = nic().post(1 << 20);
  stamp(Time::from_ns(10), Time::from_ns(10));
  for (int i = 0; i < 10; ++i) {
    Put put = nic().put(2 * test::kMtu);
    nic().wait(Time::from_ns(200));
    stamp(nic().now() - Time::from_ns(190), Time::from_ns(10));
    nic().deliver(put, buffer, 0, 0);
  }
  EXPECT_TRUE(timeline().is_full());
  EXPECT_GT(timeline().dropped_events(), 0U);
  const auto all = events({"it \"failed\""});
  std::size_t charged = 0;
  std::vector<std::string> remarks;
  for (const auto& event : all) {
    const auto& object = event.as_object();
    if (object.contains("s") && object.at("s").as_string() == "g") {
      remarks.emplace_back(object.at("name").as_string());
    } else if (object.at("ph").as_string() != "M") {
      ++charged;
    }
  }
  EXPECT_LE(charged, 100U);
  EXPECT_THAT(remarks, ElementsAre("limit of 100 events: nothing later is drawn", "it \"failed\""));
  EXPECT_THAT(text({"x"}), HasSubstr(R"("trace":"a \"trace\"")"));
}

TEST_F(TimelineTest, OnlyTheWindowAndTheSample) {
  Timeline::Options options;
  options.sample = 2;
  options.from = Time::from_ns(55);
  options.to = Time::from_ns(85);
  build(options);
  const Buffer buffer = nic().post(4096);
  Put a = nic().put(100);
  Put b = nic().put(100);
  stamp(Time::from_ns(0), Time::from_ns(10));
  nic().wait(Time::from_ns(200));
  nic().place_all(b, buffer, 0);
  EXPECT_TRUE(timeline().slices().empty()) << "it is the second";
  nic().place_all(a, buffer, 0);
  std::vector<Stage> stages;
  for (const TimelineSlice& slice : timeline().slices()) stages.push_back(slice.stage);
  EXPECT_THAT(stages, ElementsAre(Stage::payload_read, Stage::transmit, Stage::fabric, Stage::parse));
}

TEST_F(TimelineTest, APutThatWasRefused) {
  Put put = nic().put(100);
  nic().refuse(put, Outcome::no_buffer);
  nic().end(put, Outcome::no_buffer);
  const auto all = events();
  const auto begun = with_phase(all, "b");
  ASSERT_EQ(begun.size(), 1U);
  EXPECT_EQ(begun[0].at("args").at("status").as_string(), "no_buffer");
  EXPECT_EQ(with_phase(all, "e").size(), 1U);
  EXPECT_TRUE(with_phase(all, "s").empty()) << "there is nowhere for the arrow to go";
  const auto notes = with_phase(all, "i");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].at("name").as_string(), "message refused: no_buffer");
}

}  // namespace
}  // namespace rvma
