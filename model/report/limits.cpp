#include "report/limits.hpp"

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/int128.hpp"
#include "base/value_text.hpp"

namespace rvma {
namespace {

constexpr std::uint64_t kMillion = 1'000'000;
/// From this share on a unit is what limits; below it, it waits for something itself a good part of the time.
constexpr std::uint64_t kBusyPpm = 750'000;
/// A store that was full for as long limits although a unit was busy, if that was busy for less than kSaturatedPpm: it
/// would do more, if more were under way. A unit beyond that fills the stores before it.
constexpr std::uint64_t kFullPpm = 950'000;
constexpr std::uint64_t kSaturatedPpm = 900'000;
/// Of all messages: where so many are refused, units are busy with what comes again.
constexpr std::uint64_t kRefusedPpm = 250'000;

}  // namespace

std::string without_numbers(std::string_view path) {
  std::string kind;
  for (const char c : path) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0 && c != '-') kind += c;
  }
  return kind;
}

namespace {

/// Units of which a list of limits tells, the busiest of each kind besides.
constexpr std::size_t kMostLimits = 4096;

/// In parts per million.
std::uint64_t share_of(Time busy, Time elapsed) {
  if (elapsed <= Time::zero()) return 0;
  // Work that was announced ahead of its time may reach a little beyond the region.
  const auto share = static_cast<std::uint64_t>(static_cast<detail::uint128>(busy.ps()) * kMillion /
                                                static_cast<std::uint64_t>(elapsed.ps()));
  return std::min(share, kMillion);
}

}  // namespace

/// One of a hundred thousand, without the strings that a Limit has.
struct LimitsObserver::Unit {
  std::optional<StatsRegistry::Entry> entry;  ///< none: of `table`
  const UtilisationTable* table = nullptr;
  std::size_t index = 0;  ///< in `table`
  const Utilisation* utilisation = nullptr;
  Sample sample;
  std::size_t order = 0;
  std::string path() const { return entry ? entry->path() : table->unit(index); }
};

std::uint64_t Limit::share_ppm() const { return share_of(busy, elapsed); }

std::vector<LimitsObserver::Sample> LimitsObserver::sample() const {
  std::vector<Sample> samples;
  samples.reserve(at_begin_.size());
  registry_.for_each_utilisation([&](const StatsRegistry::Entry& /*entry*/, const Utilisation& unit) {
    samples.push_back({unit.busy(), unit.work()});
  });
  for (const UtilisationTable* table : registry_.tables()) {
    for (std::size_t i = 0; i < table->size(); ++i) {
      samples.push_back({table->utilisation(i).busy(), table->utilisation(i).work()});
    }
  }
  return samples;
}

void LimitsObserver::put_issued(const PutIssue& /*put*/) {
  // Without marks: what setting up took belongs to nothing that is measured.
  if (at_begin_.empty()) at_begin_ = sample();
}

void LimitsObserver::marked(RankId /*rank*/, bool begin, Time at) {
  if (begin) {
    ++inside_;
    if (has_begun_) return;
    has_begun_ = true;
    begin_ = at;
    at_begin_ = sample();
    return;
  }
  if (inside_ > 0) --inside_;
  // Only with the last rank does the region end: a sample looks at every unit, and there are as many ranks as nodes.
  has_ended_ = inside_ == 0;
  if (!has_ended_) return;
  end_ = at;
  at_end_ = sample();
}

