/// \file
/// Two-sided messages between ranks (send, recv), as an MPI library makes them above a NIC: in software on the ranks'
/// cores, over the driver's calls, the same for RVMA and RDMA.
///
/// *Eager* (up to workload.messages.eager_limit): the sender copies the payload to memory of the layer and puts it,
/// with an envelope, to a buffer that the receiver's layer has posted beforehand; the receiving core matches it and
/// copies it to the program's buffer. *Rendezvous* (longer): the envelope alone goes as a request; once it is matched,
/// the receiver posts the program's buffer to a mailbox of its own and tells the sender, who puts the payload there.
///
/// Nothing makes progress but calls: send, recv, wait, barrier, and the end of the program, which goes on until all
/// ranks have ended theirs. Message n from one rank to another goes to slot n modulo the number of slots, each a
/// mailbox of its own with one buffer: so its number, and the order of messages, are known whatever order the network
/// has.
///
/// The bytes of an envelope travel behind the payload as part of the put's message; what it says is kept beside the
/// machine (MessageBoard), because runs without payload move no bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <systemc>
#include <vector>

#include "base/stats.hpp"
#include "driver/driver.hpp"
#include "workload/config.hpp"
#include "workload/name_map.hpp"
#include "workload/player.hpp"
#include "workload/trace.hpp"

namespace rvma {

/// Bytes of an envelope: source, tag, size, kind, number, credits, and a request's own number.
inline constexpr std::uint64_t kEnvelopeBytes = 32;

/// Of messages issued in the measured region. The times of a message's way are those of received messages alone, and
/// add up to `way_ns`: from its send's issue until its receiver has it in the program's buffer.
struct MessageStats {
  Counter eager{"messages", "sent eagerly, and received"};
  Counter rendezvous{"messages", "sent after a rendezvous, and received"};
  Counter received_bytes{"bytes", "of received messages"};
  Counter unexpected{"messages", "came before their recv: eager ones are copied once more"};
  Counter control{"messages", "of the layer itself: requests to send, clearances, returned credits"};
  TimeSum way_ns{"all received messages: send issued to payload in the receiver's buffer"};
  TimeSum send_copy_ns{"of it: copies at senders"};
  TimeSum credit_wait_ns{"of it: waiting for a free slot at the receiver"};
  TimeSum handshake_ns{"of it: request to send and clearance, their waits for a core included"};
  TimeSum transfer_ns{"of it: puts of payload, until the receiver's core takes up the message"};
  TimeSum matching_ns{"of it: matching"};
  TimeSum late_receiver_ns{"of it: waiting for the recv"};
  TimeSum receive_copy_ns{"of it: copies at receivers"};
  TimeSum copying_ns{"core time of all copies"};
  TimeSum span_ns{"first send or recv issued to the last message received"};
  Histogram way{"send issued to payload in the receiver's buffer"};
  BOOST_DESCRIBE_CLASS(MessageStats, (),
                       (eager, rendezvous, received_bytes, unexpected, control, way_ns, send_copy_ns, credit_wait_ns,
                        handshake_ns, transfer_ns, matching_ns, late_receiver_ns, receive_copy_ns, copying_ns, span_ns,
                        way),
                       (), ())
};

class MessageLayer;

/// What the layers of all ranks share. One a run; outlives them.
class MessageBoard {
 public:
  MessageBoard(const WorkloadConfig& config, std::uint32_t ranks);
  MessageStats& stats() { return stats_; }
  /// As marks say: the first one forgets what came before it.
  void marked(RankId rank, bool begin);

 private:
  friend class MessageLayer;
  bool is_measured(RankId rank) const { return !has_marks_ || inside_mark_[rank.index()]; }

  const MessagesConfig& config_;
  const bool with_bytes_;
  std::vector<MessageLayer*> layers_;  ///< by rank
  std::vector<bool> inside_mark_;
  bool has_marks_ = false;
  std::uint32_t period_ = 0;  ///< marks begin another: what was counted before is forgotten
  Time first_;                ///< measured message issued
  Time last_;                 ///< received
  bool has_first_ = false;
  std::uint32_t ended_ = 0;  ///< ranks whose programs have ended
  sc_core::sc_event all_ended_{"messages_all_ended"};
  MessageStats stats_;
};

/// One rank's; all functions are for its program's thread.
class MessageLayer {
 public:
  /// `homes[r]` is rank r's. Everything that is referred to outlives the layer.
  MessageLayer(MessageBoard& board, const Trace& trace, RankId rank, const std::vector<RankHome>& homes,
               const std::vector<PlayerObserver*>& observers);
  ~MessageLayer();
  MessageLayer(const MessageLayer&) = delete;
  MessageLayer& operator=(const MessageLayer&) = delete;

