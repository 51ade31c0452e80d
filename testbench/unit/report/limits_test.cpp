// How busy each unit was, and what that makes the bottleneck.
#include "report/limits.hpp"

#include <gtest/gtest.h>

namespace rvma {
namespace {

struct UnitStats {
  Counter packets{"packets", "not a utilisation"};
  Utilisation work{WorkKind::bits, "bits", kNotWidened};
  BOOST_DESCRIBE_CLASS(UnitStats, (), (packets, work), (), ())
};
struct PortStats {
  Utilisation port{WorkKind::operations, "operations", kNotWidened};
  BOOST_DESCRIBE_CLASS(PortStats, (), (port), (), ())
};

struct StallStats {
  Utilisation full{WorkKind::stalls, "time that something waited", kNotWidened};
  BOOST_DESCRIBE_CLASS(StallStats, (), (full), (), ())
};

constexpr RankId kRank{0};

class LimitsTest : public testing::Test {
 protected:
  LimitsTest() {
    registry_.add("node0.nic.parser", parser0_);
    registry_.add("node1.nic.parser", parser1_);
    registry_.add("node0.nic.table", table_);
  }
  static RunRecorder::Region region(std::int64_t first_ns, std::int64_t last_ns) {
    RunRecorder::Region region;
    region.first = Time::from_ns(first_ns);
    region.last = Time::from_ns(last_ns);
    return region;
  }
  StatsRegistry registry_;
  UnitStats parser0_;
  UnitStats parser1_;
  PortStats table_;
  LimitsObserver limits_{registry_};
};

TEST_F(LimitsTest, RelatesWorkToTheRegionBusiestFirst) {
  parser0_.work.occupy(Time::from_ns(20), 800);
  parser1_.work.occupy(Time::from_ns(90), 3600);
  table_.port.occupy(Time::from_ns(20), 20);
  const std::vector<Limit> limits = limits_.limits(region(100, 200));
  ASSERT_EQ(limits.size(), 3U);
  EXPECT_EQ(limits[0].unit, "node1.nic.parser.work");
  EXPECT_EQ(limits[0].kind, "node.nic.parser.work");
  EXPECT_EQ(limits[0].work_kind, WorkKind::bits);
  EXPECT_EQ(limits[0].work, 3600U);
  EXPECT_EQ(limits[0].busy, Time::from_ns(90));
  EXPECT_EQ(limits[0].elapsed, Time::from_ns(100));
  EXPECT_EQ(limits[0].share_ppm(), 900'000U);
  EXPECT_EQ(limits[1].unit, "node0.nic.parser.work") << "ties in order of registration";
  EXPECT_EQ(limits[2].unit, "node0.nic.table.port");
  EXPECT_EQ(limits[2].work_kind, WorkKind::operations);
}

TEST_F(LimitsTest, StallsAreAListOfTheirOwn) {
  StallStats stalls;
  registry_.add("node0.nic.transmit", stalls);
  stalls.full.occupy(Time::from_ns(95), 3);
  parser0_.work.occupy(Time::from_ns(20), 800);
  EXPECT_EQ(limits_.limits(region(100, 200)).size(), 3U);
  const std::vector<Limit> found = limits_.stalls(region(100, 200));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].unit, "node0.nic.transmit.full");
  EXPECT_EQ(found[0].work, 3U);
  EXPECT_EQ(found[0].share_ppm(), 950'000U);
}

TEST_F(LimitsTest, MarksBoundTheRegionFromTheFirstBeginToTheLastEnd) {
  parser0_.work.occupy(Time::from_ns(10), 100);
  limits_.marked(kRank, true, Time::from_ns(50));
  parser0_.work.occupy(Time::from_ns(3), 30);
  limits_.marked(RankId{1}, true, Time::from_ns(60));
  parser0_.work.occupy(Time::from_ns(4), 40);
  limits_.marked(kRank, false, Time::from_ns(70));
  parser0_.work.occupy(Time::from_ns(5), 50);
  limits_.marked(RankId{1}, false, Time::from_ns(90));
  parser0_.work.occupy(Time::from_ns(100), 1000);
  const std::vector<Limit> limits = limits_.limits(region(50, 1000));
  EXPECT_EQ(limits[0].work, 120U);
  EXPECT_EQ(limits[0].busy, Time::from_ns(12));
  EXPECT_EQ(limits[0].elapsed, Time::from_ns(40));
}

TEST_F(LimitsTest, ARegionThatIsNeverEndedReachesToTheLastCount) {
  limits_.marked(kRank, true, Time::from_ns(50));
  parser0_.work.occupy(Time::from_ns(5), 50);
  EXPECT_EQ(limits_.limits(region(60, 100))[0].elapsed, Time::from_ns(50));
  EXPECT_EQ(limits_.limits({})[0].share_ppm(), 0U) << "nothing was counted";
}

TEST_F(LimitsTest, AShareIsAtMostOne) {
  parser0_.work.occupy(Time::from_ns(101), 1);
  EXPECT_EQ(limits_.limits(region(0, 100))[0].share_ppm(), 1'000'000U);
}

Limit limit_of(const std::string& unit, const std::string& kind, std::int64_t busy_ns) {
  Limit limit;
  limit.unit = unit;
  limit.kind = kind;
  limit.work = static_cast<std::uint64_t>(busy_ns);
  limit.busy = Time::from_ns(busy_ns);
  limit.elapsed = Time::from_ns(1000);
  return limit;
}
StageBreakdown breakdown_of(Stage longest, Stage next) {
  StageBreakdown breakdown;
  breakdown.samples = 2;
  for (std::size_t stage = 1; stage < kStages; ++stage) breakdown.sums[stage] = Time::from_ns(10);
  breakdown.sums[static_cast<std::size_t>(longest)] = Time::from_ns(110);
  breakdown.sums[static_cast<std::size_t>(next)] = Time::from_ns(60);
  return breakdown;
}

TEST(FindBottleneck, NamesTheStructureThatWasWaitedForLongestInTheStage) {
  const std::vector<StageWait> waits{{Stage::context, "nic.a", Time::from_ns(3)},
                                     {Stage::context, "nic.b", Time::from_ns(5)},
                                     {Stage::count, "nic.c", Time::from_ns(9)}};
  const Bottleneck verdict =
      find_bottleneck({limit_of("x", "x", 100)}, breakdown_of(Stage::context, Stage::fabric), waits);
  EXPECT_EQ(verdict.name, "latency: context (nic.b)");
  EXPECT_EQ(verdict.next, "latency: fabric");
}

TEST(FindBottleneck, IsTheBusiestUnitAndNextOneOfAnotherKind) {
  const Bottleneck verdict =
      find_bottleneck({limit_of("a0.x", "a.x", 900), limit_of("a1.x", "a.x", 899), limit_of("b.y", "b.y", 700)},
                      breakdown_of(Stage::fabric, Stage::count));
  EXPECT_EQ(verdict.kind, BottleneckKind::unit);
  EXPECT_EQ(verdict.name, "a0.x");
  EXPECT_EQ(verdict.share_ppm, 900'000U);
  EXPECT_EQ(verdict.next, "b.y");
  EXPECT_EQ(verdict.next_share_ppm, 700'000U);
}

TEST(FindBottleneck, ThreeQuartersAreTheBorderToLatency) {
  const StageBreakdown breakdown = breakdown_of(Stage::payload_read, Stage::fabric);
  EXPECT_EQ(find_bottleneck({limit_of("a", "a", 750)}, breakdown).kind, BottleneckKind::unit);
  const Bottleneck verdict = find_bottleneck({limit_of("a", "a", 749)}, breakdown);
  EXPECT_EQ(verdict.kind, BottleneckKind::latency);
  EXPECT_EQ(verdict.name, "latency: payload_read");
  // 110 of 12 x 10 + 110 + 60.
  EXPECT_EQ(verdict.share_ppm, 110'000'000U / 300U);
  EXPECT_EQ(verdict.next, "latency: fabric");
  EXPECT_EQ(verdict.next_share_ppm, 60'000'000U / 300U);
}

TEST(FindBottleneck, AQuarterOfTheMessagesRefusedComesBeforeBusyUnits) {
  const StageBreakdown breakdown = breakdown_of(Stage::payload_read, Stage::fabric);
  const auto verdict_of = [&](std::uint64_t refused) {
    return find_bottleneck({limit_of("a", "a", 999)}, breakdown, {}, {}, {"s", refused}, 1000);
  };
  EXPECT_EQ(verdict_of(249).kind, BottleneckKind::unit);
  EXPECT_EQ(verdict_of(250).kind, BottleneckKind::refusals);
  EXPECT_EQ(verdict_of(250).name, "s");
  EXPECT_EQ(verdict_of(250).share_ppm, 250'000U);
  EXPECT_EQ(verdict_of(250).next, "a");
}

TEST(FindBottleneck, AStoreThatWasFullLimitsWhereNoUnitIsBusy) {
  const StageBreakdown breakdown = breakdown_of(Stage::payload_read, Stage::fabric);
  const Bottleneck verdict = find_bottleneck({limit_of("a", "a", 749)}, breakdown, {}, {limit_of("s", "s", 750)});
  EXPECT_EQ(verdict.kind, BottleneckKind::store);
  EXPECT_EQ(verdict.name, "s");
  EXPECT_EQ(verdict.share_ppm, 750'000U);
  EXPECT_EQ(verdict.next, "a");
  EXPECT_EQ(find_bottleneck({limit_of("a", "a", 750)}, breakdown, {}, {limit_of("s", "s", 949)}).name, "a");
  EXPECT_EQ(find_bottleneck({limit_of("a", "a", 899)}, breakdown, {}, {limit_of("s", "s", 950)}).name, "s");
  EXPECT_EQ(find_bottleneck({limit_of("a", "a", 900)}, breakdown, {}, {limit_of("s", "s", 999)}).name, "a")
      << "a store before a unit without time is full because of it";
  // Outer stores are full because an inner one is; others' stores are not asked.
  std::vector<Limit> stalls{limit_of("n1.outer", "n.outer", 999), limit_of("n0.other", "n.other", 990),
                            limit_of("n1.inner", "n.inner", 980), limit_of("n1.idle", "n.idle", 10)};
  for (std::size_t i = 0; i < stalls.size(); ++i) stalls[i].order = i;
  EXPECT_EQ(find_bottleneck({limit_of("a", "a", 1)}, breakdown, {}, stalls).name, "n1.inner");
  EXPECT_EQ(find_bottleneck({limit_of("a", "a", 749)}, breakdown, {}, {limit_of("s", "s", 749)}).kind,
            BottleneckKind::latency);
}

TEST(FindBottleneck, WithoutSamplesItIsTheBusiestAnyway) {
  const Bottleneck verdict = find_bottleneck({limit_of("a", "a", 10)}, {});
  EXPECT_EQ(verdict.kind, BottleneckKind::unit);
  EXPECT_EQ(verdict.name, "a");
  EXPECT_EQ(verdict.next, "");
}

TEST(FindBottleneck, NothingRan) {
  EXPECT_EQ(find_bottleneck({}, {}).name, "");
  EXPECT_EQ(find_bottleneck({limit_of("a", "a", 0)}, {}).name, "");
}

}  // namespace
}  // namespace rvma
