#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/mp11/algorithm.hpp>
#include <ostream>
#include <sstream>

#include "base/value_text.hpp"
#include "report/json_writer.hpp"
#include "report/number_format.hpp"
#include "report/run_report.hpp"
#include "report/shortening.hpp"

namespace rvma {
namespace {

void write_histogram(JsonWriter& json, std::string_view key, const Histogram& histogram) {
  json.open_object(key);
  json.number("count", histogram.count());
  json.time("min", histogram.min());
  json.time("mean", histogram.mean());
  json.time("p50", histogram.quantile(500));
  json.time("p99", histogram.quantile(990));
  json.time("p999", histogram.quantile(999));
  json.time("max", histogram.max());
  json.close_object();
}

/// The shape of a distribution: [parts per thousand, ns that so many samples do not exceed].
void write_quantiles(JsonWriter& json, std::string_view key, const Histogram& histogram) {
  json.open_array(key);
  const auto point = [&](unsigned parts_per_thousand) {
    json.raw("", "[" + std::to_string(parts_per_thousand) + "," + to_ns_string(histogram.quantile(parts_per_thousand)) +
                     "]");
  };
  if (histogram.count() > 0) {
    for (unsigned parts = 0; parts < 990; parts += 25) point(parts);
    for (const unsigned parts : {990U, 999U, 1000U}) point(parts);
  }
  json.close_array();
}

/// One statistic of a unit, in its own form.
class StatWriter : public StatVisitor {
 public:
  StatWriter(JsonWriter& json, Time elapsed) : json_(json), elapsed_(elapsed) {}
  void counter(const std::string& name, const Counter& stat) override { json_.number(name, stat.value()); }
  void time_sum(const std::string& name, const TimeSum& stat) override { json_.time(name, stat.value()); }
  void peak(const std::string& name, const Peak& stat) override { json_.number(name, stat.value()); }
  void histogram(const std::string& name, const Histogram& stat) override { write_histogram(json_, name, stat); }
  void utilisation(const std::string& name, const Utilisation& stat) override {
    json_.open_object(name);
    json_.number(name_of(stat.kind()), stat.work());
    json_.time(stat.kind() == WorkKind::stalls ? "stalled_ns" : "busy_ns", stat.busy());
    json_.number("share", ratio_text(static_cast<std::uint64_t>(stat.busy().ps()),
                                     static_cast<std::uint64_t>(elapsed_.ps()), 6));
    json_.close_object();
  }

