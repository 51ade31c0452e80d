/// \file
/// Translation-table cores for the adapter: the Verilog one, and the Verilog one held against its C++ twin.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nic/translation_table.hpp"
#include "rtl/adapter/core_adapter.hpp"
#include "rtl/verilated/last_cycles.hpp"
#include "rtl/verilated/verilated_table.hpp"

namespace rvma {

using TableCore = ClockedCore<TableInputs, TableOutputs>;

/// The Verilog core alone.
class RtlTableCore final : public TableCore {
 public:
  /// `period`: of the clock, for waves.
  RtlTableCore(std::unique_ptr<VerilatedTable> table, Time period);

  void clock(const TableInputs& inputs, Time edge) override;
  const TableOutputs& outputs() const override { return outputs_; }

 private:
  std::unique_ptr<VerilatedTable> table_;
  Time half_period_;
  TableOutputs outputs_;
};

/// The Verilog core and its twin, with the same inputs. The first cycle in which an output of theirs differs is told
/// with what is needed to look into it; from then on only the twin is clocked.
class LockstepTableCore final : public TableCore {
 public:
  /// Cycles whose waves a difference comes with: at least so many, or all since reset.
  static constexpr std::uint32_t kWaveCycles = 1024;
  /// Cycles in the history of a difference.
  static constexpr std::int64_t kHistoryCycles = 12;

  struct Difference {
    std::int64_t cycle = 0;            ///< among those in which the core was clocked, from reset
    Time edge;                         ///< that ended it
    std::vector<std::string> outputs;  ///< see OutputComparison
    std::string history;               ///< inputs and outputs of the last cycles, a table
    bool has_waves = false;            ///< the file was written whole
  };
  /// `waves_path`: FST file of the last cycles, written at a difference; empty: none.
  LockstepTableCore(std::unique_ptr<VerilatedTable> table, Time period, std::string waves_path,
                    std::function<void(const Difference&)> differs);

  void clock(const TableInputs& inputs, Time edge) override;
  const TableOutputs& outputs() const override { return outputs_; }
  /// A difference on purpose: flips a bit of the stored word that the `lookup`-th lookup (from 1 on) hits, in the
  /// Verilog core alone; if that lookup misses, of the first one after it that hits. Call before clock().
  void flip_bit_at_lookup(std::uint64_t lookup) { flip_at_lookup_ = lookup; }
  /// Groups of outputs that were valid on both sides and agreed.
  std::uint64_t matched() const { return matched_; }

 private:
  struct Step {
    TableInputs inputs;
    Time edge;
    TableOutputs design;
    TableOutputs reference;
  };
  std::string history() const;
  void flip_if_due(const TableInputs& inputs);

  std::unique_ptr<VerilatedTable> table_;
  TranslationTable twin_;
  Time half_period_;
  std::string waves_path_;
  std::function<void(const Difference&)> differs_;
  bool has_differed_ = false;
  std::int64_t cycle_ = 0;
  std::uint64_t matched_ = 0;
  std::uint64_t lookups_ = 0;
  std::optional<std::uint64_t> flip_at_lookup_;  ///< until it is done
  std::vector<Step> steps_;                ///< ring of the last kHistoryCycles; that of cycle c is [c % kHistoryCycles]
  std::optional<LastCycles> last_cycles_;  ///< if waves are wanted
  TableOutputs outputs_;
};

}  // namespace rvma
