// A run over simulated time, in so many rows and no more.
#include "report/series.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "finished_run.hpp"

namespace rvma {
namespace {

using test::FinishedRun;
using test::ps_of;

struct Table {
  explicit Table(const Series& series) {
    std::stringstream text;
    series.write(text);
    std::string line;
    std::getline(text, line);
    head = split(line);
    while (std::getline(text, line)) rows.push_back(split(line));
  }
  static std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> cells;
    std::stringstream in(line);
    for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
    return cells;
  }
  std::size_t column(const std::string& name) const {
    return static_cast<std::size_t>(std::find(head.begin(), head.end(), name) - head.begin());
  }
  std::uint64_t at(std::size_t row, const std::string& name) const { return std::stoull(rows[row].at(column(name))); }
  std::int64_t end_ps(std::size_t row) const { return ps_of(rows[row].at(0)); }

  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

TEST(Series, ShowsTheMostOfEachInterval) {
  FinishedRun run(1);
  StatsRegistry registry;
  registry.keep_levels();
  Peak peak("packets", "waiting");
  std::uint64_t level = 0;
  const auto change = [&](std::uint64_t to) { peak.observe(level = to); };
  registry.add_level("node0.nic.egress", "queue", peak, [&] { return level; });
  Series series(registry, run.recorder());
  const auto at = [&](int ns, std::uint64_t to) {
    series.advance(Time::from_ns(ns));
    change(to);
  };
  at(3, 7);
  at(5, 1);   // 7 is over before anybody looks
  at(20, 9);  // and here it is 9 for a moment, then 4 at the interval's end
  at(21, 4);
  at(60, 2);  // two whole intervals of 4
  at(61, 0);
  series.finish(Time::from_ns(80));
  const Table table(series);
  ASSERT_EQ(table.rows.size(), 5U);
  const std::vector<std::uint64_t> wanted{7, 9, 4, 4, 0};
  for (std::size_t row = 0; row < wanted.size(); ++row)
    EXPECT_EQ(table.at(row, "node.nic.egress.queue"), wanted[row]) << row;
  EXPECT_EQ(peak.value(), 9U) << "asking changes nothing of the whole run's peak";
}

TEST(Series, ShowsWhatHoldsAtTheEndOfEachInterval) {
  FinishedRun run(1);
  StatsRegistry registry;
  registry.keep_levels();
  std::uint64_t level = 3;
  registry.add_level("node0.nic.egress", "queue", [&] { return level; });
  Series series(registry, run.recorder());
  EXPECT_EQ(series.next(), Time::from_ns(16));
  series.advance(Time::from_ns(16));  // the event at 16 ns itself is still to come
  EXPECT_EQ(series.next(), Time::from_ns(16));
  level = 5;
  series.advance(Time::from_ns(40));
  EXPECT_EQ(series.next(), Time::from_ns(48));
  level = 2;
  series.finish(Time::from_ns(41));
  const Table table(series);
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0][0], "16");
  EXPECT_EQ(table.rows[2][0], "41");
  for (const auto& [row, wanted] : std::map<std::size_t, std::uint64_t>{{0, 5}, {1, 5}, {2, 2}}) {
    EXPECT_EQ(table.at(row, "node.nic.egress.queue"), wanted) << row;
  }
}

