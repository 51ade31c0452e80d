/// \file
/// Packet-delivery contexts, as plain C++ with no SystemC in it: what a receiver remembers of one sender
/// (ReceiveContext), and a sender of one receiver (TransmitContext). Numbers wrap at 2^32 and are compared by distance.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/ids.hpp"
#include "base/outcome.hpp"
#include "base/units.hpp"
#include "fabric/packet.hpp"
#include "fabric/wire.hpp"
#include "nic/interfaces.hpp"
#include "nic/serial_ring.hpp"

namespace rvma {

/// Bits of a window of numbers that slides; position = number modulo a power of two.
class WindowBitmap {
 public:
  /// Holds at least `window` numbers.
  explicit WindowBitmap(std::uint32_t window);
  bool test(std::uint32_t number) const { return (word(number) >> (number & 63U) & 1U) != 0; }
  void set(std::uint32_t number) { word(number) |= 1ULL << (number & 63U); }
  void clear(std::uint32_t number) { word(number) &= ~(1ULL << (number & 63U)); }
  /// The 64 bits from `number` on.
  std::uint64_t bits_from(std::uint32_t number) const;
  std::uint32_t size() const { return static_cast<std::uint32_t>(64 * words_.size()); }

 private:
  std::uint64_t& word(std::uint32_t number) { return words_[number / 64 & (words_.size() - 1)]; }
  std::uint64_t word(std::uint32_t number) const { return words_[number / 64 & (words_.size() - 1)]; }
  std::vector<std::uint64_t> words_;
};

/// At most `most` refusals are told in any stretch of kSpan (the same outcome repeated counts once).
class RefusalBudget {
 public:
  static constexpr Time kSpan = Time::from_us(10);
  explicit RefusalBudget(std::uint32_t most) : most_(most) {}
  /// Takes one of the budget at `at`, non-decreasing; false: it is used up.
  bool take(Time at);
  /// When take() can succeed again after it failed.
  Time free_at() const { return told_.front() + kSpan; }

 private:
  std::uint32_t most_;
  std::deque<Time> told_;
};

/// Bytes on a link of the greatest acknowledgement that a receiver of at most `window` packets and `messages` messages
/// can make: every buffer on its way must hold it.
constexpr std::uint32_t largest_acknowledgement_bytes(std::uint32_t window, std::uint32_t messages) {
  return ack_wire_bytes((window + 63) / 64, messages);
}

struct ReceiveLimits {
  std::uint32_t window = 1024;       ///< packets in flight
  std::uint32_t messages = 1024;     ///< messages open
  std::uint32_t refusals_told = 64;  ///< in any 10 us
};

/// What the receiver keeps for one source: the latest incarnation and generation of its context.
class ReceiveContext {
 public:
  ReceiveContext(std::uint32_t incarnation, std::uint32_t generation, const ReceiveLimits& limits);

  std::uint32_t incarnation() const { return incarnation_; }
  std::uint32_t generation() const { return generation_; }

  struct Answer {
    DeliveryIf::Admission admission;
    bool in_order = true;  ///< the packet's number is the next after all that have been seen
  };
  /// Marks the packet as seen and says whether it is to be handled. Nothing changes if the verdict is `stale`: the
  /// number or id is outside of what an honest sender may have open.
  Answer admit(std::uint32_t sequence, MessageId message, std::uint16_t open_span);
  /// The four below ignore ids and numbers that have passed. Those with a time decide at once, and are told by
  /// acknowledgements that leave at `at` or later.
  void bind(MessageId message, std::uint32_t binding);
  /// `told`: the sender gets to know the reason.
  void refuse(MessageId message, Outcome reason, bool told, Time at);
  void end(MessageId message, Time at);
  void dispose(std::uint32_t sequence, Time at);

  /// What an acknowledgement had to leave out.
  struct LeftOut {
    Time not_yet = Time::max();    ///< earliest time of what happens only after `at`; "never": nothing
    Time held_back = Time::max();  ///< when the refusal budget allows the next outcome; "never": nothing held back
    std::uint32_t packets = 0;     ///< disposed of only after `at`
  };
  /// Fills an acknowledgement that leaves at `at` (non-decreasing).
  LeftOut fill(AckHeader& ack, Time at);

  std::uint32_t cumulative() const { return base_; }
  MessageId oldest_open() const { return MessageId{messages_.base()}; }
  /// Bytes of state, storage included; docs/reference/units/delivery.md quotes it.
  std::size_t state_bytes() const;

