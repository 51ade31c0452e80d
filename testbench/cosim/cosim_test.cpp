// The Verilog core in lock step with its C++ twin, for every shape that is built: directed cases, random stimulus.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "checker.hpp"
#include "clocked_table.hpp"
#include "stimulus.hpp"

namespace rvma {

/// Names a shape in messages.
static void PrintTo(const VerilatedTable::BuiltShape& built, std::ostream* out) { *out << built.name; }

namespace cosim {
namespace {

TableKey key_of(std::uint64_t mailbox, std::uint16_t pid = 1) { return {Pid{pid}, Mailbox{mailbox}}; }

TableCommand command_of(TableOperation operation, TableKey key = {}, std::uint16_t slot = 0) {
  TableCommand command;
  command.operation = operation;
  command.pid = key.pid;
  command.mailbox = key.mailbox;
  command.slot = SlotId{slot};
  return command;
}

TableCommand seed_command(std::uint64_t seed) {
  TableCommand command;
  command.operation = TableOperation::load_seed;
  command.seed = seed;
  return command;
}

TableInputs lookup_of(TableKey key) {
  TableInputs inputs;
  inputs.lookup_valid = true;
  inputs.lookup_key = key;
  return inputs;
}

TableShape with_seed(TableShape shape, std::uint64_t seed) {
  shape.seed = seed;
  return shape;
}

/// Both tables of one shape, checked.
struct Bench {
  explicit Bench(const TableShape& shape, std::uint64_t seed = 3)
      : design(VerilatedTable::make(with_seed(shape, seed), static_cast<std::uint32_t>(seed))),
        twin(with_seed(shape, seed)),
        checker(design, twin) {}

  void idle(int cycles) {
    for (int i = 0; i < cycles; ++i) checker.step({});
  }
  void until_ready() {
    while (!checker.step({}).command_ready) {
    }
  }
  /// Gives the command, with a lookup of `key` in every cycle until the answer.
  TableAnswer run(const TableCommand& command, TableKey key) {
    TableInputs inputs = lookup_of(key);
    inputs.command_valid = true;
    inputs.command = command;
    while (!checker.step(inputs).command_ready) {
    }
    inputs.command_valid = false;
    for (;;) {
      const TableOutputs outputs = checker.step(inputs);
      if (outputs.answer_valid) return outputs.answer;
    }
  }
  TableAnswer run(const TableCommand& command) { return run(command, {command.pid, command.mailbox}); }
  /// Inserts `count` keys of a pattern that the tests share.
  void insert(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) run(command_of(TableOperation::insert, nth(i), nth_slot(i)));
  }
  static TableKey nth(std::uint64_t i) { return key_of(i * 4096, static_cast<std::uint16_t>(i % 5)); }
  static std::uint16_t nth_slot(std::uint64_t i) { return static_cast<std::uint16_t>(i * 77); }
  std::uint32_t places() const { return checker.shape().capacity() + checker.shape().stash; }

  void expect_passed() {
    for (const std::string& error : checker.errors()) ADD_FAILURE() << error;
    EXPECT_GT(checker.matched(), 0U);
  }

