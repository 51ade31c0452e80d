// The Verilog core of the translation table in lock step with its C++ twin, on random stimulus.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>

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

void usage() {
  std::fprintf(stderr,
               "usage: cosim_table [--shape NAME] [--seed N] [--operations N] [--pattern NAME] [--wave FILE.fst]\n"
               "                   [--coverage FILE.dat]\n"
               "patterns:");
  for (const KeyPattern pattern : kKeyPatterns) std::fprintf(stderr, " %s", std::string{name_of(pattern)}.c_str());
  std::fprintf(stderr, "\nshapes:");
  for (const auto& built : VerilatedTable::built()) std::fprintf(stderr, " %s", std::string{built.name}.c_str());
  std::fprintf(stderr, "\n");
}

std::optional<std::uint64_t> number(const char* text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 0);
  if (end == text || *end != '\0') return std::nullopt;
  return value;
}

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) return std::nullopt;
    const char* value = argv[i + 1];
    if (name == "--shape") {
      options.shape = value;
    } else if (name == "--wave") {
      options.wave = value;
    } else if (name == "--coverage") {
      options.coverage = value;
    } else if (name == "--pattern") {
      const auto pattern = key_pattern(value);
      if (!pattern) return std::nullopt;
      options.pattern = *pattern;
    } else if (name == "--seed" || name == "--operations") {
      const auto parsed = number(value);
      if (!parsed) return std::nullopt;
      (name == "--seed" ? options.seed : options.operations) = *parsed;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

std::optional<TableShape> shape_of(const std::string& name) {
  for (const auto& built : VerilatedTable::built()) {
    if (built.name == name) return built.shape;
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

int run(const Options& options) {
  const std::optional<TableShape> found = shape_of(options.shape);
  if (!found) {
    std::fprintf(stderr, "cosim_table: error: shape '%s' is not built\n", options.shape.c_str());
    usage();
    return 2;
  }
  TableShape shape = *found;
  shape.seed = mix64(options.seed);
  std::printf("--shape %s --seed %llu --operations %llu --pattern %s\n", options.shape.c_str(),
              static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(options.operations),
              std::string{name_of(options.pattern)}.c_str());

  RtlTable design{VerilatedTable::make(shape, static_cast<std::uint32_t>(options.seed))};
  TwinTable twin{shape};
  if (!options.wave.empty() && !design.verilated().open_waves(options.wave)) {
    std::fprintf(stderr, "cosim_table: error: %s cannot be written\n", options.wave.c_str());
    return 2;
  }
  LockStep checker{design, twin};
  Stimulus stimulus{checker, options.pattern, options.seed};
  const std::clock_t begin = std::clock();
  stimulus.run(options.operations);
  report(checker, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);

  if (!options.coverage.empty() && !design.verilated().write_coverage(options.coverage)) {
    std::fprintf(stderr, "cosim_table: error: built without RVMA_RTL_COVERAGE\n");
    return 2;
  }
  for (const std::string& error : checker.errors()) std::printf("MISMATCH %s\n", error.c_str());
  if (checker.matched() == 0) std::printf("nothing was matched\n");
  return checker.passed() ? 0 : 1;
}

}  // namespace

// SystemC's library owns main().
int sc_main(int argc, char** argv) {
  const std::optional<Options> options = parse(argc, argv);
  if (!options) {
    usage();
    return 2;
  }
  return run(*options);
}
