#include "workers.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <system_error>

namespace rvma::check {

namespace {

struct Worker {
  std::size_t scenario = 0;
  int results = -1;  ///< end of a pipe
};

std::string packed(const Findings& findings) {
  return fmt::format("{} {} {} {}\n{}", findings.states, findings.inner_states, findings.transitions,
                     findings.cut_short ? 1 : 0, findings.failure);
}

Findings unpacked(const std::string& text) {
  Findings findings;
  std::istringstream in{text};
  if (!(in >> findings.states >> findings.inner_states >> findings.transitions >> findings.cut_short)) {
    findings.failure = "the process that explored it has died";
    return findings;
  }
  in.get();
  std::getline(in, findings.failure, '\0');
  return findings;
}

/// Fits into a pipe (64 KiB), so the worker never waits for its reader.
void write_all(int file, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(file, text.data() + written, text.size() - written);
    if (count <= 0) return;
    written += static_cast<std::size_t>(count);
  }
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t count = 0; (count = read(file, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  return text;
}

void check(bool is_good, const char* what) {
  if (!is_good) throw std::system_error(errno, std::generic_category(), what);
}

pid_t start(const Scenario& scenario, std::uint64_t most_states, Worker& worker) {
  std::array<int, 2> ends{};
  check(pipe(ends.data()) == 0, "pipe");
  std::fflush(stdout);
  const pid_t process = fork();
  check(process >= 0, "fork");
  if (process == 0) {
    close(ends[0]);
    write_all(ends[1], packed(Explorer{scenario}.explore(most_states)));
    _exit(0);
  }
  close(ends[1]);
  worker.results = ends[0];
  return process;
}

void stop(const std::map<pid_t, Worker>& workers) {
  for (const auto& [process, worker] : workers) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    close(worker.results);
  }
}

void explore_here(const std::vector<Scenario>& scenarios, std::uint64_t most_states, const TakeFindings& take) {
  for (const Scenario& scenario : scenarios) {
    if (!take(scenario, Explorer{scenario}.explore(most_states))) return;
  }
}

}  // namespace

void explore_all(const std::vector<Scenario>& scenarios, std::uint64_t most_states, unsigned jobs,
                 const TakeFindings& take) {
  if (jobs == 1) {
    explore_here(scenarios, most_states, take);
    return;
  }
  std::map<pid_t, Worker> workers;
  for (std::size_t next = 0; next < scenarios.size() || !workers.empty();) {
    if (next < scenarios.size() && workers.size() < jobs) {
      Worker worker;
      worker.scenario = next;
      const pid_t process = start(scenarios[next++], most_states, worker);
      workers.emplace(process, worker);
      continue;
    }
    const pid_t process = waitpid(-1, nullptr, 0);
    check(process > 0, "waitpid");
    const auto ended = workers.find(process);
    if (ended == workers.end()) continue;
    const Worker worker = ended->second;
    workers.erase(ended);
    const Findings findings = unpacked(read_all(worker.results));
    close(worker.results);
    if (!take(scenarios[worker.scenario], findings)) {
      stop(workers);
      return;
    }
  }
}

}  // namespace rvma::check
