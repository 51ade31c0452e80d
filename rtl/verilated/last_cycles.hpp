/// \file
/// Keeps what is needed to show the last cycles of a verilated table as waves, without writing waves all the time: now
/// and then a copy of its state, and the inputs since. On demand a second table is run through them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rtl/verilated/verilated_table.hpp"

namespace rvma {

class LastCycles {
 public:
  /// Keeps at least the last `cycles` cycles of `table`, which outlives this, from now on.
  LastCycles(VerilatedTable& table, std::uint32_t cycles);

  /// Call before each step of the table, with its inputs and, if waves are to show them, the times of its edges in ps:
  /// see VerilatedTable::set_wave_times().
  void record(const TableInputs& inputs, std::uint64_t low_ps = 0, std::uint64_t high_ps = 0);
  /// The cycle that was recorded last begins with VerilatedTable::corrupt(): call it and this before the step.
  void record_flip(TableCopy copy, std::uint32_t place, std::uint32_t bit);
  /// Call after a reset of the table: what was before is forgotten.
  void restart();
  /// Writes the kept cycles to an FST file; false if it cannot be written whole.
  bool write_waves(const std::string& path) const;

 private:
  struct Flip {
    TableCopy copy = TableCopy::a;
    std::uint32_t place = 0;
    std::uint32_t bit = 0;
  };
  struct Cycle {
    TableInputs inputs;
    std::uint64_t low_ps = 0;
    std::uint64_t high_ps = 0;
    std::optional<Flip> flip{};  ///< before the step
  };
  struct Stretch {
    std::vector<std::uint8_t> state;
    std::vector<Cycle> cycles;  ///< after `state`
  };
  VerilatedTable& table_;
  std::uint32_t cycles_;
  Stretch older_;
  Stretch newer_;
};

}  // namespace rvma
