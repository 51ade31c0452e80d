// The Verilog core of the translation table in lock step with its C++ twin, on random stimulus.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <systemc>
#include <vector>

#include "base/error.hpp"
#include "base/value_text.hpp"
#include "checker.hpp"
#include "clocked_table.hpp"
#include "stimulus.hpp"

namespace {

using namespace rvma;
using namespace rvma::cosim;

struct Options {
  std::string shape = "default";
  std::uint64_t seed = 1;
  std::uint64_t operations = 1'000'000;
  KeyPattern pattern = KeyPattern::random;
  std::string wave;
  std::string coverage;
};

std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string{name};
  return text;
}

std::string patterns() {
  std::vector<std::string_view> names;
  for (const KeyPattern pattern : kKeyPatterns) names.push_back(name_of(pattern));
  return listed(names);
}

std::string shapes() {
  std::vector<std::string_view> names;
  for (const auto& built : VerilatedTable::built()) names.push_back(built.name);
  return listed(names);
}

void usage() {
  std::printf(
      "usage: cosim_table [--shape NAME] [--seed N] [--operations N] [--pattern NAME] [--wave FILE.fst]\n"
      "                   [--coverage FILE.dat]\n"
      "Exit status: 0 if both cores agree, 1 if they differ or nothing was compared, 2 for a mistake in these "
      "options.\n"
      "patterns: %s\nshapes: %s\n",
      patterns().c_str(), shapes().c_str());
}

std::optional<TableShape> shape_of(const std::string& name) {
  for (const auto& built : VerilatedTable::built()) {
    if (built.name == name) return built.shape;
  }
  return std::nullopt;
}

/// What is wrong with `value`; nothing if it is an integer of at least `least`, which goes to `to`.
std::optional<std::string> read_number(const char* value, std::uint64_t least, std::uint64_t& to) {
  const auto parsed = parse_integer(value, ~std::uint64_t{0}, "integer");
  if (!parsed) return parsed.error().what + "; " + parsed.error().expected;
  if (*parsed < least) return quoted(value) + "; expected at least " + std::to_string(least);
  to = *parsed;
  return std::nullopt;
}

/// Sets the option `name`; otherwise what is wrong.
std::optional<std::string> set(const std::string& name, const char* value, Options& options) {
  if (name == "--shape") {
    options.shape = value;
  } else if (name == "--wave" || name == "--coverage") {
    if (*value == '\0') return "no file; expected its name";
    (name == "--wave" ? options.wave : options.coverage) = value;
  } else if (name == "--pattern") {
    const auto pattern = key_pattern(value);
    if (!pattern) return "unknown value " + quoted(value) + "; expected one of " + patterns();
    options.pattern = *pattern;
  } else if (name == "--seed") {
    return read_number(value, 0, options.seed);
  } else if (name == "--operations") {
    return read_number(value, 1, options.operations);
  } else {
    return "unknown option; see --help";
  }
  return std::nullopt;
}

/// Reads the command line; otherwise what is wrong, with the option's name.
std::optional<std::string> parse(const std::vector<std::string>& arguments, Options& options) {
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string& name = arguments[i];
    if (name.rfind("--", 0) != 0) return quoted(name) + ": unknown argument; see --help";
    const bool has_value = i + 1 < arguments.size();
    const auto wrong = set(name, has_value ? arguments[i + 1].c_str() : "", options);
    if (wrong) return name + ": " + *wrong;
    if (!has_value) return name + ": no value; see --help";
  }
  return std::nullopt;
}

void report(const LockStep& checker, double seconds) {
  const Seen& seen = checker.seen();
  std::printf("%llu cycles, %llu lookups, %llu commands, %llu outputs matched, %llu words compared\n",
              static_cast<unsigned long long>(seen.cycles), static_cast<unsigned long long>(seen.lookups),
              static_cast<unsigned long long>(seen.commands), static_cast<unsigned long long>(checker.matched()),
              static_cast<unsigned long long>(seen.words));
  std::printf("hits %llu, sweeping %llu; ok %llu, exists %llu, not_found %llu, full %llu, busy %llu, bad %llu\n",
              static_cast<unsigned long long>(seen.hits), static_cast<unsigned long long>(seen.sweeping),
              static_cast<unsigned long long>(seen.status(TableStatus::ok)),
              static_cast<unsigned long long>(seen.status(TableStatus::exists)),
              static_cast<unsigned long long>(seen.status(TableStatus::not_found)),
              static_cast<unsigned long long>(seen.status(TableStatus::full)),
              static_cast<unsigned long long>(seen.status(TableStatus::busy)),
              static_cast<unsigned long long>(seen.status(TableStatus::bad)));
  std::printf("insertions with moves %llu, the longest %llu cycles; faults A %llu, B %llu, stash %llu; resets %llu\n",
              static_cast<unsigned long long>(seen.moves), static_cast<unsigned long long>(seen.longest),
              static_cast<unsigned long long>(seen.lookup_faults), static_cast<unsigned long long>(seen.command_faults),
              static_cast<unsigned long long>(seen.stash_faults), static_cast<unsigned long long>(seen.resets));
  std::printf("%.2f s of processor time, %.0f cycles/s\n", seconds, static_cast<double>(seen.cycles) / seconds);
}

int mistake(const std::string& what) {
  std::fprintf(stderr, "cosim_table: error: %s\n", what.c_str());
  return 2;
}

int run(const Options& options) {
  const std::optional<TableShape> found = shape_of(options.shape);
  if (!found) return mistake("--shape: " + quoted(options.shape) + " is not built; expected one of " + shapes());
  TableShape shape = *found;
  shape.seed = mix64(options.seed);
  std::printf("--shape %s --seed %llu --operations %llu --pattern %s\n", options.shape.c_str(),
              static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(options.operations),
              std::string{name_of(options.pattern)}.c_str());

  RtlTable design{VerilatedTable::make(shape, static_cast<std::uint32_t>(options.seed))};
  TwinTable twin{shape};
  if (!options.wave.empty() && !design.verilated().open_waves(options.wave)) {
    return mistake("--wave: cannot write " + quoted(options.wave));
  }
  LockStep checker{design, twin};
  Stimulus stimulus{checker, options.pattern, options.seed};
  const std::clock_t begin = std::clock();
  stimulus.run(options.operations);
  report(checker, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);

  if (!options.coverage.empty() && !design.verilated().write_coverage(options.coverage)) {
    return mistake("--coverage: built without RVMA_RTL_COVERAGE");
  }
  if (!design.verilated().close_waves()) {
    std::fprintf(stderr, "cosim_table: error: --wave: %s was not written whole: is its disk full?\n",
                 quoted(options.wave).c_str());
    return 1;
  }
  for (const std::string& error : checker.errors()) std::printf("MISMATCH %s\n", error.c_str());
  if (checker.matched() == 0) std::printf("nothing was matched\n");
  return checker.passed() ? 0 : 1;
}

}  // namespace

int sc_main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (std::find(arguments.begin(), arguments.end(), "--help") != arguments.end()) {
    usage();
    return 0;
  }
  Options options;
  if (const auto wrong = parse(arguments, options)) return mistake(*wrong);
  return run(options);
}

int main(int argc, char** argv) {
  // Its banner would go to stderr, before whatever is wrong.
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", /*overwrite=*/1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
