#include "fabric/link.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace rvma {

Link::Link(const sc_core::sc_module_name& name, SimContext& context, const LinkConfig& config, PacketSinkIf& far_end,
           Bytes receiver_buffer, const std::string& stats_path)
    : sc_module(name),
      latency_(config.latency),
      far_end_(far_end),
      receiver_buffer_bytes_(receiver_buffer.count()),
      serializer_(config.rate),
      credit_bytes_(receiver_buffer.count()) {
  context.stats().add(stats_path, stats_);
}

Time Link::earliest_start(std::uint32_t wire_bytes, Time not_before) {
  RVMA_ASSERT(wire_bytes <= receiver_buffer_bytes_, "packet is longer than the buffer at the far end of the link");
  const Time start = credit_time(wire_bytes, std::max(not_before, serializer_.free_at()));
  starved_ = starved_ || start.is_never();
  return start;
}

Time Link::send(PacketPtr packet, Time not_before) {
  const std::uint32_t bytes = packet->wire_bytes;
  RVMA_ASSERT(bytes > 0, "packet without its size on the link");
  // 1. When the bit stream is free, and when credit is there.
  const Time free = std::max(not_before, serializer_.free_at());
  const Time start = earliest_start(bytes, not_before);
  RVMA_ASSERT(!start.is_never(), "sent without credit");
  // 2. Occupy the link and pay.
  const Serializer::Slot slot = serializer_.occupy(bytes, start);
  settle();
  RVMA_ASSERT(credit_bytes_ >= bytes, "credit balance does not cover the packet");
  credit_bytes_ -= bytes;
  // 3. Count, and announce the arrival of the last bit.
  ++stats_.packets;
  stats_.wire_bytes += bytes;
  if (packet->transport.type == PacketType::data) stats_.payload_bytes += packet->data.payload_length;
  stats_.credit_stall_ns += start - free;
  stats_.wire.occupy(slot.end - slot.start, std::uint64_t{8} * bytes);
  far_end_.deliver(std::move(packet), slot.end + latency_);
  return slot.start;
}

void Link::return_credit(std::uint32_t wire_bytes, Time at) {
  // 1. Into the list, by time; nearly always at its end.
  const CreditReturn entry{at + latency_, wire_bytes};
  auto place = returns_.end();
  while (place != returns_.begin() && entry.known < std::prev(place)->known) --place;
  if (place != returns_.begin() && std::prev(place)->known == entry.known) {
    std::prev(place)->bytes += wire_bytes;
  } else {
    returns_.insert(place, entry);
  }
  settle();
  // 2. A sender that knew of no way to go on asks again.
  if (!starved_) return;
  starved_ = false;
  if (ready_) ready_();
}

Time Link::credit_time(std::uint64_t bytes, Time from) const {
  std::uint64_t credit = credit_bytes_;
  if (credit >= bytes) return from;
  for (const CreditReturn& entry : returns_) {
    credit += entry.bytes;
    if (credit >= bytes) return std::max(from, entry.known);
  }
  return Time::max();
}

void Link::settle() {
  // No later packet starts before the end of the last one.
  while (!returns_.empty() && returns_.front().known <= serializer_.free_at()) {
    credit_bytes_ += returns_.front().bytes;
    returns_.pop_front();
  }
  RVMA_ASSERT(credit_bytes_ <= receiver_buffer_bytes_, "more credit returned than was used");
}

}  // namespace rvma
