// Each fault of the mutated Verilog table against its C++ twin, on the co-simulation's stimulus, to the first mismatch.
// A line for each: NUMBER, `caught` or `survived`, the cycles it took, what differed first; with tabs between.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "checker.hpp"
#include "clocked_table.hpp"
#include "mutant_table.hpp"
#include "stimulus.hpp"

namespace {

using namespace rvma;
using namespace rvma::cosim;

struct Verdict {
  std::uint64_t cycles = 0;
  std::string difference;  ///< empty if there was none
};

/// Counts of entries go so far: a place of the counter that no table of this shape reaches otherwise.
constexpr std::uint64_t kLostEntries = 1U << 14U;

/// Runs with every key pattern, each with a seed of its own, of `operations` altogether; the last one loses entries
/// too.
Verdict verdict_on(std::uint32_t fault, std::uint64_t operations) {
  Verdict verdict;
  std::uint64_t seed = 0;
  for (const KeyPattern pattern : kKeyPatterns) {
    TableShape shape = mutation::mutant_shape();
    shape.seed = mix64(++seed);
    RtlTable design{mutation::make_mutant(shape, static_cast<std::uint32_t>(seed), fault)};
    TwinTable twin{shape};
    LockStep checker{design, twin};
    Stimulus stimulus{checker, pattern, seed};
    stimulus.run(operations / kKeyPatterns.size());
    if (pattern == kKeyPatterns.back() && checker.errors().empty()) stimulus.lose(kLostEntries);
    verdict.cycles += checker.seen().cycles;
    if (!checker.errors().empty()) verdict.difference = checker.errors().front();
    if (checker.errors().empty() && checker.matched() == 0) verdict.difference = "nothing was matched";
    if (!verdict.difference.empty()) break;
  }
  return verdict;
}

std::optional<std::uint64_t> number(const char* text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0') return std::nullopt;
  return value;
}

}  // namespace

// SystemC's library owns main().
int sc_main(int argc, char** argv) {
  std::vector<std::uint64_t> numbers;
  for (int i = 1; i < argc; ++i) {
    const std::optional<std::uint64_t> value = number(argv[i]);
    if (!value || *value > UINT32_MAX) numbers.clear();
    if (!value) break;
    numbers.push_back(*value);
  }
  if (numbers.size() < 2) {
    std::fprintf(stderr, "usage: cosim_mutants OPERATIONS FAULT..\n(fault 0 is none)\n");
    return 2;
  }
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const Verdict verdict = verdict_on(static_cast<std::uint32_t>(numbers[i]), numbers[0]);
    std::printf("%llu\t%s\t%llu\t%s\n", static_cast<unsigned long long>(numbers[i]),
                verdict.difference.empty() ? "survived" : "caught", static_cast<unsigned long long>(verdict.cycles),
                verdict.difference.c_str());
    std::fflush(stdout);
  }
  return 0;
}
