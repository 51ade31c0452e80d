#include "nic/payload_writer.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "nic/datapath.hpp"

namespace rvma {

PayloadWriter::PayloadWriter(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config,
                             NodeId node, const ObserverList& observers)
    : Component(name, context, config.clock),
      dma("dma"),
      delivery("delivery"),
      counter("counter"),
      credit("credit"),
      node_(node),
      observers_(observers),
      datapath_bytes_(static_cast<std::uint32_t>(config.datapath->count())) {
  this->context().stats().add(path(), stats_);
  this->context().stats().add_level(path(), "pending", stats_.pending,
                                    [this]() -> std::uint64_t { return pending_.size(); });
}

void PayloadWriter::place(PlacedPacket packet, const SegmentList& to, Cycles at) {
  // 1. The datapath takes the packet when it is free.
  const std::uint32_t bytes = packet.payload_length;
  const Cycles start = std::max(at, free_at_);
  free_at_ = start + datapath_cycles(bytes, datapath_bytes_);
  const Time start_time = clock().time_of(start);
  const Time free_time = clock().time_of(free_at_);
  if (start > at) stats_.wait_ns += start_time - clock().time_of(at);
  stats_.write.occupy(free_time - start_time, 8ULL * bytes);
  ++(packet.is_record ? stats_.records : stats_.packets);
  stats_.bytes += bytes;

  // 2. Without payload there is nothing to write: done in its cycle.
  const std::uint64_t tag = first_tag_ + pending_.size();
  DmaWrite write;
  write.payload = packet.payload;
  if (bytes == 0) {
    ++stats_.empty_packets;
    pending_.push(Pending{std::move(packet), start_time, start_time, start_time});
    finish();
    return;
  }

  // 3. Else the write starts with the first bytes; payload may pass other payload.
  pending_.push(Pending{std::move(packet), start_time, free_time, Time::max()});
  stats_.pending.observe(pending_.size());
  write.to = to;
  write.relaxed_ordering = true;
  write.tag = tag;
  dma->write(std::move(write), *this, start_time);
}

void PayloadWriter::dma_written(std::uint64_t tag, Time entered, Time /*visible*/) {
  RVMA_ASSERT(tag - first_tag_ < pending_.size(), "the DMA engine has finished a write that nobody asked for");
  Pending& pending = pending_[tag - first_tag_];
  stats_.channel_ns += entered - pending.start;
  pending.done = std::max(entered, pending.streamed);
  finish();
}

void PayloadWriter::dma_read_done(std::uint64_t /*tag*/) { RVMA_ASSERT(false, "the payload writer reads nothing"); }

void PayloadWriter::finish() {
  // What is told here may come back with the next packet's write; the outer call goes on with it.
  if (finishing_) return;
  finishing_ = true;
  while (!pending_.empty() && !pending_.front().done.is_never()) {
    // It leaves when it is done and the counters take it.
    last_done_ = std::max({last_done_, pending_.front().done, counter->room_at()});
    const Time at = last_done_;
    PlacedPacket packet = pending_.pop().packet;
    ++first_tag_;
    packet.left[static_cast<std::size_t>(Stage::dma_write)] = at;
    if (packet.is_record) {
      packet.payload.reset();
      observers_.tell([&](NicObserver& observer) { observer.record_placed(node_, packet, packet.buffer_offset, at); });
      counter->count(std::move(packet), at);
      continue;
    }
    // 4. The packet has left the input buffer; its number is acknowledged; its bytes count.
    if (credit.size() > 0) credit->return_credit(packet.wire_bytes, at);
    delivery->dispose(packet.message, packet.sequence, at);
    observers_.tell([&](NicObserver& observer) { observer.packet_placed(node_, packet, packet.buffer_offset, at); });
    packet.payload.reset();
    counter->count(std::move(packet), at);
  }
  finishing_ = false;
}

}  // namespace rvma
