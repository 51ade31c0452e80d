/// \file
/// Transmit: open puts, cut into packets whose payload is read from host memory, one peer after another.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <systemc>
#include <vector>

#include "base/component.hpp"
#include "base/slot_table.hpp"
#include "fabric/packet.hpp"
#include "nic/config.hpp"
#include "nic/egress.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "nic/interrupt_arm.hpp"
#include "nic/observer.hpp"
#include "nic/spilled_cache.hpp"
#include "nic/transmit_context.hpp"

namespace rvma {

inline constexpr Widenings kWidenedByOpenPuts{{{"nic.transmit.open_puts", Effect::proportional}}};
inline constexpr Widenings kWidenedByTransmitBuffer{{{"nic.transmit.buffer", Effect::powers_of_two}}};

struct TransmitStats {
  Counter puts{"puts", "puts accepted from the command unit"};
  Counter get_requests{"requests", "requests of gets accepted from the get unit"};
  Counter get_answers{"answers", "answers to gets accepted from the get unit"};
  Counter rdma_messages{"messages", "work requests of queue pairs, and answers to reads, accepted"};
  Counter answers_given_up{"answers", "of these, answers given up because the buffer was not the window's any more"};
  Counter messages{"messages", "messages opened, retries included"};
  Counter retries{"messages", "messages that were retries after no_buffer or busy"};
  Counter packets{"packets", "data packets cut"};
  Counter payload_bytes{"bytes", "payload of these packets"};
  Counter abandoned{"packets", "data packets not sent, because their peer was given up while their payload was read"};
  Counter resent{"packets", "data packets sent again: lost, timed out, or to ask for an outcome"};
  Counter resent_bytes{"bytes", "payload of these packets"};
  Counter lost_by_evidence{"packets", "packets counted as lost, because one sent later was acknowledged"};
  Counter timed_out{"packets", "packets whose time-out ran off"};
  Counter resent_in_vain{"packets", "packets sent again, or about to be, that turned out to have arrived"};
  Counter congestion_stalls{"stalls", "times that the next packet had to wait for its peer's congestion window"};
  Counter congestion_decreases{"times", "times that round trips or losses made a congestion window smaller"};
  Counter probes{"packets", "last packets sent again to ask for an outcome that was not told"};
  Counter fillers{"packets", "empty packets sent for the numbers of lost ones whose message had ended"};
  Counter peers_restarted{"peers", "times that a peer was found to be a newer incarnation"};
  Counter list_reads{"reads", "pieces of page lists fetched"};
  Counter ended_ok{"puts", "puts that ended ok"};
  Counter ended_no_mailbox{"puts", "puts that ended no_mailbox"};
  Counter ended_closed{"puts", "puts that ended closed"};
  Counter ended_bad_key{"puts", "puts that ended bad_key"};
  Counter ended_stale{"puts", "puts that ended stale"};
  Counter ended_no_buffer{"puts", "puts that ended no_buffer, all tries used up"};
  Counter ended_bounds{"puts", "puts that ended bounds"};
  Counter ended_busy{"puts", "puts that ended busy, all tries used up"};
  Counter ended_timeout{"puts", "puts that ended timeout: outcome unknown"};
  Counter peers_given_up{"peers", "times that a peer's silence ended all puts to it"};
  Counter acknowledgements{"packets", "acknowledgements taken in"};
  Counter ignored_acknowledgements{"packets", "acknowledgements of another incarnation or generation, or impossible"};
  Counter no_context{"puts", "puts that ended busy at once, since their peer's context may not spill"};
  Counter full{"puts", "times that a put, or a get's request, found the open-put table full"};
  Counter buffer_stalls{"stalls", "times that the next packet found no room in the transmit buffer"};
  Counter window_stalls{"stalls", "times that a peer's packets in flight or open messages were at their limit"};
  TimeSum retry_wait_ns{"time that puts waited after a refusal to be sent again, each on its own"};
  TimeSum window_wait_ns{"time that packets of the puts cut so far, the last of each, waited for that limit"};
  Counter list_stalls{"stalls", "times that the next packet waited for its page list"};
  Peak open_puts{"puts", "puts and requests of gets held at a time"};
  Peak buffer{"bytes", "payload being read or waiting for the link"};
  Utilisation cut{WorkKind::operations, "packets cut, one a cycle", kWidenedByNicClock};
  Utilisation buffer_full{WorkKind::stalls, "time that the next packet waited for room in nic.transmit.buffer",
                          kWidenedByTransmitBuffer};
  Utilisation open_puts_full{
      WorkKind::stalls, "time that a descriptor waited for one of nic.transmit.open_puts entries", kWidenedByOpenPuts};
  BOOST_DESCRIBE_CLASS(TransmitStats, (),
                       (puts, get_requests, get_answers, rdma_messages, answers_given_up, messages, retries, packets,
                        payload_bytes, abandoned, resent, resent_bytes, lost_by_evidence, timed_out, resent_in_vain,
                        congestion_stalls, congestion_decreases, probes, fillers, peers_restarted, list_reads, ended_ok,
                        ended_no_mailbox, ended_closed, ended_bad_key, ended_stale, ended_no_buffer, ended_bounds,
                        ended_busy, ended_timeout, peers_given_up, acknowledgements, ignored_acknowledgements,
                        no_context, full, buffer_stalls, window_stalls, retry_wait_ns, window_wait_ns, list_stalls,
                        open_puts, buffer, cut, open_puts_full, buffer_full),
                       (), ())
};

class Transmit : public Component, public TransmitIf, public AckSinkIf, public DmaClient {
 public:
  sc_core::sc_port<DmaIf> dma;
  sc_core::sc_port<EgressIf> egress;
  /// Unbound: only puts are submitted.
  sc_core::sc_port<GetSinkIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> gets;

