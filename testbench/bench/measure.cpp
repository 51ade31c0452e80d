#include "measure.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <systemc>

#include "platform/system.hpp"
#include "report/put_registry.hpp"
#include "report/recorder.hpp"
#include "workload/generate.hpp"
#include "workload/player.hpp"
#include "workload/trace.hpp"

namespace rvma::bench {
namespace {

std::string stream_trace(std::uint64_t packets, std::uint64_t packets_per_put) {
  std::ostringstream text;
  const std::string size = std::to_string(4 * packets_per_put) + "KiB";
  const std::string count = std::to_string(packets / packets_per_put);
  if (const auto error = generate("stream", {{"size", size}, {"count", count}}, text)) {
    std::fprintf(stderr, "%s\n", error->to_string().c_str());
    std::exit(1);
  }
  return text.str();
}

}  // namespace

std::uint64_t wall_ns_of(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began).count());
}

Measurement measure_stream(std::uint64_t packets, std::uint64_t packets_per_put, PayloadMode payload,
                           const TableUnitFactory& make_table) {
  ErrorList errors;
  const auto trace = Trace::from_text(stream_trace(packets, packets_per_put), "stream", errors);
  if (!trace) {
    errors.print(std::cerr);
    std::exit(1);
  }
  Config config;
  config.workload.payload = payload;
  SimContext context(1);
  PutRegistry registry;
  RunRecorder recorder(*trace, registry, {}, {}, {});
  ObserverList observers;
  observers.add(registry);
  observers.add(recorder);
  System system(context, config, trace->ranks(), observers, &recorder, make_table);
  std::vector<RankHome> homes;
  for (std::uint32_t r = 0; r < trace->ranks(); ++r) {
    homes.push_back({system.node_of(RankId{r}), system.pid_of(RankId{r}), &system.driver(RankId{r})});
  }
  Player player(*trace, config.workload, config.nic.history, homes, {&recorder});
  for (std::uint32_t r = 0; r < trace->ranks(); ++r) {
    system.run_on(RankId{r}, [&player, r](Driver&) { player.play(RankId{r}); });
  }
  const std::uint64_t wall = wall_ns_of([] { sc_core::sc_start(); });
  return {recorder.totals().packets_delivered, wall, context.activations()};
}

Measurement in_child(const std::function<Measurement()>& measure) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    const Measurement result = measure();
    const bool sent = write(ends[1], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
    std::_Exit(sent ? 0 : 1);
  }
  Measurement result;
  const bool received = read(ends[0], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
  int status = 0;
  waitpid(child, &status, 0);
  close(ends[0]);
  close(ends[1]);
  if (!received || status != 0) {
    std::fprintf(stderr, "a measurement failed\n");
    std::exit(1);
  }
  return result;
}

std::uint64_t option(const std::vector<std::string>& arguments, const std::string& name, std::uint64_t otherwise) {
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == name) return std::strtoull(arguments[i + 1].c_str(), nullptr, 10);
  }
  return otherwise;
}

void keep_best(Measurement& best, const Measurement& now) {
  if (now.packets_per_s() > best.packets_per_s()) best = now;
}

}  // namespace rvma::bench
