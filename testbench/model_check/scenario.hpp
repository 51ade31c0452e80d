/// \file
/// Vocabulary of the model check: what is put into one window, what may happen, and what can be seen of it. Neither the
/// reference's nor the model's: both are made to speak it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace rvma::check {

/// Bytes of a whole packet.
inline constexpr std::uint64_t kMtu = 64;
inline constexpr unsigned kMostMessages = 6;  ///< probes included
inline constexpr unsigned kMostPackets = 3;   ///< of a message
inline constexpr unsigned kMostBuffers = 3;
inline constexpr unsigned kSenders = 2;
inline constexpr unsigned kMostNumbers = 24;  ///< sequence numbers, or message ids, of a sender
inline constexpr int kNowhere = -1;

struct MessageSpec {
  std::uint64_t length = 0;  ///< bytes
  std::uint64_t offset = 0;  ///< bytes
  std::uint32_t key = 0;
  bool mailbox_exists = true;
  unsigned sender = 0;

  unsigned packets() const { return length == 0 ? 1 : static_cast<unsigned>((length + kMtu - 1) / kMtu); }
  std::uint64_t packet_bytes(unsigned packet) const {
    const std::uint64_t left = length - packet * kMtu;
    return left < kMtu ? left : kMtu;
  }
};

enum class Act : std::uint8_t {
  arrive,          ///< packet `packet` of message `message` is decided about for the first time
  again,           ///< the fabric has made a second copy of a packet that has arrived
  resend,          ///< its acknowledgement was lost: the sender sends a packet again that was disposed of
  land,            ///< its payload is in the posted channel; it is acknowledged and counted
  hear,            ///< an acknowledgement reaches sender `message`: it closes what it knows to have ended
  inc_epoch,       ///< host call
  rewind,          ///< host call, n = `packet`
  finish_rewind,   ///< all that was on its way is visible, the words are zero
  close,           ///< host call
  new_generation,  ///< sender `message` gives up, and sends what it has not begun to send in a new generation
  silence          ///< the receiver has not heard of sender `message` for too long
};

struct Action {
  Act act = Act::arrive;
  std::uint8_t message = 0;
  std::uint8_t packet = 0;
};

struct Scenario {
  std::string name;
  bool counts_ops = false;
  std::uint64_t threshold = 1;
  bool is_managed = false;
  bool is_one_time = false;
  std::uint32_t key = 0;
  std::vector<std::uint64_t> buffers;  ///< sizes, bytes, in the order of posting
  std::vector<MessageSpec> messages;   ///< that the exploration sends
  unsigned binding_entries = 8;
  /// Of these one at most happens, at any point.
  std::vector<Action> events;
  bool hears = true;           ///< acknowledgements reach the senders at any point (else never)
  bool table_forgets = false;  ///< lookups miss once the window is gone (else they still name its old slot)
};

/// A packet as it arrives: who says what.
struct Arrival {
  unsigned sender = 0;
  std::uint32_t generation = 1;
  std::uint32_t sequence = 0;
  std::uint32_t id = 0;
  std::uint32_t oldest_open = 0;
};

enum class Reason : std::uint8_t { none, ok, no_mailbox, closed, bad_key, stale, no_buffer, bounds, busy };
enum class CallStatus : std::uint8_t { none, pending, ok, closed, no_window, no_buffer, history };

struct Epoch3 {
  std::uint64_t epoch = 0;
  int buffer = kNowhere;
  std::uint64_t length = 0;
  bool operator==(const Epoch3& other) const {
    return epoch == other.epoch && buffer == other.buffer && length == other.length;
  }
};

enum class Fate : std::uint8_t {
  none,
  placed,
  refused,    ///< first packet of its message, `reason`
  discarded,  ///< a later packet of a refused or cut-off message
  ignored     ///< duplicate, out of date, or of a message that is closed
};

/// What one action did.
struct Observed {
  Fate fate = Fate::none;
  Reason reason = Reason::none;
  int buffer = kNowhere;     ///< placed: where
  std::uint64_t offset = 0;  ///< placed: of the packet's first byte in the buffer
  std::vector<Epoch3> completions;
  CallStatus call = CallStatus::none;  ///< of the call that the action made, or that it let end
  std::uint64_t call_value = 0;
  std::vector<int> returned;  ///< buffers that close gave back without completion, at once
  bool operator==(const Observed& other) const {
    return fate == other.fate && reason == other.reason && buffer == other.buffer && offset == other.offset &&
           completions == other.completions && call == other.call && call_value == other.call_value &&
           returned == other.returned;
  }
};

/// What can be seen after it: by the host, and by a sender that gets an acknowledgement now.
struct Snapshot {
  bool window_exists = true;
  bool is_rewind_drained = false;                  ///< a rewind waits for nothing but its own zeros
  std::uint64_t completed = 0;                     ///< get_epoch
  std::vector<Epoch3> history;                     ///< get_buf_ptrs of all that is remembered, newest first
  std::array<std::uint64_t, kMostBuffers> word{};  ///< 1 + length that the completion word tells; 0: no completion
  std::array<std::array<bool, kMostNumbers>, kSenders> disposed{};    ///< by sequence number of the latest generation
  std::array<std::array<Reason, kMostNumbers>, kSenders> outcomes{};  ///< by its message id; none: not told
  bool operator==(const Snapshot& other) const {
    return window_exists == other.window_exists && is_rewind_drained == other.is_rewind_drained &&
           completed == other.completed && history == other.history && word == other.word &&
           disposed == other.disposed && outcomes == other.outcomes;
  }
};

}  // namespace rvma::check
