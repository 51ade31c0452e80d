// stats.json: complete, valid, exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <regex>
#include <sstream>

#include "finished_run.hpp"
#include "report/shortening.hpp"

namespace rvma {
namespace {

namespace json = boost::json;
using test::FinishedRun;
using test::ps_of;

std::string text_of(const RunReport& report) {
  std::ostringstream out;
  write_stats_json(out, report);
  return out.str();
}

/// The number of member `key` of object `object`, exactly as it is written.
std::string digits_of(const std::string& text, const std::string& object, const std::string& key) {
  const std::size_t begin = text.find("\"" + object + "\": {");
  if (begin == std::string::npos) return "no " + object;
  const std::string members = text.substr(begin, text.find('}', begin) - begin);
  std::smatch found;
  const std::regex member("\"" + key + "\": ([0-9.]+)");
  return std::regex_search(members, found, member) ? found[1].str() : "no " + key;
}

/// Says how a statistic must stand in the file.
class Expect : public StatVisitor {
 public:
  explicit Expect(const json::object& unit) : unit_(unit) {}
  void counter(const std::string& name, const Counter& stat) override {
    EXPECT_EQ(at(name).to_number<std::uint64_t>(), stat.value()) << name;
  }
  void time_sum(const std::string& name, const TimeSum& stat) override { expect_time(at(name), stat.value(), name); }
  void peak(const std::string& name, const Peak& stat) override {
    EXPECT_EQ(at(name).to_number<std::uint64_t>(), stat.value()) << name;
  }
  void histogram(const std::string& name, const Histogram& stat) override {
    const json::object& members = at(name).as_object();
    EXPECT_EQ(members.at("count").to_number<std::uint64_t>(), stat.count());
    expect_time(members.at("min"), stat.min(), name);
    expect_time(members.at("mean"), stat.mean(), name);
    expect_time(members.at("p50"), stat.quantile(500), name);
    expect_time(members.at("p99"), stat.quantile(990), name);
    expect_time(members.at("p999"), stat.quantile(999), name);
    expect_time(members.at("max"), stat.max(), name);
  }
  void utilisation(const std::string& name, const Utilisation& stat) override {
    const json::object& members = at(name).as_object();
    const char* work = stat.kind() == WorkKind::bits ? "bits" : "operations";
    EXPECT_EQ(members.at(work).to_number<std::uint64_t>(), stat.work());
    expect_time(members.at("busy_ns"), stat.busy(), name);
    EXPECT_TRUE(members.contains("share"));
  }

