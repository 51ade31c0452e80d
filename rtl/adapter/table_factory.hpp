/// \file
/// The Verilog table for `rvma run --table rtl|both`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "nic/table_unit.hpp"
#include "rtl/adapter/table_core.hpp"

namespace rvma {

struct RtlTableOptions {
  bool lockstep = false;  ///< held against the C++ class in every cycle
  /// FST file of every signal from reset on; its name gets the node before its ending. Empty: none.
  std::string waves;
  /// Called with the name of each file that is opened for `waves`, and the table that writes it.
  std::function<void(const std::string& path, VerilatedTable& table)> waves_opened;
  /// With lockstep: likewise for the last cycles before a difference, which only then is written. Empty: none.
  std::string difference_waves;
  /// With lockstep: see LockstepTableCore::flip_bit_at_lookup(), for every node's table.
  std::optional<std::uint64_t> flip_at_lookup;
  /// `unit`: path of the table, as in the statistics; `waves`: the file that the difference's waves were meant for.
  std::function<void(const std::string& unit, const std::string& waves, const LockstepTableCore::Difference&)> differs;
};

/// "4 banks x 512 rows x 2 slots, stash 8, 32 kicks, latency 2, parity"
std::string to_string(const TableShape& shape);
/// Why the configured table cannot be Verilog, with the shapes that can; nothing if it can.
std::optional<Error> check_rtl_table(const TableConfig& config);
/// The table's waves of a node: "out.fst", "node1.nic.table" -> "out.node1.fst".
std::string waves_path(const std::string& file, const std::string& unit);
/// Legal only for what check_rtl_table() has passed, and files that can be written (asserted).
TableUnitFactory rtl_table_factory(RtlTableOptions options);

}  // namespace rvma
