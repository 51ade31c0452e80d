#include "rtl/verilated/last_cycles.hpp"

#include <utility>

namespace rvma {

LastCycles::LastCycles(VerilatedTable& table, std::uint32_t cycles) : table_(table), cycles_(cycles) { restart(); }

void LastCycles::restart() {
  older_ = {};
  newer_ = {table_.save(), {}};
}

void LastCycles::record(const TableInputs& inputs, std::uint64_t low_ps, std::uint64_t high_ps) {
  if (newer_.cycles.size() == cycles_) {
    older_ = std::exchange(newer_, {table_.save(), {}});
    newer_.cycles.reserve(cycles_);
  }
  newer_.cycles.push_back({inputs, low_ps, high_ps});
}

void LastCycles::record_flip(TableCopy copy, std::uint32_t place, std::uint32_t bit) {
  newer_.cycles.back().flip = Flip{copy, place, bit};
}

bool LastCycles::write_waves(const std::string& path) const {
  const auto replay = VerilatedTable::make(table_.shape());
  replay->load(older_.state.empty() ? newer_.state : older_.state);
  if (!replay->open_waves(path)) return false;
  for (const Stretch* stretch : {&older_, &newer_}) {
    for (const Cycle& cycle : stretch->cycles) {
      replay->set_wave_times(cycle.low_ps, cycle.high_ps);
      if (cycle.flip) replay->corrupt(cycle.flip->copy, cycle.flip->place, cycle.flip->bit);
      replay->step(cycle.inputs);
    }
  }
  return replay->close_waves();
}

}  // namespace rvma
