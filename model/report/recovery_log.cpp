#include "report/recovery_log.hpp"

#include <algorithm>

namespace rvma {

void RecoveryLog::packet_sent(NodeId /*node*/, const Packet& packet, Time /*at*/) {
  if (packet.transport.type != PacketType::data || !packet.is_resent) return;
  ++resent_.packets;
  resent_.bytes += packet.wire_bytes;
}

void RecoveryLog::window_opened(NodeId node, Pid pid, WindowId slot, const Descriptor& call, Time /*at*/) {
  Window opened;
  opened.pid = pid;
  opened.mailbox = call.mailbox;
  windows_.insert_or_assign(WindowKey{node.value(), slot.value()}, std::move(opened));
}

/// Nobody can rewind it any more.
void RecoveryLog::window_closed(NodeId node, WindowId slot, const std::vector<BufferId>& /*returned*/, Time /*at*/) {
  windows_.erase(WindowKey{node.value(), slot.value()});
}

void RecoveryLog::message_bound(NodeId node, const MessageRef& message, WindowId slot, BufferId /*buffer*/, Epoch epoch,
                                std::uint64_t /*buffer_offset*/, std::uint64_t /*length*/, Time /*at*/) {
  const WindowKey key{node.value(), slot.value()};
  const auto found = windows_.find(key);
  if (found == windows_.end()) return;
  std::vector<NodeId>& senders = found->second.senders;
  if (std::find(senders.begin(), senders.end(), message.source) == senders.end()) senders.push_back(message.source);
  found->second.written[epoch.value()];
  bound_.insert_or_assign(MessageKey(node, message), Bound{key, epoch.value()});
}

void RecoveryLog::packet_placed(NodeId node, const PlacedPacket& packet, std::uint64_t /*buffer_offset*/, Time /*at*/) {
  const auto message = bound_.find(MessageKey(node, packet.message));
  if (message == bound_.end()) return;
  const auto window = windows_.find(message->second.window);
  if (window == windows_.end()) return;
  Sum& sum = window->second.written[message->second.epoch];
  ++sum.packets;
  sum.bytes += packet.payload_length;
}

void RecoveryLog::message_counted(NodeId node, const MessageRef& message, BufferId /*buffer*/, Time /*at*/) {
  bound_.erase(MessageKey(node, message));
}

void RecoveryLog::completion_written(NodeId node, const Completion& completion, Time /*at*/, Time visible) {
  const auto found = windows_.find(WindowKey{node.value(), completion.window.value()});
  if (found == windows_.end()) return;
  Window& window = found->second;
  if (completion.epoch.value() >= history_) {
    window.written.erase(window.written.begin(), window.written.lower_bound(completion.epoch.value() - history_ + 1));
  }
  if (!window.recovery) return;
  Recovery& recovery = recoveries_[*window.recovery];
  if (recovery.end.is_never()) return;  // an earlier epoch's: decided before the rewind
  if (completion.epoch == recovery.epoch) recovery.first = visible;
  if (completion.epoch != recovery.interrupted) return;
  recovery.caught_up = visible;
  take_resent(recovery);
  window.recovery.reset();
}

/// They have held the count at the beginning so far.
void RecoveryLog::take_resent(Recovery& recovery) const {
  recovery.resent_packets = resent_.packets - recovery.resent_packets;
  recovery.resent_bytes = resent_.bytes - recovery.resent_bytes;
}

void RecoveryLog::finish() {
  for (Recovery& recovery : recoveries_) {
    if (recovery.caught_up.is_never()) take_resent(recovery);
  }
}

void RecoveryLog::window_rewinding(NodeId node, WindowId slot, Time at) {
  const auto found = windows_.find(WindowKey{node.value(), slot.value()});
  if (found == windows_.end()) return;
  Window& window = found->second;
  Recovery recovery;
  recovery.node = node;
  recovery.pid = window.pid;
  recovery.mailbox = window.mailbox;
  recovery.begin = at;
  recovery.crash = last_crash_of(window.senders);
  const Sum& before = recovery.crash ? resent_before_[*recovery.crash] : resent_;
  recovery.resent_packets = before.packets;
  recovery.resent_bytes = before.bytes;
  window.recovery = recoveries_.size();
  recoveries_.push_back(recovery);
}

void RecoveryLog::window_rewound(NodeId node, WindowId slot, Epoch epoch, const std::vector<RewoundBuffer>& /*buffers*/,
                                 Time at) {
  const auto found = windows_.find(WindowKey{node.value(), slot.value()});
  if (found == windows_.end() || !found->second.recovery) return;
  Recovery& recovery = recoveries_[*found->second.recovery];
  std::map<std::uint64_t, Sum>& written = found->second.written;
  recovery.end = at;
  recovery.epoch = epoch;
  recovery.interrupted = epoch;
  const auto first = written.lower_bound(epoch.value());
  for (auto lost = first; lost != written.end(); ++lost) {
    recovery.interrupted = Epoch{lost->first};
    recovery.lost_packets += lost->second.packets;
    recovery.lost_bytes += lost->second.bytes;
  }
  written.erase(first, written.end());
}

std::optional<std::size_t> RecoveryLog::last_crash_of(const std::vector<NodeId>& nodes) const {
  for (std::size_t i = crashes_.size(); i > 0; --i) {
    if (std::find(nodes.begin(), nodes.end(), crashes_[i - 1].node) != nodes.end()) return i - 1;
  }
  return std::nullopt;
}

void RecoveryLog::node_crashed(NodeId node, Time at) {
  crashes_.push_back({node, at});
  resent_before_.push_back(resent_);
  // Its windows are gone.
  windows_.erase(windows_.lower_bound(WindowKey{node.value(), 0}),
                 windows_.lower_bound(WindowKey{node.value() + 1, 0}));
}

void RecoveryLog::node_restarted(NodeId node, std::uint32_t /*incarnation*/, Time at) {
  for (std::size_t i = crashes_.size(); i > 0; --i) {
    if (!(crashes_[i - 1].node == node)) continue;
    crashes_[i - 1].restart = at;
    return;
  }
}

}  // namespace rvma
