#include "nic/spill_area.hpp"

#include "nic/context_cache.hpp"
#include "nic/delivery.hpp"
#include "nic/store_caches.hpp"
#include "nic/transmit_context.hpp"

namespace rvma {
namespace {

/// Entries that a region has addresses for.
constexpr std::uint64_t kMostEntries = 1ULL << 24U;

}  // namespace

SpillArea SpillArea::at(PhysicalAddress base, const NicConfig& config) {
  const std::uint32_t window = config.reliability.window;
  const std::uint32_t messages = config.reliability.messages;
  SpillArea area;
  const auto region = [&](std::uint64_t stride, std::uint64_t entries) {
    const Region made{PhysicalAddress{base.value() + area.bytes}, stride};
    area.bytes += stride * entries;
    return made;
  };
  area.contexts = region(kContextBytes, kMostEntries);
  area.buckets = region(kTableBucketBytes, kTableBuckets);
  area.descriptors = region(kBufferEntryBytes, kMostEntries);
  area.counters = region(kCounterEntryBytes, kMostEntries);
  area.receive_contexts = region(kPeerHeadBytes + ReceiveContext::most_rest_bytes(window, messages), kMostEntries);
  area.transmit_contexts = region(kPeerHeadBytes + TransmitContext::most_rest_bytes(window, messages), kMostEntries);
  return area;
}

}  // namespace rvma
