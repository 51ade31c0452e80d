/// \file
/// The Verilog table with faults that make_mutants.py put in.
#pragma once

#include <cstdint>
#include <memory>

#include "rtl/verilated/verilated_table.hpp"

namespace rvma::mutation {

/// All mutants have one shape; its seed means nothing.
TableShape mutant_shape();
/// The core with fault number `fault`, or with none if that is 0; else as VerilatedTable::make().
std::unique_ptr<VerilatedTable> make_mutant(const TableShape& shape, std::uint32_t power_up, std::uint32_t fault);

}  // namespace rvma::mutation
