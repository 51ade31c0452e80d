#include "fabric/link.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "fabric/wire.hpp"

namespace rvma {
namespace {

/// What a switch must have seen to choose an output: preamble to transport header.
constexpr std::uint32_t kRoutingHeaderBytes =
    kPreambleBytes + kEthernetHeaderBytes + kIpv4HeaderBytes + kUdpHeaderBytes + kTransportHeaderBytes;
constexpr std::size_t kCompactAt = 64;

}  // namespace

Link::Link(const LinkConfig& config, PacketSinkIf& far_end, const Buffer& buffer, FabricStats* totals)
    : far_end_(far_end),
      totals_(totals),
      latency_(config.latency),
      buffer_(buffer),
      serializer_(config.rate),
      channels_(buffer.channels, Channel{buffer.each.count()}) {
  header_time_ = serializer_.duration_of(kRoutingHeaderBytes);
}

Time Link::earliest_start(std::uint32_t channel, std::uint32_t wire_bytes, Time not_before) {
  return std::max({not_before, serializer_.free_at(), credit_at(channel, wire_bytes)});
}

Time Link::credit_at(std::uint32_t channel, std::uint32_t wire_bytes) {
  if (!buffer_.is_paid) return Time::zero();
  RVMA_ASSERT(wire_bytes <= buffer_.each.count(), "packet is longer than the buffer at the far end of the link");
  std::uint64_t credit = channels_[channel].credit_bytes;
  if (credit >= wire_bytes) return Time::zero();
  for (std::size_t i = first_return_; i < returns_.size(); ++i) {
    if (returns_[i].channel != channel) continue;
    credit += returns_[i].bytes;
    if (credit >= wire_bytes) return returns_[i].known;
  }
  channels_[channel].starved = true;
  return Time::max();
}

Time Link::send(PacketPtr packet, Time not_before) {
  packet->route = RouteState{};
  packet->route.entered = std::max(not_before, serializer_.free_at());
  return forward(std::move(packet), not_before);
}

Time Link::forward(PacketPtr packet, Time not_before) {
  const std::uint32_t bytes = packet->wire_bytes;
  RVMA_ASSERT(bytes > 0, "packet without its size on the link");
  const std::uint32_t channel = packet->route.channel;
  // 1. When the bit stream is free, and when credit is there.
  const Time free = std::max(not_before, serializer_.free_at());
  const Time start = earliest_start(channel, bytes, not_before);
  RVMA_ASSERT(!start.is_never(), "sent without credit");
  // 2. Occupy the link.
  const Serializer::Slot slot = serializer_.occupy(bytes, start);
  const Time arrival = slot.end + latency_;
  settle();
  // 3. Count.
  ++stats_.packets;
  stats_.wire_bytes += bytes;
  if (packet->transport.type == PacketType::data) stats_.payload_bytes += packet->data.payload_length;
  stats_.credit_stall_ns += start - free;
  stats_.wire.occupy(slot.end - slot.start, std::uint64_t{8} * bytes);
  if (totals_ != nullptr) {
    ++totals_->packet_hops;
    totals_->wire_bytes += bytes;
    totals_->credit_stall_ns += start - free;
  }
  if (!is_up_throughout(slot.start, arrival)) {
    // It never reaches the buffer, so it never costs its space.
    ++stats_.lost_down;
    if (totals_ != nullptr) {
      ++totals_->lost_down;
      totals_->losses.lose(*packet);
    }
    return slot.start;
  }
  // 4. Pay, and announce the arrival of the last bit.
  if (buffer_.is_paid) {
    RVMA_ASSERT(channels_[channel].credit_bytes >= bytes, "credit balance does not cover the packet");
    channels_[channel].credit_bytes -= bytes;
    outstanding_bytes_ += bytes;
  }
  packet->route.header_arrives = std::min(slot.start + header_time_ + latency_, arrival);
  far_end_.deliver(std::move(packet), arrival);
  return slot.start;
}

void Link::return_credit(std::uint32_t channel, std::uint32_t wire_bytes, Time at) {
  if (!buffer_.is_paid) return;
  outstanding_bytes_ -= wire_bytes;
  // 1. Into the list, by time; nearly always at its end.
  if (first_return_ >= kCompactAt && 2 * first_return_ >= returns_.size()) {
    returns_.erase(returns_.begin(), returns_.begin() + static_cast<std::ptrdiff_t>(first_return_));
    first_return_ = 0;
  }
  const CreditReturn entry{at + latency_, wire_bytes, channel};
  const auto first = returns_.begin() + static_cast<std::ptrdiff_t>(first_return_);
  auto place = returns_.end();
  while (place != first && entry.known < std::prev(place)->known) --place;
  if (place != first && std::prev(place)->known == entry.known && std::prev(place)->channel == channel) {
    std::prev(place)->bytes += wire_bytes;
  } else {
    returns_.insert(place, entry);
  }
  settle();
  // 2. A sender that knew of no way to go on asks again.
  if (!channels_[channel].starved) return;
  channels_[channel].starved = false;
  if (ready_) ready_();
}

void Link::settle() {
  // No later packet starts before the end of the last one.
  while (first_return_ < returns_.size() && returns_[first_return_].known <= serializer_.free_at()) {
    const CreditReturn& entry = returns_[first_return_++];
    Channel& channel = channels_[entry.channel];
    channel.credit_bytes += entry.bytes;
    RVMA_ASSERT(channel.credit_bytes <= buffer_.each.count(), "more credit returned than was used");
  }
  if (first_return_ == returns_.size()) {
    returns_.clear();
    first_return_ = 0;
  }
}

void Link::change_at(Time at, bool up) {
  RVMA_ASSERT(changes_.empty() || changes_.back().at <= at, "changes of a link out of order");
  changes_.push_back({at, up});
}

bool Link::is_up(Time at) const {
  bool up = true;
  for (const Change& change : changes_) {
    if (change.at > at) break;
    up = change.up;
  }
  return up;
}

bool Link::is_up_throughout(Time from, Time to) const {
  if (changes_.empty()) return true;
  if (!is_up(from)) return false;
  return std::none_of(changes_.begin(), changes_.end(),
                      [&](const Change& change) { return !change.up && change.at > from && change.at <= to; });
}

void Link::count_full(const Packet& packet) {
  ++stats_.lost_full;
  if (totals_ == nullptr) return;
  ++totals_->lost_full;
  totals_->losses.lose(packet);
}

}  // namespace rvma