TEST(Series, DeliveriesStandWhereTheyWereAnnouncedFor) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    FinishedRun run(seed);
    StatsRegistry registry;
    registry.keep_levels();
    Series series(registry, run.recorder());
    std::vector<std::pair<std::int64_t, std::uint64_t>> announced;
    Time now;
    for (int i = 0; i < 2000; ++i) {
      now += Time::from_ps(static_cast<std::int64_t>(1 + random.below(1ULL << random.below(24))));
      series.advance(now);
      // Ahead of its time, and not in order.
      const Time at = now + Time::from_ps(static_cast<std::int64_t>(random.below(1ULL << random.below(26))));
      PlacedPacket packet;
      packet.payload_length = static_cast<std::uint32_t>(random.below(4096));
      series.packet_placed(NodeId{0}, packet, 0, at);
      announced.emplace_back(at.ps(), packet.payload_length);
    }
    series.finish(now + Time::from_us(70));
    const Table table(series);
    ASSERT_LE(table.rows.size(), Series::kRows);
    std::int64_t begin = 0;
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      std::uint64_t bytes = 0;
      std::uint64_t packets = 0;
      for (const auto& [at, length] : announced) {
        if (at <= begin || at > table.end_ps(row)) continue;
        bytes += length;
        ++packets;
      }
      ASSERT_EQ(table.at(row, "delivered_bytes"), bytes) << row;
      ASSERT_EQ(table.at(row, "packets"), packets) << row;
      begin = table.end_ps(row);
    }
  }
}

TEST(Series, OneColumnForUnitsOfAKindRestartedOnesToo) {
  FinishedRun run(1);
  StatsRegistry registry;
  registry.keep_levels();
  registry.add_level("node0.nic.egress", "queue", [] { return std::uint64_t{4}; });
  registry.add_level("node17.nic.egress", "queue", [] { return std::uint64_t{9}; });
  registry.add_level("node0.nic.transmit", "buffer_bytes", [] { return std::uint64_t{64}; });
  Series series(registry, run.recorder());
  series.advance(Time::from_ns(17));
  registry.add_level("node1.nic_boot2.egress", "queue", [] { return std::uint64_t{11}; });
  series.finish(Time::from_ns(20));
  const Table table(series);
  EXPECT_EQ(table.head.size(), 8U);
  EXPECT_EQ(table.at(0, "node.nic.egress.queue"), 9U);
  EXPECT_EQ(table.at(0, "node.nic.transmit.buffer_bytes"), 64U);
  EXPECT_EQ(table.at(1, "node.nic.egress.queue"), 11U);
}

TEST(Series, BoundedAndHighestLevelsSurviveAtRandomTimes) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    FinishedRun run(seed);
    StatsRegistry registry;
    registry.keep_levels();
    std::uint64_t level = 0;
    registry.add_level("fabric.switch", "queued", [&] { return level; });
    Series series(registry, run.recorder());
    std::map<std::int64_t, std::uint64_t> changes{{0, 0}};  // level from a time on
    Time now;
    for (int i = 0; i < 3000; ++i) {
      const Time event = now + Time::from_ps(static_cast<std::int64_t>(1 + random.below(1ULL << random.below(28))));
      series.advance(event);
      level = random.below(1000);
      now = event;
      changes[now.ps()] = level;
    }
    series.finish(now);
    const Table table(series);
    ASSERT_LE(table.rows.size(), Series::kRows);
    ASSERT_GT(table.rows.size(), Series::kRows / 4);
    EXPECT_EQ(table.end_ps(table.rows.size() - 1), now.ps());
    const std::int64_t interval = table.end_ps(0);
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      if (row + 1 < table.rows.size()) {
        ASSERT_EQ(table.end_ps(row), interval * static_cast<std::int64_t>(row + 1));
      }
      // At least what holds at its end, and nothing that never held within it.
      const std::uint64_t shown = table.at(row, "fabric.switch.queued");
      const auto last = std::prev(changes.upper_bound(table.end_ps(row)));
      ASSERT_GE(shown, last->second);
      bool held = false;
      auto from = std::prev(changes.upper_bound(table.end_ps(row) - interval));
      for (; from != changes.end() && from->first <= table.end_ps(row); ++from) held |= from->second == shown;
      ASSERT_TRUE(held) << row;
    }
  }
}

TEST(Series, AnIdleYearIsCheap) {
  FinishedRun run(1);
  StatsRegistry registry;
  Series series(registry, run.recorder());
  series.advance(Time::from_ps(8'000'000'000'000'000'000));
  series.finish(Time::from_ps(8'000'000'000'000'000'000));
  EXPECT_LE(Table(series).rows.size(), Series::kRows);
}

}  // namespace
}  // namespace rvma
