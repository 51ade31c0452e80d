#include "base/stats.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/random.hpp"

namespace rvma {
namespace {

Histogram histogram() { return Histogram{"a time"}; }

TEST(Histogram, EmptyIsZero) {
  const Histogram h = histogram();
  EXPECT_EQ(h.count(), 0U);
  EXPECT_EQ(h.min(), Time::zero());
  EXPECT_EQ(h.max(), Time::zero());
  EXPECT_EQ(h.mean(), Time::zero());
  EXPECT_EQ(h.quantile(500), Time::zero());
}

TEST(Histogram, OneSampleIsExactEverywhere) {
  Histogram h = histogram();
  h.add(Time::from_ps(1'234'567));
  for (const unsigned q : {0U, 1U, 500U, 999U, 1000U}) EXPECT_EQ(h.quantile(q), Time::from_ps(1'234'567)) << q;
  EXPECT_EQ(h.mean(), Time::from_ps(1'234'567));
}

TEST(Histogram, QuantilesAgainstSortedSamples) {
  const std::uint64_t seed = testing::UnitTest::GetInstance()->random_seed() + 1;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (const unsigned bits : {3U, 8U, 12U, 20U, 40U, 62U}) {
    Histogram h = histogram();
    std::vector<std::int64_t> samples;
    for (int i = 0; i < 5'000; ++i) {
      // Of any magnitude up to `bits`.
      const auto value = static_cast<std::int64_t>(random.below(1ULL << (1 + random.below(bits))));
      samples.push_back(value);
      h.add(Time::from_ps(value));
    }
    std::sort(samples.begin(), samples.end());
    EXPECT_EQ(h.min().ps(), samples.front());
    EXPECT_EQ(h.max().ps(), samples.back());
    EXPECT_EQ(h.quantile(0).ps(), samples.front());
    EXPECT_EQ(h.quantile(1000).ps(), samples.back());
    for (unsigned q = 1; q < 1000; ++q) {
      const std::int64_t exact = samples[(samples.size() * q + 999) / 1000 - 1];
      const std::int64_t told = h.quantile(q).ps();
      ASSERT_GE(told, exact) << "quantile " << q << " of " << bits << " bits";
      ASSERT_LE(told - exact, exact / 128) << "quantile " << q << " of " << bits << " bits";
    }
  }
}

TEST(Histogram, SumAndMeanBeyondTheRangeOfTime) {
  Histogram h = histogram();
  const Time large = Time::max() - Time::from_ps(1);
  h.add(large);
  EXPECT_EQ(h.sum(), large);
  h.add(large);
  h.add(large);
  h.add(large);
  EXPECT_TRUE(h.sum().is_never());
  EXPECT_EQ(h.mean(), large);
  h.reset();
  EXPECT_EQ(h.count(), 0U);
  EXPECT_EQ(h.max(), Time::zero());
  h.add(Time::from_ps(3));
  h.add(Time::from_ps(4));
  EXPECT_EQ(h.min(), Time::from_ps(3));
  EXPECT_EQ(h.sum(), Time::from_ps(7));
  EXPECT_EQ(h.mean(), Time::from_ps(3));
}

TEST(HistogramDeathTest, NegativeSample) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Histogram h = histogram();
  EXPECT_EXIT(h.add(Time::from_ps(-1)), testing::ExitedWithCode(3), "negative");
}

struct Group {
  Counter packets{"packets", "packets taken"};
  TimeSum stalled_ns{"time stalled"};
  Peak depth{"packets", "deepest queue"};
  Histogram latency_ns{"latency"};
  Utilisation datapath{WorkKind::bits, "the data path", kNotWidened};
  BOOST_DESCRIBE_CLASS(Group, (), (packets, stalled_ns, depth, latency_ns, datapath), (), ())
};

/// Writes "name=value " for each statistic.
class Printer final : public StatVisitor {
 public:
  void counter(const std::string& name, const Counter& stat) override { put(name, std::to_string(stat.value())); }
  void time_sum(const std::string& name, const TimeSum& stat) override { put(name, to_ns_string(stat.value())); }
  void peak(const std::string& name, const Peak& stat) override { put(name, std::to_string(stat.value())); }
  void histogram(const std::string& name, const Histogram& stat) override { put(name, std::to_string(stat.count())); }
  void utilisation(const std::string& name, const Utilisation& stat) override {
    put(name, to_ns_string(stat.busy()) + "/" + std::to_string(stat.work()));
  }
  std::string text;
  std::string unit_path;

 private:
  void put(const std::string& name, const std::string& value) { text += unit_path + "." + name + "=" + value + " "; }
};

std::string printed(const StatsRegistry& registry) {
  Printer printer;
  for (const StatsRegistry::Entry& entry : registry.entries()) {
    printer.unit_path = entry.unit_path;
    entry.visit(printer);
  }
  return printer.text;
}

TEST(StatsRegistry, EveryMemberUnderItsPathAndResetTogether) {
  Group group;
  StatsRegistry registry;
  registry.add("node0.parser", group);
  ++group.packets;
  group.packets += 2;
  group.stalled_ns += Time::from_ps(1'500);
  group.depth.observe(4);
  group.depth.observe(3);
  group.latency_ns.add(Time::from_ns(1));
  group.datapath.occupy(Time::from_ns(2), 1024);
  EXPECT_EQ(printed(registry),
            "node0.parser.packets=3 node0.parser.stalled_ns=1.5 node0.parser.depth=4 node0.parser.latency_ns=1 "
            "node0.parser.datapath=2/1024 ");
  registry.reset();
  EXPECT_EQ(printed(registry),
            "node0.parser.packets=0 node0.parser.stalled_ns=0 node0.parser.depth=0 node0.parser.latency_ns=0 "
            "node0.parser.datapath=0/0 ");
}

TEST(StatsRegistry, TheTextsOfADeclarationAreThere) {
  Group group;
  StatsRegistry registry;
  registry.add("node0.parser", group);
  std::string texts;
  for (const StatsRegistry::Entry& entry : registry.entries()) {
    if (entry.name == "datapath") {
      EXPECT_EQ(entry.unit(), "bits");
    }
    if (entry.name == "packets") {
      EXPECT_EQ(entry.description(), "packets taken");
    }
    EXPECT_FALSE(entry.description().empty()) << entry.name;
    EXPECT_EQ(entry.as<Counter>() != nullptr, entry.kind() == StatKind::counter);
  }
  // A thousand nodes have three hundred thousand of them.
  EXPECT_EQ(sizeof(Counter), sizeof(std::uint64_t));
}

TEST(StatsRegistryDeathTest, APathIsTakenOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Group group;
  Group other;
  StatsRegistry registry;
  registry.add("node0.parser", group);
  registry.add("node1.parser", other);
  EXPECT_EXIT(registry.add("node0.parser", other), testing::ExitedWithCode(3), "node0.parser.packets");
}

}  // namespace
}  // namespace rvma
