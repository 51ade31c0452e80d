/// \file
/// A finished run to be written and printed: random latencies, and units with every kind of statistic.
#pragma once

#include <memory>
#include <string>

#include "base/random.hpp"
#include "base/stats.hpp"
#include "fake_nic.hpp"
#include "report/run_report.hpp"

namespace rvma::test {

struct EveryStats {
  Counter out_of_order{"packets", "counter"};
  TimeSum waited_ns{"time sum"};
  Peak queue{"entries", "peak"};
  Histogram delay_ns{"histogram"};
  Utilisation wire{WorkKind::bits, "utilisation in bits", kNotWidened};
  Utilisation port{WorkKind::operations, "utilisation in operations", kNotWidened};
  BOOST_DESCRIBE_CLASS(EveryStats, (), (out_of_order, waited_ns, queue, delay_ns, wire, port), (), ())
};

class FinishedRun {
 public:
  /// Every epoch takes `more` than random times.
  explicit FinishedRun(std::uint64_t seed, Time more = Time::zero()) : random_(seed) {
    ErrorList errors;
    trace_ = Trace::from_text("rvma-trace 1\nranks 2\n", "test", errors);
    recorder_ = std::make_unique<RunRecorder>(*trace_, registry_, RunRecorder::Files{}, RunRecorder::ReadBuffer{},
                                              std::function<void(Time)>{});
    FakeNic nic(registry_, {recorder_.get()}, {recorder_.get()});
    nic.recorder_issues = true;
    const std::uint64_t epochs = 1 + random_.below(20);
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      const Buffer buffer = nic.post(4096);
      Put put = nic.put(random_.below(1000));
      Time at = nic.now();
      for (Time& left : nic.left) left = at += Time::from_ps(static_cast<std::int64_t>(random_.below(1'000'000)));
      nic.claim_placed(put, buffer, 0, static_cast<std::uint32_t>(put.size));
      nic.wait(at - nic.now() + more);
      nic.count(put, buffer);
      nic.end(put);
      nic.complete(buffer, epoch, put.size);
    }
    recorder_->finish(nic.now());

    stats_.add("node0.nic.parser", parser_);
    stats_.add("node0.core0", core_);
    stats_.add("node1.nic.parser", other_parser_);
    for (EveryStats* unit : {&parser_, &core_, &other_parser_}) {
      unit->out_of_order += random_.below(1000);
      unit->waited_ns += Time::from_ps(static_cast<std::int64_t>(random_.below(1'000'000)));
      unit->queue.observe(random_.below(100));
      for (int i = 0; i < 3; ++i) {
        unit->delay_ns.add(Time::from_ps(static_cast<std::int64_t>(random_.below(1'000'000))));
      }
      unit->wire.occupy(Time::from_ps(static_cast<std::int64_t>(1 + random_.below(1000))), 1 + random_.below(1000));
      unit->port.occupy(Time::from_ps(static_cast<std::int64_t>(1 + random_.below(1000))), 1 + random_.below(1000));
    }
    report.trace = "a \"quoted\" trace";
    report.topology = "p2p";
    report.ranks = 2;
    report.nodes = 2;
    report.seed = seed;
    report.end = nic.now();
    report.wall_ns = 1'500'000'000;
    report.recorder = recorder_.get();
    report.stats = &stats_;
    report.config = {{"nic", {{"clock", "1GHz"}}}};
    LimitsObserver limits(stats_);
    report.limits = limits.limits(recorder_->region());
    report.bottleneck = find_bottleneck(report.limits, recorder_->breakdown());
  }

  const RunRecorder& recorder() const { return *recorder_; }
  StatsRegistry& stats() { return stats_; }
  RunReport report;

 private:
  Random random_;
  std::unique_ptr<Trace> trace_;
  PutRegistry registry_;
  std::unique_ptr<RunRecorder> recorder_;
  StatsRegistry stats_;
  EveryStats parser_;
  EveryStats core_;
  EveryStats other_parser_;
};

/// A decimal of nanoseconds as whole picoseconds.
inline std::int64_t ps_of(const std::string& ns) {
  const std::size_t point = ns.find('.');
  std::string fraction = point == std::string::npos ? "" : ns.substr(point + 1);
  fraction.resize(3, '0');
  return std::stoll(ns.substr(0, point)) * 1000 + std::stoll(fraction);
}

}  // namespace rvma::test
