// The summary: one screen that says what limited the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <vector>

#include "finished_run.hpp"

namespace rvma {
namespace {

using test::FinishedRun;
using test::ps_of;
using testing::HasSubstr;

std::vector<std::string> lines_of(const RunReport& report) {
  std::ostringstream out;
  print_summary(out, report);
  std::istringstream in(out.str());
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Summary, FitsAScreen) {
  FinishedRun run(2);
  run.report.out_dir = "results";
  const std::vector<std::string> lines = lines_of(run.report);
  EXPECT_LE(lines.size(), 40U);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 100U) << line;
  EXPECT_EQ(lines.back(), "Results: results");
}

TEST(Summary, TheStagesAddUpToTheTotalAsPrinted) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FinishedRun run(seed);
    std::int64_t sum = 0;
    std::int64_t total = -1;
    std::size_t stages = 0;
    const std::regex stage("^  ([a-z_]+) +([0-9.]+)( [#.]{20} +[0-9.]+ %)?$");
    for (const std::string& line : lines_of(run.report)) {
      std::smatch found;
      if (!std::regex_match(line, found, stage)) continue;
      if (found[1] == "total") {
        total = ps_of(found[2]);
      } else {
        sum += ps_of(found[2]);
        ++stages;
      }
    }
    EXPECT_EQ(stages, kStages - 1);
    EXPECT_EQ(sum, total);
    EXPECT_EQ(total, run.recorder().put_to_completion().mean().ps());
  }
}

TEST(Summary, NamesTheBottleneckAndTheNext) {
  FinishedRun run(2);
  run.report.bottleneck = {BottleneckKind::unit, "fabric.link.0-1.wire", 973'000, "node1.pcie.upstream", 905'000};
  std::vector<std::string> lines = lines_of(run.report);
  EXPECT_THAT(lines, testing::Contains("Limited by: fabric.link.0-1.wire (97.3 % busy)"));
  EXPECT_THAT(lines, testing::Contains("      next: node1.pcie.upstream (90.5 %)"));
  run.report.bottleneck = {BottleneckKind::latency, "latency: payload_read", 484'000, "", 0};
  lines = lines_of(run.report);
  EXPECT_THAT(lines, testing::Contains("Limited by: latency: payload_read (48.4 % of the time of a put)"));
  EXPECT_THAT(lines, testing::Contains("      next: nothing (0.0 %)"));
  run.report.bottleneck = {};
  EXPECT_THAT(lines_of(run.report), testing::Contains("Limited by: nothing ran"));
}

TEST(Summary, LatencyColumnsStayApart) {
  FinishedRun run(2, Time::from_ns(123'456'789'000));
  for (const std::string& line : lines_of(run.report)) {
    if (line.find("put to completion") == std::string::npos) continue;
    EXPECT_TRUE(std::regex_match(line, std::regex(R"(  put to completion +\d+( +\d+(\.\d{1,3})?){6})"))) << line;
  }
}

TEST(Summary, OneUnitOfEachKindStandsForAll) {
  FinishedRun run(2);
  std::size_t parsers = 0;
  for (const std::string& line : lines_of(run.report)) {
    if (line.find("nic.parser.wire") != std::string::npos) ++parsers;
  }
  EXPECT_EQ(parsers, 1U);
}

TEST(Summary, SaysThatARunIsPartial) {
  FinishedRun run(2);
  EXPECT_THAT(lines_of(run.report)[0], testing::Not(HasSubstr("PARTIAL")));
  run.report.partial = true;
  EXPECT_THAT(lines_of(run.report)[0], HasSubstr("PARTIAL"));
}

}  // namespace
}  // namespace rvma
