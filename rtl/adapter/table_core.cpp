#include "rtl/adapter/table_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/value_text.hpp"
#include "rtl/verilated/compare_outputs.hpp"

namespace rvma {
namespace {

Time half(Time period) { return Time::from_ps(period.ps() / 2); }

TableOutputs clock_table(VerilatedTable& table, const TableInputs& inputs, Time half_period, Time edge) {
  table.set_wave_times(static_cast<std::uint64_t>((edge - half_period).ps()), static_cast<std::uint64_t>(edge.ps()));
  return table.step(inputs);
}

const char* name_of(TableOperation operation) {
  switch (operation) {
    case TableOperation::insert:
      return "insert";
    case TableOperation::erase:
      return "erase";
    case TableOperation::update:
      return "update";
    case TableOperation::find:
      return "find";
    case TableOperation::flush:
      return "flush";
    case TableOperation::load_seed:
      return "load_seed";
  }
  return "unknown";
}

const char* name_of(TableStatus status) {
  switch (status) {
    case TableStatus::ok:
      return "ok";
    case TableStatus::exists:
      return "exists";
    case TableStatus::not_found:
      return "not_found";
    case TableStatus::full:
      return "full";
    case TableStatus::busy:
      return "busy";
    case TableStatus::bad:
      return "bad";
  }
  return "unknown";
}

std::string text_of(const TableInputs& inputs) {
  std::string text;
  if (inputs.lookup_valid) {
    text += fmt::format("lookup {}:{:#x} ", inputs.lookup_key.pid.value(), inputs.lookup_key.mailbox.value());
  }
  if (inputs.command_valid) {
    const TableCommand& command = inputs.command;
    text += fmt::format("{} {}:{:#x} slot {}", name_of(command.operation), command.pid.value(), command.mailbox.value(),
                        command.slot.value());
  }
  return text;
}

std::string text_of(const TableOutputs& outputs) {
  std::string text = outputs.command_ready ? "ready " : "";
  if (outputs.lookup_valid) {
    text += outputs.lookup.hit ? fmt::format("hit {} ", outputs.lookup.slot.value())
                               : std::string{outputs.lookup.sweeping ? "sweeping " : "miss "};
  }
  if (outputs.answer_valid) {
    const TableAnswer& answer = outputs.answer;
    text += fmt::format("{} slot {} used {} kicks {} ", name_of(answer.status), answer.slot.value(),
                        answer.used.count(), answer.kicks);
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
  clock_table(*table_, inputs, half_period_, edge);
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
      outputs_(table_->outputs()) {
  latest_.steps.reserve(kWaveCycles);
  before_.steps.reserve(kWaveCycles);
  begin_episode();
}

void LockstepTableCore::begin_episode() {
  std::swap(before_, latest_);
  latest_.steps.clear();
  if (!waves_path_.empty()) latest_.state = table_->save();
}

void LockstepTableCore::clock(const TableInputs& inputs, Time edge) {
  if (latest_.steps.size() == kWaveCycles) begin_episode();
  // 1. Both see this cycle's inputs; the outputs of the cycle are compared.
  const TableOutputs reference = twin_.step(inputs);
  if (!has_differed_) {
    const TableOutputs design = clock_table(*table_, inputs, half_period_, edge);
    latest_.steps.push_back({inputs, edge, design, reference});
    OutputComparison compared = compare_outputs(design, reference);
    matched_ += compared.matched;
    if (!compared.differences.empty()) {
      has_differed_ = true;
      Difference difference{cycle_, edge, std::move(compared.differences), history(), write_waves()};
      differs_(difference);
    }
  }
  ++cycle_;
  // 2. The next cycle's. After a difference nobody looks at the Verilog core any more, and the twin goes on alone.
  outputs_ = has_differed_ ? twin_.outputs() : table_->outputs();
}

std::string LockstepTableCore::history() const {
  std::vector<const Step*> steps;
  for (const Episode* episode : {&before_, &latest_}) {
    for (const Step& step : episode->steps) steps.push_back(&step);
  }
  const std::size_t count = std::min(steps.size(), kHistoryCycles);
  std::string text =
      fmt::format("  {:>8} {:>18}  {:<44} {:<34} {}\n", "cycle", "ends at", "inputs", "outputs: Verilog", "C++");
  for (std::size_t i = steps.size() - count; i < steps.size(); ++i) {
    const Step& step = *steps[i];
    const std::int64_t number = cycle_ + 1 - static_cast<std::int64_t>(steps.size() - i);
    text += fmt::format("  {:>8} {:>18}  {:<44} {:<34} {}\n", number, to_string(step.edge), text_of(step.inputs),
                        text_of(step.design), text_of(step.reference));
  }
  return text;
}

/// Runs the last cycles again, from the saved state on, with waves.
bool LockstepTableCore::write_waves() {
  if (waves_path_.empty()) return false;
  const std::unique_ptr<VerilatedTable> again = VerilatedTable::make(table_->shape());
  if (!again) return false;
  again->load(before_.state.empty() ? latest_.state : before_.state);
  if (!again->open_waves(waves_path_)) return false;
  for (const Episode* episode : {&before_, &latest_}) {
    for (const Step& step : episode->steps) clock_table(*again, step.inputs, half_period_, step.edge);
  }
  again->close_waves();
  return true;
}

}  // namespace rvma
