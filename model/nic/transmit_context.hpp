/// \file
/// The sender's half of a packet-delivery context, as plain C++ with no SystemC in it: what a sender keeps for one
/// destination until it knows that it has arrived, and when it sends it again. Numbers wrap at 2^32 and are compared by
/// distance. The receiver's half: delivery.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/outcome.hpp"
#include "base/units.hpp"
#include "fabric/packet.hpp"
#include "nic/congestion.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/serial_ring.hpp"

namespace rvma {

struct TransmitLimits {
  std::uint32_t window = 1024;             ///< packets in flight
  std::uint32_t messages = 1024;           ///< messages open
  std::uint32_t max_tries = 8;             ///< sendings in a row that nothing answers
  Time rto = Time::from_us(100);           ///< least retransmission time-out
  Time reorder_window = Time::from_us(5);  ///< first value, see RetransmitTimes
  CongestionLimits congestion;
  static constexpr std::uint32_t kMostBackOff = 3;  ///< the time-out doubles that often

  /// How often `rto` the time-out is after `time_outs` in a row.
  static constexpr std::int64_t back_off(std::uint32_t time_outs) {
    return std::int64_t{1} << (time_outs < kMostBackOff ? time_outs : kMostBackOff);
  }
  /// From a packet's first sending to giving up, if no round trip is longer than `rto`.
  constexpr Time patience() const {
    Time total;
    for (std::uint32_t i = 0; i < max_tries; ++i) total += rto * back_off(i);
    return total;
  }
};

/// When a packet counts as lost. Evidence (RACK, RFC 8985): a packet that was *sent* longer than the reorder window
/// after it has been acknowledged. The window doubles whenever a resent packet turns out not to have been lost, so it
/// settles above what the fabric reorders. Time-out (RFC 6298): smoothed round trip plus four deviations, at least
/// `rto`, doubled with each time-out in a row.
class RetransmitTimes {
 public:
  /// However long the round trips, the time-out is not longer than so often `rto`.
  static constexpr std::int64_t kMostRaise = 64;
  static constexpr std::uint32_t kForget = 16;
  RetransmitTimes(Time rto, Time reorder_window)
      : least_rto_(rto), first_reorder_window_(reorder_window), reorder_window_(reorder_window) {}

  /// A packet that was sent once was acknowledged `round_trip` later.
  void sample(Time round_trip);
  /// A packet was resent in vain.
  void resent_in_vain();
  /// A packet was resent, and its answer belongs to that: it had been lost. After kForget of them the reorder window is
  /// halved, down to its first value.
  void resent_rightly();
  /// An acknowledgement so soon after a resending is that of an earlier sending.
  bool is_too_soon(Time after) const {
    return !least_round_trip_.is_never() && after < std::min(least_round_trip_, soonest_);
  }
  /// A verdict of is_too_soon() was taken. If it was wrong, because every round trip so far was a slow one, the next
  /// answer that is as soon is believed.
  void taken_for_too_soon(Time after) { soonest_ = std::min(soonest_, after); }
  Time least_round_trip() const { return least_round_trip_; }
  Time reorder_window() const { return reorder_window_; }
  Time time_out() const;
  Time smoothed_round_trip() const { return smoothed_; }

 private:
  Time least_rto_;
  Time first_reorder_window_;
  Time reorder_window_;
  Time soonest_ = Time::max();  ///< answer to a resending that was taken for one to an earlier sending
  std::uint32_t resent_rightly_ = 0;
  Time least_round_trip_ = Time::max();
  Time smoothed_;
  Time deviation_;
};

/// What the sender keeps for one destination. A put is named by an index of the owner's.
class TransmitContext {
 public:
  static constexpr std::uint32_t kNoPut = ~std::uint32_t{0};
  /// `limits` outlives the context.
  explicit TransmitContext(const TransmitLimits& limits)
      : limits_(limits), times_(limits.rto, limits.reorder_window), congestion_(limits.congestion) {}

  std::uint32_t generation() const { return generation_; }
  /// A new packet may be numbered.
  bool packet_room() const { return next_sequence() - flights_.base() < limits_.window; }
  /// The network lets another packet go, new or again. If not, and nothing is in flight that could open the window, the
  /// deadline is the time at which it does.
  bool network_room(Time at) {
    paced_ = !congestion_.room(in_flight_, at);
    return !paced_;
  }
  bool message_room() const { return messages_.size() < limits_.messages; }
  /// Packets that were numbered and are neither acknowledged nor known to be lost.
  std::uint32_t in_flight() const { return in_flight_; }

  // -- Sending
  /// Opens the next message for `put`.
  MessageId open(std::uint32_t put);
  /// Number of the next packet of `message`; `last`: the message has no more. The packets of a message are numbered one
  /// after another, before those of the next.
  std::uint32_t take_sequence(MessageId message, bool last);
  /// The first bit of packet `sequence` is on the link at `at`.
  void sent(std::uint32_t sequence, Time at);
  const CongestionWindow& congestion() const { return congestion_; }
  /// Message id - oldest open id; 0 if the message itself is older.
  std::uint16_t open_span(MessageId message) const;
  /// The message ends here, whatever has arrived of it; its packets that are still missing are sent as fillers.
  void abandon(MessageId message);
  /// The first packet (index) of an open message that may have to be sent again.
  std::uint32_t first_unacknowledged(MessageId message) const;