  struct Parameters {
    const NicConfig& config;
    Bytes page;  ///< host.page, a power of two
    NodeId node;
    std::uint32_t boot_number = 1;  ///< incarnation of this NIC
    bool timing_only = false;       ///< payload bytes are not carried; page lists are, and RDMA sends
  };
  /// Everything that is referred to outlives the unit.
  Transmit(const sc_core::sc_module_name& name, SimContext& context, const Parameters& parameters, PacketPool& packets,
           PayloadPool& payloads, InterruptArm& arm, const ObserverList& observers);

  /// Set-up: where the contexts lie, numbered in the order in which peers were first sent to. Without it all are on
  /// chip. A context is needed when a packet is cut, when an acknowledgement comes, and when a timer runs off.
  void use_cache(SpilledCache& contexts);
  /// Whether something can be sent to `node`: it has a context, from now on. False: there is no place for one, and none
  /// may spill.
  bool keep_context(NodeId node);

  bool submit(const PutRequest& put, Cycles at) override;
  void on_room(std::function<void()> room) override { room_.push_back(std::move(room)); }
  void acknowledgement(PacketPtr packet, Time at) override;
  /// A data packet has left: its room in the transmit buffer is free, and its time-out runs.
  void departed(const Egress::Departure& departure);

  void dma_written(std::uint64_t /*tag*/, Time /*entered*/, Time /*visible*/) override {}
  void dma_read_done(std::uint64_t tag) override;

  const TransmitStats& stats() const { return stats_; }
  /// Entries of the open-put table that are taken, those of answers included.
  std::size_t open_puts() const { return puts_.taken(); }

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};
  static constexpr std::uint32_t kMostListEntries = 64;  ///< of a page list fetched by one read

