// Small-scope model check of the receive path: every reachable state, the model against a reference.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <systemc>

#include "explorer.hpp"
#include "scenarios.hpp"

namespace {

using namespace rvma::check;

void usage() {
  fmt::print(
      "usage: model_check [--scope short|full] [--scenario TEXT] [--most-states N]\n"
      "  --scope        short: messages of at most 2 packets (default); full: 3 messages of 3 packets\n"
      "  --scenario     only scenarios whose name contains TEXT\n"
      "  --most-states  stop a scenario there (0: never)\n"
      "Exit status: 0 if the model does what the reference does, 1 if not, 2 for a mistake in these options.\n");
}

int mistake() {
  usage();
  return 2;
}

}  // namespace

int sc_main(int argc, char** argv) {
  std::string scope = "short";
  std::string part;
  std::uint64_t most_states = 0;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--help") {
      usage();
      return 0;
    }
    if (i + 1 == argc) return mistake();
    const std::string value = argv[i + 1];
    if (option == "--scope" && (value == "short" || value == "full")) {
      scope = value;
    } else if (option == "--scenario") {
      part = value;
    } else if (option == "--most-states" && value.find_first_not_of("0123456789") == std::string::npos) {
      most_states = std::strtoull(value.c_str(), nullptr, 10);
    } else {
      return mistake();
    }
  }
  std::uint64_t states = 0;
  std::uint64_t transitions = 0;
  bool is_all = true;
  for (const Scenario& scenario : scope == "full" ? full_scenarios() : short_scenarios()) {
    if (scenario.name.find(part) == std::string::npos) continue;
    const Findings findings = Explorer{scenario}.explore(most_states);
    if (!findings.failure.empty()) {
      fmt::print("FAILED after {} states: {}\n", findings.states, findings.failure);
      return 1;
    }
    fmt::print("{}: {} states, {} transitions{}\n", describe(scenario), findings.states, findings.transitions,
               findings.cut_short ? ", cut short" : "");
    is_all = is_all && !findings.cut_short;
    std::fflush(stdout);
    states += findings.states;
    transitions += findings.transitions;
  }
  if (states == 0) return mistake();
  fmt::print("{}: {} states, {} transitions\n", is_all ? "all of it" : "cut short by --most-states", states,
             transitions);
  return 0;
}
