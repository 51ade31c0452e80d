/// \file
/// One face for every clocked table that the co-simulation runs: the C++ twin, the Verilog core, and wrong ones.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "nic/translation_table.hpp"
#include "rtl/verilated/verilated_table.hpp"

namespace rvma::cosim {

class ClockedTable {
 public:
  virtual ~ClockedTable() = default;
  virtual const TableShape& shape() const = 0;
  virtual TableOutputs step(const TableInputs& inputs) = 0;
  virtual void reset() = 0;
  virtual TableWord stored(TableCopy copy, std::uint32_t place) const = 0;
  virtual void corrupt(TableCopy copy, std::uint32_t place, std::uint32_t bit) = 0;
};

class TwinTable final : public ClockedTable {
 public:
  explicit TwinTable(const TableShape& shape) : table_(shape) {}
  const TableShape& shape() const override { return table_.shape(); }
  TableOutputs step(const TableInputs& inputs) override { return table_.step(inputs); }
  void reset() override { table_ = TranslationTable{TableShape{table_.shape()}}; }
  TableWord stored(TableCopy copy, std::uint32_t place) const override { return table_.stored(copy, place); }
  void corrupt(TableCopy copy, std::uint32_t place, std::uint32_t bit) override { table_.corrupt(copy, place, bit); }

 private:
  TranslationTable table_;
};

class RtlTable final : public ClockedTable {
 public:
  explicit RtlTable(std::unique_ptr<VerilatedTable> table) : table_(std::move(table)) {}
  VerilatedTable& verilated() { return *table_; }
  const TableShape& shape() const override { return table_->shape(); }
  TableOutputs step(const TableInputs& inputs) override { return table_->step(inputs); }
  void reset() override { table_->reset(); }
  TableWord stored(TableCopy copy, std::uint32_t place) const override { return table_->stored(copy, place); }
  void corrupt(TableCopy copy, std::uint32_t place, std::uint32_t bit) override { table_->corrupt(copy, place, bit); }

 private:
  std::unique_ptr<VerilatedTable> table_;
};

}  // namespace rvma::cosim
