/// \file
/// Keys that one protocol alone reads: a user who sets one for the other is warned (cli/no_effect.hpp).
#pragma once

#include <array>
#include <string_view>

namespace rvma {

/// A key; or, with a dot at its end, a section.
using KeyPrefix = std::string_view;

/// What belongs to units that RdmaNic does not build: translation table, caches of windows, buffers, counters and
/// peers, bindings, get unit. The rest of their sections it reads: nic.counters.latency is its receive unit's,
/// nic.get.timeout its work unit's. (The software's WindowStore has a configuration of its own, without these bounds:
/// provider.cpp.) And nic.command.mode: the software always writes inline (platform/system.cpp).
inline constexpr std::array<KeyPrefix, 14> kNotReadByRdma{
    "nic.table.",         "nic.windows.",        "nic.buffers.",        "nic.counters.on_chip",
    "nic.counters.spill", "nic.counters.policy", "nic.counters.misses", "nic.counters.forwarding",
    "nic.counters.queue", "nic.binding.",        "nic.peers.",          "nic.get.open",
    "nic.get.queue",      "nic.command.mode"};

inline constexpr std::array<KeyPrefix, 1> kNotReadByRvma{"rdma."};

}  // namespace rvma
