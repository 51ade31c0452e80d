/// \file
/// Hooks through which results, checks and traces see a run; nothing in the model depends on them. Every call states
/// what the unit *claims*; the scoreboard (report/scoreboard) holds each claim against the trace and memory.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/interfaces.hpp"

namespace rvma {

class NicObserver {
 public:
  virtual ~NicObserver() = default;

  // At the sender. A put is named by the address of its local completion word, unique among the node's open puts.
  /// The put goes out as message `message` (again for each retry: a new message). At `at`.
  virtual void message_opened(NodeId /*node*/, PhysicalAddress /*put*/, NodeId /*destination*/,
                              const MessageRef& /*message*/, Time /*at*/) {}
  /// The put has ended; its local completion word is being written.
  virtual void put_ended(NodeId /*node*/, PhysicalAddress /*put*/, Outcome /*outcome*/, std::uint32_t /*tries*/,
                         Time /*at*/) {}
  /// A get has opened its window for the answer, with one buffer; `window` names mailbox, key and buffer. The get is
  /// named by the address of its completion word, as a put is.
  virtual void get_opened(NodeId /*node*/, Pid /*pid*/, WindowId /*slot*/, BufferId /*buffer*/,
                          const Descriptor& /*window*/, Time /*at*/) {}
  /// That window is going to close without the answer: what is bound to it is cut off, without message_cut_off().
  virtual void get_given_up(NodeId /*node*/, WindowId /*slot*/, Time /*at*/) {}
  /// At the target: the request was accepted, and reads `buffer`.
  virtual void get_accepted(NodeId /*node*/, const MessageRef& /*request*/, BufferId /*buffer*/, Time /*at*/) {}
  /// At the target: the answer goes out as message `message` (again for each retry) to the asker's window.
  virtual void answer_opened(NodeId /*node*/, NodeId /*destination*/, Pid /*pid*/, Mailbox /*mailbox*/,
                             const MessageRef& /*message*/, Time /*at*/) {}
  virtual void packet_sent(NodeId /*node*/, const Packet& /*packet*/, Time /*at*/) {}

  // At the receiver, in the order of the one deciding place.
  virtual void packet_arrived(NodeId /*node*/, const Packet& /*packet*/, Time /*at*/) {}
  /// Dropped or ignored before any counter; `why` is a literal ("crc", "duplicate", "stale", "closed", "mismatch").
  virtual void packet_ignored(NodeId /*node*/, const Packet& /*packet*/, const char* /*why*/, Time /*at*/) {}
  virtual void message_refused(NodeId /*node*/, const MessageRef& /*message*/, Outcome /*reason*/, Time /*at*/) {}
  /// The message is bound (in a catch-all window behind a record of kRecordBytes): its bytes belong at
  /// `buffer_offset`.. of buffer `buffer`, epoch `epoch` of the window.
  virtual void message_bound(NodeId /*node*/, const MessageRef& /*message*/, WindowId /*slot*/, BufferId /*buffer*/,
                             Epoch /*epoch*/, std::uint64_t /*buffer_offset*/, std::uint64_t /*length*/, Time /*at*/) {}
  /// The packet's payload has entered the posted channel (order of calls = order of writes).
  virtual void packet_placed(NodeId /*node*/, const PlacedPacket& /*packet*/, std::uint64_t /*buffer_offset*/,
                             Time /*at*/) {}
  /// The record of a message in a catch-all window has entered the posted channel, at `buffer_offset`.
  virtual void record_placed(NodeId /*node*/, const PlacedPacket& /*packet*/, std::uint64_t /*buffer_offset*/,
                             Time /*at*/) {}
  /// All bytes (or the op) of the message have been counted into `buffer`.
  virtual void message_counted(NodeId /*node*/, const MessageRef& /*message*/, BufferId /*buffer*/, Time /*at*/) {}
  /// The bound message will never be whole: what it reserved and delivered is taken back. Packets of it that are on
  /// their way to memory still land. `is_broken`: `buffer` is retired, and will never complete by itself.
  virtual void message_cut_off(NodeId /*node*/, const MessageRef& /*message*/, BufferId /*buffer*/, bool /*is_broken*/,
                               Time /*at*/) {}
  /// The completion word of this epoch has entered the posted channel at `at` and is visible at `visible`.
  virtual void completion_written(NodeId /*node*/, const Completion& /*completion*/, Time /*at*/, Time /*visible*/) {}

  // Calls, as the NIC executed them.
  virtual void window_opened(NodeId /*node*/, Pid /*pid*/, WindowId /*slot*/, const Descriptor& /*call*/, Time /*at*/) {
  }
  virtual void buffer_posted(NodeId /*node*/, Pid /*pid*/, WindowId /*slot*/, BufferId /*buffer*/,
                             const Descriptor& /*call*/, Time /*at*/) {}
  virtual void epoch_retired(NodeId /*node*/, WindowId /*slot*/, BufferId /*buffer*/, Epoch /*epoch*/, bool /*by_call*/,
                             Time /*at*/) {}
  /// A rewind has taken effect: every message that is bound to the window and not counted is cut off (without a call of
  /// message_cut_off()), and none will be bound until window_rewound(). Completions decided before are still written.
  virtual void window_rewinding(NodeId /*node*/, WindowId /*slot*/, Time /*at*/) {}
  /// The rewind is over: `buffers` stand at the front of the bucket, in order, as if just posted; the first has epoch
  /// `epoch`. Their words are zero, and what was on its way to them is visible.
  virtual void window_rewound(NodeId /*node*/, WindowId /*slot*/, Epoch /*epoch*/,
                              const std::vector<RewoundBuffer>& /*buffers*/, Time /*at*/) {}
  /// The node has lost power: its NIC knows nothing any more, its memory stays. It comes back, if it does, as a newer
  /// incarnation.
  virtual void node_crashed(NodeId /*node*/, Time /*at*/) {}
  virtual void node_restarted(NodeId /*node*/, std::uint32_t /*incarnation*/, Time /*at*/) {}
  virtual void window_closed(NodeId /*node*/, WindowId /*slot*/, const std::vector<BufferId>& /*returned*/,
                             Time /*at*/) {}
};

/// Hands each event to all its members; empty costs one test.
class ObserverList {
 public:
  void add(NicObserver& observer) { observers_.push_back(&observer); }
  bool empty() const { return observers_.empty(); }
  void clear() { observers_.clear(); }
  template <class Call>
  void tell(Call&& call) const {
    for (NicObserver* observer : observers_) call(*observer);
  }

 private:
  std::vector<NicObserver*> observers_;
};

}  // namespace rvma
