/// \file
/// What limited a run: how near each unit came to the most that it can do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/stats.hpp"
#include "base/units.hpp"
#include "report/recorder.hpp"
#include "workload/player.hpp"

namespace rvma {

/// A path without instance numbers: "node3.nic.parser" -> "node.nic.parser", "fabric.link.0-1" -> "fabric.link."
std::string without_numbers(std::string_view path);

/// One unit against its bound. Rates are exact ratios of work to time, so that they print without rounding twice.
struct Limit {
  std::string unit;  ///< full path of the unit and its statistic
  std::string kind;  ///< the same without instance numbers: units of one kind are alternatives, not a chain
  WorkKind work_kind = WorkKind::bits;
  const Widenings* widened_by = &kNotWidened;
  std::uint64_t work = 0;  ///< bits or operations in `elapsed`
  Time busy;
  Time elapsed;
  std::size_t order = 0;  ///< of registration: of a NIC's stores, what is further on a put's way comes later
  /// Share of its bound in parts per million: busy / elapsed.
  std::uint64_t share_ppm() const;
};

/// Each key that widens one of the units, once, in the order of the units, with its range as text.
std::vector<std::pair<std::string, std::string>> ranges_of_widening_keys(const std::vector<Limit>& limits,
                                                                         const std::vector<KeyRef>& keys);

/// A structure of the hardware, in whose place on the NIC something was missing, and how long all that is measured
/// waited for it in one stage. Statistics called `waited_in_STAGE_ns` say so.
struct StageWait {
  Stage stage = Stage::context;
  std::string unit;
  Time waited;
};
std::vector<StageWait> stage_waits(const StatsRegistry& registry);

/// The structure that refused most messages `busy`, since it had no place or could not look for one. Statistics called
/// `refused` say so.
struct Refusals {
  std::string unit;  ///< empty: there was none
  std::uint64_t count = 0;
};
Refusals most_refusals(const StatsRegistry& registry);

/// The verdict: a structure, if a quarter of all messages were refused for want of it; or else a unit; or, where no
/// unit was busy for three quarters of the time, a store that was full with something waiting for so long; or else the
/// longest stage of a message's way. Of the stages `turn` is left out: it is the wait for others, who wait for
/// something else.
enum class BottleneckKind : std::uint8_t { refusals, unit, store, latency };
struct Bottleneck {
  BottleneckKind kind = BottleneckKind::unit;
  std::string name;  ///< structure, unit, store, or "latency: STAGE"
  std::uint64_t share_ppm = 0;
  std::string next;  ///< what limits once the first is out of the way; empty if nothing ran
  std::uint64_t next_share_ppm = 0;
};

/// Notes how busy every unit was when the measured region began, with the first rank, and ended, with the last.
class LimitsObserver : public PlayerObserver {
 public:
  explicit LimitsObserver(const StatsRegistry& registry) : registry_(registry) {}
  void put_issued(const PutIssue& put) override;
  void marked(RankId rank, bool begin, Time at) override;
  /// All units that can say how busy they were, the busiest first; ties in order of registration. Without marks the
  /// time from the first issue to the last count or end of a put (`region`) is what they are related to.
  std::vector<Limit> limits(const RunRecorder::Region& region) const { return ranked(region, false); }
  /// The same of stores that were full with something waiting: work is the number of stalls, busy the time.
  std::vector<Limit> stalls(const RunRecorder::Region& region) const { return ranked(region, true); }

 private:
  struct Unit;
  struct Sample {
    Time busy;
    std::uint64_t work = 0;
  };
  std::vector<Sample> sample() const;
  std::vector<Limit> ranked(const RunRecorder::Region& region, bool are_stalls) const;

  const StatsRegistry& registry_;
  bool has_begun_ = false;
  bool has_ended_ = false;    ///< every rank that began has ended
  std::uint64_t inside_ = 0;  ///< ranks between their begin and their end
  Time begin_;
  Time end_;
  std::vector<Sample> at_begin_;
  std::vector<Sample> at_end_;
};

/// A stage in which a structure was waited for is told with the one that was waited for longest: "latency: context
/// (node0.nic.buffer_cache)".
Bottleneck find_bottleneck(const std::vector<Limit>& limits, const StageBreakdown& breakdown,
                           const std::vector<StageWait>& waits = {}, const std::vector<Limit>& stalls = {},
                           const Refusals& refusals = {}, std::uint64_t messages_opened = 0);

}  // namespace rvma
