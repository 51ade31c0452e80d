#include "fabric/topology.hpp"
#include "platform/config.hpp"

namespace rvma {

Footprint footprint(const Config& config, std::uint32_t ranks) {
  // Rounded down from what idle ones were measured to take (docs/explanation/cost.md).
  constexpr std::uint64_t kNode = 60'000;
  constexpr std::uint64_t kRank = 8'000;
  constexpr std::uint64_t kSwitch = 1'000;
  constexpr std::uint64_t kCable = 1'000;
  const std::uint32_t per_node = config.workload.ranks_per_node;
  Footprint all;
  all.nodes = (ranks + per_node - 1) / per_node;
  ErrorList errors;
  if (const auto shape = make_shape(config.fabric, static_cast<std::uint32_t>(all.nodes), errors)) {
    all.switches = shape->switches();
    all.cables = shape->cables();
  }
  all.least = Bytes{all.nodes * kNode + ranks * kRank + all.switches * kSwitch + all.cables * kCable};
  return all;
}

}  // namespace rvma