std::vector<Limit> LimitsObserver::ranked(const RunRecorder::Region& region, bool are_stalls) const {
  const std::vector<Sample> last = has_ended_ ? at_end_ : sample();
  Time elapsed = region.active();
  if (has_begun_) elapsed = (has_ended_ ? end_ : std::max({begin_, region.last, region.ended})) - begin_;
  std::vector<Unit> units;
  std::size_t index = 0;
  const auto since_begin = [&](std::size_t of) {
    const Sample before = at_begin_.empty() ? Sample{} : at_begin_[of];
    return Sample{last[of].busy - before.busy, last[of].work - before.work};
  };
  registry_.for_each_utilisation([&](const StatsRegistry::Entry& entry, const Utilisation& unit) {
    const std::size_t at = index++;
    if ((unit.kind() == WorkKind::stalls) == are_stalls) {
      units.push_back({entry, nullptr, 0, &unit, since_begin(at), at});
    }
  });
  for (const UtilisationTable* table : registry_.tables()) {
    // Its busiest unit stands for all of them.
    std::size_t busiest = 0;
    for (std::size_t i = 1; i < table->size(); ++i) {
      if (since_begin(index + busiest).busy < since_begin(index + i).busy) busiest = i;
    }
    if (table->size() > 0 && !are_stalls) {
      units.push_back(
          {std::nullopt, table, busiest, &table->utilisation(busiest), since_begin(index + busiest), index + busiest});
    }
    index += table->size();
  }
  std::stable_sort(units.begin(), units.end(), [&](const Unit& a, const Unit& b) {
    return share_of(a.sample.busy, elapsed) > share_of(b.sample.busy, elapsed);
  });
  // Of each kind the busiest, which the verdict may need, and of all that are busiest as many as anybody looks at.
  std::vector<Limit> limits;
  boost::unordered_flat_set<std::string> kinds;
  for (const Unit& unit : units) {
    const std::string path = unit.path();
    std::string kind = without_numbers(path);
    if (!kinds.insert(kind).second && limits.size() >= kMostLimits) continue;
    limits.push_back({path, std::move(kind), unit.utilisation->kind(), &unit.utilisation->widened_by(),
                      unit.sample.work, unit.sample.busy, elapsed, unit.order});
  }
  return limits;
}

std::vector<std::pair<std::string, std::string>> ranges_of_widening_keys(const std::vector<Limit>& limits,
                                                                         const std::vector<KeyRef>& keys) {
  std::vector<std::pair<std::string, std::string>> ranges;
  std::set<std::string_view> seen;
  for (const Limit& limit : limits) {
    for (const Widening& widening : *limit.widened_by) {
      if (widening.key == nullptr || !seen.insert(widening.key).second) continue;
      const auto key = std::find_if(keys.begin(), keys.end(), [&](const KeyRef& k) { return k.path == widening.key; });
      RVMA_ASSERT(key != keys.end(), "a unit is widened by a key that exists");
      ranges.emplace_back(key->path, key->key->range_text());
    }
  }
  return ranges;
}

std::vector<StageWait> stage_waits(const StatsRegistry& registry) {
  constexpr std::string_view kPrefix = "waited_in_";
  constexpr std::string_view kSuffix = "_ns";
  std::vector<StageWait> waits;
  registry.for_each([&](const StatsRegistry::Entry& entry) {
    if (entry.name.substr(0, kPrefix.size()) != kPrefix) return;
    const auto* time = entry.as<TimeSum>();
    if (time == nullptr || time->value() == Time::zero()) return;
    std::string_view name = entry.name.substr(kPrefix.size());
    name.remove_suffix(kSuffix.size());
    const ValueResult<Stage> stage = ValueText<Stage>::parse(name);
    if (stage) waits.push_back({*stage, std::string{entry.unit_path}, time->value()});
  });
  return waits;
}

Refusals most_refusals(const StatsRegistry& registry) {
  Refusals most;
  registry.for_each([&](const StatsRegistry::Entry& entry) {
    // The delivery unit tells what others have decided.
    const bool decides = entry.unit_path.find(".delivery") == std::string_view::npos;
    const auto* counter = entry.as<Counter>();
    if (entry.name != "refused" || !decides || counter == nullptr || counter->value() <= most.count) return;
    most.count = counter->value();
    most.unit = entry.unit_path;
  });
  return most;
}

