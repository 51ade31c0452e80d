#include "host/memory_channels.hpp"

#include <algorithm>

namespace rvma {

MemoryChannels::Access MemoryChannels::write(PhysicalAddress address, std::uint64_t bytes, Time arrival) {
  const std::uint64_t channels = channels_.size();
  const std::uint64_t begin = address.value();
  const std::uint64_t end = begin + bytes;
  const std::uint64_t first_block = begin / kInterleaveBytes;
  const std::uint64_t last_block = (end - 1) / kInterleaveBytes;
  const std::uint64_t blocks = last_block - first_block + 1;
  Access access;
  const bool loads_all_alike = bytes % (channels * kInterleaveBytes) == 0 && begin % kInterleaveBytes == 0;
  if (loads_all_alike && (in_step_ || arrival > all_free_at_)) {
    in_step_ = true;
    const Serializer::Slot slot = channels_.front().occupy(bytes / channels, arrival);
    all_free_at_ = slot.end;
    return {slot.start - arrival, slot.end - slot.start};
  }
  fall_out_of_step();
  for (std::uint64_t i = 0; i < std::min(blocks, channels); ++i) {
    // All blocks of this channel at once: first_block + i, and every `channels`-th after it.
    const std::uint64_t mine = (blocks - i + channels - 1) / channels;
    std::uint64_t share = mine * kInterleaveBytes;
    if (i == 0) share -= begin - first_block * kInterleaveBytes;
    if ((blocks - 1) % channels == i) share -= (last_block + 1) * kInterleaveBytes - end;
    const Serializer::Slot slot = channels_[(first_block + i) % channels].occupy(share, arrival);
    access.wait = std::max(access.wait, slot.start - arrival);
    access.busy += slot.end - slot.start;
    all_free_at_ = std::max(all_free_at_, slot.end);
  }
  access.busy = Time::from_ps(access.busy.ps() / static_cast<std::int64_t>(channels));
  return access;
}

void MemoryChannels::fall_out_of_step() {
  if (!in_step_) return;
  for (Serializer& channel : channels_) channel = channels_.front();
  in_step_ = false;
}

}  // namespace rvma
