/// \file
/// What crashes and the recoveries from them cost: for `recovery` of stats.json and the summary.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "nic/observer.hpp"
#include "report/message_key.hpp"

namespace rvma {

/// A node that lost power.
struct NodeCrash {
  NodeId node;
  Time at;
  Time restart = Time::max();  ///< "never": it stays down
};

/// A window that was rewound, from the crash that made it necessary until what was lost stands again.
struct Recovery {
  NodeId node;
  Pid pid;
  Mailbox mailbox;
  /// In RecoveryLog::crashes(): the last crash of a node that had sent to the window. None: a rewind without a crash.
  std::optional<std::size_t> crash;
  Time begin;                      ///< of the rewind: it took effect
  Time end = Time::max();          ///< of the rewind: the window takes messages again; "never": the run ended first
  Epoch epoch;                     ///< first one that has to come again
  Epoch interrupted;               ///< last one that had got anything before the rewind
  Time first = Time::max();        ///< `epoch` is complete and visible again
  Time caught_up = Time::max();    ///< so is `interrupted`: from now on the window holds more than before
  std::uint64_t lost_packets = 0;  ///< had been written to the window's buffers, and were taken back
  std::uint64_t lost_bytes = 0;    ///< their payload
  /// Sent again by all NICs from the crash (else the rewind) until caught_up, or the end of the run.
  std::uint64_t resent_packets = 0;
  std::uint64_t resent_bytes = 0;  ///< on the link
};

/// Watches all NICs. Keeps what was written to each window by epoch, so it is meant for runs in which nodes crash.
class RecoveryLog : public NicObserver {
 public:
  /// `history`: completed epochs of a window that a rewind can take back.
  explicit RecoveryLog(std::uint32_t history) : history_(history) {}
  /// The run is over.
  void finish();
  const std::vector<NodeCrash>& crashes() const { return crashes_; }
  /// In order of the rewinds.
  const std::vector<Recovery>& recoveries() const { return recoveries_; }

  void packet_sent(NodeId node, const Packet& packet, Time at) override;
  void window_opened(NodeId node, Pid pid, WindowId slot, const Descriptor& call, Time at) override;
  void window_closed(NodeId node, WindowId slot, const std::vector<BufferId>& returned, Time at) override;
  void message_bound(NodeId node, const MessageRef& message, WindowId slot, BufferId buffer, Epoch epoch,
                     std::uint64_t buffer_offset, std::uint64_t length, Time at) override;
  void packet_placed(NodeId node, const PlacedPacket& packet, std::uint64_t buffer_offset, Time at) override;
  void message_counted(NodeId node, const MessageRef& message, BufferId buffer, Time at) override;
  void completion_written(NodeId node, const Completion& completion, Time at, Time visible) override;
  void window_rewinding(NodeId node, WindowId slot, Time at) override;
  void window_rewound(NodeId node, WindowId slot, Epoch epoch, const std::vector<RewoundBuffer>& buffers,
                      Time at) override;
  void node_crashed(NodeId node, Time at) override;
  void node_restarted(NodeId node, std::uint32_t incarnation, Time at) override;

 private:
  struct Sum {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
  };
  struct Window {
    Pid pid;
    Mailbox mailbox;
    std::map<std::uint64_t, Sum> written;  ///< by epoch
    std::vector<NodeId> senders;           ///< of what was bound
    std::optional<std::size_t> recovery;   ///< that has begun, and has not caught up
  };
  using WindowKey = std::pair<std::uint32_t, std::uint32_t>;  ///< node, slot
  struct Bound {
    WindowKey window;
    std::uint64_t epoch = 0;
  };
  std::optional<std::size_t> last_crash_of(const std::vector<NodeId>& nodes) const;
  void take_resent(Recovery& recovery) const;

  const std::uint32_t history_;
  std::vector<NodeCrash> crashes_;
  std::vector<Sum> resent_before_;  ///< each crash
  std::vector<Recovery> recoveries_;
  std::map<WindowKey, Window> windows_;
  boost::unordered_flat_map<MessageKey, Bound> bound_;
  Sum resent_;
};

}  // namespace rvma
