#include "platform/system.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace rvma {

System::System(SimContext& context, const Config& config, std::uint32_t ranks, const ObserverList& observers,
               DriverObserver* driver_observer, const TableUnitFactory& make_table)
    : ranks_(ranks),
      ranks_per_node_(config.workload.ranks_per_node),
      pools_(static_cast<std::uint32_t>(config.nic.mtu->count())) {
  const std::uint32_t nodes = (ranks + ranks_per_node_ - 1) / ranks_per_node_;
  nodes_.reserve(nodes);
  std::vector<FabricAttachment> attachments;
  for (std::uint32_t n = 0; n < nodes; ++n) {
    const std::uint32_t first_rank = n * ranks_per_node_;
    const Node::Parameters parameters{NodeId{n}, RankId{first_rank}, std::min(ranks_per_node_, ranks - first_rank),
                                      driver_observer, make_table};
    nodes_.push_back(
        std::make_unique<Node>(("node" + std::to_string(n)).c_str(), context, config, parameters, pools_, observers));
    attachments.push_back({&nodes_.back()->nic().network_input(), config.nic.receive.buffer});
  }
  fabric_ = std::make_unique<Fabric>("fabric", context, config.fabric, attachments, pools_.packets);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    nodes_[n]->nic().connect(fabric_->link(NodeId{n}), fabric_->credit(NodeId{n}));
  }
}

System::~System() = default;

void System::run_on(RankId rank, std::function<void(Driver&)> program) {
  Driver& rank_driver = driver(rank);
  rank_driver.core().run([&rank_driver, program = std::move(program)] { program(rank_driver); });
}

void System::read(NodeId node_id, Pid pid, VirtualAddress from, std::uint64_t bytes, std::vector<std::uint8_t>& to) {
  to.resize(static_cast<std::size_t>(bytes));
  if (bytes > 0) node(node_id).space(pid).read(from, to.data(), bytes);
}

Time System::drained_at() const {
  Time latest;
  for (const std::unique_ptr<Node>& node : nodes_) latest = std::max(latest, node->memory().drained_at());
  return latest;
}

std::uint64_t System::load64(NodeId node_id, PhysicalAddress address) {
  std::uint64_t value = 0;
  node(node_id).memory().read(address, &value, sizeof value);
  return value;
}

}  // namespace rvma
