#include "report/nic_state.hpp"

#include <algorithm>
#include <boost/mp11/algorithm.hpp>
#include <charconv>
#include <string_view>
#include <vector>

#include "nic/on_chip_bytes.hpp"

namespace rvma {
namespace {

/// A peak of a NIC's, and what it counts.
struct Entries {
  std::string_view unit;  ///< behind node and NIC
  std::string_view name;
  std::uint64_t NicStateBytes::*structure;
  std::uint64_t bytes;
};

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// Of `node12.nic.parser` 12; of a unit of no node as many as there are.
std::size_t node_of(std::string_view path, std::size_t nodes) {
  constexpr std::string_view kNode = "node";
  if (path.substr(0, kNode.size()) != kNode) return nodes;
  std::size_t node = nodes;
  std::from_chars(path.data() + kNode.size(), path.data() + path.size(), node);
  return std::min(node, nodes);
}

}  // namespace

NicStates nic_states(const StatsRegistry& stats, const NicStateParameters& parameters) {
  const std::uint64_t window = parameters.nic.reliability.window;
  const RdmaConfig* const rdma = parameters.rdma;
  const bool tracks_order = rdma != nullptr && rdma->ooo_tracking;
  const std::vector<Entries> of_rvma{
      {".window_calls", "windows_peak", &NicStateBytes::windows, kWindowHardwareBytes},
      {".window_calls", "buffers_peak", &NicStateBytes::buffers, kBufferHardwareBytes},
      {".window_calls", "counters_peak", &NicStateBytes::counters, kCounterHardwareBytes},
      {".window_calls", "bindings_peak", &NicStateBytes::bindings, binding_hardware_bytes(window)}};
  const std::vector<Entries> of_rdma{
      {".receive.queue_pairs", "entries", &NicStateBytes::queue_pairs, kQueuePairHardwareBytes},
      {".receive.regions", "entries", &NicStateBytes::regions, kRegionHardwareBytes},
      {".delivery", "bound", &NicStateBytes::messages, message_hardware_bytes(tracks_order, window)}};
  const std::uint32_t ranks = parameters.ranks;
  const std::uint32_t per_node = parameters.ranks_per_node;
  std::vector<NicStateBytes> nodes((ranks + per_node - 1) / per_node);
  // 1. What the units have counted.
  stats.for_each([&](const StatsRegistry::Entry& entry) {
    const auto* peak = entry.as<Peak>();
    if (peak == nullptr) return;
    for (const Entries& entries : rdma != nullptr ? of_rdma : of_rvma) {
      if (entry.name != entries.name || !ends_with(entry.unit_path, entries.unit)) continue;
      const std::size_t node = node_of(entry.unit_path, nodes.size());
      if (node == nodes.size()) continue;
      std::uint64_t& bytes = nodes[node].*entries.structure;
      bytes = std::max(bytes, peak->value() * entries.bytes);
    }
  });
  // 2. Software posts its receives before the program begins, and each again only when it was used up.
  for (std::size_t node = 0; rdma != nullptr && node < nodes.size(); ++node) {
    const std::uint64_t processes = std::min<std::uint64_t>(per_node, ranks - node * per_node);
    nodes[node].receives = processes * rdma->receives * kReceiveHardwareBytes;
  }
  NicStates states;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    boost::mp11::mp_for_each<boost::describe::describe_members<NicStateBytes, boost::describe::mod_public>>(
        [&](auto member) { states.all.*member.pointer += nodes[node].*member.pointer; });
    if (nodes[node].total() <= states.largest.total()) continue;
    states.largest = nodes[node];
    states.node = NodeId{static_cast<std::uint32_t>(node)};
  }
  return states;
}

}  // namespace rvma
