// Lock step inside the RNIC: a difference is told once, with its history and with waves that show it.
#include "rtl/adapter/table_core.hpp"

#include <gtest/gtest.h>
#include <gtkwave/fstapi.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "rtl/verilated/fst_file.hpp"

namespace rvma {
namespace {

constexpr Time kPeriod = Time::from_ns(1);

/// A Verilog table with a fault: from a cycle on, each hit names another slot.
class FaultyTable final : public VerilatedTable {
 public:
  FaultyTable(std::unique_ptr<VerilatedTable> table, std::int64_t from) : table_(std::move(table)), from_(from) {}
  const TableShape& shape() const override { return table_->shape(); }
  TableOutputs outputs() const override { return spoil(table_->outputs()); }
  TableOutputs step(const TableInputs& inputs) override {
    const TableOutputs outputs = spoil(table_->step(inputs));
    ++cycle_;
    return outputs;
  }
  void reset() override { table_->reset(); }
  bool open_waves(const std::string& path) override { return table_->open_waves(path); }
  void set_wave_times(std::uint64_t low_ps, std::uint64_t high_ps) override { table_->set_wave_times(low_ps, high_ps); }
  bool close_waves() override { return table_->close_waves(); }
  std::vector<std::uint8_t> save() override { return table_->save(); }
  void load(const std::vector<std::uint8_t>& state) override { table_->load(state); }
  TableWord stored(TableCopy copy, std::uint32_t place) const override { return table_->stored(copy, place); }
  void corrupt(TableCopy copy, std::uint32_t place, std::uint32_t bit) override { table_->corrupt(copy, place, bit); }
  bool write_coverage(const std::string& path) override { return table_->write_coverage(path); }

