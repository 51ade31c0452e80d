/// \file
/// The memory channels behind the host's PCIe port: what an inbound write waits for before it becomes visible.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/units.hpp"
#include "host/config.hpp"

namespace rvma {

/// Channels interleaved by 256 B, each a serialiser.
class MemoryChannels {
 public:
  static constexpr std::uint64_t kInterleaveBytes = 256;

  explicit MemoryChannels(const MemoryConfig& config)
      : channels_(config.channels.get(), Serializer{config.channel_rate.get()}) {}

  struct Access {
    Time wait;  ///< longest time that one of its channels was still busy for others after `arrival`
    Time busy;  ///< channel time that the access takes, averaged over the channels
  };
  /// Occupies the channels of [address, address + bytes) from `arrival` on.
  Access write(PhysicalAddress address, std::uint64_t bytes, Time arrival);

 private:
  void fall_out_of_step();

  std::vector<Serializer> channels_;
  /// The channels are all in the state of the first one, which alone is kept up to date: so a stream of accesses that
  /// load all channels alike costs one step each.
  bool in_step_ = true;
  Time all_free_at_;  ///< when the last channel is free
};

}  // namespace rvma
