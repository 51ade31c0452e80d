// The co-simulation can fail: wrong designs are reported, and a run that matched nothing does not pass. Also what a
// verilated table offers besides its cycles.
#include "checker.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "clocked_table.hpp"
#include "rtl/verilated/last_cycles.hpp"
#include "stimulus.hpp"

namespace rvma::cosim {
namespace {

TableShape small() {
  TableShape shape;
  shape.banks = 2;
  shape.rows = 16;
  shape.stash = 4;
  shape.max_kicks = 6;
  shape.latency = 1;
  return shape;
}

/// A twin whose outputs are spoilt now and then.
class WrongTable final : public ClockedTable {
 public:
  using Spoil = std::function<bool(TableOutputs&)>;  ///< true if it changed something
  WrongTable(const TableShape& shape, Spoil spoil) : table_(shape), spoil_(std::move(spoil)) {}
  const TableShape& shape() const override { return table_.shape(); }
  TableOutputs step(const TableInputs& inputs) override {
    TableOutputs outputs = table_.step(inputs);
    // Only once, late: one wrong bit in one cycle is enough.
    if (++cycle_ > 2000 && !spoilt_) spoilt_ = spoil_(outputs);
    return outputs;
  }
  void reset() override { table_.reset(); }
  TableWord stored(TableCopy copy, std::uint32_t place) const override { return table_.stored(copy, place); }
  void corrupt(TableCopy copy, std::uint32_t place, std::uint32_t bit) override { table_.corrupt(copy, place, bit); }
  bool spoilt() const { return spoilt_; }

