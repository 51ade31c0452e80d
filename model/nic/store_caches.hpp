/// \file
/// Book-keeping between the window store, which decides, and the caches, which know what lies on the NIC.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/component.hpp"
#include "nic/context_cache.hpp"
#include "nic/interfaces.hpp"
#include "nic/spilled_cache.hpp"
#include "nic/window_store.hpp"

namespace rvma {

/// Bytes of a buffer descriptor in host memory: head, size, page list, completion pointer, posting, owner, next; and of
/// a counter: reserved, delivered, tail, unfinished, epoch, flags, and what its completion needs of the descriptor.
inline constexpr std::uint32_t kBufferEntryBytes = 64;
inline constexpr std::uint32_t kCounterEntryBytes = 64;
/// Head of a packet-delivery context, of either direction: numbers, incarnations, timers. The rest depends on what is
/// in flight (ReceiveContext, TransmitContext: rest_bytes()).
inline constexpr std::uint32_t kPeerHeadBytes = 64;

/// A posted buffer's descriptor takes a place on the NIC if one is free, or if the next message binds to it; else it is
/// written to host memory. It is read ahead when the buffer before it retires. A counter is born on the NIC.
class StoreCaches : public StoreListener {
 public:
  /// All of them outlive this.
  StoreCaches(SpilledCache& descriptors, SpilledCache& counters, ContextCache& contexts)
      : descriptors_(descriptors), counters_(counters), contexts_(contexts) {}

  void descriptor_added(BufferId buffer, bool is_active) override {
    descriptors_.add(buffer.value(), is_active ? SpilledCache::Birth::on_chip : SpilledCache::Birth::if_it_fits);
  }
  void descriptor_removed(BufferId buffer) override { descriptors_.remove(buffer.value()); }
  void buffer_is_next(BufferId buffer) override { descriptors_.prefetch(buffer.value()); }
  void counter_added(BufferId buffer) override { counters_.add(buffer.value()); }
  void counter_changed(BufferId buffer) override { counters_.changed(buffer.value()); }
  void counter_ends(BufferId buffer) override { counters_.prefetch(buffer.value()); }
  void counter_removed(BufferId buffer) override { counters_.remove(buffer.value()); }
  void window_changed(WindowId window) override { contexts_.changed(window); }

 private:
  SpilledCache& descriptors_;
  SpilledCache& counters_;
  ContextCache& contexts_;
};

/// Before the counter unit: counts whose counter lies in host memory wait for it, those of one buffer in order; others
/// overtake.
class CounterFetch : public sc_core::sc_object, public CounterIf {
 public:
  /// Both outlive this.
  CounterFetch(SpilledCache& counters, CounterIf& unit) : counters_(counters), unit_(unit) {}

  void count(PlacedPacket packet, Time at) override {
    if (counters_.lookup(packet.buffer.value())) {
      hand_on(std::move(packet), at);
      return;
    }
    packet.payload.reset();
    counters_.fetch(packet.buffer.value(), SpilledCache::Wait::to_count,
                    [this, packet, at] { hand_on(packet, std::max(at, SimContext::now())); });
  }

 private:
  /// The unit takes counts in the order of their times.
  void hand_on(PlacedPacket packet, Time at) {
    latest_ = std::max(latest_, at);
    unit_.count(std::move(packet), latest_);
  }

  SpilledCache& counters_;
  CounterIf& unit_;
  Time latest_;
};

}  // namespace rvma