 private:
  const json::value& at(const std::string& name) {
    if (unit_.contains(name)) return unit_.at(name);
    ADD_FAILURE() << name << " is not in the file";
    return nothing_;
  }
  static void expect_time(const json::value& value, Time time, const std::string& name) {
    EXPECT_NEAR(value.to_number<double>(), static_cast<double>(time.ps()) / 1000, 1e-6) << name;
  }
  const json::object& unit_;
  json::value nothing_ = json::object{};
};

TEST(StatsJson, HoldsEveryRegisteredStatisticUnderItsUnit) {
  FinishedRun run(7);
  const json::value parsed = json::parse(text_of(run.report));
  const json::object& units = parsed.at("units").as_object();
  EXPECT_EQ(units.size(), 3U);
  std::size_t members = 0;
  for (const auto& unit : units) members += unit.value().as_object().size();
  EXPECT_EQ(members, run.stats().entries().size());
  for (const StatsRegistry::Entry& entry : run.stats().entries()) {
    SCOPED_TRACE(entry.path());
    ASSERT_TRUE(units.contains(entry.unit_path));
    Expect expect(units.at(entry.unit_path).as_object());
    entry.visit(expect);
  }
}

TEST(StatsJson, SaysWhatWidensShortensAndWaits) {
  static constexpr Widenings kBoth{{{"a.lanes", Effect::powers_of_two}, {"a.generation", Effect::steps}}};
  FinishedRun run(5);
  run.report.limits.at(0).widened_by = &kBoth;
  run.report.key_ranges = {{"a.lanes", "1..16"}};
  run.report.waits = {{Stage::context, "node0.nic.contexts", Time::from_ps(1500)}};
  run.report.on_chip.windows = 7;
  run.report.on_chip.receive_buffer = 35;
  run.report.states.all.queue_pairs = 5;
  run.report.states.all.receives = 8;
  run.report.states.largest.receives = 8;
  run.report.states.node = NodeId{1};
  const json::value parsed = json::parse(text_of(run.report));
  EXPECT_EQ(json::serialize(parsed.at("limits").at(0).at("widened_by")),
            R"([{"key":"a.lanes","effect":"powers_of_two"},{"key":"a.generation","effect":"steps"}])");
  EXPECT_EQ(json::serialize(parsed.at("limits").at(1).at("widened_by")), "[]");
  EXPECT_EQ(parsed.at("key_ranges").at("a.lanes").as_string(), "1..16");
  EXPECT_EQ(parsed.at("waits").at(0).at("stage").as_string(), "context");
  EXPECT_EQ(parsed.at("waits").at(0).at("unit").as_string(), "node0.nic.contexts");
  EXPECT_EQ(parsed.at("waits").at(0).at("waited_ns").to_number<double>(), 1.5);
  EXPECT_EQ(parsed.at("shortened_by").as_array().size(), kShortenings.size());
  EXPECT_EQ(parsed.at("on_chip_bytes").at("windows").to_number<std::uint64_t>(), 7U);
  EXPECT_EQ(parsed.at("on_chip_bytes").at("total").to_number<std::uint64_t>(), 42U);
  EXPECT_EQ(parsed.at("nic_state_bytes").at("all").at("total").to_number<std::uint64_t>(), 13U);
  EXPECT_EQ(parsed.at("nic_state_bytes").at("largest").at("node").to_number<std::uint64_t>(), 1U);
  EXPECT_EQ(parsed.at("nic_state_bytes").at("largest").at("receives").to_number<std::uint64_t>(), 8U);
}

TEST(StatsJson, QuantilesRiseFromTheLeastToTheGreatest) {
  FinishedRun run(9);
  const json::value parsed = json::parse(text_of(run.report));
  for (const char* latency : {"put_to_completion", "put_to_ack"}) {
    const json::array& points = parsed.at("latency_quantiles").at(latency).as_array();
    const json::value& figures = parsed.at("latency_ns").at(latency);
    ASSERT_EQ(points.size(), 43U);
    EXPECT_EQ(points.front().at(1).to_number<double>(), figures.at("min").to_number<double>());
    EXPECT_EQ(points.back().at(1).to_number<double>(), figures.at("max").to_number<double>());
    for (std::size_t i = 1; i < points.size(); ++i) {
      EXPECT_LT(points[i - 1].at(0).to_number<int>(), points[i].at(0).to_number<int>());
      EXPECT_LE(points[i - 1].at(1).to_number<double>(), points[i].at(1).to_number<double>());
      if (points[i].at(0) == 500) {
        EXPECT_EQ(points[i].at(1).to_number<double>(), figures.at("p50").to_number<double>());
      }
    }
  }
}

TEST(StatsJson, HasEveryKeyThatOthersRelyOn) {
  FinishedRun run(3);
  run.report.problems = {"rank 1 waits for b"};
  run.report.partial = true;
  const json::value parsed = json::parse(text_of(run.report));
  EXPECT_EQ(parsed.at("schema").as_string(), "rvma-stats/1");
  const auto expect_keys = [&](const json::value& value, std::initializer_list<const char*> keys) {
    for (const char* key : keys) EXPECT_TRUE(value.as_object().contains(key)) << key;
  };
  expect_keys(parsed.at("check"), {"passed", "failures"});
  expect_keys(parsed.at("sim"),
              {"time_ns", "cycles", "events", "activations", "wall_s", "packets_per_wall_s", "peak_rss_bytes"});
  const json::value& totals = parsed.at("totals");
  expect_keys(totals, {"puts", "messages_delivered", "bytes_delivered", "completions", "refusals", "packets"});
  expect_keys(totals.at("refusals"), {"no_mailbox", "closed", "bad_key", "stale", "no_buffer", "bounds", "busy"});
  expect_keys(totals.at("packets"),
              {"sent", "delivered", "dropped", "duplicate", "retransmitted", "corrupt", "out_of_order"});
  for (const char* latency : {"put_to_completion", "put_to_seen", "put_to_ack"}) {
    expect_keys(parsed.at("latency_ns").at(latency), {"count", "min", "mean", "p50", "p99", "p999", "max"});
  }
  expect_keys(parsed, {"bandwidth_gbps", "units", "limits", "bottleneck", "config"});
  for (const json::value& limit : parsed.at("limits").as_array()) {
    expect_keys(limit, {"unit", "achieved", "share", "widened_by"});
    EXPECT_NE(limit.as_object().contains("bound_gbps"), limit.as_object().contains("bound_mpps"));
  }
  EXPECT_EQ(parsed.at("config").at("nic").at("clock").as_string(), "1GHz");
  EXPECT_EQ(parsed.at("run").at("trace").as_string(), "a \"quoted\" trace");
  EXPECT_TRUE(parsed.at("run").at("partial").as_bool());
  EXPECT_EQ(parsed.at("run").at("problems").as_array().size(), 1U);
}

TEST(StatsJson, TheBreakdownAddsUpToTheMeanToTheLastDigit) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FinishedRun run(seed);
    const std::string text = text_of(run.report);
    std::int64_t sum = 0;
    for (std::size_t stage = 1; stage < kStages; ++stage) {
      sum += ps_of(digits_of(text, "breakdown_ns", ValueText<Stage>::print(static_cast<Stage>(stage))));
    }
    EXPECT_EQ(sum, ps_of(digits_of(text, "breakdown_ns", "total")));
    EXPECT_EQ(sum, ps_of(digits_of(text, "put_to_completion", "mean")));
  }
}

