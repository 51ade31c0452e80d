/// \file
/// What a run did over simulated time, in bounded memory: at most kRows rows, whose interval doubles as the run grows.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/stats.hpp"
#include "base/units.hpp"
#include "nic/observer.hpp"
#include "report/recorder.hpp"

namespace rvma {

/// Levels are asked for from outside the simulation, between two of its events: it has no process, and changes nothing
/// of a run. What is delivered belongs to the time for which it was announced.
class Series : public NicObserver {
 public:
  static constexpr std::size_t kRows = 1024;

  /// Both outlive it.
  Series(const StatsRegistry& registry, const RunRecorder& recorder)
      : registry_(registry), recorder_(recorder), deliveries_(kRows) {}

  /// The earliest time that has not been sampled.
  Time next() const { return interval_ * static_cast<std::int64_t>(rows_.size() + 1); }
  /// The next event is at `event`: what holds until then is sampled for all times before it.
  void advance(Time event);
  /// The run has ended: its last, shorter interval.
  void finish(Time now);
  /// series.csv: docs/reference/results.md has its columns.
  void write(std::ostream& out) const;

  void packet_placed(NodeId node, const PlacedPacket& packet, std::uint64_t buffer_offset, Time at) override;

 private:
  struct Row {
    Time at;
    std::uint64_t refusals = 0;
    std::uint64_t resent = 0;
    std::vector<std::uint64_t> levels;  ///< by column: the largest of all units of the kind
  };
  struct Delivery {
    std::uint64_t bytes = 0;
    std::uint64_t packets = 0;
  };
  /// What levels reached since the last sample.
  Row sample(Time at);
  void add(Row row);
  /// Intervals of twice the length.
  void widen();
  std::size_t column_of(const StatsRegistry::Level& level);

  const StatsRegistry& registry_;
  const RunRecorder& recorder_;
  Time interval_ = Time::from_ns(16);
  std::vector<Row> rows_;
  std::vector<Delivery> deliveries_;  ///< by row, those to come included
  std::vector<std::string> columns_;
  std::vector<std::size_t> column_by_level_;
};

}  // namespace rvma
