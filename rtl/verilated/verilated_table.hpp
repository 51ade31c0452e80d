/// \file
/// The Verilog core of the translation table as a C++ object, in the types of its C++ twin. It is built for the shapes
/// of rtl/shapes.txt, and for none where Verilator is missing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nic/translation_table.hpp"

namespace rvma {

class VerilatedTable {
 public:
  struct BuiltShape {
    std::string_view name;
    TableShape shape;  ///< its seed means nothing: any seed will do
  };
  /// Shapes that can be made.
  static const std::vector<BuiltShape>& built();
  /// The core in its first cycle after reset; null if `shape` is not built. Registers and memories begin with random
  /// contents drawn from `power_up`: nothing may depend on them.
  static std::unique_ptr<VerilatedTable> make(const TableShape& shape, std::uint32_t power_up = 1);

  virtual ~VerilatedTable() = default;

  virtual const TableShape& shape() const = 0;
  /// Outputs of this cycle, given its inputs; then goes on to the next cycle.
  virtual TableOutputs step(const TableInputs& inputs) = 0;
  /// Outputs of this cycle before its inputs are given: none depends on them.
  virtual TableOutputs outputs() const = 0;
  /// Resets the core; it is then in the first cycle after reset, as after make().
  virtual void reset() = 0;

  /// Writes every signal to an FST file from now on. False if the file cannot be written. In the file a picosecond is a
  /// picosecond, once set_wave_times() was called, else half a cycle.
  virtual bool open_waves(const std::string& path) = 0;
  /// Of the next step: its falling and its rising edge, in ps; not decreasing.
  virtual void set_wave_times(std::uint64_t low_ps, std::uint64_t high_ps) = 0;
  /// False if waves were open and their file could not be written whole.
  virtual bool close_waves() = 0;

  /// State of the core, for load() into another one of the same shape. Waves and coverage are not part of it.
  virtual std::vector<std::uint8_t> save() = 0;
  virtual void load(const std::vector<std::uint8_t>& state) = 0;

  /// Test hooks: a stored word, and a flip of one of its bits. Only if neither lookup nor command was given in the last
  /// three cycles and command_ready is high: writes reach copy A late.
  virtual TableWord stored(TableCopy copy, std::uint32_t place) const = 0;
  virtual void corrupt(TableCopy copy, std::uint32_t place, std::uint32_t bit) = 0;

  /// Writes Verilator's coverage counts; false unless they were built in.
  virtual bool write_coverage(const std::string& path) = 0;
};

}  // namespace rvma