  /// A packet to be sent again.
  struct Resend {
    std::uint32_t sequence = 0;
    MessageId message;
    std::uint32_t packet_index = 0;
    /// kNoPut: its message has ended, and its memory may be in use again. The number is filled by an empty packet.
    std::uint32_t put = kNoPut;
    bool is_probe = false;  ///< the packet has arrived; it asks for its message's outcome
  };
  /// Whether there is one; it stays the next until pop_resend().
  bool next_resend(Resend& resend);
  void pop_resend();

  // -- Answers
  struct Ended {
    std::uint32_t put = 0;
    MessageId message;
    Outcome outcome = Outcome::pending;
  };
  /// Takes in an acknowledgement; appends the messages that it ends. One that claims what cannot be is ignored (false).
  /// Idempotent, and in any order: an older one never takes back what a newer one said.
  bool acknowledge(const AckHeader& ack, Time at, std::vector<Ended>& ended);

  // -- Time
  /// Earliest time at which check() may have something to do; "never" if nothing is waited for.
  Time deadline() const;
  enum class Patience : std::uint8_t { has, ended };
  /// Queues what has timed out, and asks again for outcomes that were not told; a message whose outcome is never told
  /// ends `timeout`. `ended`: the oldest packet was sent max_tries times in a row and nothing was
  /// heard meanwhile: give up.
  Patience check(Time at, std::vector<Ended>& ended);
  /// Nothing that is on its way will be acknowledged: it goes again.
  void send_all_again();
  /// Forgets all; numbers start again at 0 in the next generation. Appends the messages that were open (`timeout`).
  void give_up(std::vector<Ended>& ended);

  /// No message is open and every packet is acknowledged.
  bool idle() const { return messages_.empty() && flights_.empty(); }

  struct Counts {
    std::uint64_t lost_by_evidence = 0;
    std::uint64_t timed_out = 0;
    std::uint64_t in_vain = 0;    ///< resent, or queued for it, though not lost
    std::uint64_t decreases = 0;  ///< of the congestion window
    std::uint64_t probes = 0;     ///< last packets sent again to ask for an outcome
  };
  /// Since the last call.
  Counts take_counts();
  const RetransmitTimes& times() const { return times_; }
  /// Bytes of the context in host memory behind its head: 8 for each packet in flight and each open message; whole
  /// reads of 64 B.
  std::uint32_t rest_bytes() const {
    return static_cast<std::uint32_t>(most_rest_bytes(flights_.size(), messages_.size()));
  }
  /// The most that they can be.
  static constexpr std::uint64_t most_rest_bytes(std::uint32_t window, std::uint32_t messages) {
    return (std::uint64_t{window} * 8 + 63) / 64 * 64 + (std::uint64_t{messages} * 8 + 63) / 64 * 64;
  }
  std::size_t state_bytes() const {
    return sizeof(*this) + messages_.storage_bytes() + flights_.storage_bytes() + resends_.storage_bytes();
  }

 private:
  struct Message {
    std::uint32_t put = 0;
    std::uint32_t first_sequence = 0;
    std::uint32_t packets = 0;  ///< numbered so far
    bool complete = false;      ///< all its packets have numbers
    bool ended = false;
    std::uint8_t probes = 0;
    Time ask_at = Time::max();  ///< all its packets are acknowledged: when its outcome is asked for (again)
  };
  /// A packet that was numbered and is not covered by the cumulative acknowledgement.
  struct Flight {
    std::uint32_t message = 0;
    std::uint8_t sendings = 0;
    bool acknowledged = false;
    bool waits = false;          ///< to be sent again
    Time sent_at = Time::max();  ///< last; never: not on the link yet
    bool outstanding() const { return !acknowledged && !waits && !sent_at.is_never(); }
  };
  std::uint32_t next_sequence() const { return flights_.end(); }
  void acknowledge_packet(Flight& flight, Time at);
  void find_lost();
  void queue_resend(std::uint32_t sequence);
  void end(std::uint32_t id, Outcome outcome, std::vector<Ended>& ended);
  void pop_ended();
  void note_acknowledged(Time at);
  Time time_out() const;
  Patience time_out_lost(Time at);

  const TransmitLimits& limits_;
  RetransmitTimes times_;
  CongestionWindow congestion_;
  bool paced_ = false;                  ///< a packet waits for the network's leave
  std::uint64_t decreases_before_ = 0;  ///< of generations before this one
  std::uint64_t decreases_told_ = 0;
  std::uint32_t generation_ = 1;
  SerialRing<Flight> flights_;    ///< from the cumulative number
  SerialRing<Message> messages_;  ///< from the oldest open id
  FifoRing<Resend> resends_;
  std::uint32_t acknowledged_ = 0;  ///< one after the last id whose packets are known to be acknowledged
  std::uint32_t in_flight_ = 0;
  std::uint32_t outstanding_ = 0;      ///< on their way: sent, not acknowledged, not waiting to be sent again
  std::uint32_t back_off_ = 0;         ///< time-outs in a row
  bool newest_was_sent_once_ = false;  ///< of the acknowledgement being taken in: its latest sending was the only one
  Time newest_acknowledged_;           ///< latest sending of an acknowledged packet
  Time timer_from_;                    ///< of the last progress, or of the first packet after none was outstanding
  Counts counts_;
};

}  // namespace rvma
