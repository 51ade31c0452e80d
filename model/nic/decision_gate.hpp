/// \file
/// What a data packet needs on the NIC before it can be decided about, and how it waits for what lies in host memory.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/stats.hpp"
#include "fabric/packet.hpp"
#include "nic/context_cache.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "nic/spilled_cache.hpp"
#include "nic/window_store.hpp"

namespace rvma {

/// A packet on its way to its decision.
struct PendingDecision {
  PacketPtr packet;
  WindowLookup lookup;
  Cycles ready;                    ///< from which it may be decided
  bool is_busy = false;            ///< refused, if it is the first of its message: too many reads are outstanding
  bool waited_for_window = false;  ///< its context has been looked for in host memory
  bool is_pinned = false;          ///< the context stays until the decision
};

/// One after another: the delivery context of the packet's source; the context of its window, if it is the first of its
/// message; the descriptors and counters of the buffers that decide about it (the first of a message), or the
/// descriptor of the buffer that its message is bound to. Packets wait in three ways:
///
/// - for a delivery context, in the order in which they came from the source;
/// - for a window's context, in the order in which they came for the mailbox; beyond nic.windows.misses as busy;
/// - for descriptors and counters, the first ones of messages in one line a window, so that they are decided in the
///   order in which they came; later packets each on its own. First ones are let through as busy if a read could not
///   start at once.
///
/// Other packets overtake. What a packet has waited for it has got, even if the entry leaves the NIC again.
class DecisionGate {
 public:
  /// What is not set is never waited for.
  struct Surroundings {
    DeliveryIf* delivery = nullptr;
    ReceiveContextsIf* sources = nullptr;
    ContextIf* windows = nullptr;
    SpilledCache* descriptors = nullptr;
    SpilledCache* counters = nullptr;
  };
  /// `store` outlives the gate; `wake` runs when a packet that waited may try again: has_ready().
  DecisionGate(const WindowStore& store, std::function<void()> wake);

  /// Before the first packet.
  void surround(const Surroundings& surroundings) { around_ = surroundings; }

  /// Whether the packet may be decided now; if not, it is kept, and will be ready at some time.
  bool pass(PendingDecision& next);
  bool has_ready() const { return !ready_.empty(); }
  Cycles ready_from() { return ready_.front().ready; }
  /// A packet that has waited; to be passed again.
  PendingDecision take_ready();
  /// After the decision.
  void decided(const PendingDecision& packet);

  std::size_t held() const { return held_.size(); }

 private:
  using Ticket = std::uint64_t;
  struct Part {
    SpilledCache* cache;
    std::uint32_t entry;
    friend bool operator==(const Part& a, const Part& b) { return a.cache == b.cache && a.entry == b.entry; }
  };
  /// What a packet has been through, while it is held and until it passes.
  struct Progress {
    bool has_source = false;
    bool has_window = false;
    std::optional<WindowId> line;  ///< the line of packets that it stands in
    std::vector<Part> got;         ///< descriptors and counters
    std::uint32_t pending = 0;     ///< being read
  };
  struct Held {
    PendingDecision packet;
    Progress progress;
  };
  struct Ready {
    Ticket ticket;
    Cycles ready;
  };

  Ticket hold(PendingDecision& packet);
  void make_ready(Ticket ticket);
  bool waits_for_source(PendingDecision& packet);
  bool waits_for_window(PendingDecision& packet);
  bool waits_for_buffers(PendingDecision& packet);
  bool waits_for_bound_buffer(PendingDecision& packet, BufferId buffer);
  void pin(PendingDecision& packet, WindowId window);
  Ticket fetch(PendingDecision& packet, const std::vector<Part>& missing);
  void leave_line();
  void window_found(Ticket ticket, ContextIf::Fetched outcome, WindowId window);

  const WindowStore& store_;
  std::function<void()> wake_;
  Surroundings around_;
  std::unordered_map<Ticket, Held> held_;
  Ticket last_ticket_ = 0;
  /// First packets of messages that wait for buffers of one window; the front one is being seen to.
  std::unordered_map<std::uint32_t, std::deque<Ticket>> lines_;
  FifoRing<Ready> ready_;
  Progress progress_;  ///< of the packet that passes
};

}  // namespace rvma
