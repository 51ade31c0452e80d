// What the Verilog table costs to simulate: the bare verilated core, the same core in the co-simulation bench, and a
// whole RNIC with it against one with the C++ table, side by side. In turns and in processes of their own, so that the
// ratio of two of them is of one moment of the machine.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "base/random.hpp"
#include "checker.hpp"
#include "measure.hpp"
#include "rtl/adapter/table_factory.hpp"
#include "stimulus.hpp"

namespace {

using namespace rvma;
using namespace rvma::bench;

/// Nothing but the core, a lookup in every cycle, and commands as fast as it takes them: what the bench gives it.
Measurement measure_core(std::uint64_t cycles) {
  const std::unique_ptr<VerilatedTable> table = VerilatedTable::make(TableShape{});
  // Inputs are made ahead, so that only the core is timed.
  constexpr std::size_t kInputs = 4096;
  std::vector<TableInputs> inputs(kInputs);
  Random random{1};
  for (TableInputs& input : inputs) {
    input.lookup_valid = true;
    input.lookup_key = {Pid{1}, Mailbox{random.below(4000)}};
    input.command_valid = true;
    input.command.operation = random.below(2) == 0 ? TableOperation::insert : TableOperation::erase;
    input.command.pid = Pid{1};
    input.command.mailbox = Mailbox{random.below(4000)};
  }
  const std::uint64_t wall = wall_ns_of([&] {
    for (std::uint64_t cycle = 0; cycle < cycles; ++cycle) table->step(inputs[cycle % kInputs]);
  });
  return {cycles, wall, 0};
}

/// Stimulus, C++ twin and comparison around the core.
Measurement measure_bench(std::uint64_t cycles) {
  cosim::RtlTable design{VerilatedTable::make(TableShape{})};
  cosim::TwinTable reference{TableShape{}};
  cosim::LockStep checker{design, reference};
  cosim::Stimulus stimulus{checker, cosim::KeyPattern::random, 1};
  const std::uint64_t wall = wall_ns_of([&] {
    while (checker.seen().cycles < cycles && checker.errors().empty()) stimulus.run(10'000);
  });
  if (!checker.passed()) {
    std::fprintf(stderr, "the co-simulation found a difference\n");
    std::exit(1);
  }
  return {checker.seen().cycles, wall, 0};
}

void print_line(const char* what, const Measurement& best, const char* unit, double ratio, const char* of) {
  std::printf("%-44s %12.0f %s %6.2f %s\n", what, best.packets_per_s(), unit, ratio, of);
}

}  // namespace

int sc_main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::uint64_t cycles = option(arguments, "--cycles", 1'000'000);
  const std::uint64_t packets = option(arguments, "--packets", 300'000);
  const std::uint64_t rounds = option(arguments, "--rounds", 3);
  RtlTableOptions alone;
  RtlTableOptions lockstep;
  lockstep.lockstep = true;
  Measurement core;
  Measurement bench_of_core;
  struct Stream {
    const char* name;
    std::uint64_t packets_per_put;
    TableUnitFactory make_table;
    Measurement best;
  };
  std::vector<Stream> streams;
  for (const std::uint64_t per_put : {16U, 1U}) {
    streams.push_back({per_put == 16 ? "64 KiB puts, --table model" : "4 KiB puts, --table model",
                       per_put,
                       &ModelTableUnit::make,
                       {}});
    streams.push_back({per_put == 16 ? "64 KiB puts, --table rtl" : "4 KiB puts, --table rtl",
                       per_put,
                       rtl_table_factory(alone),
                       {}});
    streams.push_back({per_put == 16 ? "64 KiB puts, --table both" : "4 KiB puts, --table both",
                       per_put,
                       rtl_table_factory(lockstep),
                       {}});
  }
  for (std::uint64_t round = 0; round < rounds; ++round) {
    keep_best(core, in_child([&] { return measure_core(cycles); }));
    keep_best(bench_of_core, in_child([&] { return measure_bench(cycles); }));
    for (Stream& stream : streams) {
      keep_best(stream.best, in_child([&] {
                  return measure_stream(packets, stream.packets_per_put, PayloadMode::bytes, stream.make_table);
                }));
    }
  }
  std::printf("Best of %llu rounds; %llu cycles, %llu packets of 4 KiB\n", static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(cycles), static_cast<unsigned long long>(packets));
  print_line("bare verilated core", core, "cycles/s ", 1, "of the core");
  print_line("core in the co-simulation bench", bench_of_core, "cycles/s ",
             bench_of_core.packets_per_s() / core.packets_per_s(), "of the core");
  for (std::size_t i = 0; i < streams.size(); ++i) {
    print_line(streams[i].name, streams[i].best, "packets/s",
               streams[i].best.packets_per_s() / streams[i / 3 * 3].best.packets_per_s(), "of the C++ table");
  }
  return 0;
}
