/// \file
/// The memory that a host lends its RNIC for what does not fit on the NIC.
#pragma once

#include <cstdint>

#include "base/ids.hpp"
#include "nic/config.hpp"

namespace rvma {

/// One physically contiguous area, cut into a region for each structure that spills; entry i of a region lies
/// i x stride bytes behind its base. Only what spills is ever touched, and memory is sparse: the size costs addresses.
struct SpillArea {
  struct Region {
    PhysicalAddress base;
    std::uint64_t stride = 0;  ///< bytes of an entry
  };
  Region contexts;           ///< of windows
  Region buckets;            ///< of the table that finds them
  Region descriptors;        ///< of posted buffers
  Region counters;           ///< of posted buffers
  Region receive_contexts;   ///< of peers
  Region transmit_contexts;  ///< of peers
  std::uint64_t bytes = 0;   ///< of it all

  /// The area of an RNIC of this configuration that begins at `base`.
  static SpillArea at(PhysicalAddress base, const NicConfig& config);
};

}  // namespace rvma
