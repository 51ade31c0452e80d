#include "base/component.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace rvma {
namespace {

/// A unit that notes when its wake-up ran, and may do something then.
class Unit final : public Component {
 public:
  Unit(const sc_core::sc_module_name& name, SimContext& context)
      : Component(name, context, Frequency::mhz(400)), wakeup(*this, "wakeup", [this] {
          runs.push_back(now());
          armed_within = wakeup.armed();
          if (then) then();
        }) {}
  Wakeup wakeup;
  std::vector<Time> runs;
  std::function<void()> then;
  bool armed_within = false;
};

struct Bench {
  SimContext context{7};
  Unit unit{"unit", context};
};

std::vector<Time> ns(const std::vector<std::int64_t>& values) {
  std::vector<Time> times;
  for (const std::int64_t value : values) times.push_back(Time::from_ns(value));
  return times;
}

void run_for(Time time) { sc_core::sc_start(SimContext::to_sc(time)); }

TEST(Wakeup, UnarmedCostsNothing) {
  Bench bench;
  run_for(Time::from_us(1'000'000));
  EXPECT_TRUE(bench.unit.runs.empty());
  EXPECT_EQ(bench.context.activations(), 0U);
  EXPECT_EQ(bench.context.notifications(), 0U);
}

TEST(Wakeup, RunsOnceAtItsTime) {
  Bench bench;
  bench.unit.wakeup.at(Time::from_ns(5));
  EXPECT_TRUE(bench.unit.wakeup.armed());
  EXPECT_EQ(bench.unit.wakeup.armed_for(), Time::from_ns(5));
  run_for(Time::from_ns(5));  // sc_start() ends before what happens at its end time
  EXPECT_TRUE(bench.unit.runs.empty());
  run_for(Time::from_ps(1));
  EXPECT_EQ(bench.unit.runs, ns({5}));
  EXPECT_FALSE(bench.unit.armed_within) << "within the body it is free to be armed again";
  run_for(Time::from_us(10));
  EXPECT_EQ(bench.unit.runs, ns({5}));
  EXPECT_FALSE(bench.unit.wakeup.armed());
  EXPECT_EQ(bench.context.activations(), 1U);
  EXPECT_EQ(bench.context.notifications(), 1U);
}

TEST(Wakeup, KeepsTheEarliest) {
  Bench bench;
  bench.unit.wakeup.at(Time::from_ns(50));
  bench.unit.wakeup.at(Time::from_ns(50));
  bench.unit.wakeup.at(Time::from_ns(90));  // later: ignored
  EXPECT_EQ(bench.context.notifications(), 1U);
  bench.unit.wakeup.at(Time::from_ns(20));  // earlier: notified anew
  EXPECT_EQ(bench.context.notifications(), 2U);
  bench.unit.wakeup.at(Time::max());  // never: nothing
  run_for(Time::from_us(1));
  EXPECT_EQ(bench.unit.runs, ns({20}));
  EXPECT_EQ(bench.context.activations(), 1U);
  EXPECT_EQ(bench.context.notifications(), 2U);
}

TEST(Wakeup, ArmsItselfAgain) {
  Bench bench;
  bench.unit.wakeup.at(Time::from_ns(1));
  bench.unit.then = [&] {
    if (bench.unit.runs.size() == 1) bench.unit.wakeup.at(bench.unit.now());
    if (bench.unit.runs.size() == 2) bench.unit.wakeup.at(bench.unit.now() + Time::from_ns(2));
  };
  run_for(Time::from_us(1));
  EXPECT_EQ(bench.unit.runs, ns({1, 1, 3}));
  EXPECT_EQ(bench.context.activations(), 3U);
  EXPECT_EQ(bench.context.notifications(), 3U);
}

TEST(Wakeup, OfOneTimeRunInTheOrderOfArming) {
  Bench bench;
  std::string order;
  Wakeup a(bench.unit, "a", [&] {
    order += 'a';
    if (order.size() < 4) a.at(bench.unit.now());  // behind all that were armed before
  });
  Wakeup b(bench.unit, "b", [&] { order += 'b'; });
  Wakeup c(bench.unit, "c", [&] { order += 'c'; });
  c.at(Time::from_ns(9));
  a.at(Time::from_ns(5));
  b.at(Time::from_ns(5));
  c.at(Time::from_ns(5));
  run_for(Time::from_ns(6));
  EXPECT_EQ(order, "abca");
  b.at(bench.unit.now() + Time::from_ns(2));
  a.at(bench.unit.now() + Time::from_ns(1));
  run_for(Time::from_ns(10));
  EXPECT_EQ(order, "abcaab") << "c ran at 5 ns: what it was armed for before is void";
}

TEST(Wakeup, VoidRequestsDoNotKeepASimulationGoing) {
  Bench bench;
  Wakeup other(bench.unit, "other", [] {});
  other.at(Time::from_us(50));
  other.at(Time::from_ns(3));  // 50 us is void
  {
    Wakeup gone(bench.unit, "gone", [] {});
    gone.at(Time::from_us(90));
  }
  bench.unit.wakeup.at(Time::from_us(20));
  bench.unit.wakeup.cancel();
  sc_core::sc_start();
  EXPECT_EQ(bench.unit.now(), Time::from_ns(3));
  EXPECT_EQ(bench.context.activations(), 1U);
}

TEST(Wakeup, ManyInOrder) {
  Bench bench;
  constexpr std::uint64_t kSeed = 5;
  Random random(kSeed);
  std::vector<std::unique_ptr<Wakeup>> wakeups;
  std::vector<Time> expected;
  std::vector<Time> ran;
  for (int i = 0; i < 500; ++i) {
    wakeups.push_back(std::make_unique<Wakeup>(bench.unit, "one", [&] { ran.push_back(bench.unit.now()); }));
    const Time late = Time::from_ns(500 + static_cast<std::int64_t>(random.below(500)));
    const Time early = Time::from_ns(static_cast<std::int64_t>(random.below(500)));
    wakeups.back()->at(late);
    if (i % 3 == 0) wakeups.back()->at(early);
    if (i % 5 == 0) wakeups.back()->cancel();
    if (i % 5 != 0) expected.push_back(i % 3 == 0 ? early : late);
  }
  std::sort(expected.begin(), expected.end());
  run_for(Time::from_us(2));
  EXPECT_EQ(ran, expected) << "seed " << kSeed;
}

TEST(Wakeup, Cancel) {
  Bench bench;
  bench.unit.wakeup.at(Time::from_ns(5));
  bench.unit.wakeup.cancel();
  EXPECT_FALSE(bench.unit.wakeup.armed());
  run_for(Time::from_ns(10));
  EXPECT_TRUE(bench.unit.runs.empty());
  bench.unit.wakeup.at(Time::from_ns(12));
  run_for(Time::from_ns(10));
  EXPECT_EQ(bench.unit.runs, ns({12}));
}

TEST(WakeupDeathTest, NotBeforeNow) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Bench bench;
  bench.unit.then = [&] { bench.unit.wakeup.at(Time::from_ps(4'999)); };
  bench.unit.wakeup.at(Time::from_ns(5));
  EXPECT_EXIT(run_for(Time::from_ns(10)), testing::ExitedWithCode(3),
              "a wake-up for 4.999ns was asked for at 5ns .*at 5ns, in unit.wakeup");
}

TEST(Component, ClockAndPath) {
  Bench bench;
  run_for(Time::from_ps(2'501));
  EXPECT_EQ(bench.unit.current_cycle(), Cycles{2});
  EXPECT_EQ(bench.unit.path(), "unit");
  EXPECT_EQ(bench.context.seed(), 7U);
}

TEST(SimContextDeathTest, ResolutionMustBeOnePicosecond) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        sc_core::sc_set_time_resolution(1, sc_core::SC_NS);
        SimContext context(1);
      },
      testing::ExitedWithCode(3), "it must be 1 ps");
}

}  // namespace
}  // namespace rvma