  struct Put {
    PutRequest request;
    Time commanded;
    Time began;          ///< the current sending: commanded, or the end of the wait after a refusal
    Time refused;        ///< when that wait began
    Time window_waited;  ///< of its peer, when it was commanded
    Index peer = kNone;
    MessageId message;
    std::uint32_t packets = 0;      ///< of the whole message
    std::uint32_t next_packet = 0;  ///< of the current sending
    std::uint32_t tries = 0;        ///< messages opened for it
    std::uint32_t uses = 0;         ///< of this table entry: tells late answers for an earlier put apart
    bool open = false;
    bool asks = false;  ///< one of its queue pair's `asking`
    // Page list: entries [first_page, first_page + pages.size()) are here; the next piece may be on its way.
    std::vector<PhysicalAddress> pages;
    std::uint64_t first_page = 0;
    PayloadRef list_piece;
    std::uint32_t list_piece_entries = 0;  ///< 0: no read outstanding
  };
  /// Of the RDMA NIC, by its number at the peer, in the present generation.
  struct QueuePair {
    std::uint64_t messages = 0;  ///< numbered so far: each states its place in the queue pair's order
    /// Messages of it have found no receive: all that are not under way are held, by their places. The first one is
    /// asked for again after the pause; then two, if it was taken, then four, until none is held.
    bool is_stopped = false;
    bool pauses = false;
    std::uint32_t asking = 0;  ///< asked for again, and not ended
    std::uint32_t burst = 1;   ///< so many at a time
    std::map<std::uint64_t, Index> held;
  };
  struct Peer {
    Peer(NodeId node_id, const TransmitLimits& limits) : node(node_id), context(limits) {}
    NodeId node;
    TransmitContext context;
    std::uint32_t incarnation = 0;   ///< 0: not heard yet
    Time first_blind = Time::max();  ///< the first packet of this generation that named no incarnation was cut
    FifoRing<Index> waiting;         ///< puts without a message
    Index sending = kNone;           ///< put whose packets are being cut
    bool in_turn = false;            ///< stands in turn_
    bool is_fetched = false;         ///< its context is being read, to go on sending
    boost::unordered_flat_map<std::uint32_t, QueuePair> queue_pairs;
    FifoRing<PacketPtr> answers;  ///< that came while its context was in host memory
    Time watched = Time::max();   ///< earliest entry in watches_
    bool waits = false;           ///< for an answer
    // Time for which the next packet found the window full: before the present time, and since when.
    Time window_waited_before;
    Time window_full_since = Time::max();
    Time window_waited(Time at) const {
      return window_waited_before + (at > window_full_since ? at - window_full_since : Time::zero());
    }
    void window_is(bool full, Time at) {
      if (full == !window_full_since.is_never()) return;
      window_waited_before = window_waited(at);
      window_full_since = full ? at : Time::max();
    }
  };
  /// A packet whose payload is being read, or that waits behind such a one: packets leave in the order of their
  /// cutting.
  struct Reading {
    PacketPtr packet;
    Index peer = kNone;
    std::uint32_t generation = 0;
    Index put = kNone;  ///< an answer: its entry, and which use of it
    std::uint32_t uses = 0;
    bool ready = false;
    Time ready_at;
  };
  struct Retry {
    Time due;
    Index put = kNone;
    std::uint32_t uses = 0;
  };
  struct Acknowledgement {
    PacketPtr packet;
    Time at;
  };
  /// Entry of the list of deadlines; outdated ones are skipped.
  struct Watch {
    Time due;
    Index peer;
    bool operator>(const Watch& other) const { return due != other.due ? due > other.due : peer > other.peer; }
  };
  /// The next packet of a peer: new, or to be sent again.
  struct Cut {
    Index put = kNone;  ///< kNone: an empty packet fills the number
    MessageId message;
    std::uint32_t packet_index = 0;
    std::uint32_t length = 0;  ///< bytes of payload
    bool again = false;
    std::uint32_t sequence = 0;  ///< if again
  };
  enum class Step : std::uint8_t { cut, blocked, no_buffer };

