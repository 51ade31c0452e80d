#include "rtl/adapter/table_factory.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "rtl/adapter/rtl_table_unit.hpp"
#include "rtl/verilated/verilated_table.hpp"

namespace rvma {

std::string to_string(const TableShape& shape) {
  return fmt::format("{} banks x {} rows x {} slot{}, stash {}, {} kick{}, latency {}, {}", shape.banks, shape.rows,
                     shape.slots, shape.slots == 1 ? "" : "s", shape.stash, shape.max_kicks,
                     shape.max_kicks == 1 ? "" : "s", shape.latency,
                     shape.protection == EntryProtection::parity ? "parity" : "no protection");
}

std::optional<Error> check_rtl_table(const TableConfig& config) {
  const Position position{"rvma", 0, 0};
  if (VerilatedTable::built().empty()) {
    return Error(position, "--table: the Verilog table is off in this build",
                 "expected model, or a build with Verilator (Debian package verilator)");
  }
  const TableShape wanted = TableShape::from(config);
  std::string built;
  for (const VerilatedTable::BuiltShape& shape : VerilatedTable::built()) {
    if (shape.shape.same_core(wanted)) return std::nullopt;
    // No key chooses another protection: nothing in a run makes bits wrong. Such shapes are for the co-simulation.
    if (shape.shape.protection != wanted.protection) continue;
    built += fmt::format("\n  {:<10} {}", shape.name, to_string(shape.shape));
  }
  return Error(position, "--table: the Verilog table is not built as nic.table wants it: " + to_string(wanted),
               "expected a shape of rtl/shapes.txt with parity (add a line there and build again):" + built);
}

std::string waves_path(const std::string& file, const std::string& unit) {
  const std::string node = "." + unit.substr(0, unit.find('.'));
  const std::size_t name = file.find_last_of('/') + 1;  // 0 if there is no directory
  const std::size_t dot = file.find_last_of('.');
  if (dot == std::string::npos || dot <= name) return file + node;
  return file.substr(0, dot) + node + file.substr(dot);
}

TableUnitFactory rtl_table_factory(RtlTableOptions options) {
  return [options = std::move(options)](const char* name, SimContext& context, Frequency clock,
                                        const TableConfig& config) -> std::unique_ptr<TableUnit> {
    std::unique_ptr<VerilatedTable> table = VerilatedTable::make(TableShape::from(config));
    RVMA_ASSERT(table != nullptr, "a shape of the Verilog table that is not built");
    const ClockDomain domain{clock};
    const Time period = domain.time_of(Cycles{1});
    // The module that is being constructed above gives the path.
    const sc_core::sc_module* parent = sc_core::sc_get_curr_simcontext()->hierarchy_curr();
    const std::string unit = (parent == nullptr ? std::string{} : std::string{parent->name()} + ".") + name;
    if (!options.waves.empty()) {
      const bool opened = table->open_waves(waves_path(options.waves, unit));
      RVMA_ASSERT(opened, "waves cannot be written to " + waves_path(options.waves, unit));
      if (options.waves_opened) options.waves_opened(waves_path(options.waves, unit), *table);
    }
    std::unique_ptr<TableCore> core;
    if (options.lockstep) {
      const std::string waves =
          options.difference_waves.empty() ? std::string{} : waves_path(options.difference_waves, unit);
      auto lockstep = std::make_unique<LockstepTableCore>(
          std::move(table), period, waves, [differs = options.differs, unit, waves](const auto& difference) {
            if (differs) differs(unit, waves, difference);
          });
      if (options.flip_at_lookup) lockstep->flip_bit_at_lookup(*options.flip_at_lookup);
      core = std::move(lockstep);
    } else {
      core = std::make_unique<RtlTableCore>(std::move(table), period);
    }
    return std::make_unique<RtlTableUnit>(name, context, clock, config, std::move(core));
  };
}

}  // namespace rvma