 private:
  struct Message {
    MessageState state = MessageState::unseen;
    Outcome outcome = Outcome::pending;  ///< as told; stays pending for a refusal that nobody may know
    bool told = false;                   ///< has used its share of the refusal budget
    std::uint32_t binding = 0;
    Time told_from;  ///< the outcome stands from then on
  };
  struct Disposal {
    std::uint32_t sequence = 0;
    Time at;
  };
  void advance_oldest(std::uint32_t oldest);
  void settle(Time at, LeftOut& left_out);
  Message* find(MessageId message);

  std::uint32_t incarnation_;
  std::uint32_t generation_;
  std::uint32_t window_;
  std::uint32_t most_messages_;
  std::uint32_t base_ = 0;           ///< every number below has been disposed of
  std::uint32_t next_expected_ = 0;  ///< one after the highest number seen
  WindowBitmap seen_;
  WindowBitmap disposed_;
  std::vector<Disposal> disposals_;  ///< that no acknowledgement has told yet
  SerialRing<Message> messages_;     ///< from the sender's oldest open id
  std::uint32_t ok_prefix_ = 0;      ///< every id from messages_.base() to below has ended ok
  std::uint32_t outcomes_end_ = 0;   ///< one after the highest id with an outcome
  RefusalBudget budget_;
};

/// What the sender keeps for one destination. A put is named by an index of the owner's.
///
/// Nothing is ever sent twice yet: retransmission will keep each packet here, by sequence number, from take_sequence()
/// until the number is acknowledged, and read AckHeader::selective.
class TransmitContext {
 public:
  TransmitContext(std::uint32_t window, std::uint32_t messages) : window_(window), most_messages_(messages) {}

  std::uint32_t generation() const { return generation_; }
  /// A packet may be sent: its number is within the window.
  bool packet_room() const { return next_sequence_ - cumulative_ < window_; }
  bool message_room() const { return messages_.size() < most_messages_; }
  /// Opens the next message for `put`, at `at`.
  MessageId open(std::uint32_t put, Time at);
  /// Number of the next packet of `message`; `last`: the message has no more.
  std::uint32_t take_sequence(MessageId message, bool last);
  /// The packet `sequence` is on its way from `at` on; in order. Until then nobody can have heard of it.
  void sent(std::uint32_t sequence, Time at);
  /// Message id - oldest open id; 0 if the message itself is older.
  std::uint16_t open_span(MessageId message) const;

  struct Ended {
    std::uint32_t put = 0;
    MessageId message;
    Outcome outcome = Outcome::pending;
  };
  /// Takes in an acknowledgement; appends the messages that it ends. One that claims what cannot be is ignored (false).
  /// Idempotent, and in any order: an older one never takes back what a newer one said.
  bool acknowledge(const AckHeader& ack, Time at, std::vector<Ended>& ended);

  /// No message is open.
  bool idle() const { return messages_.empty(); }
  /// Nothing was heard of the sent packets for `limit` at `at`: the peer is to be given up. Whose messages have all
  /// ended need not be heard of, unless something `waits`: packets that no acknowledgement covers (their receiver had
  /// no context yet, and was not to answer) hold their place in the window.
  bool silent(Time at, Time limit, bool waits) const;
  /// Ends (`timeout`) the messages whose packets were all acknowledged `limit` or longer before `at`.
  void expire(Time at, Time limit, std::vector<Ended>& ended);
  /// Earliest time at which silent() or expire() can have something to say; "never" if nothing is waited for.
  Time deadline(Time limit, bool waits) const;
  /// Forgets all; numbers start again at 0 in the next generation. Appends the messages that were open (`timeout`).
  void give_up(std::vector<Ended>& ended);

  std::size_t state_bytes() const { return sizeof(*this) + messages_.storage_bytes(); }

 private:
  struct Message {
    std::uint32_t put = 0;
    std::uint32_t last_sequence = 0;
    bool complete = false;  ///< all its packets have numbers
    bool ended = false;
    Time acknowledged_at = Time::max();  ///< all its packets were, then
  };
  void end(std::uint32_t id, Outcome outcome, std::vector<Ended>& ended);
  void pop_ended();
  void note_acknowledged(Time at);

  std::uint32_t window_;
  std::uint32_t most_messages_;
  std::uint32_t generation_ = 1;
  std::uint32_t next_sequence_ = 0;
  std::uint32_t sent_ = 0;  ///< every number below has been sent
  std::uint32_t cumulative_ = 0;
  SerialRing<Message> messages_;    ///< from the oldest open id
  std::uint32_t acknowledged_ = 0;  ///< one after the last id whose packets are known to be acknowledged
  Time heard_at_ = Time::max();     ///< of the last acknowledgement, or of the first packet after silence
};

}  // namespace rvma
