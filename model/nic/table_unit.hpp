/// \file
/// The translation table as a unit of the RNIC: what every implementation of it shares, and the one over the C++ class,
/// which is driven by events. There a lookup costs no activation, a command two for its answer (and one more if it is
/// for a later cycle, or has to wait for the table).
#pragma once

#include <boost/describe.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <systemc>

#include "base/component.hpp"
#include "base/stats.hpp"
#include "nic/config.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "nic/translation_table.hpp"

namespace rvma {

struct TableStats {
  Counter lookups{"lookups", "lookups presented and answered"};
  Counter hits{"lookups", "lookups that found their mailbox"};
  Counter misses{"lookups", "lookups that did not, the table being in use"};
  Counter sweeping{"lookups", "lookups that missed because the table was being swept or its seed loaded"};
  Counter inserts{"commands", "insertions that succeeded"};
  Counter deletes{"commands", "erasures that succeeded"};
  Counter kicks{"entries", "entries moved by insertions"};
  Counter full{"commands", "insertions refused for want of a place"};
  Peak stash{"entries", "entries in the stash"};
  Peak entries{"entries", "entries in the table, stash included"};
  Counter command_cycles{"cycles", "cycles from acceptance to answer, all commands together"};
  Counter faults{"words", "stored words reported bad"};
  Utilisation lookup_port{WorkKind::operations, "lookups, at most one a cycle", kWidenedByNicClock};
  Utilisation command_port{WorkKind::operations, "commands, one at a time, each from its acceptance to its answer",
                           kWidenedByNicClock};
  BOOST_DESCRIBE_CLASS(TableStats, (),
                       (lookups, hits, misses, sweeping, inserts, deletes, kicks, full, stash, entries, command_cycles,
                        faults, lookup_port, command_port),
                       (), ())
};

class TableUnit : public Component, public TableLookupIf, public TableCommandIf {
 public:
  sc_core::sc_export<TableLookupIf> lookups;
  sc_core::sc_export<TableCommandIf> commands;

  /// Reset ends at time zero: the first command is taken TableShape::reset_cycles() later.
  TableUnit(const sc_core::sc_module_name& name, SimContext& context, Frequency clock, const TableConfig& config);

  /// Strictly increasing `at`, not before now (asserted).
  void lookup(Pid pid, Mailbox mailbox, Cycles at) final;
  /// Not before the lookup's cycle + latency() (asserted).
  LookupResult take() final;
  Cycles latency() const final { return latency_; }

  /// Taken in the first cycle >= `at` in which the table is ready and the commands before it are answered.
  void command(const TableCommand& command, Cycles at, std::function<void(const TableAnswer&)> done) final;

  const TableStats& stats() const { return stats_; }

 protected:
  struct PendingLookup {
    TableKey key;
    Cycles at;
    LookupResult result;
  };
  struct PendingCommand {
    TableCommand command;
    Cycles at;
    std::function<void(const TableAnswer&)> done;
  };
  /// A lookup was queued behind the others.
  virtual void lookup_queued() {}
  /// The answer of the front lookup is needed now, in its cycle + latency or later.
  virtual void answer_front() = 0;
  /// The front command is to be started, if it is not already; called again and again until finish_command().
  virtual void start_next() = 0;

  /// The `index`-th of the lookups that are not answered yet, the oldest first; null if there are fewer.
  const PendingLookup* unanswered(std::size_t index = 0) {
    return answered_ + index < pending_lookups_.size() ? &pending_lookups_[answered_ + index] : nullptr;
  }
  void answer(const LookupResult& result);
  /// The command that runs, or is the next to run.
  PendingCommand& front_command() { return pending_commands_.front(); }
  bool has_command() const { return !pending_commands_.empty() && !telling_; }
  /// The front command is answered now. It is told behind everything else that happens in this instant, so that no
  /// implementation's way of keeping time shows; then the next one is started.
  void finish_command(const TableAnswer& answer);
  void count_faults(std::size_t words) { stats_.faults += words; }

 private:
  void tell();
  void count(TableOperation operation, const TableAnswer& answer);

  Cycles latency_;
  std::uint32_t entries_ = 0;     ///< inserted and not erased
  std::uint32_t stash_used_ = 0;  ///< of them, in the stash
  FifoRing<PendingLookup> pending_lookups_;
  std::size_t answered_ = 0;  ///< of pending_lookups_, from the front
  Cycles last_lookup_{-1};
  FifoRing<PendingCommand> pending_commands_;
  bool telling_ = false;  ///< the front command is answered, but not yet told
  TableAnswer answer_;
  TableStats stats_;
  Wakeup tell_;
};

/// Makes the table of an RNIC; called while the RNIC is constructed.
using TableUnitFactory = std::function<std::unique_ptr<TableUnit>(const char* name, SimContext& context,
                                                                  Frequency clock, const TableConfig& config)>;

class ModelTableUnit final : public TableUnit {
 public:
  ModelTableUnit(const sc_core::sc_module_name& name, SimContext& context, Frequency clock, const TableConfig& config);
  static std::unique_ptr<TableUnit> make(const char* name, SimContext& context, Frequency clock,
                                         const TableConfig& config);

  /// For tests: faults are injected here.
  TranslationTable& table() { return table_; }

 private:
  void answer_front() override;
  void start_next() override;
  /// Answers the lookups presented up to `cycle`: what happens from `cycle` on cannot change them.
  void answer_lookups(Cycles cycle);
  void answer_next();
  void run();

  TranslationTable table_;
  bool running_ = false;
  TranslationTable::Started started_;
  Wakeup wakeup_;
};

}  // namespace rvma