  RtlTable design;
  TwinTable twin;
  LockStep checker;
};

/// One test of each kind for each shape.
class Cosim : public testing::TestWithParam<VerilatedTable::BuiltShape> {
 protected:
  const TableShape& shape() const { return GetParam().shape; }
  bool protects() const { return shape().protection == EntryProtection::parity; }
  /// Directed cases need no large table.
  bool is_large() const { return shape().capacity() > 5000; }
};

INSTANTIATE_TEST_SUITE_P(Shapes, Cosim, testing::ValuesIn(VerilatedTable::built()),
                         [](const auto& shape) { return std::string{shape.param.name}; });

// ----------------------------------------------------------------------------------------------------- directed cases

TEST_P(Cosim, ResetInEveryCycleOfItsSweep) {
  if (is_large()) GTEST_SKIP() << "the sweep is the same, only longer";
  Bench bench{shape()};
  for (int cycles = 0; cycles < 40; ++cycles) {
    for (int i = 0; i < cycles; ++i) bench.checker.step(lookup_of(key_of(1)));
    bench.checker.reset();
  }
  bench.run(command_of(TableOperation::insert, key_of(1), 5));
  EXPECT_EQ(bench.run(command_of(TableOperation::find, key_of(1))).slot, SlotId{5});
  bench.expect_passed();
}

TEST_P(Cosim, ResetInEveryCycleOfAnInsertion) {
  if (is_large()) GTEST_SKIP() << "needs a table that is filled soon";
  Bench bench{shape()};
  const std::uint64_t half = shape().capacity() > 500 ? 10 : shape().capacity();
  for (int cycles = 0; cycles < 16; ++cycles) {
    bench.insert(half);
    TableInputs inputs = lookup_of(Bench::nth(0));
    inputs.command_valid = true;
    inputs.command = command_of(TableOperation::insert, key_of(0xabc), 9);
    for (int i = 0; i <= cycles; ++i) bench.checker.step(inputs);
    bench.checker.reset();
    bench.until_ready();
    EXPECT_EQ(bench.run(command_of(TableOperation::find, key_of(0xabc))).status, TableStatus::not_found);
  }
  bench.expect_passed();
}

TEST_P(Cosim, EveryOperationWithEveryAnswer) {
  Bench bench{shape()};
  const TableKey key = key_of(0x1234'5678'9abcULL, 0x55aa);
  EXPECT_EQ(bench.run(command_of(TableOperation::find, key)).status, TableStatus::not_found);
  EXPECT_EQ(bench.run(command_of(TableOperation::erase, key)).status, TableStatus::not_found);
  EXPECT_EQ(bench.run(command_of(TableOperation::update, key, 1)).status, TableStatus::not_found);
  EXPECT_EQ(bench.run(command_of(TableOperation::insert, key, 2)).status, TableStatus::ok);
  EXPECT_EQ(bench.run(command_of(TableOperation::insert, key, 3)).status, TableStatus::exists);
  EXPECT_EQ(bench.run(seed_command(4)).status, TableStatus::busy);
  EXPECT_EQ(bench.run(command_of(TableOperation::update, key, 0xffff)).status, TableStatus::ok);
  EXPECT_EQ(bench.run(command_of(TableOperation::find, key)).slot, SlotId{0xffff});
  for (unsigned code = 6; code < 10; ++code) {
    EXPECT_EQ(bench.run(command_of(static_cast<TableOperation>(code), key)).status, TableStatus::bad);
  }
  EXPECT_EQ(bench.run(command_of(TableOperation::erase, key)).status, TableStatus::ok);
  EXPECT_EQ(bench.run(seed_command(0xfedc'ba98'7654'3210ULL)).status, TableStatus::ok);
  EXPECT_EQ(bench.run(command_of(TableOperation::insert, key, 2)).status, TableStatus::ok);
  EXPECT_EQ(bench.run(command_of(TableOperation::flush), key).status, TableStatus::ok);
  EXPECT_EQ(bench.run(command_of(TableOperation::find, key)).status, TableStatus::not_found);
  bench.expect_passed();
}

TEST_P(Cosim, EveryBitOfKeyAndValue) {
  Bench bench{shape()};
  for (unsigned bit = 0; bit < 80; ++bit) {
    const TableKey key = bit < 64 ? key_of(std::uint64_t{1} << bit, 0)
                                  : key_of(0, static_cast<std::uint16_t>(std::uint32_t{1} << (bit - 64)));
    const std::uint16_t value = static_cast<std::uint16_t>(std::uint32_t{1} << (bit % 16));
    if (bench.run(command_of(TableOperation::insert, key, value)).status != TableStatus::ok) continue;
    EXPECT_EQ(bench.run(command_of(TableOperation::find, key)).slot, SlotId{value});
    bench.run(command_of(TableOperation::find, key_of(0, 0)));
    bench.run(command_of(TableOperation::erase, key));
  }
  bench.expect_passed();
}

TEST_P(Cosim, CommandsBackToBackAndFlushAtEveryDistance) {
  if (is_large()) GTEST_SKIP() << "flush is the same, only longer";
  Bench bench{shape()};
  bench.until_ready();
  for (int gap = 0; gap < 12; ++gap) {
    bench.run(command_of(TableOperation::insert, key_of(1), 7));
    TableInputs inputs = lookup_of(key_of(1));
    for (int i = 0; i < gap; ++i) bench.checker.step(inputs);
    inputs.command_valid = true;
    inputs.command = command_of(TableOperation::flush);
    bench.checker.step(inputs);
    // The next command waits all the time.
    inputs.command = command_of(TableOperation::insert, key_of(2), 8);
    while (!bench.checker.step(inputs).command_ready) {
    }
    bench.run(command_of(TableOperation::erase, key_of(2)));
  }
  bench.expect_passed();
}

TEST_P(Cosim, EntriesOnTheMoveAreLookedUpInEveryCycle) {
  if (shape().max_kicks == 0 || is_large()) GTEST_SKIP() << "nothing moves, or too late";
  Bench bench{shape()};
  bench.insert(std::uint64_t{shape().capacity()} * 9 / 10);
  // Every insertion once for each of a few keys, so that some of them are on the move while looked up.
  std::uint64_t hits = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const TableKey added = key_of(0x77'0000 + i);
    for (std::uint64_t looked = 0; looked < 12; ++looked) {
      const TableKey key = Bench::nth((i * 12 + looked) * 5 % (std::uint64_t{shape().capacity()} * 9 / 10));
      const std::uint64_t before = bench.checker.seen().hits;
      bench.run(command_of(TableOperation::insert, added, 1), key);
      hits += bench.checker.seen().hits - before;
      bench.run(command_of(TableOperation::erase, added), key);
    }
  }
  EXPECT_GT(hits, 100U);
  bench.expect_passed();
}

TEST_P(Cosim, FillsToFullAndKeepsEverything) {
  if (is_large()) GTEST_SKIP() << "the random test fills it";
  Bench bench{shape()};
  const std::uint64_t keys = std::uint64_t{2} * bench.places();
  bench.insert(keys);
  EXPECT_GT(bench.checker.seen().status(TableStatus::full), 0U);
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < keys; ++i) {
    found += bench.run(command_of(TableOperation::find, Bench::nth(i))).status == TableStatus::ok ? 1 : 0;
  }
  EXPECT_EQ(found, keys - bench.checker.seen().status(TableStatus::full));
  bench.checker.settle();
  bench.checker.compare_contents();
  bench.expect_passed();
}

TEST_P(Cosim, EveryBitOfEveryMemoryFlips) {
  if (is_large()) GTEST_SKIP() << "places are many, and all alike";
  Bench bench{shape()};
  bench.insert(std::uint64_t{2} * bench.places());
  const unsigned bits = protects() ? 98 : 97;
  // Some places of a larger table's banks, all of the stash.
  std::vector<std::uint32_t> places;
  const std::uint32_t step = bench.places() > 500 ? 53 : 1;
  for (std::uint32_t place = 0; place < shape().capacity(); place += step) places.push_back(place);
  for (std::uint32_t place = shape().capacity(); place < bench.places(); ++place) places.push_back(place);
  for (const TableCopy copy : {TableCopy::a, TableCopy::b}) {
    for (std::size_t i = 0; i < std::max<std::size_t>(bits, places.size()); ++i) {
      bench.checker.settle();
      bench.checker.corrupt(copy, places[i % places.size()], static_cast<std::uint32_t>(i % bits));
      for (std::uint64_t k = 0; k < 24; ++k) bench.checker.step(lookup_of(Bench::nth(i + k)));
      for (std::uint64_t k = 0; k < 6; ++k) bench.run(command_of(TableOperation::find, Bench::nth(i + k)));
    }
  }
  bench.checker.settle();
  bench.checker.compare_contents();
  if (protects() && shape().capacity() < 500) {
    EXPECT_GT(bench.checker.seen().lookup_faults, 20U);
    EXPECT_GT(bench.checker.seen().command_faults, 20U);
  }
  if (protects() && shape().stash != 0) {
    EXPECT_GT(bench.checker.seen().stash_faults, 0U);
  }
  bench.expect_passed();
}

TEST_P(Cosim, FaultsMeetCommandsAtEveryDistance) {
  if (!protects() || is_large()) GTEST_SKIP() << "no faults, or slow flushes";
  // One entry, bad in A, in B, in both, or elsewhere in the stash; a lookup around a command that writes over it,
  // flushes, or reads it.
  const TableKey key = key_of(1);
  const std::vector<TableCommand> commands = {
      command_of(TableOperation::update, key, 6), command_of(TableOperation::erase, key),
      command_of(TableOperation::insert, key, 7), command_of(TableOperation::find, key),
      command_of(TableOperation::flush),          seed_command(9)};
  std::uint64_t faults = 0;
  for (const TableCommand& command : commands) {
    for (const unsigned bad : {1U, 2U, 3U, 5U}) {
      Bench bench{shape()};
      for (int offset = 0; offset < 12; ++offset) {
        bench.run(command_of(TableOperation::flush));
        bench.run(command_of(TableOperation::insert, key, 5));
        bench.checker.settle();
        std::uint32_t place = 0;
        while (place < bench.places() && (bench.twin.stored(TableCopy::a, place)[1] >> 32U & 1U) == 0) ++place;
        ASSERT_LT(place, bench.places());
        if ((bad & 1U) != 0) bench.checker.corrupt(TableCopy::a, place, 3);
        if ((bad & 2U) != 0) bench.checker.corrupt(TableCopy::b, place, 70);
        if ((bad & 4U) != 0 && shape().stash != 0) bench.checker.corrupt(TableCopy::a, bench.places() - 1, 97);
        for (int cycle = 0; cycle < 24; ++cycle) {
          TableInputs inputs;
          if (cycle == offset || cycle == offset + 2) inputs = lookup_of(key);
          if (cycle == offset + 1) inputs = lookup_of(key_of(2));
          inputs.command_valid = cycle == 4;
          inputs.command = command;
          bench.checker.step(inputs);
        }
      }
      bench.expect_passed();
      faults += bench.checker.seen().lookup_faults + bench.checker.seen().command_faults;
    }
  }
  EXPECT_GT(faults, 100U);
}

// -------------------------------------------------------------------------------------------------- random stimulus

TEST_P(Cosim, RandomStimulus) {
  const std::uint64_t operations = is_large() ? 1'000'000 : 600'000;
  std::uint64_t seed = 100;
  for (const KeyPattern pattern : kKeyPatterns) {
    if (is_large() && pattern != KeyPattern::pages) continue;
    ++seed;
    SCOPED_TRACE("repeat: cosim_table --shape " + std::string{GetParam().name} + " --pattern " +
                 std::string{name_of(pattern)} + " --seed " + std::to_string(seed) + " --operations " +
                 std::to_string(operations));
    Bench bench{shape(), seed};
    Stimulus stimulus{bench.checker, pattern, seed};
    stimulus.run(operations);
    bench.expect_passed();
    const Seen& seen = bench.checker.seen();
    EXPECT_GE(seen.operations(), operations);
    EXPECT_GT(seen.hits, 1000U);
    EXPECT_GT(seen.sweeping, 0U);
    EXPECT_GT(seen.status(TableStatus::ok), 1000U);
    EXPECT_GT(seen.status(TableStatus::full), 0U);
    EXPECT_GT(seen.words, 0U);
    if (shape().max_kicks != 0) {
      EXPECT_GT(seen.moves, 100U);
    }
    if (is_large()) continue;
    EXPECT_GT(seen.refused, 1000U);
    EXPECT_GT(seen.resets, 0U);
    for (const TableStatus status :
         {TableStatus::exists, TableStatus::not_found, TableStatus::busy, TableStatus::bad}) {
      EXPECT_GT(seen.status(status), 0U) << static_cast<int>(status);
    }
    if (protects()) {
      EXPECT_GT(seen.lookup_faults, 10U);
      EXPECT_GT(seen.command_faults, 10U);
      EXPECT_GT(seen.stash_faults, 0U);
    }
  }
}

}  // namespace
}  // namespace cosim
}  // namespace rvma
