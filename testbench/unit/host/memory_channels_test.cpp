#include "host/memory_channels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.hpp"

namespace rvma {
namespace {

/// Every 256 B block on its own, to the channel that it belongs to.
MemoryChannels::Access block_by_block(std::vector<Serializer>& channels, std::uint64_t address, std::uint64_t bytes,
                                      Time arrival) {
  std::vector<std::uint64_t> share(channels.size(), 0);
  for (std::uint64_t at = address; at < address + bytes; ++at) {
    ++share[at / MemoryChannels::kInterleaveBytes % channels.size()];
  }
  MemoryChannels::Access access;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    if (share[i] == 0) continue;
    const Serializer::Slot slot = channels[i].occupy(share[i], arrival);
    access.wait = std::max(access.wait, slot.start - arrival);
    access.busy += slot.end - slot.start;
  }
  access.busy = Time::from_ps(access.busy.ps() / static_cast<std::int64_t>(channels.size()));
  return access;
}

// Accesses that load all channels alike, and others, with and without time to drain between them: the step for all
// channels at once may never show.
TEST(MemoryChannelsTest, AgreesWithChannelsKeptOneByOne) {
  for (const std::uint64_t rate : {38'400'000'000ULL, 38'399'999'997ULL}) {
    for (const std::uint32_t count : {1U, 3U, 8U}) {
      HostConfig config;
      config.memory.channels = count;
      config.memory.channel_rate = Rate::from_bits_per_s(8 * rate);
      MemoryChannels channels{config.memory};
      std::vector<Serializer> reference(count, Serializer{config.memory.channel_rate.get()});
      Random random{rate + count};
      Time now;
      for (int i = 0; i < 5'000; ++i) {
        const bool alike = random.below(4) != 0;
        const std::uint64_t stripe = std::uint64_t{256} * count;
        const std::uint64_t address = alike ? 256 * random.below(100) : random.below(100'000);
        const std::uint64_t bytes = alike ? stripe * (1 + random.below(3)) : 1 + random.below(5'000);
        const auto access = channels.write(PhysicalAddress{address}, bytes, now);
        const auto expected = block_by_block(reference, address, bytes, now);
        ASSERT_EQ(access.wait, expected.wait) << "access " << i << ", " << count << " channels, seed " << rate + count;
        ASSERT_EQ(access.busy, expected.busy) << "access " << i << ", " << count << " channels, seed " << rate + count;
        // Now and then long enough for all channels to be free.
        now += Time::from_ps(static_cast<std::int64_t>(random.below(10) == 0 ? 1'000'000 : random.below(20'000)));
      }
    }
  }
}

}  // namespace
}  // namespace rvma
