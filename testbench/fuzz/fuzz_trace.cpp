// Arbitrary text as a trace: no crash, every mistake at a place within the text, and what was accepted can be played.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "base/error.hpp"
#include "workload/trace.hpp"

namespace {

using namespace rvma;

constexpr std::uint32_t kPlayedRanks = 4;
constexpr int kPlayedOperations = 10'000;

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << "fuzz_trace: " << what << '\n';
  std::abort();
}

void play(const Trace& trace, RankId rank) {
  const auto cursor = trace.cursor(rank);
  for (int i = 0; i < kPlayedOperations; ++i) {
    const Operation* const operation = cursor->next();
    if (operation == nullptr) return;
    require(operation->operands.size() == operation->last_use.size(), "a use without its last_use");
    if (operation->has_name) require(!trace.spelling(rank, operation->name).empty(), "a name without letters");
    for (const NameRef& name : operation->operands) trace.spelling(rank, name);
    if (operation->kind == OperationKind::put) {
      require(operation->rank.value() < trace.ranks(), "a put to a rank out of range");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ErrorList errors;
  const auto trace = Trace::from_text({reinterpret_cast<const char*>(data), size}, "fuzz.trace", errors);
  require((trace == nullptr) == !errors.empty(), "neither a trace nor a mistake, or both");
  for (const Error& error : errors.shown()) {
    const bool within = error.position.line >= 1 && error.position.column >= 1 && error.position.line <= size + 1 &&
                        error.position.column <= size + 1;
    require(within, "a mistake stands outside the text");
    require(!error.what.empty(), "a mistake says nothing");
  }
  if (trace == nullptr) return 0;
  for (std::uint32_t rank = 0; rank < std::min(trace->ranks(), kPlayedRanks); ++rank) play(*trace, RankId{rank});
  return 0;
}
