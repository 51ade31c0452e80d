/// \file
/// Counter unit, fourth of the receive path: counts what has entered the posted channel and finds out which messages
/// and epochs that ends. The counting itself is WindowStore's; this unit gives it its cycles.
#pragma once

#include <cstdint>
#include <systemc>
#include <vector>

#include "base/component.hpp"
#include "nic/config.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "nic/observer.hpp"
#include "nic/window_store.hpp"

namespace rvma {

struct CounterUnitStats {
  Counter updates{"updates", "counter updates: one a placed packet, one a retirement outside of the packet path"};
  Counter messages{"messages", "messages counted whole"};
  Counter completions{"epochs", "completions handed to the completion writer"};
  TimeSum waited_ns{"time that updates waited for earlier ones, each on its own"};
  Counter stalls{"updates", "updates that waited for the one before of their counter to be written back"};
  TimeSum stall_ns{"time that the pipeline stood still for them"};
  Peak queue{"messages", "counts that would end a message and were not due yet"};
  Utilisation update{WorkKind::operations, "updates, one a cycle, and stalls before them", kWidenedByNicClock};
  BOOST_DESCRIBE_CLASS(CounterUnitStats, (),
                       (updates, messages, completions, waited_ns, stalls, stall_ns, queue, update), (), ())
};

/// For calls that make completions due.
class CompletionFlushIf : public virtual sc_core::sc_interface {
 public:
  /// Hands completions that are due to the completion writer before it returns; `at` >= now. Returns when the writer
  /// starts the last word that it has been given so far: what is written to the host from then on stands behind it.
  virtual Time flush_completions(Time at) = 0;
};

/// A pipeline of read, add, compare and write back: one update a cycle, in order of arrival, taking effect
/// nic.counters.latency cycles after the edge at which it was taken. With nic.counters.forwarding an update finds the
/// value of one before it that is still in the pipeline; without, one of the same counter (of a posted buffer) is not
/// taken before that is written back, and the updates behind it stand as long. A packet that
/// does not end its message changes nothing that can be seen before the one that does, so only the latter costs an
/// activation; several that are due share it.
///
/// At most nic.counters.queue updates wait to be taken: beyond it packets keep their place in the input buffer.
class CounterUnit : public Component, public CounterIf, public CompletionFlushIf {
 public:
  sc_core::sc_port<DeliveryIf> delivery;
  sc_core::sc_port<CompletionWriterIf> completions;

  /// `windows` and `observers` outlive the unit. Takes the store's on_completion_due() for itself.
  CounterUnit(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, NodeId node,
              WindowStore& windows, const ObserverList& observers);

  void count(PlacedPacket packet, Time at) override;
  Time room_at() const override;
  Time flush_completions(Time at) override;

  const CounterUnitStats& stats() const { return stats_; }

 private:
  struct Update {
    PlacedPacket packet;
    Cycles due;
  };

  void run();
  void arm();
  /// Books the unit for one update that arrives at `at` and can be taken in cycle `earliest`, not before; returns the
  /// cycle of its effect.
  Cycles occupy(Time at, Cycles earliest = {});
  /// First cycle in which an update of the buffer's counter can be taken; books it. Without forwarding only.
  Cycles occupy_counter(BufferId buffer, Time at);
  void end_message(PlacedPacket& packet, Cycles cycle);
  void hand_over(const StageTimes& left, Cycles cycle);

  NodeId node_;
  WindowStore& windows_;
  const ObserverList& observers_;
  Cycles latency_;
  bool forwarding_;
  Cycles next_free_;
  std::vector<Cycles> taken_;         ///< cycles of the last nic.counters.queue updates, by number
  std::vector<Cycles> written_back_;  ///< by buffer: cycle of its last update's effect; without forwarding
  FifoRing<Update> queue_;            ///< counts that end a message
  bool flush_wanted_ = false;
  Cycles flush_due_;
  Cycles writer_latency_;
  Cycles writer_next_free_;                  ///< the completion writer takes one a cycle
  std::vector<Completion> due_completions_;  ///< scratch
  CounterUnitStats stats_;
  Wakeup update_;
};

}  // namespace rvma
