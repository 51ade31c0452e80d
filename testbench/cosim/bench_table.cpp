// Cycles a second of the bare verilated core, of its C++ twin, and of both in the co-simulation's checker, in turns, on
// the same inputs: a lookup in every cycle, commands whenever the core is ready (four in five of them finds, so that
// the load stays at a half), processor time, best of several rounds.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "checker.hpp"
#include "clocked_table.hpp"
#include "stimulus.hpp"

namespace {

using namespace rvma;
using namespace rvma::cosim;

/// Inputs of a stretch that is given again and again; commands wait where the table is not ready.
std::vector<TableInputs> stretch(std::uint32_t capacity) {
  Random random{1, "bench"};
  std::vector<TableInputs> inputs(1U << 15U);
  std::uint64_t erased = 0;
  for (TableInputs& cycle : inputs) {
    cycle.lookup_valid = true;
    cycle.lookup_key = key_at(KeyPattern::random, random.below(capacity), 1);
    const std::uint64_t draw = random.below(10);
    const TableKey key = key_at(KeyPattern::random, draw == 1 ? erased++ % capacity : random.below(capacity), 1);
    cycle.command_valid = true;
    cycle.command.operation = draw == 0   ? TableOperation::insert
                              : draw == 1 ? TableOperation::erase
                                          : TableOperation::find;
    cycle.command.pid = key.pid;
    cycle.command.mailbox = key.mailbox;
  }
  return inputs;
}

template <class Step>
double cycles_per_s(std::uint64_t cycles, const std::vector<TableInputs>& inputs, Step step) {
  const std::clock_t begin = std::clock();
  for (std::uint64_t i = 0; i < cycles; ++i) step(inputs[i % inputs.size()]);
  return static_cast<double>(cycles) * CLOCKS_PER_SEC /
         static_cast<double>(std::max<std::clock_t>(std::clock() - begin, 1));
}

int measure(const std::string& name, std::uint64_t cycles, int rounds) {
  const auto& built = VerilatedTable::built();
  const auto found = std::find_if(built.begin(), built.end(), [&](const auto& shape) { return shape.name == name; });
  if (found == built.end()) {
    std::fprintf(stderr, "bench_table: error: shape '%s' is not built\n", name.c_str());
    return 2;
  }
  const TableShape& shape = found->shape;
  const std::vector<TableInputs> inputs = stretch(shape.capacity());
  RtlTable core{VerilatedTable::make(shape)};
  TwinTable twin{shape};
  RtlTable checked_core{VerilatedTable::make(shape)};
  TwinTable checked_twin{shape};
  LockStep checker{checked_core, checked_twin};
  std::array<double, 3> best{};
  for (int round = 0; round < rounds; ++round) {
    const std::array<double, 3> now{
        cycles_per_s(cycles, inputs, [&](const TableInputs& cycle) { core.step(cycle); }),
        cycles_per_s(cycles, inputs, [&](const TableInputs& cycle) { twin.step(cycle); }),
        cycles_per_s(cycles, inputs, [&](const TableInputs& cycle) { checker.step(cycle); })};
    for (std::size_t i = 0; i < best.size(); ++i) best[i] = std::max(best[i], now[i]);
  }
  std::printf("%s: core %.0f, twin %.0f, both with checker %.0f cycles/s; bench costs %.2f of the core\n", name.c_str(),
              best[0], best[1], best[2], best[0] / best[2] - 1);
  return checker.passed() ? 0 : 1;
}

}  // namespace

// bench_table [CYCLES [ROUNDS [SHAPE]]]
int sc_main(int argc, char** argv) {
  const std::uint64_t cycles = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 500'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  if (cycles == 0 || rounds <= 0) {
    std::fprintf(stderr, "usage: bench_table [CYCLES [ROUNDS [SHAPE]]]\n");
    return 2;
  }
  return measure(argc > 3 ? argv[3] : "default", cycles, rounds);
}
