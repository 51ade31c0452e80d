/// \file
/// What the provider keeps. Private to provider*.cpp.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/slot_table.hpp"
#include "rdma/provider.hpp"

namespace rvma {

/// Number of the queue pair on which strangers are met, at process `pid`.
constexpr std::uint32_t management_queue_pair(Pid pid) { return RdmaState::kManagement | pid.value(); }
/// Longest piece in which the software's window store counts a message.
inline constexpr std::uint32_t kPieceBytes = 32768;

/// A queue pair to another rank, as one end sees it.
struct Provider::Connection {
  bool has_queue_pair = false;
  bool is_asked = false;
  bool is_ready = false;
  std::vector<ControlMessage> waiting;  ///< for the connection
  std::uint64_t last_place = 0;         ///< of a request in the queue pair's order
  std::set<std::uint64_t> open_places;  ///< of requests that have not ended
};

struct Provider::Put {
  bool open = false;
  Descriptor descriptor;
  std::uint32_t rank = 0;  ///< of the destination
  std::uint32_t tries = 0;
  std::uint32_t ticket = 0;
  std::uint32_t message = 0;  ///< number of the message that it goes out as
  bool has_message = false;   ///< which nobody has refused
  bool is_waiting = false;    ///< for the answer to its request
  Time asked;
  std::uint64_t place = 0;  ///< of its request in the queue pair's order; 0: it waits for the connection
  std::uint32_t era = 0;    ///< of the advertised buffer that it writes to; 0: none
  // A get: its window for the answer, and where the NIC puts it.
  WindowId window;
  std::uint32_t region = 0;  ///< key; 0: none
  Mailbox answer_mailbox;
  std::uint32_t answer_key = 0;
};

/// What one completion entry of a work request stands for.
struct Provider::Request {
  enum class Kind : std::uint8_t { control, write, read } kind = Kind::control;
  std::uint32_t put = 0;    ///< write, read
  PhysicalAddress message;  ///< control: its bytes
  std::uint32_t rank = 0;   ///< of the receiver
  ControlMessage said;      ///< control
  std::uint64_t place = 0;  ///< in the queue pair's order; 0: it has none
};

/// A granted message until it is counted.
struct Provider::Inbound {
  Pid pid;
  std::uint32_t rank = 0;  ///< of the sender
  MessageRef message;
  DataHeader header;
  BindAnswer bound;
  StageTimes left{};               ///< of the packet placed last
  std::uint64_t placed_bytes = 0;  ///< that checks have seen; the software cannot know
};

/// Where the rest of a message belongs whose completion was told early.
struct Provider::Late {
  MessageRef message;
  BufferId buffer;
  std::uint64_t offset = 0;   ///< of the message in the buffer
  std::uint64_t missing = 0;  ///< bytes still to come
};

/// A window whose buffers are advertised, or may be.
struct Provider::Advertising {
  WindowId window;
  Mailbox mailbox;
  std::uint64_t least = 0;  ///< bytes of a message that fills a buffer
  std::uint32_t key = 0;    ///< of the window
  bool is_managed = false;
  bool has_rank = false;
  std::uint32_t rank = 0;  ///< that sends to it
  bool is_shared = false;  ///< it is not what was thought: never advertised again
  std::deque<BufferId> unbound;
  std::size_t told = 0;               ///< of `unbound`: the sender knows of so many
  std::deque<std::uint32_t> tickets;  ///< advertised, and not heard of since
  std::uint32_t era = 0;
  std::uint32_t sent = 0;  ///< advertisements in this era
  // What was advertised last
  std::uint64_t last_head = 0;
  std::uint64_t last_size = 0;
  std::uint32_t last_region = 0;  ///< key; 0: nothing was
  std::uint64_t heard = 0;        ///< messages into buffers of this era
  bool is_revoking = false;
  bool is_answered = false;
  std::uint64_t used = 0;  ///< as the answer says
  std::vector<std::function<void()>> deferred;
};

/// What a sender knows of a mailbox.
struct Provider::Advertised {
  std::uint32_t era = 0;
  std::uint32_t revoked_era = 0;
  std::uint64_t used = 0;    ///< buffers of this era
  std::uint64_t failed = 0;  ///< of those: the write ended otherwise than ok
  std::deque<ControlMessage> buffers;
};

struct Provider::Process {
  Process(Provider& provider, Pid process_pid, Core& own_core, AddressSpace& own_space, WorkQueue::WriteMmio write,
          PhysicalAddress consumed)
      : pid(process_pid),
        core(own_core),
        space(own_space),
        queue(provider.memory_, consumed, provider.p_.nic.command, provider.page_bytes_, std::move(write)),
        wakeup(provider, "work", [&provider, this] { provider.run(*this); }) {}

  Pid pid;
  std::uint32_t rank = 0;
  Core& core;
  AddressSpace& space;
  PhysicalAddress driver_consumed;  ///< where the driver learns how many descriptors were taken
  std::uint64_t taken = 0;
  WorkQueue queue;
  Wakeup wakeup;
  // Work for the core
  FifoRing<Item> items;
  std::size_t calls = 0;    ///< descriptors among them
  bool is_at_work = false;  ///< on the first of them, until the wake-up
  Time waits_since;         ///< the first of them
  Time begins;              ///< work on it; in the future while the core computes
  Time cost;                ///< core time of it
  Time debt;                ///< core time of what was posted, not spent yet
  // Completion queue
  PhysicalAddress completion_queue;
  std::uint64_t next_entry = 0;
  bool is_watching = false;
  // Messages
  std::vector<PhysicalAddress> receives;  ///< buffers, by number
  SlotTable<Request> requests;
  std::uint32_t messages = 0;                                                         ///< numbered so far
  boost::unordered_flat_map<std::uint32_t, std::unique_ptr<Connection>> connections;  ///< by rank
  std::deque<Put> puts;
  /// Requests of others, by their rank and message: how many answers are owed, or have not ended yet.
  boost::unordered_flat_map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> owed;
  /// Of these: those whose puts have ended before they were answered.
  boost::unordered_flat_set<std::pair<std::uint32_t, std::uint32_t>> given_up;
  boost::unordered_flat_map<std::pair<std::uint32_t, std::uint64_t>, Advertised> advertised;  ///< by rank and mailbox
  /// Memory that is registered, or was when its buffer completed (rdma.registration_cache).
  struct Registered {
    std::uint32_t key = 0;
    std::uint64_t length = 0;  ///< bytes
    std::vector<PhysicalAddress> pages;
    bool is_posted = false;
    std::uint64_t last_use = 0;
  };
  boost::unordered_flat_map<std::uint64_t, Registered> registered;             ///< by address
  boost::unordered_flat_map<std::uint32_t, std::uint64_t> registered_address;  ///< by key
  std::uint64_t uses = 0;
  std::uint32_t idle_regions = 0;
  std::vector<std::uint32_t> free_puts;
};

}  // namespace rvma
