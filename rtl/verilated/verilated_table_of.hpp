/// \file
/// VerilatedTable over one verilated model. Included by the generated file of each shape only.
#pragma once

#include <verilated.h>
#include <verilated_fst_c.h>
#include <verilated_syms.h>
#if VM_COVERAGE
#include <verilated_cov.h>
#else
#include <verilated_save.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "rtl/verilated/fst_file.hpp"
#include "rtl/verilated/verilated_table.hpp"

namespace rvma {

#if !VM_COVERAGE  // Verilator 5.006 builds either saving or coverage in
/// Verilator's serializer into memory.
class StateWriter : public VerilatedSerialize {
 public:
  StateWriter() {
    m_isOpen = true;
    header();
  }
  ~StateWriter() override = default;
  std::vector<std::uint8_t> finish() {
    trailer();
    flush();
    return std::move(bytes_);
  }
  void close() override {}
  void flush() override {
    bytes_.insert(bytes_.end(), m_bufp, m_cp);
    m_cp = m_bufp;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// .. and from it.
class StateReader : public VerilatedDeserialize {
 public:
  explicit StateReader(const std::vector<std::uint8_t>& bytes) : bytes_(bytes) {
    m_isOpen = true;
    m_endp = m_bufp;
    fill();
    header();
  }
  ~StateReader() override = default;
  void finish() { trailer(); }
  void close() override {}
  void flush() override {}
  void fill() override {
    // What is left moves to the front.
    std::uint8_t* to = m_bufp;
    for (std::uint8_t* from = m_cp; from < m_endp; ++from) *to++ = *from;
    const std::size_t count = std::min(bytes_.size() - next_, static_cast<std::size_t>(m_bufp + bufferSize() - to));
    if (count != 0) std::memcpy(to, bytes_.data() + next_, count);
    next_ += count;
    m_cp = m_bufp;
    m_endp = to + count;
  }

 private:
  const std::vector<std::uint8_t>& bytes_;
  std::size_t next_ = 0;
};

#endif

template <class Model>
class VerilatedTableOf final : public VerilatedTable {
 public:
  /// `tie` sets inputs that TableInputs does not have, for good.
  VerilatedTableOf(const TableShape& shape, std::uint32_t power_up, const std::function<void(Model&)>& tie = {})
      : shape_(shape) {
    context_.randReset(2);
    context_.randSeed(static_cast<int>(power_up & 0x7fff'ffffU));
    context_.traceEverOn(true);
    model_ = std::make_unique<Model>(&context_);
    model_->rst_ni = 1;
    model_->clk_i = 0;
    model_->reset_seed_i = shape.seed;
    if (tie) tie(*model_);
    apply({});
    model_->eval();
    find_memories();
    reset();
  }
  ~VerilatedTableOf() override {
    close_waves();
    // Verilator 5.006 takes a model's scopes out of the thread's current context, whichever model ran last.
    Verilated::threadContextp(&context_);
    model_->final();
    model_.reset();
    Verilated::threadContextp(Verilated::defaultContextp());
  }

  const TableShape& shape() const override { return shape_; }

  TableOutputs outputs() const override { return take(); }

  TableOutputs step(const TableInputs& inputs) override {
    apply(inputs);
    model_->clk_i = 0;
    model_->eval();
    dump(low_ps_);
    const TableOutputs outputs = take();
    model_->clk_i = 1;
    model_->eval();
    dump(high_ps_);
    return outputs;
  }

  void reset() override {
    apply({});
    model_->rst_ni = 0;
    for (int cycle = 0; cycle < 2; ++cycle) {
      model_->clk_i = 0;
      model_->eval();
      dump(0);
      model_->clk_i = 1;
      model_->eval();
      dump(0);
    }
    model_->rst_ni = 1;
  }

  bool open_waves(const std::string& path) override {
    close_waves();
    guard_.emplace();
    waves_ = std::make_unique<VerilatedFstC>();
    model_->trace(waves_.get(), 99);
    waves_->open(path.c_str());
    waves_path_ = path;
    // The names of the signals, of which the writer maps the file when it ends: now they can still be refused.
    if (waves_->isOpen() && std::fflush(nullptr) == 0) return true;
    waves_.reset();
    guard_.reset();
    return false;
  }
  void set_wave_times(std::uint64_t low_ps, std::uint64_t high_ps) override {
    low_ps_ = low_ps;
    high_ps_ = high_ps;
  }
  bool close_waves() override {
    if (!waves_) return true;
    waves_->close();
    waves_.reset();
    guard_.reset();
    return is_whole_fst_file(waves_path_);
  }

#if VM_COVERAGE
  std::vector<std::uint8_t> save() override { return {}; }
  void load(const std::vector<std::uint8_t>& /*state*/) override {
    RVMA_ASSERT(false, "verilated table: built for coverage, a state cannot be loaded");
  }
#else
  std::vector<std::uint8_t> save() override {
    StateWriter writer;
    writer << *model_;
    return writer.finish();
  }
  void load(const std::vector<std::uint8_t>& state) override {
    StateReader reader{state};
    reader >> *model_;
    reader.finish();
  }
#endif

  TableWord stored(TableCopy copy, std::uint32_t place) const override {
    const auto [words, first] = locate(copy, place);
    TableWord word{};
    // 32 bits at a time; a word need not begin at a unit of Verilator's.
    for (unsigned bit = 0; bit < word_bits(); bit += 32) {
      const unsigned bits = std::min(word_bits() - bit, 32U);
      const std::size_t at = first + bit;
      const unsigned shift = at % 32;
      std::uint64_t piece = words[at / 32] >> shift;
      if (shift + bits > 32) piece |= std::uint64_t{words[at / 32 + 1]} << (32 - shift);
      piece &= (std::uint64_t{1} << bits) - 1;
      word[bit / 64] |= piece << (bit % 64);
    }
    return word;
  }
  void corrupt(TableCopy copy, std::uint32_t place, std::uint32_t bit) override {
    RVMA_ASSERT(bit < word_bits(), "verilated table: no such bit");
    const auto [words, first] = locate(copy, place);
    const std::size_t at = first + bit;
    words[at / 32] ^= EData{1} << (at % 32);
  }

  bool write_coverage([[maybe_unused]] const std::string& path) override {
#if VM_COVERAGE
    context_.coveragep()->write(path.c_str());
    return true;
#else
    return false;
#endif
  }

 private:
  unsigned word_bits() const {
    return table_constants::kParityBit + (shape_.protection == EntryProtection::parity ? 1U : 0U);
  }

  void apply(const TableInputs& inputs) {
    model_->lookup_valid_i = inputs.lookup_valid ? 1 : 0;
    model_->lookup_pid_i = inputs.lookup_key.pid.value();
    model_->lookup_mailbox_i = inputs.lookup_key.mailbox.value();
    model_->command_valid_i = inputs.command_valid ? 1 : 0;
    const TableCommand& command = inputs.command;
    // Codes that the port has no bits for are unknown ones.
    const unsigned most = (1U << table_constants::kOperationBits) - 1;
    model_->command_operation_i = static_cast<CData>(std::min(table_constants::code(command.operation), most));
    model_->command_pid_i = command.pid.value();
    model_->command_mailbox_i = command.mailbox.value();
    model_->command_slot_i = command.slot.value();
    model_->command_seed_i = command.seed;
  }

  TableOutputs take() const {
    TableOutputs outputs;
    outputs.lookup_valid = model_->lookup_valid_o != 0;
    if (outputs.lookup_valid) {
      outputs.lookup.hit = model_->lookup_hit_o != 0;
      outputs.lookup.slot = SlotId{model_->lookup_slot_o};
      outputs.lookup.sweeping = model_->lookup_sweeping_o != 0;
    }
    outputs.command_ready = model_->command_ready_o != 0;
    outputs.answer_valid = model_->answer_valid_o != 0;
    if (outputs.answer_valid) {
      outputs.answer.status = static_cast<TableStatus>(model_->answer_status_o);
      outputs.answer.slot = SlotId{model_->answer_slot_o};
      outputs.answer.used = Cycles{model_->answer_used_o};
      outputs.answer.kicks = model_->answer_kicks_o;
      outputs.answer.in_stash = model_->answer_in_stash_o != 0;
    }
    if (model_->lookup_fault_valid_o != 0) outputs.lookup_fault = {true, model_->lookup_fault_place_o};
    if (model_->command_fault_valid_o != 0) outputs.command_fault = {true, model_->command_fault_place_o};
    return outputs;
  }

  /// The next picosecond, if `time_ps` was not set to a later one.
  void dump(std::uint64_t time_ps) {
    if (!waves_) return;
    wave_ps_ = std::max(wave_ps_ + 1, time_ps);
    waves_->dump(wave_ps_);
  }

  void find_memories() {
    const std::string top = std::string{model_->name()} + ".rvma_table";
    // In a netlist that was flattened (testbench/mutation), the top's scope has all, under names that keep the path.
    const auto words_of = [this, &top](const std::string& path) {
      const VerilatedScope* scope = context_.scopeFind((top + "." + path).c_str());
      const VerilatedScope* flat = context_.scopeFind(top.c_str());
      VerilatedVar* words = nullptr;
      if (scope != nullptr) {
        words = scope->varFind("words_q");
      } else if (flat != nullptr) {
        words = flat->varFind((path + ".words_q").c_str());
      }
      RVMA_ASSERT(words != nullptr, "verilated table: no memory " + path);
      return static_cast<EData*>(words->datap());
    };
    for (std::uint32_t bank = 0; bank < shape_.banks; ++bank) {
      for (std::uint32_t slot = 0; slot < shape_.slots; ++slot) {
        const std::string memory =
            "banks.g_bank[" + std::to_string(bank) + "].g_slot[" + std::to_string(slot) + "].memory";
        banks_a_.push_back(words_of("lookups." + memory));
        banks_b_.push_back(words_of("commands." + memory));
      }
    }
    if (shape_.stash != 0) stash_ = words_of("stash.g_stash");
  }

  /// Where a place's word stands: its memory, and its lowest bit there.
  std::pair<EData*, std::size_t> locate(TableCopy copy, std::uint32_t place) const {
    if (place >= shape_.capacity()) {
      RVMA_ASSERT(place < shape_.capacity() + shape_.stash, "verilated table: no such place");
      return {stash_, std::size_t{place - shape_.capacity()} * word_bits()};
    }
    const std::uint32_t slot = place % shape_.slots;
    const std::uint32_t row = place / shape_.slots % shape_.rows;
    const std::uint32_t bank = place / shape_.slots / shape_.rows;
    const std::size_t stride = (word_bits() + 31) / 32 * 32;  // Verilator keeps a word in whole 32-bit units
    return {(copy == TableCopy::a ? banks_a_ : banks_b_)[bank * shape_.slots + slot], row * stride};
  }

  TableShape shape_;
  VerilatedContext context_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<VerilatedFstC> waves_;
  std::string waves_path_;
  std::optional<FullDiskGuard> guard_;  ///< while waves are open
  std::uint64_t low_ps_ = 0;
  std::uint64_t high_ps_ = 0;
  std::uint64_t wave_ps_ = 0;  ///< of the last dump
  std::vector<EData*> banks_a_;
  std::vector<EData*> banks_b_;
  EData* stash_ = nullptr;
};

}  // namespace rvma
