// What the RDMA baseline may rely on in a configuration.
#include <algorithm>

#include "base/value_text.hpp"
#include "fabric/fabric.hpp"
#include "platform/config.hpp"
#include "rdma/rdma_state.hpp"

namespace rvma {
namespace {

std::uint32_t nodes_of(const Config& config, std::uint32_t ranks) {
  const std::uint32_t per_node = config.workload.ranks_per_node;
  return (ranks + per_node - 1) / per_node;
}

}  // namespace

bool is_ordered(const Config& config, std::uint32_t ranks) {
  const FabricConfig& fabric = config.fabric;
  const std::uint32_t nodes = nodes_of(config, ranks);
  if (nodes < 2) return true;
  const FaultsConfig& faults = fabric.faults;
  const bool is_faultless = !(faults.drop->ppb() > 0 || faults.duplicate->ppb() > 0 || faults.corrupt->ppb() > 0) &&
                            faults.jitter.get() == Time::zero() && faults.reverse == 0U &&
                            faults.events->events.empty();
  const Topology topology = resolve(fabric.topology, nodes);
  const bool has_one_path =
      topology == Topology::p2p || topology == Topology::star || fabric.routing.get() == Routing::static_;
  const bool is_lossless = topology == Topology::p2p || fabric.switch_.flow_control.get() == FlowControl::credit;
  return is_faultless && has_one_path && is_lossless;
}

RdmaCompletion completion_of(const Config& config, std::uint32_t ranks) {
  const RdmaCompletion asked = config.rdma.completion;
  if (asked != RdmaCompletion::auto_) return asked;
  if (config.rdma.ooo_tracking) return RdmaCompletion::write_imm_tracked;
  // last_byte is some 10 ns faster than write_imm, and wrong where two messages end at the same byte.
  return is_ordered(config, ranks) ? RdmaCompletion::write_imm : RdmaCompletion::ack_then_send;
}

void validate_rdma(const Config& config, std::uint32_t ranks, ErrorList& errors, std::string_view expect_tracking) {
  const auto require = [&](bool condition, const std::string& what, const std::string& expected) {
    if (!condition) errors.add(Error{Position{"rvma", 0, 0}, what, expected});
  };
  const std::vector<FaultEvent>& events = config.fabric.faults.events->events;
  require(std::all_of(events.begin(), events.end(), [](const FaultEvent& event) { return is_link_event(event.kind); }),
          "fabric.faults.events: nodes do not crash with --protocol rdma", "expected link events only");
  const std::uint32_t entries = config.rdma.completion_queue;
  require((entries & (entries - 1)) == 0,
          "rdma.completion_queue: " + std::to_string(entries) + " is not a power of two", "expected a power of two");
  const RdmaCompletion completion = completion_of(config, ranks);
  require(completion != RdmaCompletion::write_imm_tracked || config.rdma.ooo_tracking,
          "rdma.completion: write_imm_tracked needs a NIC that tracks packets out of order",
          std::string{expect_tracking});
  require(completion != RdmaCompletion::last_byte || config.workload.payload.get() == PayloadMode::bytes,
          "rdma.completion: last_byte polls the payload, and workload.payload is none",
          "expected workload.payload bytes, or another completion");
  require(completion != RdmaCompletion::last_byte || config.rdma.exchange.get() == RdmaExchange::per_put,
          "rdma.completion: last_byte has to know a message's length, and rdma.exchange is advertised",
          "expected rdma.exchange per_put, or another completion");
  const std::uint64_t queue_pairs = std::uint64_t{config.workload.ranks_per_node} * ranks;
  require(queue_pairs < RdmaState::kManagement,
          std::to_string(ranks) + " ranks on " + std::to_string(nodes_of(config, ranks)) +
              " nodes need more queue pairs than their numbers can tell apart",
          "expected fewer ranks");
}

}  // namespace rvma