TEST(StatsJson, RatesAndTotals) {
  FinishedRun run(5);
  const json::value parsed = json::parse(text_of(run.report));
  const RunTotals& totals = run.recorder().totals();
  EXPECT_EQ(parsed.at("totals").at("puts").to_number<std::uint64_t>(), totals.puts);
  EXPECT_EQ(parsed.at("totals").at("bytes_delivered").to_number<std::uint64_t>(), totals.bytes_delivered);
  EXPECT_EQ(parsed.at("totals").at("ended").at("ok").to_number<std::uint64_t>(), totals.puts);
  std::uint64_t out_of_order = 0;
  for (const StatsRegistry::Entry& entry : run.stats().entries()) {
    if (entry.name == "out_of_order") out_of_order += entry.as<Counter>()->value();
  }
  EXPECT_EQ(parsed.at("totals").at("packets").at("out_of_order").to_number<std::uint64_t>(), out_of_order);
  const RunRecorder::Region& region = run.recorder().region();
  EXPECT_NEAR(parsed.at("bandwidth_gbps").at("goodput").to_number<double>(),
              8000.0 * static_cast<double>(region.payload_bytes) / static_cast<double>(region.duration().ps()), 6e-4);
  EXPECT_EQ(parsed.at("check").at("enabled").as_bool(), false);
  // 1.5 s of wall time.
  EXPECT_EQ(packets_per_wall_s(run.report), totals.packets_delivered * 1'000'000 / 1'500'001);
}

TEST(StatsJson, SameRunSameBytes) {
  FinishedRun a(11);
  FinishedRun b(11);
  EXPECT_EQ(text_of(a.report), text_of(b.report));
}

}  // namespace
}  // namespace rvma
