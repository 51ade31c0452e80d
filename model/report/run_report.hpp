/// \file
/// Everything that is known about a finished (or stopped) run, for stats.json and the summary.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "base/stats.hpp"
#include "base/units.hpp"
#include "nic/on_chip_bytes.hpp"
#include "report/limits.hpp"
#include "report/nic_state.hpp"
#include "report/recorder.hpp"
#include "report/recovery_log.hpp"
#include "report/scoreboard.hpp"

namespace rvma {

struct RunReport {
  std::string trace;     ///< as the user named it
  std::string topology;  ///< resolved
  std::uint32_t ranks = 0;
  std::uint32_t nodes = 0;
  std::uint64_t seed = 0;
  boost::json::value config;  ///< resolved
  /// Path and range_text() of the keys that widen a unit (base/widening.hpp).
  std::vector<std::pair<std::string, std::string>> key_ranges;

  OnChipBytes on_chip;  ///< of one NIC
  NicStates states;

  Time end;                       ///< of the last event
  std::uint64_t cycles = 0;       ///< of nic.clock until then
  std::uint64_t events = 0;       ///< notifications asked of the kernel
  std::uint64_t activations = 0;  ///< of all processes
  std::uint64_t wall_ns = 0;      ///< simulation only; like the next two, not the same from run to run
  std::uint64_t peak_rss_bytes = 0;

  /// Why the run is not a success; empty if it is. `partial`: stopped before its end.
  std::vector<std::string> problems;
  bool partial = false;

  const RunRecorder* recorder = nullptr;
  const Scoreboard* scoreboard = nullptr;  ///< null without --check
  const RecoveryLog* recovery = nullptr;   ///< null where no node is told to crash
  const StatsRegistry* stats = nullptr;
  std::vector<Limit> limits;
  std::vector<Limit> stalls;
  std::vector<StageWait> waits;
  Refusals refusals;
  Bottleneck bottleneck;
  std::string out_dir;  ///< empty: no results were written
};

/// Delivered data packets (no duplicates, no acknowledgements) per second of wall time.
std::uint64_t packets_per_wall_s(const RunReport& report);

/// stats.json, schema rvma-stats/1.
void write_stats_json(std::ostream& out, const RunReport& report);
/// One screen: at most 100 columns, about 40 lines.
void print_summary(std::ostream& out, const RunReport& report);

}  // namespace rvma
