/// \file
/// The translation table as a unit of the RNIC: a TranslationTable driven by events. A lookup costs no activation, a
/// command one for its answer (and one more if it is for a later cycle, or has to wait for the table).
#pragma once

#include <boost/describe.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
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
  Utilisation lookup_port{WorkKind::operations, "lookups, at most one a cycle"};
  BOOST_DESCRIBE_CLASS(TableStats, (),
                       (lookups, hits, misses, sweeping, inserts, deletes, kicks, full, stash, entries, command_cycles,
                        faults, lookup_port),
                       (), ())
};

class TableUnit : public Component, public TableLookupIf, public TableCommandIf {
 public:
  sc_core::sc_export<TableLookupIf> lookups;
  sc_core::sc_export<TableCommandIf> commands;

  /// Reset ends at time zero: the first command is taken TableShape::reset_cycles() later.
  TableUnit(const sc_core::sc_module_name& name, SimContext& context, Frequency clock, const TableConfig& config);

  /// Strictly increasing `at`, not before now (asserted).
  void lookup(Pid pid, Mailbox mailbox, Cycles at) override;
  /// Not before the lookup's cycle + latency() (asserted).
  LookupResult take() override;
  Cycles latency() const override { return latency_; }

  /// Taken in the first cycle >= `at` in which the table is ready and the commands before it are answered.
  void command(const TableCommand& command, Cycles at, std::function<void(const TableAnswer&)> done) override;

  const TableStats& stats() const { return stats_; }
  /// For tests: faults are injected here.
  TranslationTable& table() { return table_; }

 private:
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

  /// Answers the lookups presented up to `cycle`: what happens from `cycle` on cannot change them.
  void evaluate_lookups(Cycles cycle);
  void evaluate(PendingLookup& pending);
  void run();
  void start_next();
  void count(const TableCommand& command, const TranslationTable::Started& started);

  Cycles latency_;
  TranslationTable table_;
  FifoRing<PendingLookup> pending_lookups_;
  std::size_t evaluated_ = 0;  ///< of pending_lookups_, from the front
  Cycles last_lookup_{-1};
  FifoRing<PendingCommand> pending_commands_;  ///< the front one runs if `running_`
  bool running_ = false;
  TranslationTable::Started started_;
  Wakeup wakeup_;
  TableStats stats_;
};

}  // namespace rvma
