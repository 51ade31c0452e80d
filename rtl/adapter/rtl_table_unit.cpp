#include "rtl/adapter/rtl_table_unit.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace rvma {
namespace {

/// After an answer, late writes to copy A and to the stash, and reports of faults, are on their way for this long.
constexpr Cycles kAfterAnswer{5};

}  // namespace

RtlTableUnit::RtlTableUnit(const sc_core::sc_module_name& name, SimContext& context, Frequency clock,
                           const TableConfig& config, std::unique_ptr<TableCore> core)
    : TableUnit(name, context, clock, config),
      core_(std::move(core)),
      reset_cycles_(std::int64_t{TableShape::from(config).reset_cycles()}),
      quiet_from_(reset_cycles_ + kAfterAnswer),
      adapter_("core", context, clock, *core_,
               {[this](Cycles cycle) { return next_input(cycle); },
                [this](Cycles cycle, TableInputs& inputs) { drive(cycle, inputs); },
                [this](Cycles cycle, const TableOutputs& outputs) { sample(cycle, outputs); },
                [this](Cycles cycle) { return active(cycle); }}),
      wakeup_(*this, "wakeup", [this] { run(); }) {}

// ----------------------------------------------------------------------------------------------------------- ports

Cycles RtlTableUnit::next_input(Cycles cycle) {
  Cycles next{std::numeric_limits<std::int64_t>::max()};
  if (const PendingLookup* lookup = unanswered(presented_)) next = lookup->at;
  if (offered_) next = std::min(next, *offered_);
  return std::max(next, cycle);
}

void RtlTableUnit::drive(Cycles cycle, TableInputs& inputs) {
  if (const PendingLookup* lookup = unanswered(presented_); lookup != nullptr && lookup->at == cycle) {
    inputs.lookup_valid = true;
    inputs.lookup_key = lookup->key;
    ++presented_;
    quiet_from_ = std::max(quiet_from_, cycle + latency());
  }
  if (offered_ && *offered_ <= cycle) {
    inputs.command_valid = true;
    inputs.command = front_command().command;
    if (core_->outputs().command_ready) {
      offered_.reset();
      running_ = true;
    }
  }
}

void RtlTableUnit::sample(Cycles cycle, const TableOutputs& outputs) {
  if (outputs.lookup_valid) {
    RVMA_ASSERT(presented_ > 0, "the Verilog table answers a lookup that nobody has given");
    --presented_;
    answer(outputs.lookup);
  }
  count_faults((outputs.lookup_fault.valid ? 1U : 0U) + (outputs.command_fault.valid ? 1U : 0U));
  if (outputs.answer_valid) {
    RVMA_ASSERT(running_, "the Verilog table answers a command that nobody has given");
    told_ = outputs.answer;
    quiet_from_ = cycle + kAfterAnswer;
  }
}

bool RtlTableUnit::active(Cycles cycle) const {
  return running_ || cycle < quiet_from_ || !core_->outputs().command_ready;
}

// ------------------------------------------------------------------------------------------------------ simulation

void RtlTableUnit::answer_front() {
  adapter_.clock_to(unanswered()->at + latency());
  RVMA_ASSERT(presented_ == 0 || unanswered() == nullptr || unanswered()->at + latency() > adapter_.cycle(),
              "the Verilog table has not answered a lookup in its time");
}

void RtlTableUnit::run() {
  adapter_.clock_to(current_cycle());
  if (told_) {
    // The answer is valid in this cycle.
    running_ = false;
    finish_command(*told_);
    told_.reset();
  }
  start_next();
  if (!running_ && !offered_) return;
  // Nothing is taken before the end of the sweep that follows reset.
  const Cycles next = current_cycle() + Cycles{1};
  wakeup_.at(clock().time_of(running_ ? next : std::max(next, reset_cycles_ + Cycles{1})));
}

void RtlTableUnit::start_next() {
  if (!has_command() || offered_ || running_) return;
  const Cycles current = current_cycle();
  const Cycles at = front_command().at;
  // Not before its cycle: lookups of earlier cycles may still come.
  if (at > current) {
    wakeup_.at(clock().time_of(at));
    return;
  }
  adapter_.clock_to(current);
  offered_ = current;
  wakeup_.at(clock().time_of(std::max(current + Cycles{1}, reset_cycles_ + Cycles{1})));
}

}  // namespace rvma