  // Puts
  Index take_entry(Purpose purpose);
  Index peer_of(NodeId node);
  void end_put(Index index, Outcome outcome, Time at);
  void tell_end(const Put& put, Outcome outcome, Time at);
  void interrupt_if_armed(const Put& put, Time at);
  bool gives_up_unreadable(Index peer, Index put, Time at);
  void empty_unreadable(Reading& reading);
  Counter& ended(Outcome outcome);
  void finish(Index peer, const TransmitContext::Ended& message, Time at);
  // Queue pairs whose messages find no receive
  QueuePair& queue_pair_of(const Put& put);
  void retry_later(Index index, Time at);
  void stop(Index index, Time at);
  void hold(QueuePair& queue_pair, Index index);
  void ask(QueuePair& queue_pair, Time at);
  void was_taken(Index index, Time at);
  void send_again(Index index, Time at);
  // Page lists
  std::uint64_t pages_of(const Put& put) const;
  void fetch_list_piece(Index index, std::uint64_t first, Time at);
  void list_piece_arrived(Index index);
  std::uint64_t first_needed_page(const Put& put) const;
  bool locate(Index index, std::uint64_t offset, std::uint32_t length, SegmentList& from, Time at);
  // Contexts
  /// The peer has something to send, and its context is on the NIC. If only that is not: it is being read.
  bool is_ready(Peer& peer, Index index, Time at);
  /// `then` runs when the peer's context is on the NIC, perhaps at once, and may change it.
  void with_context(Index index, std::function<void()> then);
  // Packets
  void queue_put(Index index);
  void take_turn(Index peer);
  void pump(Time at);
  Step cut_next(Peer& peer, Index peer_index, Time at);
  bool choose(Peer& peer, Cut& cut, Time at);
  void take_new(Peer& peer, Cut& cut, Time at);
  void take_again(Peer& peer, const Cut& cut);
  PacketPtr make_packet(const Cut& cut, Peer& peer, Time at);
  void read_payload(PacketPtr packet, Index peer_index, Index put, const SegmentList& from, Time at);
  void tell_opened(const Put& put, const Peer& peer, Time at);
  void release();
  // Answers and timers
  void take_acknowledgements();
  void take_in(PacketPtr packet, Time at);
  void take_in_here(const Packet& packet, Index index, Time at);
  void meet(Index index, const Packet& packet, Time at);
  void run_timer();
  void check(Index peer, Time at);
  void check_here(Index peer, Time at);
  void give_up(Index peer, Time at);
  /// The peer's deadline may have come nearer.
  void watch(Index peer);
  void arm_timer();
  void count(TransmitContext& context);

  const NicConfig& config_;
  const std::uint64_t page_bytes_;
  const NodeId node_;
  const std::uint32_t boot_number_;
  const bool timing_only_;
  const std::uint32_t mtu_;
  const std::uint32_t list_entries_;
  const TransmitLimits limits_;
  PacketPool& packets_;
  PayloadPool& payloads_;
  InterruptArm& arm_;
  const ObserverList& observers_;
  TransmitStats stats_;

  SlotTable<Put> puts_;
  std::size_t open_puts_ = 0;          ///< of nic.transmit.open_puts
  std::size_t open_answers_ = 0;       ///< of nic.get.queue: answers have entries of their own
  std::size_t open_read_answers_ = 0;  ///< among open_puts_, beyond nic.transmit.open_puts
  bool starved_ = false;               ///< a put was turned away
  std::vector<std::function<void()>> room_;

  SpilledCache* cache_ = nullptr;
  boost::unordered_flat_map<NodeId, Index> peer_index_;
  std::vector<std::unique_ptr<Peer>> peers_;
  FifoRing<Index> turn_;  ///< peers that may have a packet to send, round robin
  FifoRing<Reading> reading_;
  std::uint64_t first_reading_ = 0;  ///< number of reading_'s front
  std::uint64_t buffer_used_ = 0;    ///< bytes
  bool buffer_stalled_ = false;
  Time buffer_full_since_;
  Time open_puts_full_since_;
  bool pumping_ = false;
  Cycles next_cut_;

  FifoRing<Acknowledgement> acknowledgements_;  ///< not due yet
  FifoRing<Retry> retries_;
  std::vector<TransmitContext::Ended> ended_;
  std::priority_queue<Watch, std::vector<Watch>, std::greater<>> watches_;
  std::size_t waiting_peers_ = 0;
  Wakeup arrival_;
  Wakeup timer_;
};

}  // namespace rvma
