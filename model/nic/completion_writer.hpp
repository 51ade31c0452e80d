/// \file
/// Completion writer, last unit of the receive path: one 16-byte word a finished epoch, at its completion pointer.
#pragma once

#include <cstdint>
#include <systemc>
#include <vector>

#include "base/component.hpp"
#include "base/slot_table.hpp"
#include "nic/config.hpp"
#include "nic/interfaces.hpp"
#include "nic/observer.hpp"

namespace rvma {

struct CompletionWriterStats {
  Counter completions{"words", "completion words written"};
  Counter interrupts{"interrupts", "interrupts raised behind a completion word"};
  Peak in_flight{"words", "completion words handed over and not in the posted channel yet"};
  Histogram write_ns{"from the last count (or the call) to the completion word in the posted channel"};
  Utilisation write{WorkKind::operations, "completions, one a cycle", kWidenedByNicClock};
  BOOST_DESCRIBE_CLASS(CompletionWriterStats, (), (completions, interrupts, in_flight, write_ns, write), (), ())
};

/// One completion a cycle; its write starts nic.completion.latency cycles after it was taken. Every payload write of
/// its epoch has entered the posted channel by then, and the word follows on the same channel, strictly ordered, so
/// PCIe makes the payload visible first. The write is asked for at once, with its starting time: no activation of its
/// own.
class CompletionWriter : public Component, public CompletionWriterIf, public DmaClient {
 public:
  sc_core::sc_port<DmaIf> dma;

  /// `observers` outlives the unit.
  CompletionWriter(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, NodeId node,
                   const ObserverList& observers);

  void complete(const Completion& completion, Cycles at) override;

  /// The word (or an interrupt behind it) is on its way: tells the observers.
  void dma_written(std::uint64_t tag, Time entered, Time visible) override;
  /// Never called: the unit reads nothing.
  void dma_read_done(std::uint64_t tag) override;

  const CompletionWriterStats& stats() const { return stats_; }

 private:
  struct InFlight {
    Completion completion;
    Time since;
  };
  std::uint32_t keep(const Completion& completion, Time since);
  void write_word(PhysicalAddress to, std::uint64_t first, std::uint64_t second, std::uint64_t tag, Time at);

  NodeId node_;
  const ObserverList& observers_;
  Cycles latency_;
  Cycles next_free_;
  SlotTable<InFlight> in_flight_;  ///< the tag of a word's write is its place here
  CompletionWriterStats stats_;
};

}  // namespace rvma