 private:
  JsonWriter& json_;
  Time elapsed_;
};

std::uint64_t stat_sum(const StatsRegistry& stats, std::string_view name) {
  std::uint64_t sum = 0;
  stats.for_each([&](const StatsRegistry::Entry& entry) {
    if (entry.name != name) return;
    if (const auto* counter = entry.as<Counter>()) sum += counter->value();
  });
  return sum;
}

void write_totals(JsonWriter& json, const RunReport& report) {
  const RunTotals& totals = report.recorder->totals();
  json.open_object("totals");
  json.number("puts", totals.puts);
  json.number("puts_failed", totals.puts_failed);
  json.number("messages_opened", totals.messages_opened);
  json.number("messages_delivered", totals.messages_delivered);
  json.number("bytes_delivered", totals.bytes_delivered);
  json.number("completions", totals.completions);
  json.open_object("ended");
  for (std::size_t i = 1; i < kOutcomes; ++i) {
    json.number(ValueText<Outcome>::print(static_cast<Outcome>(i)), totals.ended[i]);
  }
  json.close_object();
  json.open_object("refusals");
  for (std::size_t i = static_cast<std::size_t>(Outcome::no_mailbox); i <= static_cast<std::size_t>(Outcome::busy);
       ++i) {
    json.number(ValueText<Outcome>::print(static_cast<Outcome>(i)), totals.refused[i]);
  }
  json.number("timeout", totals.ended[static_cast<std::size_t>(Outcome::timeout)]);
  json.close_object();
  json.open_object("packets");
  json.number("sent", totals.packets_sent);
  json.number("delivered", totals.packets_delivered);
  json.number("dropped", totals.packets_lost);
  json.number("duplicate", totals.packets_duplicate);
  json.number("retransmitted", totals.packets_resent);
  json.number("copied", totals.packets_copied);
  json.number("corrupt", totals.packets_corrupt);
  json.number("out_of_order", stat_sum(*report.stats, "out_of_order"));
  json.number("ignored", totals.packets_ignored);
  json.number("acknowledgements", totals.acknowledgements_sent);
  json.number("acknowledgements_dropped", totals.acknowledgements_lost);
  json.close_object();
  json.close_object();
}

/// What never came to be is null.
void write_moment(JsonWriter& json, std::string_view key, Time at) {
  if (at.is_never()) {
    json.raw(key, "null");
  } else {
    json.time(key, at);
  }
}

void write_recovery(JsonWriter& json, const RecoveryLog& log) {
  json.open_object("recovery");
  json.open_array("crashes");
  for (const NodeCrash& crash : log.crashes()) {
    json.open_object();
    json.number("node", crash.node.value());
    json.time("crash_ns", crash.at);
    write_moment(json, "restart_ns", crash.restart);
    json.close_object();
  }
  json.close_array();
  json.open_array("rewinds");
  for (const Recovery& recovery : log.recoveries()) {
    json.open_object();
    json.number("node", recovery.node.value());
    json.number("pid", recovery.pid.value());
    json.text("mailbox", fmt::format("{:#018x}", recovery.mailbox.value()));
    if (recovery.crash) {
      json.number("crash", std::uint64_t{*recovery.crash});
    } else {
      json.raw("crash", "null");
    }
    json.time("begin_ns", recovery.begin);
    write_moment(json, "end_ns", recovery.end);
    json.number("first_epoch", recovery.epoch.value());
    json.number("last_epoch", recovery.interrupted.value());
    write_moment(json, "first_again_ns", recovery.first);
    write_moment(json, "last_again_ns", recovery.caught_up);
    json.number("lost_packets", recovery.lost_packets);
    json.number("lost_bytes", recovery.lost_bytes);
    json.number("resent_packets", recovery.resent_packets);
    json.number("resent_wire_bytes", recovery.resent_bytes);
    json.close_object();
  }
  json.close_array();
  json.close_object();
}

void write_bandwidth(JsonWriter& json, const RunReport& report) {
  const RunRecorder::Region& region = report.recorder->region();
  json.open_object("bandwidth_gbps");
  json.number("goodput", gbps_text(region.payload_bytes, region.duration()));
  json.number("wire", gbps_text(region.wire_bytes, region.duration()));
  std::uint64_t steady_bytes = 0;
  Time steady_time;
  if (report.recorder->delivered().steady(steady_bytes, steady_time)) {
    json.number("goodput_steady", gbps_text(steady_bytes, steady_time));
  } else {
    json.raw("goodput_steady", "null");
  }
  json.number("goodput_whole_run", gbps_text(report.recorder->totals().bytes_delivered, report.end));
  json.close_object();
  json.number("message_rate_mpps", rate_text(region.messages, 1'000'000, region.duration()));
}

void write_units(JsonWriter& json, const RunReport& report) {
  StatWriter writer(json, report.end);
  json.open_object("units");
  report.stats->for_each_unit([&](const std::string& unit) { json.open_object(unit); },
                              [&](const StatsRegistry::Entry& entry) { entry.visit(writer); },
                              [&] { json.close_object(); });
  json.close_object();
}

void write_widenings(JsonWriter& json, const Widenings& widened_by) {
  json.open_array("widened_by");
  for (const Widening& widening : widened_by) {
    if (widening.key == nullptr) continue;
    json.open_object();
    json.text("key", widening.key);
    json.text("effect", ValueText<Effect>::print(widening.effect));
    json.close_object();
  }
  json.close_array();
}

void write_limits(JsonWriter& json, const RunReport& report) {
  json.open_array("limits");
  for (const Limit& limit : report.limits) {
    const bool bits = limit.work_kind == WorkKind::bits;
    // bits / ps is Tb/s, operations / ps is 10^6 Mpps.
    const std::uint64_t scale = bits ? 1000 : 1'000'000;
    json.open_object();
    json.text("unit", limit.unit);
    json.number(bits ? "bound_gbps" : "bound_mpps", rate_text(limit.work, scale, limit.busy));
    json.number("achieved", rate_text(limit.work, scale, limit.elapsed));
    json.number("share", ratio_text(limit.share_ppm(), 1'000'000, 6));
    write_widenings(json, *limit.widened_by);
    json.close_object();
  }
  json.close_array();
  json.open_array("stalls");
  for (const Limit& stall : report.stalls) {
    if (stall.work == 0) continue;
    json.open_object();
    json.text("unit", stall.unit);
    json.number("stalls", stall.work);
    json.number("share", ratio_text(stall.share_ppm(), 1'000'000, 6));
    write_widenings(json, *stall.widened_by);
    json.close_object();
  }
  json.close_array();
}

/// What a report needs in order to say what to change: where stages waited, and of which keys they consist.
void write_remedies(JsonWriter& json, const RunReport& report) {
  json.open_array("waits");
  for (const StageWait& wait : report.waits) {
    json.open_object();
    json.text("stage", ValueText<Stage>::print(wait.stage));
    json.text("unit", wait.unit);
    json.time("waited_ns", wait.waited);
    json.close_object();
  }
  json.close_array();
  json.open_array("shortened_by");
  for (const Shortening& shortening : kShortenings) {
    json.open_object();
    json.text("stage", ValueText<Stage>::print(shortening.stage));
    json.text("key", shortening.key);
    json.text("occurs", ValueText<Occurs>::print(shortening.occurs));
    json.close_object();
  }
  json.close_array();
  json.open_object("key_ranges");
  for (const auto& [key, range] : report.key_ranges) json.text(key, range);
  json.close_object();
}

/// Memory of one NIC as it is configured.
void write_on_chip(JsonWriter& json, const OnChipBytes& bytes) {
  json.open_object("on_chip_bytes");
  boost::mp11::mp_for_each<boost::describe::describe_members<OnChipBytes, boost::describe::mod_public>>(
      [&](auto member) { json.number(member.name, bytes.*member.pointer); });
  json.number("total", bytes.total());
  json.close_object();
}

void write_state_bytes(JsonWriter& json, const NicStateBytes& bytes) {
  boost::mp11::mp_for_each<boost::describe::describe_members<NicStateBytes, boost::describe::mod_public>>(
      [&](auto member) { json.number(member.name, bytes.*member.pointer); });
  json.number("total", bytes.total());
}

/// What the run asked of the NICs.
void write_nic_state(JsonWriter& json, const NicStates& states) {
  json.open_object("nic_state_bytes");
  json.open_object("all");
  write_state_bytes(json, states.all);
  json.close_object();
  json.open_object("largest");
  json.number("node", states.node.value());
  write_state_bytes(json, states.largest);
  json.close_object();
  json.close_object();
}

}  // namespace

std::uint64_t packets_per_wall_s(const RunReport& report) {
  if (report.wall_ns == 0) return 0;
  const std::uint64_t wall_us = report.wall_ns / 1000 + 1;
  return report.recorder->totals().packets_delivered * 1'000'000 / wall_us;
}

void write_stats_json(std::ostream& out, const RunReport& report) {
  JsonWriter json(out);
  json.open_object();
  json.text("schema", "rvma-stats/1");

  json.open_object("check");
  json.boolean("enabled", report.scoreboard != nullptr);
  if (report.scoreboard == nullptr) {
    json.raw("passed", "null");
  } else {
    json.boolean("passed", report.scoreboard->passed());
  }
  json.number("failures", report.scoreboard == nullptr ? 0 : report.scoreboard->failure_count());
  json.number("completions", report.scoreboard == nullptr ? 0 : report.scoreboard->checked_completions());
  json.number("bytes", report.scoreboard == nullptr ? 0 : report.scoreboard->checked_bytes());
  json.close_object();

  json.open_object("run");
  json.text("trace", report.trace);
  json.number("ranks", report.ranks);
  json.number("nodes", report.nodes);
  json.text("topology", report.topology);
  json.number("seed", report.seed);
  json.number("operations", report.recorder->operations());
  json.boolean("partial", report.partial);
  json.open_array("problems");
  for (const std::string& problem : report.problems) json.text("", problem);
  json.close_array();
  json.close_object();

  json.open_object("sim");
  json.time("time_ns", report.end);
  json.number("cycles", report.cycles);
  json.number("events", report.events);
  json.number("activations", report.activations);
  json.number("wall_s", ratio_text(report.wall_ns, 1'000'000'000, 6));
  json.number("packets_per_wall_s", packets_per_wall_s(report));
  json.number("peak_rss_bytes", report.peak_rss_bytes);
  json.close_object();

  write_totals(json, report);
  if (report.recovery != nullptr) write_recovery(json, *report.recovery);
  json.open_object("latency_ns");
  write_histogram(json, "put_to_completion", report.recorder->put_to_completion());
  write_histogram(json, "put_to_seen", report.recorder->put_to_seen());
  write_histogram(json, "put_to_ack", report.recorder->put_to_ack());
  json.close_object();
  json.open_object("latency_quantiles");
  write_quantiles(json, "put_to_completion", report.recorder->put_to_completion());
  write_quantiles(json, "put_to_seen", report.recorder->put_to_seen());
  write_quantiles(json, "put_to_ack", report.recorder->put_to_ack());
  json.close_object();

  json.open_object("breakdown_ns");
  json.number("samples", report.recorder->breakdown().samples);
  const auto means = report.recorder->breakdown().means();
  Time total;
  for (std::size_t stage = 1; stage < kStages; ++stage) {
    json.time(ValueText<Stage>::print(static_cast<Stage>(stage)), means[stage]);
    total += means[stage];
  }
  json.time("total", total);
  json.close_object();

  write_bandwidth(json, report);
  write_units(json, report);
  write_limits(json, report);
  json.text("bottleneck", report.bottleneck.name);
  json.open_object("next");
  json.text("unit", report.bottleneck.next);
  json.number("share", ratio_text(report.bottleneck.next_share_ppm, 1'000'000, 6));
  json.close_object();
  write_remedies(json, report);
  write_on_chip(json, report.on_chip);
  write_nic_state(json, report.states);
  json.raw("config", boost::json::serialize(report.config));
  json.close_object();
}

}  // namespace rvma
