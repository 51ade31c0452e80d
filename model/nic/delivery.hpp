/// \file
/// The receiver's half of a packet-delivery context, as plain C++ with no SystemC in it: what it remembers of one
/// sender. Numbers wrap at 2^32 and are compared by distance. The sender's half: transmit_context.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/outcome.hpp"
#include "base/units.hpp"
#include "fabric/packet.hpp"
#include "fabric/wire.hpp"
#include "nic/fifo_ring.hpp"
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
  Time free_at() { return told_.front() + kSpan; }
  std::size_t storage_bytes() const { return told_.storage_bytes(); }

 private:
  friend struct StateReader;  // of the model check
  std::uint32_t most_;
  FifoRing<Time> told_;
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
  /// Whether admit() would hand the packet on as the first of its message that has come to a decision.
  bool is_first(std::uint32_t sequence, MessageId message) const;
  /// The entry of the packet's message in the binding store, if admit() would find that bound.
  std::optional<std::uint32_t> binding_of(std::uint32_t sequence, MessageId message) const;
  /// The four below ignore ids and numbers that have passed. Those with a time decide at once, and are told by
  /// acknowledgements that leave at `at` or later.
  void bind(MessageId message, std::uint32_t binding);
  /// `told`: the sender gets to know the reason.
  void refuse(MessageId message, Outcome reason, bool told, Time at);
  void end(MessageId message, Time at);
  /// A bound message is refused `stale` after all.
  void withdraw(MessageId message, bool told, Time at);
  void dispose(std::uint32_t sequence, Time at);

  struct Bound {
    MessageId message;
    std::uint32_t binding = 0;
  };
  /// Messages are bound that lack packets, or whose last ones are not counted yet.
  bool has_bound() const { return bound_ > 0; }
  std::uint32_t bound() const { return bound_; }
  /// Appends the bound messages that the sender does not know any more: it has closed their ids. Empties the list.
  void take_abandoned(std::vector<Bound>& abandoned);
  /// Appends all bound messages, which are refused `stale` from now on, as told from `at` on.
  void cut_off_all(std::vector<Bound>& bound, Time at);

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
  /// Bytes of the context in host memory behind its head: two bits for each packet in the window that has been seen, a
  /// byte for each open message; whole reads of 64 B.
  std::uint32_t rest_bytes() const;
  /// The most that they can be.
  static constexpr std::uint64_t most_rest_bytes(std::uint32_t window, std::uint32_t messages) {
    return round_to_read((std::uint64_t{window} + 63) / 64 * 16) + round_to_read(messages);
  }
  static constexpr std::uint64_t round_to_read(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }
  /// Bytes of state, storage included; docs/explanation/reliability.md quotes it.
  std::size_t state_bytes() const;

 private:
  friend struct StateReader;  // of the model check
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
  std::uint32_t bound_ = 0;
  std::vector<Bound> abandoned_;
  std::uint32_t outcomes_end_ = 0;  ///< one after the highest id with an outcome
  RefusalBudget budget_;
};

}  // namespace rvma
