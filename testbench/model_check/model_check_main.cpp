// Small-scope model check of the receive path: every reachable state, the model against a reference.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <systemc>
#include <vector>

#include "explorer.hpp"
#include "scenarios.hpp"
#include "workers.hpp"

namespace {

using namespace rvma::check;

struct Options {
  std::string scope = "short";
  std::string part;
  std::uint64_t most_states = 0;
  unsigned jobs = 1;
};

void usage() {
  fmt::print(
      "usage: model_check [--scope short|full] [--scenario TEXT] [--most-states N] [--jobs N]\n"
      "  --scope        short: messages of at most 2 packets (default); full: 3 messages of 3 packets\n"
      "  --scenario     only scenarios whose name contains TEXT\n"
      "  --most-states  stop a scenario there (0: never)\n"
      "  --jobs         scenarios explored at a time, each in a process of its own\n"
      "Exit status: 0 if the model does what the reference does, 1 if not, 2 for a mistake in these options.\n");
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// False: a mistake.
bool take(Options& options, std::string_view option, const std::string& value) {
  if (option == "--scope" && (value == "short" || value == "full")) {
    options.scope = value;
  } else if (option == "--scenario") {
    options.part = value;
  } else if (option == "--most-states" && is_number(value)) {
    options.most_states = std::strtoull(value.c_str(), nullptr, 10);
  } else if (option == "--jobs" && is_number(value) && std::atoi(value.c_str()) > 0) {
    options.jobs = static_cast<unsigned>(std::atoi(value.c_str()));
  } else {
    return false;
  }
  return true;
}

int mistake() {
  usage();
  return 2;
}

}  // namespace

int sc_main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (std::string_view{argv[i]} == "--help") {
      usage();
      return 0;
    }
    if (i + 1 == argc || !take(options, argv[i], argv[i + 1])) return mistake();
  }
  std::vector<Scenario> scenarios = options.scope == "full" ? full_scenarios() : short_scenarios();
  const auto is_other = [&](const Scenario& made) { return made.name.find(options.part) == std::string::npos; };
  scenarios.erase(std::remove_if(scenarios.begin(), scenarios.end(), is_other), scenarios.end());
  if (scenarios.empty()) return mistake();
  Findings sum;
  bool has_failed = false;
  explore_all(scenarios, options.most_states, options.jobs, [&](const Scenario& scenario, const Findings& findings) {
    if (!findings.failure.empty()) {
      fmt::print("FAILED after {} states: {}\n", findings.states, findings.failure);
      has_failed = true;
    } else {
      fmt::print("{}: {} states ({} with what is inside), {} transitions{}\n", describe(scenario), findings.states,
                 findings.inner_states, findings.transitions, findings.cut_short ? ", cut short" : "");
    }
    std::fflush(stdout);
    sum.states += findings.states;
    sum.inner_states += findings.inner_states;
    sum.transitions += findings.transitions;
    sum.cut_short = sum.cut_short || findings.cut_short;
    return !has_failed;
  });
  if (has_failed) return 1;
  fmt::print("{}: {} states ({} with what is inside), {} transitions\n",
             sum.cut_short ? "cut short by --most-states" : "all of it", sum.states, sum.inner_states, sum.transitions);
  return 0;
}
