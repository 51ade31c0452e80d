#include "report/packet_capture.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/component.hpp"
#include "fabric/wire.hpp"

namespace rvma {
namespace {

constexpr std::string_view kDamaged = "damaged on its way: shown with an inverted CRC";
constexpr std::string_view kSentAgain = "sent again";
constexpr std::string_view kTurnedRound = "to the own node: turned round before the link";

std::string_view comment_on(const Packet& packet, PcapngWriter::Direction direction) {
  if (direction == PcapngWriter::Direction::in && packet.corrupted) return kDamaged;
  if (packet.transport.source == packet.transport.destination) return kTurnedRound;
  if (direction == PcapngWriter::Direction::out && packet.is_resent) return kSentAgain;
  return {};
}

}  // namespace

PacketCapture::PacketCapture(std::ostream& out, const Options& options, std::uint32_t nodes, Rate link_rate)
    : writer_(out, "rvma"), options_(options), interface_of_(nodes, options.nodes.empty() ? 0 : kUnwatched) {
  for (const NodeId node : options.nodes) interface_of_.at(node.index()) = 0;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (interface_of_[node] == kUnwatched) continue;
    interface_of_[node] = static_cast<std::uint32_t>(seen_at_.size());
    PcapngWriter::Interface interface;
    interface.name = "node" + std::to_string(node);
    interface.description = "NIC of node " + std::to_string(node) + ": out at the first bit, in at the last";
    interface.ipv4 = ipv4_of(NodeId{node});
    interface.snap_bytes = options.snap_bytes;
    interface.bits_per_s = link_rate.bits_per_s();
    writer_.declare(interface);
    seen_at_.push_back(0);
  }
  kept_at_.resize(seen_at_.size());
}

void PacketCapture::packet_sent(NodeId node, const Packet& packet, Time at) {
  take(node, packet, at, PcapngWriter::Direction::out);
}

void PacketCapture::packet_arrived(NodeId node, const Packet& packet, Time at) {
  take(node, packet, at, PcapngWriter::Direction::in);
}

bool PacketCapture::is_later(const Waiting& a, const Waiting& b) {
  return a.packet.at == b.packet.at ? a.number > b.number : a.packet.at > b.packet.at;
}

void PacketCapture::take(NodeId node, const Packet& packet, Time at, PcapngWriter::Direction direction) {
  const std::uint32_t interface = interface_of_.at(node.index());
  if (interface == kUnwatched) return;
  // What is told later is for now or later: earlier packets have their final places.
  write_until(SimContext::now());
  Waiting waiting;
  waiting.number = seen_++;
  ++seen_at_[interface];
  if (kept_ >= options_.limit) return;
  std::vector<std::uint8_t>& frame = waiting.packet.kept;
  encode_frame(packet, frame);
  waiting.packet.interface = interface;
  waiting.packet.direction = direction;
  waiting.packet.at = at;
  waiting.packet.bytes = static_cast<std::uint32_t>(frame.size());
  waiting.packet.has_bad_crc = direction == PcapngWriter::Direction::in && packet.corrupted;
  waiting.packet.comment = comment_on(packet, direction);
  if (waiting.packet.has_bad_crc) {
    std::for_each(frame.end() - kCrcBytes, frame.end(), [](std::uint8_t& byte) { byte ^= 0xffU; });
  }
  if (frame.size() > options_.snap_bytes) frame.resize(options_.snap_bytes);
  waiting_.push_back(std::move(waiting));
  std::push_heap(waiting_.begin(), waiting_.end(), is_later);
}

/// Writes what is earlier than `end`.
void PacketCapture::write_until(Time end) {
  while (!waiting_.empty() && waiting_.front().packet.at < end) {
    if (kept_ >= options_.limit) {
      waiting_.clear();
      return;
    }
    std::pop_heap(waiting_.begin(), waiting_.end(), is_later);
    writer_.write(waiting_.back().packet);
    ++kept_;
    ++kept_at_[waiting_.back().packet.interface];
    waiting_.pop_back();
  }
}

void PacketCapture::finish(Time now, const std::string& remark) {
  write_until(Time::max());
  for (std::uint32_t interface = 0; interface < seen_at_.size(); ++interface) {
    writer_.write(interface, now, {seen_at_[interface], seen_at_[interface] - kept_at_[interface], remark});
  }
}

}  // namespace rvma
