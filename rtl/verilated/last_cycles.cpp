#include "rtl/verilated/last_cycles.hpp"

#include <utility>

namespace rvma {

LastCycles::LastCycles(VerilatedTable& table, std::uint32_t cycles) : table_(table), cycles_(cycles) { restart(); }

void LastCycles::restart() {
  older_ = {};
  newer_ = {table_.save(), {}};
}

void LastCycles::record(const TableInputs& inputs) {
  if (newer_.inputs.size() == cycles_) {
    older_ = std::exchange(newer_, {table_.save(), {}});
    newer_.inputs.reserve(cycles_);
  }
  newer_.inputs.push_back(inputs);
}

bool LastCycles::write_waves(const std::string& path) const {
  const auto replay = VerilatedTable::make(table_.shape());
  replay->load(older_.state.empty() ? newer_.state : older_.state);
  if (!replay->open_waves(path)) return false;
  for (const TableInputs& inputs : older_.inputs) replay->step(inputs);
  for (const TableInputs& inputs : newer_.inputs) replay->step(inputs);
  replay->close_waves();
  return true;
}

}  // namespace rvma
