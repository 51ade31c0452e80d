// Verilator's header goes first: it does not compile after SystemC's.
#include <type_traits>

#include "VMutants.h"
#include "mutant_table.hpp"
#include "rtl/verilated/verilated_table_of.hpp"

namespace rvma::mutation {

TableShape mutant_shape() { return TableShape{RVMA_MUTANT_SHAPE, EntryProtection::parity, 0}; }

std::unique_ptr<VerilatedTable> make_mutant(const TableShape& shape, std::uint32_t power_up, std::uint32_t fault) {
  RVMA_ASSERT(shape.same_core(mutant_shape()), "mutants: another shape");
  return std::make_unique<VerilatedTableOf<VMutants>>(shape, power_up, [fault](VMutants& model) {
    model.fault_i = static_cast<std::decay_t<decltype(model.fault_i)>>(fault);
  });
}

}  // namespace rvma::mutation