namespace {

/// Of the stores of the fullest one's node that were as good as always full: those before the innermost are full
/// because of it.
const Limit& innermost(const std::vector<Limit>& stalls) {
  const auto node_of = [](const Limit& stall) { return std::string_view{stall.unit}.substr(0, stall.unit.find('.')); };
  const Limit* found = &stalls.front();
  for (const Limit& stall : stalls) {
    if (stall.share_ppm() < kBusyPpm) break;
    if (node_of(stall) == node_of(*found) && stall.order > found->order) found = &stall;
  }
  return *found;
}

}  // namespace

Bottleneck find_bottleneck(const std::vector<Limit>& limits, const StageBreakdown& breakdown,
                           const std::vector<StageWait>& waits, const std::vector<Limit>& stalls,
                           const Refusals& refusals, std::uint64_t messages_opened) {
  Bottleneck verdict;
  if (limits.empty() || (limits.front().share_ppm() == 0 && breakdown.samples == 0)) return verdict;
  const Limit& first = limits.front();
  const auto second =
      std::find_if(limits.begin(), limits.end(), [&](const Limit& limit) { return limit.kind != first.kind; });
  if (messages_opened > 0 && refusals.count * kMillion / messages_opened >= kRefusedPpm) {
    verdict.kind = BottleneckKind::refusals;
    verdict.name = refusals.unit;
    verdict.share_ppm = std::min(refusals.count * kMillion / messages_opened, kMillion);
    verdict.next = first.unit;
    verdict.next_share_ppm = first.share_ppm();
    return verdict;
  }
  const std::uint64_t full = stalls.empty() ? 0 : stalls.front().share_ppm();
  const bool is_starved = full >= kFullPpm && first.share_ppm() < kSaturatedPpm;
  if ((first.share_ppm() >= kBusyPpm && !is_starved) || breakdown.samples == 0) {
    verdict.name = first.unit;
    verdict.share_ppm = first.share_ppm();
    if (second != limits.end()) {
      verdict.next = second->unit;
      verdict.next_share_ppm = second->share_ppm();
    }
    return verdict;
  }
  // Nobody was busy for most of the time: what was to be done waited for places that others had taken.
  if (full >= kBusyPpm) {
    const Limit& store = innermost(stalls);
    verdict.kind = BottleneckKind::store;
    verdict.name = store.unit;
    verdict.share_ppm = store.share_ppm();
    verdict.next = first.unit;
    verdict.next_share_ppm = first.share_ppm();
    return verdict;
  }
  // Or messages spent it on their way, most of it in the longest stage.
  std::vector<std::size_t> stages;
  for (std::size_t stage = 1; stage < kStages; ++stage) {
    if (static_cast<Stage>(stage) != Stage::turn) stages.push_back(stage);
  }
  std::stable_sort(stages.begin(), stages.end(),
                   [&](std::size_t a, std::size_t b) { return breakdown.sums[b] < breakdown.sums[a]; });
  Time total;
  for (const Time sum : breakdown.sums) total += sum;
  const auto share = [&](std::size_t stage) {
    return total <= Time::zero() ? 0
                                 : static_cast<std::uint64_t>(static_cast<detail::uint128>(breakdown.sums[stage].ps()) *
                                                              kMillion / static_cast<std::uint64_t>(total.ps()));
  };
  const auto name = [&](std::size_t stage) {
    std::string text = "latency: " + ValueText<Stage>::print(static_cast<Stage>(stage));
    const StageWait* longest = nullptr;
    for (const StageWait& wait : waits) {
      const bool is_here = wait.stage == static_cast<Stage>(stage);
      if (is_here && (longest == nullptr || longest->waited < wait.waited)) longest = &wait;
    }
    return longest == nullptr ? text : text + " (" + longest->unit + ")";
  };
  verdict.kind = BottleneckKind::latency;
  verdict.name = name(stages[0]);
  verdict.share_ppm = share(stages[0]);
  verdict.next = name(stages[1]);
  verdict.next_share_ppm = share(stages[1]);
  return verdict;
}

}  // namespace rvma
