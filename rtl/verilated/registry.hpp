/// \file
/// The list behind VerilatedTable::make(): one line a shape, generated.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rtl/verilated/verilated_table.hpp"

namespace rvma {

struct RegisteredShape {
  VerilatedTable::BuiltShape built;
  std::unique_ptr<VerilatedTable> (*make)(const TableShape& shape, std::uint32_t power_up);
};

const std::vector<RegisteredShape>& registered_shapes();

}  // namespace rvma
