/// \file
/// The RNIC's translation table in Verilog, alone or in lock step with its C++ twin.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "nic/table_unit.hpp"
#include "rtl/adapter/core_adapter.hpp"
#include "rtl/adapter/table_core.hpp"

namespace rvma {

/// Same answers in the same cycles as ModelTableUnit. A running command costs an activation a cycle; a lookup costs
/// none.
class RtlTableUnit final : public TableUnit {
 public:
  /// `core` has just been reset, and has the shape that `config` asks for.
  RtlTableUnit(const sc_core::sc_module_name& name, SimContext& context, Frequency clock, const TableConfig& config,
               std::unique_ptr<TableCore> core);

  std::uint64_t clocked_cycles() const { return adapter_.clocked(); }

 private:
  void answer_front() override;
  void start_next() override;

  Cycles next_input(Cycles cycle);
  void drive(Cycles cycle, TableInputs& inputs);
  void sample(Cycles cycle, const TableOutputs& outputs);
  bool active(Cycles cycle) const;
  void run();

  std::unique_ptr<TableCore> core_;
  Cycles reset_cycles_;
  std::size_t presented_ = 0;        ///< lookups in the core: presented, not answered
  std::optional<Cycles> offered_;    ///< the front command is at the port, from this cycle on
  bool running_ = false;             ///< .. and was taken
  std::optional<TableAnswer> told_;  ///< .. and is answered in this cycle
  Cycles quiet_from_;                ///< nothing that was given so far can change anything from this cycle on
  CoreAdapter<TableInputs, TableOutputs> adapter_;
  Wakeup wakeup_;
};

}  // namespace rvma