 private:
  TwinTable table_;
  Spoil spoil_;
  std::uint64_t cycle_ = 0;
  bool spoilt_ = false;
};

bool names(const LockStep& checker, const std::string& what) {
  for (const std::string& error : checker.errors()) {
    if (error.find(what) != std::string::npos) return true;
  }
  return false;
}

TEST(LockStep, OneWrongBitInOneCycleIsReported) {
  const std::vector<std::pair<std::string, WrongTable::Spoil>> wrongs = {
      {"command_ready", [](TableOutputs& out) { return out.command_ready = !out.command_ready, true; }},
      {"lookup_valid", [](TableOutputs& out) { return out.lookup_valid = !out.lookup_valid, true; }},
      {"lookup_hit", [](TableOutputs& out) { return out.lookup.hit = !out.lookup.hit, out.lookup_valid; }},
      {"lookup_slot",
       [](TableOutputs& out) {
         return out.lookup.slot = SlotId{static_cast<std::uint16_t>(out.lookup.slot.value() ^ 0x8000U)},
                out.lookup_valid;
       }},
      {"lookup_sweeping",
       [](TableOutputs& out) { return out.lookup.sweeping = !out.lookup.sweeping, out.lookup_valid; }},
      {"answer_valid", [](TableOutputs& out) { return out.answer_valid = !out.answer_valid, true; }},
      {"answer_status", [](TableOutputs& out) { return out.answer.status = TableStatus::bad, out.answer_valid; }},
      {"answer_slot",
       [](TableOutputs& out) {
         return out.answer.slot = SlotId{static_cast<std::uint16_t>(out.answer.slot.value() ^ 1U)}, out.answer_valid;
       }},
      {"answer_used",
       [](TableOutputs& out) { return out.answer.used = Cycles{out.answer.used.count() + 1}, out.answer_valid; }},
      {"lookup_fault_valid", [](TableOutputs& out) { return out.lookup_fault.valid = !out.lookup_fault.valid, true; }},
      {"lookup_fault_place", [](TableOutputs& out) { return out.lookup_fault.place ^= 1U, out.lookup_fault.valid; }},
      {"command_fault_valid",
       [](TableOutputs& out) { return out.command_fault.valid = !out.command_fault.valid, true; }},
      {"command_fault_place",
       [](TableOutputs& out) { return out.command_fault.place ^= 1U, out.command_fault.valid; }}};
  for (const auto& [name, spoil] : wrongs) {
    SCOPED_TRACE(name);
    WrongTable wrong{small(), spoil};
    TwinTable twin{small()};
    LockStep checker{wrong, twin};
    Stimulus{checker, KeyPattern::random, 1}.run(20'000);
    EXPECT_TRUE(wrong.spoilt());
    EXPECT_FALSE(checker.passed());
    EXPECT_TRUE(names(checker, name)) << (checker.errors().empty() ? "" : checker.errors().front());
  }
}

TEST(LockStep, AnotherShapeOrSeedIsReported) {
  const auto errors_of = [](const TableShape& shape) {
    TwinTable other{shape};
    TwinTable twin{small()};
    LockStep checker{other, twin};
    Stimulus{checker, KeyPattern::random, 1}.run(20'000);
    return checker.errors().size();
  };
  EXPECT_EQ(errors_of(small()), 0U);
  TableShape shape = small();
  shape.max_kicks = 7;
  EXPECT_GT(errors_of(shape), 0U);
  shape = small();
  shape.latency = 2;
  EXPECT_GT(errors_of(shape), 0U);
  shape = small();
  shape.seed = 2;
  EXPECT_GT(errors_of(shape), 0U);
}

TEST(LockStep, AWrongWordIsReported) {
  TwinTable design{small()};
  TwinTable twin{small()};
  LockStep checker{design, twin};
  checker.settle();
  checker.compare_contents();
  EXPECT_TRUE(checker.errors().empty());
  design.corrupt(TableCopy::b, 7, 42);
  checker.compare_contents();
  EXPECT_TRUE(names(checker, "place 7 of copy B"));
}

TEST(LockStep, NothingMatchedIsAFailure) {
  TwinTable design{small()};
  TwinTable twin{small()};
  LockStep checker{design, twin};
  for (int cycle = 0; cycle < 1000; ++cycle) checker.step({});
  EXPECT_TRUE(checker.errors().empty());
  EXPECT_FALSE(checker.passed());
}

TEST(Stimulus, IsRepeatable) {
  const auto run = [] {
    TwinTable design{small()};
    TwinTable twin{small()};
    LockStep checker{design, twin};
    Stimulus{checker, KeyPattern::sequential, 5}.run(20'000);
    return std::pair{checker.seen().cycles, checker.matched()};
  };
  EXPECT_EQ(run(), run());
}

// -------------------------------------------------------------------------------------------------- verilated table

TEST(VerilatedTable, IsNullForAShapeThatIsNotBuilt) {
  TableShape shape;
  shape.max_kicks = 33;
  EXPECT_EQ(VerilatedTable::make(shape), nullptr);
}

TEST(VerilatedTable, AnySeedWillDo) {
  for (const std::uint64_t seed : {0ULL, 1ULL, ~0ULL}) {
    TableShape shape = small();
    shape.seed = seed;
    RtlTable design{VerilatedTable::make(shape)};
    TwinTable twin{shape};
    LockStep checker{design, twin};
    Stimulus{checker, KeyPattern::random, seed}.run(5'000);
    EXPECT_TRUE(checker.passed());
  }
}

/// Inputs that keep the table busy, by cycle.
TableInputs busy_inputs(std::uint64_t cycle) {
  TableInputs inputs;
  inputs.lookup_valid = true;
  inputs.lookup_key = key_at(KeyPattern::sequential, cycle % 50, 0);
  inputs.command_valid = true;
  inputs.command.operation = cycle % 7 < 5 ? TableOperation::insert : TableOperation::erase;
  inputs.command.mailbox = key_at(KeyPattern::sequential, cycle * 13 % 50, 0).mailbox;
  inputs.command.pid = Pid{1};
  return inputs;
}

TEST(VerilatedTable, GoesOnFromASavedState) {
  const auto table = VerilatedTable::make(small());
  ASSERT_NE(table, nullptr);
  for (std::uint64_t cycle = 0; cycle < 1003; ++cycle) table->step(busy_inputs(cycle));
  const auto other = VerilatedTable::make(small(), 99);
  other->load(table->save());
  std::uint64_t hits = 0;
  for (std::uint64_t cycle = 1003; cycle < 2000; ++cycle) {
    const TableOutputs a = table->step(busy_inputs(cycle));
    const TableOutputs b = other->step(busy_inputs(cycle));
    ASSERT_EQ(a.command_ready, b.command_ready) << cycle;
    ASSERT_EQ(a.answer_valid, b.answer_valid) << cycle;
    ASSERT_EQ(a.lookup.hit, b.lookup.hit) << cycle;
    hits += a.lookup.hit ? 1 : 0;
  }
  EXPECT_GT(hits, 100U);
}

std::size_t size_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary | std::ios::ate};
  return file ? static_cast<std::size_t>(file.tellg()) : 0;
}

TEST(VerilatedTable, WritesWaves) {
  const std::string path = testing::TempDir() + "rvma_waves.fst";
  const auto table = VerilatedTable::make(small());
  EXPECT_FALSE(table->open_waves("/nonexistent/directory/waves.fst"));
  ASSERT_TRUE(table->open_waves(path));
  for (std::uint64_t cycle = 0; cycle < 500; ++cycle) table->step(busy_inputs(cycle));
  table->close_waves();
  EXPECT_GT(size_of(path), 1000U);
  std::remove(path.c_str());
}

TEST(LastCycles, WritesWavesOfWhatWas) {
  const std::string path = testing::TempDir() + "rvma_last_cycles.fst";
  const auto table = VerilatedTable::make(small());
  LastCycles last{*table, 100};
  for (std::uint64_t cycle = 0; cycle < 1234; ++cycle) {
    last.record(busy_inputs(cycle));
    table->step(busy_inputs(cycle));
  }
  EXPECT_FALSE(last.write_waves("/nonexistent/directory/waves.fst"));
  ASSERT_TRUE(last.write_waves(path));
  EXPECT_GT(size_of(path), 1000U);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace rvma::cosim
