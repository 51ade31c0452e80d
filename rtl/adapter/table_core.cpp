#include "rtl/adapter/table_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/describe/enum_to_string.hpp>
#include <utility>

#include "rtl/verilated/compare_outputs.hpp"

namespace rvma {
namespace {

Time half(Time period) { return Time::from_ps(period.ps() / 2); }

std::uint64_t ps(Time time) { return static_cast<std::uint64_t>(time.ps()); }

std::string text_of(const TableInputs& inputs) {
  std::string text;
  if (inputs.lookup_valid) {
    text += fmt::format("lookup {}:{:#x} ", inputs.lookup_key.pid.value(), inputs.lookup_key.mailbox.value());
  }
  if (inputs.command_valid) {
    const TableCommand& command = inputs.command;
    text += fmt::format("{} {}:{:#x} slot {}", boost::describe::enum_to_string(command.operation, "unknown"),
                        command.pid.value(), command.mailbox.value(), command.slot.value());
  }
  return text;
}

/// The lowest one of the slot's number.
constexpr std::uint32_t kFlippedBit = table_constants::kKeyBits;

/// Where lookups find a key; nothing if it is not there, or still on its way to copy A.
std::optional<std::uint32_t> place_of(const VerilatedTable& table, TableKey key) {
  const TableShape& shape = table.shape();
  for (std::uint32_t place = 0; place < shape.capacity() + shape.stash; ++place) {
    const TableWord word = table.stored(TableCopy::a, place);
    const bool valid = (word[table_constants::kValidBit / 64] >> table_constants::kValidBit % 64 & 1U) != 0;
    if (valid && word[0] == key.mailbox.value() && (word[1] & 0xffffU) == key.pid.value()) return place;
  }
  return std::nullopt;
}

std::string text_of(const TableOutputs& outputs) {
  std::string text = outputs.command_ready ? "ready " : "";
  if (outputs.lookup_valid) {
    text += outputs.lookup.hit ? fmt::format("hit {} ", outputs.lookup.slot.value())
                               : std::string{outputs.lookup.sweeping ? "sweeping " : "miss "};
  }
  if (outputs.answer_valid) {
    const TableAnswer& answer = outputs.answer;
    text += fmt::format("{} slot {} used {} kicks {} ", boost::describe::enum_to_string(answer.status, "unknown"),
                        answer.slot.value(), answer.used.count(), answer.kicks);
  }
  if (outputs.lookup_fault.valid) text += fmt::format("lookup fault {} ", outputs.lookup_fault.place);
  if (outputs.command_fault.valid) text += fmt::format("command fault {} ", outputs.command_fault.place);
  return text;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------- Verilog alone

RtlTableCore::RtlTableCore(std::unique_ptr<VerilatedTable> table, Time period)
    : table_(std::move(table)), half_period_(half(period)), outputs_(table_->outputs()) {}

void RtlTableCore::clock(const TableInputs& inputs, Time edge) {
  table_->set_wave_times(ps(edge - half_period_), ps(edge));
  table_->step(inputs);
  outputs_ = table_->outputs();
}

// ------------------------------------------------------------------------------------------------------- lock step

LockstepTableCore::LockstepTableCore(std::unique_ptr<VerilatedTable> table, Time period, std::string waves_path,
                                     std::function<void(const Difference&)> differs)
    : table_(std::move(table)),
      twin_(table_->shape()),
      half_period_(half(period)),
      waves_path_(std::move(waves_path)),
      differs_(std::move(differs)),
      steps_(static_cast<std::size_t>(kHistoryCycles)),
      outputs_(table_->outputs()) {
  if (!waves_path_.empty()) last_cycles_.emplace(*table_, kWaveCycles);
}

void LockstepTableCore::clock(const TableInputs& inputs, Time edge) {
  // 1. Both see this cycle's inputs; the outputs of the cycle are compared.
  const TableOutputs reference = twin_.step(inputs);
  if (!has_differed_) {
    if (last_cycles_) last_cycles_->record(inputs, ps(edge - half_period_), ps(edge));
    flip_if_due(inputs);
    table_->set_wave_times(ps(edge - half_period_), ps(edge));
    const TableOutputs design = table_->step(inputs);
    steps_[static_cast<std::size_t>(cycle_ % kHistoryCycles)] = {inputs, edge, design, reference};
    OutputComparison compared = compare_outputs(design, reference);
    matched_ += compared.matched;
    if (!compared.differences.empty()) {
      has_differed_ = true;
      const bool has_waves = last_cycles_ && last_cycles_->write_waves(waves_path_);
      differs_({cycle_, edge, std::move(compared.differences), history(), has_waves});
    }
  }
  ++cycle_;
  // 2. The next cycle's. After a difference nobody looks at the Verilog core any more, and the twin goes on alone.
  outputs_ = has_differed_ ? twin_.outputs() : table_->outputs();
}

void LockstepTableCore::flip_if_due(const TableInputs& inputs) {
  if (!inputs.lookup_valid || !flip_at_lookup_ || ++lookups_ < *flip_at_lookup_) return;
  const std::optional<std::uint32_t> place = place_of(*table_, inputs.lookup_key);
  if (!place) return;
  table_->corrupt(TableCopy::a, *place, kFlippedBit);
  if (last_cycles_) last_cycles_->record_flip(TableCopy::a, *place, kFlippedBit);
  flip_at_lookup_.reset();
}

std::string LockstepTableCore::history() const {
  std::string text =
      fmt::format("  {:>8} {:>18}  {:<44} {:<34} {}\n", "cycle", "ends at", "inputs", "outputs: Verilog", "C++");
  for (std::int64_t cycle = std::max<std::int64_t>(0, cycle_ + 1 - kHistoryCycles); cycle <= cycle_; ++cycle) {
    const Step& step = steps_[static_cast<std::size_t>(cycle % kHistoryCycles)];
    text += fmt::format("  {:>8} {:>18}  {:<44} {:<34} {}\n", cycle, to_string(step.edge), text_of(step.inputs),
                        text_of(step.design), text_of(step.reference));
  }
  return text;
}

}  // namespace rvma
