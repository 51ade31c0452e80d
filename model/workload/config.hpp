/// \file
/// Section `workload` of the configuration.
#pragma once

#include <cstdint>

#include "base/config.hpp"

namespace rvma {

enum class PayloadMode : std::uint8_t { bytes, none };
BOOST_DESCRIBE_ENUM(PayloadMode, bytes, none)

struct WorkloadConfig {
  Key<std::uint32_t> ranks_per_node{1, {1, 4096}, "processes, each with a core of its own, on one node"};
  Key<PayloadMode> payload{PayloadMode::bytes, "bytes: real data, checkable; none: timing only, faster"};
  Key<std::uint64_t> seed{1, "seed of every random choice of the run; --seed overrides it"};
  BOOST_DESCRIBE_CLASS(WorkloadConfig, (), (ranks_per_node, payload, seed), (), ())
};

}  // namespace rvma
