#include "rtl/verilated/verilated_table.hpp"

#include "rtl/verilated/registry.hpp"

namespace rvma {

const std::vector<VerilatedTable::BuiltShape>& VerilatedTable::built() {
  static const std::vector<BuiltShape> shapes = [] {
    std::vector<BuiltShape> all;
    for (const RegisteredShape& registered : registered_shapes()) all.push_back(registered.built);
    return all;
  }();
  return shapes;
}

std::unique_ptr<VerilatedTable> VerilatedTable::make(const TableShape& shape, std::uint32_t power_up) {
  for (const RegisteredShape& registered : registered_shapes()) {
    if (registered.built.shape.same_core(shape)) return registered.make(shape, power_up);
  }
  return nullptr;
}

}  // namespace rvma
