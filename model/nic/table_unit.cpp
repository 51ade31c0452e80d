#include "nic/table_unit.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace rvma {

// ------------------------------------------------------------------------------------------------ every table unit

TableUnit::TableUnit(const sc_core::sc_module_name& name, SimContext& context, Frequency clock,
                     const TableConfig& config)
    : Component(name, context, clock),
      lookups("lookups"),
      commands("commands"),
      latency_(config.latency),
      tell_(*this, "tell", [this] { tell(); }) {
  lookups.bind(*this);
  commands.bind(*this);
  context.stats().add(path(), stats_);
}

void TableUnit::lookup(Pid pid, Mailbox mailbox, Cycles at) {
  RVMA_ASSERT(at > last_lookup_, "translation table: more than one lookup in a cycle");
  RVMA_ASSERT(clock().time_of(at) >= now(), "translation table: a lookup in the past");
  last_lookup_ = at;
  pending_lookups_.push({TableKey{pid, mailbox}, at, LookupResult{}});
  lookup_queued();
}

LookupResult TableUnit::take() {
  RVMA_ASSERT(!pending_lookups_.empty(), "translation table: no lookup to take");
  RVMA_ASSERT(clock().time_of(pending_lookups_.front().at + latency_) <= now(),
              "translation table: answer taken before its cycle");
  if (answered_ == 0) answer_front();
  --answered_;
  return pending_lookups_.pop().result;
}

void TableUnit::answer(const LookupResult& result) {
  PendingLookup& pending = pending_lookups_[answered_];
  ++answered_;
  pending.result = result;
  ++stats_.lookups;
  if (result.hit) {
    ++stats_.hits;
  } else if (result.sweeping) {
    ++stats_.sweeping;
  } else {
    ++stats_.misses;
  }
  stats_.lookup_port.occupy(clock().time_of(pending.at + Cycles{1}) - clock().time_of(pending.at), 1);
}

void TableUnit::command(const TableCommand& command, Cycles at, std::function<void(const TableAnswer&)> done) {
  pending_commands_.push({command, at, std::move(done)});
  if (pending_commands_.size() == 1) start_next();
}

void TableUnit::finish_command(const TableAnswer& answer) {
  telling_ = true;
  answer_ = answer;
  tell_.at(now());
}

void TableUnit::tell() {
  telling_ = false;
  const PendingCommand finished = pending_commands_.pop();
  count(finished.command.operation, answer_);
  if (finished.done) finished.done(answer_);
  if (has_command()) start_next();
}

void TableUnit::count(TableOperation operation, const TableAnswer& answer) {
  stats_.command_cycles += static_cast<std::uint64_t>(answer.used.count());
  const Cycles answered = current_cycle();
  stats_.command_port.occupy(clock().time_of(answered) - clock().time_of(answered - answer.used), 1);
  if (answer.status == TableStatus::full) ++stats_.full;
  if (answer.status != TableStatus::ok) return;
  const std::uint32_t in_stash = answer.in_stash ? 1 : 0;
  switch (operation) {
    case TableOperation::insert:
      ++stats_.inserts;
      stats_.kicks += answer.kicks;
      stash_used_ += in_stash;
      stats_.stash.observe(stash_used_);
      stats_.entries.observe(++entries_);
      break;
    case TableOperation::erase:
      ++stats_.deletes;
      stash_used_ -= in_stash;
      --entries_;
      break;
    case TableOperation::flush:
      stash_used_ = 0;
      entries_ = 0;
      break;
    case TableOperation::update:
    case TableOperation::find:
    case TableOperation::load_seed:
      break;
  }
}

// ---------------------------------------------------------------------------------------------- over the C++ class

ModelTableUnit::ModelTableUnit(const sc_core::sc_module_name& name, SimContext& context, Frequency clock,
                               const TableConfig& config)
    : TableUnit(name, context, clock, config),
      table_(TableShape::from(config)),
      wakeup_(*this, "wakeup", [this] { run(); }) {}

std::unique_ptr<TableUnit> ModelTableUnit::make(const char* name, SimContext& context, Frequency clock,
                                                const TableConfig& config) {
  return std::make_unique<ModelTableUnit>(name, context, clock, config);
}

void ModelTableUnit::answer_front() { answer_next(); }

void ModelTableUnit::answer_next() {
  const PendingLookup& pending = *unanswered();
  table_.advance_to(pending.at);
  count_faults(table_.take_faults().size());
  answer(table_.lookup(pending.key));
}

void ModelTableUnit::answer_lookups(Cycles cycle) {
  while (unanswered() != nullptr && unanswered()->at <= cycle) answer_next();
}

void ModelTableUnit::run() {
  if (running_ && clock().time_of(started_.answer_cycle) <= now()) {
    // The running command's answer is valid in this cycle.
    answer_lookups(started_.answer_cycle);
    table_.advance_to(started_.answer_cycle);
    count_faults(table_.take_faults().size());
    running_ = false;
    finish_command(started_.answer);
  }
  start_next();
}

void ModelTableUnit::start_next() {
  if (!has_command() || running_) return;
  const Cycles current = current_cycle();
  const Cycles at = front_command().at;
  // 1. Not before its cycle: lookups of earlier cycles may still come.
  if (at > current) {
    wakeup_.at(clock().time_of(at));
    return;
  }
  answer_lookups(current);
  table_.advance_to(current);
  // 2. Nor while the table is swept after reset, or clears a fault.
  if (!table_.command_ready()) {
    wakeup_.at(clock().time_of(table_.ready_cycle()));
    return;
  }
  // 3. The whole schedule of its writes follows from what the table holds; they are applied as time passes.
  started_ = table_.start(front_command().command);
  running_ = true;
  wakeup_.at(clock().time_of(started_.answer_cycle));
}

}  // namespace rvma
