/// \file
/// Receive path of the RDMA NIC between parser and payload writer, and behind it: decides about each data packet, finds
/// its memory, and tells completion queues what has come. Stands where address conversion and the counter unit stand in
/// the RVMA NIC.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <systemc>
#include <vector>

#include "base/component.hpp"
#include "fabric/interfaces.hpp"
#include "nic/config.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "nic/observer.hpp"
#include "nic/page_translator.hpp"
#include "rdma/completion_queue_writer.hpp"
#include "rdma/config.hpp"
#include "rdma/rdma_state.hpp"
#include "rdma/state_cache.hpp"

namespace rvma {

struct RdmaReceiveStats {
  Counter decisions{"packets", "data packets decided about"};
  Counter duplicates{"packets", "second copies of a packet"};
  Counter stale{"packets", "packets of an older incarnation or generation, or addressed to another one"};
  Counter late{"packets", "packets of a message that had ended"};
  Counter mismatches{"packets", "packets badly cut, or that contradict their message"};
  Counter refused_packets{"packets", "packets of a message that was refused before"};
  Counter messages{"messages", "messages opened"};
  Counter whole{"messages", "messages that have come whole"};
  Counter reads{"requests", "reads accepted"};
  Counter refused_queue_pair{"messages", "messages refused: no such queue pair, or another peer's"};
  Counter refused_region{"messages", "messages refused: no such region"};
  Counter refused_bounds{"messages", "messages refused: outside the region, or longer than the posted receive"};
  Counter refused_not_ready{"messages", "messages refused: no receive was posted; the sender asks again"};
  Counter refused_busy{"messages", "reads refused: the queue of answers was full"};
  Counter page_hits{"translations", "page translations found in the page cache at once"};
  Counter page_misses{"translations", "page translations that waited for a line of their page list"};
  Counter line_fetches{"reads", "lines of page lists fetched from host memory"};
  Counter line_bytes{"bytes", "of them"};
  TimeSum stalled_on_writes_ns{"time that a due decision waited for room in the DMA write queue"};
  TimeSum stalled_on_misses_ns{"time that a due decision waited for one of nic.receive.page_misses"};
  TimeSum translation_wait_ns{"time that packets waited for page translations, each on its own"};
  TimeSum state_wait_ns{"time that packets waited for a queue pair context or a region's entry, each on its own"};
  Peak queue{"packets", "packets between parser and decision"};
  Peak waiting{"packets", "packets waiting for page translations"};
  Peak held{"packets", "packets waiting for a queue pair context or a region's entry"};
  Utilisation decide{WorkKind::operations, "decisions, one a cycle", kWidenedByNicClock};
  Utilisation page_fetch{WorkKind::operations, "reads of page lists, nic.receive.page_misses at a time",
                         kWidenedByPageMisses};
  BOOST_DESCRIBE_CLASS(RdmaReceiveStats, (),
                       (decisions, duplicates, stale, late, mismatches, refused_packets, messages, whole, reads,
                        refused_queue_pair, refused_region, refused_bounds, refused_not_ready, refused_busy, page_hits,
                        page_misses, line_fetches, line_bytes, stalled_on_writes_ns, stalled_on_misses_ns,
                        translation_wait_ns, state_wait_ns, queue, waiting, held, decide, page_fetch),
                       (), ())
};

/// Answers accepted reads.
class RdmaAnswerIf : public virtual sc_core::sc_interface {
 public:
  /// False: no room. `answer` names the bytes, and where they go.
  virtual bool answer(NodeId asker, const DataHeader& request, const Descriptor& answer) = 0;
};

/// Packets are decided in arrival order, one a cycle, as soon as the state that they need is on the NIC: packets that
/// wait for it are overtaken by others, and keep their order among themselves. So do packets that wait for page
/// translations; but on a NIC that does not track order the packets of one queue pair leave in the order in which they
/// were decided: there the last one tells that a message is whole.
class RdmaReceive : public Component,
                    public TableLookupIf,
                    public AddressConversionIf,
                    public CounterIf,
                    public CutOffIf {
 public:
  sc_core::sc_port<DeliveryIf> delivery;
  sc_core::sc_port<DmaIf> dma;
  sc_core::sc_port<PayloadWriterIf> writer;
  sc_core::sc_port<RdmaAnswerIf> answers;
  /// Of the link that feeds this NIC. Unbound: nobody counts credits.
  sc_core::sc_port<LinkCreditIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> credit;

  struct Parameters {
    const NicConfig& nic;
    const RdmaConfig& rdma;
    Bytes page;  ///< host.page
    NodeId node;
  };
  /// Everything that is referred to outlives the unit.
  RdmaReceive(const sc_core::sc_module_name& name, SimContext& context, const Parameters& parameters, RdmaState& state,
              CompletionQueueWriter& completions, const ObserverList& observers);

  // TableLookupIf: nothing is looked up before the decision.
  void lookup(Pid /*pid*/, Mailbox /*mailbox*/, Cycles /*at*/) override {}
  LookupResult take() override { return {}; }
  Cycles latency() const override { return Cycles{1}; }
  void convert(PacketPtr packet, Cycles ready) override;
  void count(PlacedPacket packet, Time at) override;
  void cut_off(const MessageRef& message, std::uint32_t binding, Time at) override;

  StateCache& queue_pairs() { return queue_pairs_; }
  StateCache& regions() { return regions_; }
  const RdmaReceiveStats& stats() const { return stats_; }

 private:
  struct Arrival {
    PacketPtr packet;
    Cycles ready;
    bool has_queue_pair = false;  ///< has waited for it
    bool has_region = false;
  };
  /// A packet of a queue pair that keeps its order, while it or an earlier one waits for page translations.
  struct Waiting {
    bool has_place = false;
    PlacedPacket packet;
    SegmentList to;
  };
  enum class Stall : std::uint8_t { none, writes, misses };
  void start_of_simulation() override;
  void run();
  void arm();
  /// True: the packet waits for state that is in host memory.
  bool wait_for_state(Arrival& arrival);
  void hold(Arrival arrival, StateCache& cache, std::uint32_t number, bool Arrival::*got);
  void decide(PacketPtr packet, Cycles cycle);
  void open(PacketPtr packet, const MessageRef& message, Cycles cycle);
  void read(const Packet& packet, const MessageRef& message);
  void place(PacketPtr packet, const MessageRef& message, RdmaState::Index index, Cycles cycle);
  bool keeps_order(RdmaState::Index message) const;
  /// The due decision waits for `cause`, since `since` if it did not wait before; ends the wait that was.
  void stall(Stall cause, Time since);
  void translated(PlacedPacket placed, const SegmentList& to, Cycles cycle);
  void hand_on(PlacedPacket placed, const SegmentList& to, Cycles cycle);
  void refuse(const MessageRef& message, Outcome reason, Time at);
  void drop(const Packet& packet, const MessageRef& message, Time at);
  void ignore(const Packet& packet, const char* why, Counter& counter);
  void tell(std::vector<DueCqe>& due, Time at);
  Counter& refusals(Outcome reason);

  NodeId node_;
  std::uint64_t page_bytes_;
  Cycles latency_;
  Cycles count_latency_;
  RdmaState& state_;
  CompletionQueueWriter& completions_;
  const ObserverList& observers_;
  FifoRing<Arrival> queue_;
  FifoRing<Arrival> resumed_;
  std::map<std::uint64_t, Arrival> held_;  ///< by number, in the order in which they came
  std::uint64_t last_held_ = 0;
  Cycles next_decision_;
  Cycles last_out_{-1};
  bool needs_room_ = false;
  bool placing_now_ = false;  ///< the translator has a packet, and has not said yet whether it waits
  boost::unordered_flat_map<std::uint32_t, std::deque<Waiting>> in_order_;  ///< by queue pair; none is empty
  Stall stall_ = Stall::none;
  Time stalled_since_;
  std::vector<DueCqe> due_;  ///< scratch
  RdmaReceiveStats stats_;
  StateCache queue_pairs_;
  StateCache regions_;
  PageTranslator translator_;
  Wakeup decision_;
};

}  // namespace rvma