 private:
  TableOutputs spoil(TableOutputs outputs) const {
    if (cycle_ >= from_ && outputs.lookup.hit) outputs.lookup.slot = SlotId{77};
    return outputs;
  }
  std::unique_ptr<VerilatedTable> table_;
  std::int64_t from_;
  std::int64_t cycle_ = 0;
};

/// All values of one signal in an FST file, by time in units of the file.
struct Waves {
  std::map<std::string, std::map<std::uint64_t, std::string>> values;
  int timescale = 0;  ///< exponent of ten of a second
};

Waves read_waves(const std::string& path, const std::vector<std::string>& signals) {
  Waves waves;
  void* reader = fstReaderOpen(path.c_str());
  if (reader == nullptr) return waves;
  waves.timescale = fstReaderGetTimescale(reader);
  struct Names {
    std::map<fstHandle, std::string> by_handle;
    Waves* waves;
  } names{{}, &waves};
  while (const fstHier* item = fstReaderIterateHier(reader)) {
    if (item->htyp != FST_HT_VAR) continue;
    // Verilator appends the range to the name of a vector.
    const std::string name = std::string{item->u.var.name}.substr(0, std::string{item->u.var.name}.find_first_of(" ["));
    for (const std::string& signal : signals) {
      if (name == signal) names.by_handle.emplace(item->u.var.handle, signal);
    }
  }
  fstReaderSetFacProcessMaskAll(reader);
  fstReaderIterBlocks(
      reader,
      [](void* data, std::uint64_t time, fstHandle handle, const unsigned char* value) {
        const auto* known = static_cast<const Names*>(data);
        const auto found = known->by_handle.find(handle);
        if (found == known->by_handle.end()) return;
        known->waves->values[found->second][time] = reinterpret_cast<const char*>(value);
      },
      &names, nullptr);
  fstReaderClose(reader);
  return waves;
}

std::uint64_t number(const std::string& bits) { return std::strtoull(bits.c_str(), nullptr, 2); }

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_((std::filesystem::temp_directory_path() / (name + std::to_string(::getpid()) + ".fst")).string()) {
    std::filesystem::remove(path_);
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Inserts keys 1, 2, .. one after another, and looks up one that is there in every cycle.
class Traffic {
 public:
  void step(TableCore& core) {
    TableInputs inputs;
    if (inserted_ > 0) {
      inputs.lookup_valid = true;
      inputs.lookup_key = {Pid{1}, Mailbox{base() + 1 + cycle_ % inserted_}};
    }
    inputs.command_valid = cycle_ >= 600 && inserted_ < 100;
    inputs.command = {TableOperation::insert, Pid{1}, Mailbox{base() + inserted_ + 1},
                      SlotId{static_cast<std::uint16_t>(inserted_ + 1)}, 0};
    const bool taken = inputs.command_valid && core.outputs().command_ready;
    core.clock(inputs, Time::from_ns(static_cast<std::int64_t>(++cycle_)));
    if (core.outputs().answer_valid) ++inserted_;
    taken_ += taken ? 1 : 0;
  }
  static std::uint64_t base() { return 0xfedc'ba98'0000'0000ULL; }
  std::uint64_t cycle() const { return cycle_; }

 private:
  std::uint64_t cycle_ = 0;
  std::uint64_t inserted_ = 0;
  std::uint64_t taken_ = 0;
};

TEST(LockstepTableCore, AgreesAndCountsWhatItHasCompared) {
  int told = 0;
  LockstepTableCore core(VerilatedTable::make(TableShape{}), kPeriod, "", [&](const auto&) { ++told; });
  Traffic traffic;
  for (int i = 0; i < 5'000; ++i) traffic.step(core);
  EXPECT_EQ(told, 0);
  EXPECT_GT(core.matched(), 4'000U);
}

// Before and after the first whole episode of waves, and right at its border.
class LockstepDifference : public testing::TestWithParam<std::int64_t> {};

TEST_P(LockstepDifference, IsToldOnceWithHistoryAndWaves) {
  const std::int64_t from = GetParam();
  TemporaryFile file("rvma_lockstep_" + std::to_string(from) + "_");
  std::vector<LockstepTableCore::Difference> told;
  LockstepTableCore core(std::make_unique<FaultyTable>(VerilatedTable::make(TableShape{}), from), kPeriod, file.path(),
                         [&](const LockstepTableCore::Difference& difference) { told.push_back(difference); });
  Traffic traffic;
  while (static_cast<std::int64_t>(traffic.cycle()) < from + 10) traffic.step(core);
  ASSERT_EQ(told.size(), 1U);
  // Every cycle has a hit by then: the first spoilt one is told, with the cycle's number and time.
  EXPECT_EQ(told[0].cycle, from);
  EXPECT_EQ(told[0].edge, Time::from_ns(from + 1));
  ASSERT_EQ(told[0].outputs.size(), 1U);
  EXPECT_EQ(told[0].outputs[0].substr(0, 17), "lookup_slot is 77");
  EXPECT_NE(told[0].history.find("hit 77"), std::string::npos) << told[0].history;
  EXPECT_NE(told[0].history.find("lookup 1:0xfedcba98000000"), std::string::npos) << told[0].history;
  // From then on the answers are the C++ table's.
  EXPECT_NE(core.outputs().lookup.slot, SlotId{77});
  EXPECT_TRUE(core.outputs().lookup.hit);

  ASSERT_TRUE(told[0].has_waves);
  const Waves waves = read_waves(file.path(), {"clk_i", "lookup_mailbox_i", "lookup_hit_o"});
  EXPECT_EQ(waves.timescale, -12);
  ASSERT_EQ(waves.values.size(), 3U);
  // A rising edge at every nanosecond up to the difference, for at least the promised cycles or from the beginning.
  const auto& clock = waves.values.at("clk_i");
  std::int64_t edges = 0;
  for (const auto& [time, value] : clock) {
    if (value != "1") continue;
    EXPECT_EQ(time % 1000, 0U);
    ++edges;
  }
  EXPECT_EQ(clock.rbegin()->first, static_cast<std::uint64_t>(from + 1) * 1000);
  EXPECT_GE(edges, std::min<std::int64_t>(from + 1, LockstepTableCore::kWaveCycles));
  // All 64 bits of the mailbox are there, and it changes.
  const auto& mailbox = waves.values.at("lookup_mailbox_i");
  EXPECT_GT(mailbox.size(), 5U);
  EXPECT_EQ(mailbox.rbegin()->second.size(), 64U);
  EXPECT_EQ(number(mailbox.rbegin()->second) >> 32U, Traffic::base() >> 32U);
  EXPECT_EQ(waves.values.at("lookup_hit_o").rbegin()->second, "1");
}

INSTANTIATE_TEST_SUITE_P(At, LockstepDifference, testing::Values(700, 1023, 1024, 1025, 2500));

// Waves come from a second core that is run through the last cycles: the flip must be in them.
class LockstepFlip : public testing::TestWithParam<std::uint64_t> {};

TEST_P(LockstepFlip, IsFoundAndIsInTheWaves) {
  TemporaryFile file("rvma_lockstep_flip_" + std::to_string(GetParam()) + "_");
  std::vector<LockstepTableCore::Difference> told;
  LockstepTableCore core(VerilatedTable::make(TableShape{}), kPeriod, file.path(),
                         [&](const LockstepTableCore::Difference& difference) { told.push_back(difference); });
  core.flip_bit_at_lookup(GetParam());
  Traffic traffic;
  while (told.empty() && traffic.cycle() < 5'000) traffic.step(core);
  ASSERT_EQ(told.size(), 1U);
  ASSERT_EQ(told[0].outputs.size(), 3U);
  EXPECT_EQ(told[0].outputs[0], "lookup_hit is 0, reference 1");
  EXPECT_EQ(told[0].outputs[2], "lookup_fault_valid is 1, reference 0");
  ASSERT_TRUE(told[0].has_waves);
  const Waves waves = read_waves(file.path(), {"lookup_hit_o", "lookup_fault_valid_o"});
  // Before the edge, which is the last one of the waves: after it come the next cycle's outputs.
  const auto last = [&](const char* signal) {
    return std::prev(waves.values.at(signal).lower_bound(static_cast<std::uint64_t>(told[0].edge.ps())))->second;
  };
  EXPECT_EQ(last("lookup_hit_o"), "0");
  EXPECT_EQ(last("lookup_fault_valid_o"), "1");
}

// The first lookup there is, and around the border of two episodes of waves (lookups begin after some 600 cycles).
INSTANTIATE_TEST_SUITE_P(At, LockstepFlip, testing::Values(1, 410, 415, 418, 419, 420, 2000));

TEST(FstFile, ACutOneIsNotWhole) {
  TemporaryFile file("rvma_cut_");
  const std::unique_ptr<VerilatedTable> table = VerilatedTable::make(TableShape{});
  ASSERT_TRUE(table->open_waves(file.path()));
  for (int i = 0; i < 100; ++i) table->step({});
  EXPECT_FALSE(is_whole_fst_file(file.path()));  // it is still being written
  EXPECT_TRUE(table->close_waves());
  EXPECT_TRUE(is_whole_fst_file(file.path()));
  for (auto size = std::filesystem::file_size(file.path()); size != 0; size = size < 100 ? size - 1 : size * 3 / 4) {
    std::filesystem::resize_file(file.path(), size - 1);
    ASSERT_FALSE(is_whole_fst_file(file.path())) << size - 1 << " bytes";
  }
  EXPECT_FALSE(is_whole_fst_file(file.path() + ".not_there"));
}

TEST(RtlTableCore, WavesHaveSimulatedTime) {
  TemporaryFile file("rvma_waves_");
  std::unique_ptr<VerilatedTable> table = VerilatedTable::make(TableShape{});
  ASSERT_TRUE(table->open_waves(file.path()));
  {
    RtlTableCore core(std::move(table), kPeriod);
    Traffic traffic;
    for (int i = 0; i < 700; ++i) traffic.step(core);
    // Cycles that are left out are a long high phase.
    core.clock({}, Time::from_us(5));
  }
  const Waves waves = read_waves(file.path(), {"clk_i", "answer_valid_o"});
  const auto& clock = waves.values.at("clk_i");
  EXPECT_EQ(clock.rbegin()->first, 5'000'000U);
  EXPECT_EQ(clock.rbegin()->second, "1");
  EXPECT_EQ(std::next(clock.rbegin())->first, 4'999'500U);
  EXPECT_GT(waves.values.at("answer_valid_o").size(), 4U);
}

}  // namespace
}  // namespace rvma
