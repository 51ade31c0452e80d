/// \file
/// Second unit of the receive path: decides about each data packet, one a cycle, and finds the physical memory that its
/// payload goes to. Delivery contexts and the window store decide; this unit gives them their cycle and their order.
#pragma once

#include <cstdint>
#include <systemc>
#include <vector>

#include "base/component.hpp"
#include "fabric/interfaces.hpp"
#include "nic/config.hpp"
#include "nic/context_cache.hpp"
#include "nic/decision_gate.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "nic/observer.hpp"
#include "nic/page_translator.hpp"
#include "nic/spilled_cache.hpp"
#include "nic/window_store.hpp"

namespace rvma {

struct AddressConversionStats {
  Counter decisions{"packets", "data packets decided about"};
  Counter duplicates{"packets", "second copies of a packet"};
  Counter stale{"packets", "packets of an older incarnation or generation, or addressed to another one"};
  Counter late{"packets", "packets of a message that had ended"};
  Counter mismatches{"packets", "packets badly cut, or that contradict their message's binding"};
  Counter refused_packets{"packets", "packets of a message that was refused before"};
  Counter bindings{"messages", "messages bound to a buffer"};
  Counter reads{"requests", "requests of gets accepted"};
  Counter refused_no_mailbox{"messages", "messages refused no_mailbox"};
  Counter refused_closed{"messages", "messages refused closed"};
  Counter refused_bad_key{"messages", "messages refused bad_key"};
  Counter refused_stale{"messages", "messages refused stale"};
  Counter refused_no_buffer{"messages", "messages refused no_buffer"};
  Counter refused_bounds{"messages", "messages refused bounds"};
  Counter refused_busy{"messages", "messages refused busy"};
  Counter page_hits{"translations", "page translations found in the page cache at once"};
  Counter page_misses{"translations", "page translations that waited for a line of their page list"};
  Counter line_fetches{"reads", "lines of page lists fetched from host memory"};
  Counter line_bytes{"bytes", "of them"};
  TimeSum stalled_on_writes_ns{"time that a due decision waited for room in the DMA write queue"};
  TimeSum stalled_on_misses_ns{"time that a due decision waited for one of nic.receive.page_misses"};
  TimeSum translation_wait_ns{"time that packets waited for page translations, each on its own"};
  Peak queue{"packets", "packets between parser and decision"};
  Peak waiting{"packets", "packets waiting for page translations"};
  Peak held{"packets", "packets waiting for contexts, descriptors or counters before their decision"};
  Utilisation decide{WorkKind::operations, "decisions, one a cycle", kWidenedByNicClock};
  Utilisation page_fetch{WorkKind::operations, "reads of page lists, nic.receive.page_misses at a time",
                         kWidenedByPageMisses};
  BOOST_DESCRIBE_CLASS(AddressConversionStats, (),
                       (decisions, duplicates, stale, late, mismatches, refused_packets, bindings, reads,
                        refused_no_mailbox, refused_closed, refused_bad_key, refused_stale, refused_no_buffer,
                        refused_bounds, refused_busy, page_hits, page_misses, line_fetches, line_bytes,
                        stalled_on_writes_ns, stalled_on_misses_ns, translation_wait_ns, queue, waiting, held, decide,
                        page_fetch),
                       (), ())
};

/// Packets are decided in arrival order. One that misses in the page cache waits for its line, and later ones overtake
/// it; its line is fetched once however many packets need it. Once a packet needs a fetch and nic.receive.page_misses
/// are outstanding, decisions wait. They also wait while the DMA write queue has no room.
class AddressConversion : public Component, public AddressConversionIf, public CutOffIf {
 public:
  sc_core::sc_port<TableLookupIf> lookup;
  sc_core::sc_port<DeliveryIf> delivery;
  /// Unbound: all contexts are on chip, and the slot that the table names is the window's number.
  sc_core::sc_port<ContextIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> contexts;
  /// Unbound: all delivery contexts are on chip.
  sc_core::sc_port<ReceiveContextsIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> sources;
  sc_core::sc_port<DmaIf> dma;
  sc_core::sc_port<PayloadWriterIf> writer;
  /// Unbound: every get is refused `busy`.
  sc_core::sc_port<GetServeIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> gets;
  /// Of the link that feeds this NIC. Unbound: nobody counts credits.
  sc_core::sc_port<LinkCreditIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> credit;

  /// `page` is the host's page size. `config`, `windows` and `observers` outlive the unit.
  AddressConversion(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, Bytes page,
                    NodeId node, WindowStore& windows, const ObserverList& observers);

  /// Set-up: rank = node x `ranks_per_node` + pid, for the records of catch-all windows.
  void number_ranks(std::uint32_t ranks_per_node) { ranks_per_node_ = ranks_per_node; }

  /// Set-up: where descriptors and counters of buffers lie. Without it all are on chip.
  void use_caches(SpilledCache& descriptors, SpilledCache& counters) {
    descriptors_ = &descriptors;
    counters_ = &counters;
  }

  /// Decides at cycle `ready`, or when the decision before and back-pressure allow.
  void convert(PacketPtr packet, Cycles ready) override;
  void cut_off(const MessageRef& message, std::uint32_t binding, Time at) override;

  const AddressConversionStats& stats() const { return stats_; }

 private:
  struct Arrival {
    PacketPtr packet;
    Cycles ready;
  };
  enum class Stall : std::uint8_t { none, writes, misses };

  void start_of_simulation() override;
  void run();
  void arm();
  void stall(Stall cause, Time since);

  void decide(PendingDecision& next, Cycles cycle);
  WindowLookup resolve(const LookupResult& answer);
  void bind(PendingDecision& next, const MessageRef& message, Cycles cycle);
  void read(const PendingDecision& next, const MessageRef& message);
  /// The first packet of a message has met its window.
  void note_use(const PendingDecision& next);
  void place(PacketPtr packet, const MessageRef& message, const BufferPlace& place, Cycles cycle);
  void place_record(const Packet& packet, const MessageRef& message, const BindAnswer& bound, Cycles cycle);
  void refuse(const MessageRef& message, Outcome reason, Time at);
  void tell_refused(const MessageRef& message, Outcome reason, Time at);
  /// The packet has been disposed of without a trace in memory: its number is acknowledged, its buffer space returned.
  void drop(const Packet& packet, const MessageRef& message, Time at);
  void ignore(const Packet& packet, const char* why, Time at);
  void return_credit(const Packet& packet, Time at);
  Counter& refusals(Outcome reason);

  /// Finds memory for the packet's bytes and hands it on, at once or when the page list has been fetched.
  void convert(PlacedPacket placed, Cycles cycle);
  void hand_on(PlacedPacket placed, const SegmentList& to, Cycles cycle);

  NodeId node_;
  WindowStore& windows_;
  const ObserverList& observers_;
  Cycles latency_;
  std::uint32_t ranks_per_node_ = 1;

  FifoRing<Arrival> queue_;
  SpilledCache* descriptors_ = nullptr;
  SpilledCache* counters_ = nullptr;
  DecisionGate gate_;
  Cycles next_decision_;
  Cycles last_out_{-1};  ///< latest cycle in which a packet has left the pipeline
  bool needs_room_ = false;
  Stall stall_ = Stall::none;
  Time stalled_since_;

  PayloadPool record_buffers_;
  AddressConversionStats stats_;
  PageTranslator translator_;
  Wakeup decision_;
};

}  // namespace rvma