  /// Opens the channels to all peers; before the program begins. Not ok: the program holds a mailbox of the layer's.
  Status open();
  /// Neither waits for the message.
  void send(const Operation& operation);
  void receive(const Operation& operation);
  /// Whether `name` is a message that may still be waited for.
  bool knows(const NameRef& name) const { return named_.contains(name); }
  /// `is_last`: nothing names it after this.
  void wait(const NameRef& name, WaitHow how, bool is_last);
  void wait_all(WaitHow how);
  /// Serves others until `is_over`; `wake` is notified when that may have changed.
  template <class IsOver>
  void serve_until(IsOver&& is_over, sc_core::sc_event& wake) {
    while (!is_over()) {
      if (!progress()) sleep(WaitHow::mwait, &wake);
    }
  }
  /// The program has ended: serves others until theirs have.
  void finish();
  /// The program was ended by the loss of power, and serves nobody.
  void gone();

 private:
  /// Of a message's way.
  enum class Part : std::uint8_t {
    send_copy,
    credit_wait,
    handshake,
    transfer,
    matching,
    late_receiver,
    receive_copy,
  };
  struct Timeline;
  struct Envelope;
  struct Request;
  struct Slot;
  struct Outgoing;
  struct Peer;
  struct Flight;

  template <class Call>
  void tell(Call&& call) {
    for (PlayerObserver* observer : observers_) call(*observer);
  }
  static Time now() { return SimContext::now(); }
  Core& core() { return driver_.core(); }
  Peer& peer(RankId rank);
  std::shared_ptr<Request> new_request(const Operation& operation);
  bool counts(const Timeline& timeline) const;
  static void pass(Timeline& timeline, Part part);
  void copy(std::uint64_t bytes, Timeline& timeline, Part part);
  void move(VirtualAddress from, VirtualAddress to, std::uint64_t bytes);
  VirtualAddress allocate(std::uint64_t bytes);
  void fill(VirtualAddress head, std::uint64_t bytes, std::uint64_t seed);
  // Puts
  void enqueue(Peer& to, Outgoing outgoing);
  void flush(Peer& to);
  void issue(Peer& to, Outgoing& outgoing);
  CompletionPointer put(const Peer& to, Mailbox mailbox, VirtualAddress source, std::uint64_t bytes, std::uint64_t seed,
                        const Request* request);
  void return_credits(Peer& to);
  // Posts
  void tell_post(BufferPost post, CompletionPointer word);
  void post_slot(Peer& from, std::uint32_t lane);
  // Progress
  bool progress();
  bool take(Peer& from);
  bool take_payloads();
  bool end_flights();
  void sleep(WaitHow how, sc_core::sc_event* wake);
  void arrived(Peer& from, Envelope& envelope);
  bool match(Peer& from, Envelope& envelope);
  void deliver(Request& receive, Envelope& envelope);
  void clear(Peer& from, const std::shared_ptr<Request>& receive, Envelope& request);
  void cleared(Peer& from, Envelope& answer);
  void received(Request& receive, const Timeline& timeline, std::uint64_t size, bool rendezvous, Status status);
  void end(Request& request, MessageEnd how);

  MessageBoard& board_;
  const MessagesConfig& config_;
  RankId rank_;
  const std::vector<RankHome>& homes_;
  const RankHome& home_;
  Driver& driver_;
  const std::vector<PlayerObserver*>& observers_;
  std::vector<std::unique_ptr<Peer>> peers_;  ///< in order of rank
  NameMap<std::shared_ptr<Request>> named_;
  std::uint64_t open_ = 0;  ///< requests that have not ended
  std::uint64_t issued_ = 0;
  std::uint64_t puts_ = 0;                            ///< of the layer's own, which have seeds by their number
  std::uint64_t mailboxes_ = 0;                       ///< for rendezvous, used so far
  std::deque<Flight> flights_;                        ///< puts that have not ended
  std::vector<std::shared_ptr<Request>> clearances_;  ///< receives whose payload is on its way
  std::vector<PhysicalAddress> words_;                ///< scratch
  std::vector<std::uint8_t> bytes_;                   ///< scratch
};

}  // namespace rvma
