#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "base/int128.hpp"
#include "base/value_text.hpp"
#include "report/number_format.hpp"
#include "report/run_report.hpp"

namespace rvma {
namespace {

constexpr std::size_t kLimitsShown = 6;
constexpr std::size_t kRecoveriesShown = 4;
constexpr std::size_t kBarWidth = 20;
constexpr std::uint64_t kMillion = 1'000'000;

std::string bar(std::uint64_t ppm) {
  const std::size_t full = static_cast<std::size_t>((ppm * kBarWidth + kMillion / 2) / kMillion);
  return std::string(full, '#') + std::string(kBarWidth - full, '.');
}

std::string ended_text(const RunTotals& totals) {
  std::string text;
  for (std::size_t i = 1; i < kOutcomes; ++i) {
    if (totals.ended[i] == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", totals.ended[i], ValueText<Outcome>::print(static_cast<Outcome>(i)));
  }
  if (totals.puts_failed > 0)
    text += fmt::format("{}{} failed at the call", text.empty() ? "" : ", ", totals.puts_failed);
  return text.empty() ? "none" : text;
}

void print_latency(std::ostream& out, const char* label, const Histogram& histogram) {
  if (histogram.count() == 0) return;
  out << fmt::format("  {:<17}{:>9} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}\n", label, histogram.count(),
                     to_ns_string(histogram.min()), to_ns_string(histogram.mean()),
                     to_ns_string(histogram.quantile(500)), to_ns_string(histogram.quantile(990)),
                     to_ns_string(histogram.quantile(999)), to_ns_string(histogram.max()));
}

void print_latencies(std::ostream& out, const RunRecorder& recorder) {
  if (recorder.put_to_completion().count() + recorder.put_to_ack().count() == 0) return;
  out << fmt::format("{:<19}{:>9} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}\n", "Latency (ns)", "samples", "min",
                     "mean", "p50", "p99", "p99.9", "max");
  print_latency(out, "put to completion", recorder.put_to_completion());
  print_latency(out, "put to ack", recorder.put_to_ack());
}

void print_breakdown(std::ostream& out, const StageBreakdown& breakdown) {
  if (breakdown.samples == 0) return;
  const auto means = breakdown.means();
  Time total;
  for (const Time mean : means) total += mean;
  out << fmt::format("Where the time of a put goes (mean of {}, ns)\n", breakdown.samples);
  for (std::size_t stage = 1; stage < kStages; ++stage) {
    const std::uint64_t ppm = total <= Time::zero() ? 0
                                                    : static_cast<std::uint64_t>(means[stage].ps()) * kMillion /
                                                          static_cast<std::uint64_t>(total.ps());
    out << fmt::format("  {:<20} {:>14} {} {:>5} %\n", ValueText<Stage>::print(static_cast<Stage>(stage)),
                       to_ns_string(means[stage]), bar(ppm), percent_text(ppm));
  }
  out << fmt::format("  {:<20} {:>14}\n", "total", to_ns_string(total));
}

void print_limits(std::ostream& out, const RunReport& report) {
  // Puts that end long after the last delivery (refused, timed out) keep units busy, or idle, for longer.
  const RunRecorder::Region& region = report.recorder->region();
  const bool ends_later = region.active() > region.duration() * 2;
  out << "How near each unit came to its bound"
      << (ends_later ? fmt::format(" (in {} ns, to the end of the last put; the rates above: in {} ns, to the last "
                                   "delivery)",
                                   to_ns_string(region.active()), to_ns_string(region.duration()))
                     : std::string{})
      << "\n";
  std::vector<std::string> kinds;
  for (const Limit& limit : report.limits) {
    // The busiest of each kind stands for all of that kind.
    if (std::find(kinds.begin(), kinds.end(), limit.kind) != kinds.end()) continue;
    kinds.push_back(limit.kind);
    if (kinds.size() > kLimitsShown) break;
    const bool bits = limit.work_kind == WorkKind::bits;
    const std::uint64_t scale = bits ? 1000 : kMillion;
    out << fmt::format("  {:<36} {:>8} of {:>8} {} {} {:>5} %\n", limit.unit,
                       rate_text(limit.work, scale, limit.elapsed, 1), rate_text(limit.work, scale, limit.busy, 1),
                       bits ? "Gb/s" : "M/s ", bar(limit.share_ppm()), percent_text(limit.share_ppm()));
  }
}

void print_verdict(std::ostream& out, const RunReport& report) {
  const Bottleneck& verdict = report.bottleneck;
  if (verdict.name.empty()) {
    out << (report.recorder->operations() == 0
                ? "Limited by: nothing ran\n"
                : "Limited by: unknown, since no message that was measured was delivered\n");
    return;
  }
  const char* const measure = verdict.kind == BottleneckKind::latency    ? "of the time of a put"
                              : verdict.kind == BottleneckKind::store    ? "of the time full, with something waiting"
                              : verdict.kind == BottleneckKind::refusals ? "of messages refused, to come again"
                                                                         : "busy";
  out << fmt::format("Limited by: {} ({} % {})\n      next: {} ({} %)\n", verdict.name, percent_text(verdict.share_ppm),
                     measure, verdict.next.empty() ? "nothing" : verdict.next, percent_text(verdict.next_share_ppm));
}

std::string ns_text(detail::uint128 ps) {
  const auto whole_ns = static_cast<std::uint64_t>(ps / 1000);
  const std::string fraction = to_ns_string(Time::from_ps(static_cast<std::int64_t>(ps % 1000)));  // "0.123"
  return std::to_string(whole_ns) + fraction.substr(1);
}

/// Sums of the cores' statistics by name: what waiting cost.
void print_cores(std::ostream& out, const RunReport& report) {
  std::uint64_t polls = 0;
  std::uint64_t wakeups = 0;
  std::uint64_t interrupts = 0;
  // Of all cores together: more than a Time holds.
  detail::uint128 burned_ps = 0;
  detail::uint128 asleep_ps = 0;
  report.stats->for_each([&](const StatsRegistry::Entry& entry) {
    if (entry.unit_path.find(".core") == std::string_view::npos) return;
    if (const auto* counter = entry.as<Counter>()) {
      if (entry.name == "polls") polls += counter->value();
      if (entry.name == "wakeups") wakeups += counter->value();
      if (entry.name == "interrupts") interrupts += counter->value();
    } else if (const auto* time = entry.as<TimeSum>()) {
      if (entry.name == "burned_ns") burned_ps += static_cast<std::uint64_t>(time->value().ps());
      if (entry.name == "asleep_ns") asleep_ps += static_cast<std::uint64_t>(time->value().ps());
    }
  });
  out << fmt::format("Cores: {} polls, {} wake-ups, {} interrupts; {} ns burned waiting, {} ns asleep\n", polls,
                     wakeups, interrupts, ns_text(burned_ps), ns_text(asleep_ps));
}

/// Messages that were refused, by reason, and which structures had no room for them. Those that their NIC sends again
/// end well, and would go unseen.
void print_refusals(std::ostream& out, const RunReport& report) {
  const RunTotals& totals = report.recorder->totals();
  std::string reasons;
  for (std::size_t i = 0; i < totals.refused.size(); ++i) {
    if (totals.refused[i] == 0) continue;
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", totals.refused[i],
                           ValueText<Outcome>::print(static_cast<Outcome>(i)));
  }
  if (reasons.empty()) return;
  out << "Refused: " << reasons;
  if (report.refusals.count > 0) {
    out << fmt::format("; most because of {} ({})", report.refusals.unit, report.refusals.count);
  }
  out << "\n";
}

void print_rewind(std::ostream& out, const RecoveryLog& log, const Recovery& recovery) {
  std::string text = fmt::format("Rewind: node {}, {:#018x}: ", recovery.node.value(), recovery.mailbox.value());
  const Time since = recovery.crash ? log.crashes()[*recovery.crash].at : recovery.begin;
  const char* const what = recovery.crash ? "crash" : "rewind";
  if (recovery.end.is_never()) {
    text += "not over";
  } else if (recovery.caught_up.is_never()) {
    text += fmt::format("took {} ns, not caught up", to_ns_string(recovery.end - recovery.begin));
  } else {
    text += fmt::format("took {} ns, caught up {} ns after the {}", to_ns_string(recovery.end - recovery.begin),
                        to_ns_string(recovery.caught_up - since), what);
  }
  out << text << "\n";
  out << fmt::format("  {} bytes in {} packets taken back, {} packets sent again\n", recovery.lost_bytes,
                     recovery.lost_packets, recovery.resent_packets);
}

void print_recovery(std::ostream& out, const RecoveryLog& log) {
  std::size_t shown = 0;
  for (const NodeCrash& crash : log.crashes()) {
    if (++shown > kRecoveriesShown) break;
    out << fmt::format(
        "Crash: node {} at {} ns, {}\n", crash.node.value(), to_ns_string(crash.at),
        crash.restart.is_never() ? "not back" : "back after " + to_ns_string(crash.restart - crash.at) + " ns");
  }
  if (shown > kRecoveriesShown) out << fmt::format("Crash: and {} more\n", log.crashes().size() - kRecoveriesShown);
  shown = 0;
  for (const Recovery& recovery : log.recoveries()) {
    if (++shown > kRecoveriesShown) break;
    print_rewind(out, log, recovery);
  }
  if (shown > kRecoveriesShown) out << fmt::format("Rewind: and {} more\n", log.recoveries().size() - kRecoveriesShown);
}

}  // namespace

void print_summary(std::ostream& out, const RunReport& report) {
  const RunRecorder& recorder = *report.recorder;
  const RunTotals& totals = recorder.totals();
  const RunRecorder::Region& region = recorder.region();

  out << fmt::format("{}: {} ranks on {} nodes, {}, seed {}{}\n", report.trace, report.ranks, report.nodes,
                     report.topology, report.seed, report.partial ? " -- PARTIAL" : "");
  out << fmt::format("Simulated {} ns ({} cycles); {} packets/s of wall time, {} activations a packet\n",
                     to_ns_string(report.end), report.cycles, packets_per_wall_s(report),
                     ratio_text(report.activations, totals.packets_delivered, 1));
  out << fmt::format("Puts: {} ({}); messages delivered {}, bytes {}; completions {}\n", totals.puts,
                     ended_text(totals), totals.messages_delivered, totals.bytes_delivered, totals.completions);
  print_refusals(out, report);
  std::string steady = "-";
  std::uint64_t steady_bytes = 0;
  Time steady_time;
  if (recorder.delivered().steady(steady_bytes, steady_time)) steady = gbps_text(steady_bytes, steady_time);
  out << fmt::format("Rate{}: goodput {} Gb/s (steady {}), wire {} Gb/s, {} M messages/s\n",
                     recorder.has_marks() ? " (marked)" : "", gbps_text(region.payload_bytes, region.duration()),
                     steady, gbps_text(region.wire_bytes, region.duration()),
                     rate_text(region.messages, kMillion, region.duration()));
  print_latencies(out, recorder);
  print_breakdown(out, recorder.breakdown());
  print_limits(out, report);
  print_cores(out, report);
  print_verdict(out, report);
  for (const std::string& line : recorder.unmatched()) out << "Unmatched: " << line << "\n";
  if (recorder.unmatched_count() > recorder.unmatched().size()) {
    out << fmt::format("Unmatched: and {} more\n", recorder.unmatched_count() - recorder.unmatched().size());
  }
  if (report.recovery != nullptr) print_recovery(out, *report.recovery);
  if (report.scoreboard != nullptr) {
    out << fmt::format(
        "Check: {} ({} completions, {} bytes compared)\n",
        report.scoreboard->passed() ? "passed" : fmt::format("FAILED {} times", report.scoreboard->failure_count()),
        report.scoreboard->checked_completions(), report.scoreboard->checked_bytes());
  }
  if (!report.out_dir.empty()) out << "Results: " << report.out_dir << "\n";
}

}  // namespace rvma
