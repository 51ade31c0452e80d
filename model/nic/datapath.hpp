/// \file
/// Occupancy of the NIC's datapath.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.hpp"

namespace rvma {

/// Cycles for which `bytes` occupy a datapath of `bytes_per_cycle`: a packet without payload takes one too.
constexpr Cycles datapath_cycles(std::uint32_t bytes, std::uint32_t bytes_per_cycle) {
  return Cycles{std::max<std::int64_t>(1, (std::int64_t{bytes} + bytes_per_cycle - 1) / bytes_per_cycle)};
}

}  // namespace rvma
