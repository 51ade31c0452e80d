#include "nic/table_unit.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace rvma {

TableUnit::TableUnit(const sc_core::sc_module_name& name, SimContext& context, Frequency clock,
                     const TableConfig& config)
    : Component(name, context, clock),
      lookups("lookups"),
      commands("commands"),
      latency_(config.latency),
      table_(TableShape::from(config)),
      wakeup_(*this, "wakeup", [this] { run(); }) {
  lookups.bind(*this);
  commands.bind(*this);
  context.stats().add(path(), stats_);
}

void TableUnit::lookup(Pid pid, Mailbox mailbox, Cycles at) {
  RVMA_ASSERT(at > last_lookup_, "translation table: more than one lookup in a cycle");
  RVMA_ASSERT(clock().time_of(at) >= now(), "translation table: a lookup in the past");
  last_lookup_ = at;
  pending_lookups_.push({TableKey{pid, mailbox}, at, LookupResult{}});
}

LookupResult TableUnit::take() {
  RVMA_ASSERT(!pending_lookups_.empty(), "translation table: no lookup to take");
  PendingLookup& front = pending_lookups_.front();
  RVMA_ASSERT(clock().time_of(front.at + latency_) <= now(), "translation table: answer taken before its cycle");
  if (evaluated_ == 0) {
    evaluate(front);
    ++evaluated_;
  }
  --evaluated_;
  return pending_lookups_.pop().result;
}

void TableUnit::evaluate(PendingLookup& pending) {
  table_.advance_to(pending.at);
  stats_.faults += table_.take_faults().size();
  pending.result = table_.lookup(pending.key);
  ++stats_.lookups;
  if (pending.result.hit) {
    ++stats_.hits;
  } else if (pending.result.sweeping) {
    ++stats_.sweeping;
  } else {
    ++stats_.misses;
  }
  stats_.lookup_port.occupy(clock().time_of(pending.at + Cycles{1}) - clock().time_of(pending.at), 1);
}

void TableUnit::evaluate_lookups(Cycles cycle) {
  while (evaluated_ < pending_lookups_.size() && pending_lookups_[evaluated_].at <= cycle) {
    evaluate(pending_lookups_[evaluated_]);
    ++evaluated_;
  }
}

void TableUnit::command(const TableCommand& command, Cycles at, std::function<void(const TableAnswer&)> done) {
  pending_commands_.push({command, at, std::move(done)});
  if (!running_ && pending_commands_.size() == 1) start_next();
}

void TableUnit::run() {
  if (running_ && clock().time_of(started_.answer_cycle) <= now()) {
    // 1. The running command's answer is valid in this cycle. Its callback may give the next command: it is queued
    //    behind those that wait, or else starts at once.
    evaluate_lookups(started_.answer_cycle);
    table_.advance_to(started_.answer_cycle);
    const PendingCommand finished = pending_commands_.pop();
    running_ = false;
    count(finished.command, started_);
    if (finished.done) finished.done(TableAnswer{started_.answer});
  }
  // 2. The next one.
  if (!running_) start_next();
}

void TableUnit::start_next() {
  if (pending_commands_.empty()) return;
  const Cycles current = current_cycle();
  const Cycles at = pending_commands_.front().at;
  // 1. Not before its cycle: lookups of earlier cycles may still come.
  if (at > current) {
    wakeup_.at(clock().time_of(at));
    return;
  }
  evaluate_lookups(current);
  table_.advance_to(current);
  // 2. Nor while the table is swept after reset, or clears a fault.
  if (!table_.command_ready()) {
    wakeup_.at(clock().time_of(table_.ready_cycle()));
    return;
  }
  // 3. The whole schedule of its writes follows from what the table holds; they are applied as time passes.
  started_ = table_.start(pending_commands_.front().command);
  running_ = true;
  wakeup_.at(clock().time_of(started_.answer_cycle));
}

void TableUnit::count(const TableCommand& command, const TranslationTable::Started& started) {
  stats_.command_cycles += static_cast<std::uint64_t>(started.answer.used.count());
  stats_.faults += table_.take_faults().size();
  if (started.answer.status == TableStatus::full) ++stats_.full;
  if (started.answer.status != TableStatus::ok) return;
  if (command.operation == TableOperation::erase) ++stats_.deletes;
  if (command.operation != TableOperation::insert) return;
  ++stats_.inserts;
  stats_.kicks += started.kicks;
  stats_.stash.observe(table_.stash_used());
  stats_.entries.observe(table_.entries());
}

}  // namespace rvma
