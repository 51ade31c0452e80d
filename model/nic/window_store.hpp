/// \file
/// Windows, buckets, bindings and counters: everything that is decided about a window, as plain C++ with no time in it.
/// The one place where decisions are made: each packet and call is wholly before or after any other, in the order in
/// which the RNIC's units call these functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/ids.hpp"
#include "base/outcome.hpp"
#include "fabric/packet.hpp"
#include "nic/config.hpp"
#include "nic/descriptor.hpp"
#include "nic/interfaces.hpp"

namespace rvma {

/// Where a bound packet's payload goes, relative to its buffer.
struct BufferPlace {
  BufferId buffer;
  std::uint64_t offset = 0;  ///< of the packet's first byte within the buffer
  bool has_binding = false;  ///< the message has an entry (more than one packet)
  std::uint32_t binding = 0;
};

/// Answer to the first packet of a message.
struct BindAnswer {
  Outcome outcome = Outcome::pending;  ///< pending: bound, see `place`; else refused
  BufferPlace place;
  SlotId slot;
  Epoch epoch;
  std::uint64_t message_offset = 0;  ///< of the message's first byte within the buffer
  bool retired = false;              ///< this binding (or a managed misfit) retired `retired_buffer`
  BufferId retired_buffer;
  Epoch retired_epoch;
};

/// What a posted buffer needs for page translation and completion.
struct BufferDescriptor {
  Pid pid;
  VirtualAddress head;
  std::uint64_t size = 0;
  PhysicalAddress page_list;
  bool single_page = false;
  PhysicalAddress word;
};

class WindowStore {
 public:
  explicit WindowStore(const NicConfig& config);
  ~WindowStore();
  WindowStore(const WindowStore&) = delete;
  WindowStore& operator=(const WindowStore&) = delete;

  // -- Calls (semantics 2 and 5). Table commands are the caller's job: a slot is allocated, inserted, then opened.
  /// Reserves a context slot. Errors: exists, full, bad_argument, unsupported (catch-all, for now).
  struct SlotAnswer {
    Status status = Status::ok;
    SlotId slot;
  };
  SlotAnswer allocate_window(const Descriptor& call, Pid pid);
  /// The table knows the slot now: the window is open.
  void open_window(SlotId slot);
  /// The table refused the insertion.
  void abandon_window(SlotId slot);
  /// Window of (pid, mailbox) as calls see it.
  SlotAnswer find_window(Pid pid, Mailbox mailbox) const;

  struct PostAnswer {
    Status status = Status::ok;
    BufferId buffer;
  };
  PostAnswer post_buffer(SlotId slot, const Descriptor& call);
  /// Retires the active buffer; its completion (now or later) comes out of take_completions().
  Status inc_epoch(SlotId slot, BufferId& retired, Epoch& epoch);
  std::uint64_t completed_epochs(SlotId slot) const;
  struct CompletedBuffer {
    VirtualAddress head;
    std::uint64_t length = 0;
    Epoch epoch;
  };
  /// Newest first; `history` if n exceeds what is remembered.
  Status completed_buffers(SlotId slot, std::uint64_t n, std::vector<CompletedBuffer>& out) const;
  /// From now on the mailbox refuses `closed`; the active buffer, if nothing is bound to it, and unused ones return.
  /// `drained` runs when bound messages have ended (perhaps at once); then erase the table entry and release_window().
  void begin_close(SlotId slot, std::vector<BufferId>& returned, std::function<void()> drained);
  void release_window(SlotId slot);
  /// One-time windows whose buffer has completed: erase their table entry, then release_window(). Empties the list.
  void take_expired(std::vector<SlotId>& slots);

  // -- Packets (semantics 3)
  /// First packet of a message: table answer, key, binding, placement, bounds, in the order of the refusal reasons.
  BindAnswer bind(NodeId source, const DataHeader& header, const LookupResult& lookup);
  /// Later packet of a bound message. False: it contradicts the binding or was placed already, and changes nothing.
  bool place(std::uint32_t binding, NodeId source, const DataHeader& header, BufferPlace& place);
  const BufferDescriptor& buffer(BufferId buffer) const;

  /// The packet's bytes are in the posted channel. True: its message has been counted whole.
  bool count(const PlacedPacket& packet);
  /// Completions that have become due, in epoch order of each window; empties the list.
  void take_completions(std::vector<Completion>& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rvma
