#include "platform/system.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace rvma {
namespace {

/// The events of nodes, by time.
std::vector<FaultEvent> node_events_of(const FabricConfig& config) {
  std::vector<FaultEvent> events;
  for (const FaultEvent& event : config.faults.events->events) {
    if (!is_link_event(event.kind)) events.push_back(event);
  }
  std::stable_sort(events.begin(), events.end(), [](const FaultEvent& a, const FaultEvent& b) { return a.at < b.at; });
  return events;
}

/// Software under RDMA writes its descriptors one by one.
NicConfig nic_config_of(const NicConfig& config, Protocol protocol) {
  NicConfig own = config;
  if (protocol == Protocol::rdma) own.command.mode = CommandMode::inline_;
  return own;
}

std::uint32_t count_events(const std::vector<FaultEvent>& events, NodeId node, FaultKind kind) {
  return static_cast<std::uint32_t>(std::count_if(events.begin(), events.end(), [&](const FaultEvent& event) {
    return event.kind == kind && node_of(event) == node;
  }));
}

}  // namespace

/// Crashes and restarts nodes when the configuration says so.
class System::NodeEvents : public Component {
 public:
  NodeEvents(SimContext& context, System& system, std::vector<FaultEvent> events)
      : Component("node_events", context, Frequency::mhz(1'000'000)),
        system_(system),
        events_(std::move(events)),
        wakeup_(*this, "wakeup", [this] { work(); }) {
    wakeup_.at(events_.front().at);
  }
  std::vector<FaultEvent> to_come() const {
    return {events_.begin() + static_cast<std::ptrdiff_t>(next_), events_.end()};
  }
  std::function<void(NodeId)> crashed;
  std::function<void(NodeId)> restarted;

 private:
  void work() {
    while (next_ < events_.size() && events_[next_].at <= now()) {
      const FaultEvent& event = events_[next_++];
      const NodeId id = rvma::node_of(event).value();
      Node& node = system_.node(id);
      if (event.kind == FaultKind::node_crash && node.alive()) {
        node.crash();
        if (crashed) crashed(id);
      } else if (event.kind == FaultKind::node_restart && !node.alive()) {
        node.restart();
        if (restarted) restarted(id);
      }
    }
    if (next_ < events_.size()) wakeup_.at(events_[next_].at);
  }

  System& system_;
  std::vector<FaultEvent> events_;  ///< by time
  std::size_t next_ = 0;
  Wakeup wakeup_;
};

System::System(SimContext& context, const Config& config, std::uint32_t ranks, const ObserverList& observers,
               DriverObserver* driver_observer, const TableUnitFactory& make_table, Protocol protocol)
    : anchor_(std::make_unique<ModuleAnchor>()),
      ranks_(ranks),
      ranks_per_node_(config.workload.ranks_per_node),
      nic_config_(nic_config_of(config.nic, protocol)),
      pools_(static_cast<std::uint32_t>(config.nic.mtu->count())) {
  const std::uint32_t nodes = (ranks + ranks_per_node_ - 1) / ranks_per_node_;
  nodes_.reserve(nodes);
  std::vector<FaultEvent> node_events = node_events_of(config.fabric);
  std::vector<FabricAttachment> attachments;
  for (std::uint32_t n = 0; n < nodes; ++n) {
    const std::uint32_t first_rank = n * ranks_per_node_;
    const Node::Parameters parameters{NodeId{n},
                                      RankId{first_rank},
                                      std::min(ranks_per_node_, ranks - first_rank),
                                      driver_observer,
                                      make_table,
                                      count_events(node_events, NodeId{n}, FaultKind::node_crash) > 0,
                                      count_events(node_events, NodeId{n}, FaultKind::node_restart),
                                      protocol,
                                      ranks,
                                      nic_config_,
                                      &directory_};
    nodes_.push_back(
        std::make_unique<Node>(("node" + std::to_string(n)).c_str(), context, config, parameters, pools_, observers));
    attachments.push_back({&nodes_.back()->network_input(), config.nic.receive.buffer});
  }
  fabric_ = std::make_unique<Fabric>("fabric", context, config.fabric, attachments, pools_.packets);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    nodes_[n]->connect(fabric_->link(NodeId{n}), fabric_->credit(NodeId{n}));
  }
  if (!node_events.empty()) node_events_ = std::make_unique<NodeEvents>(context, *this, std::move(node_events));
}

System::~System() {
  anchor_.reset();
  node_events_.reset();
  fabric_.reset();
  destroy_backwards(nodes_);
}

void System::on_node_events(std::function<void(NodeId)> crashed, std::function<void(NodeId)> restarted) {
  if (!node_events_) return;
  node_events_->crashed = std::move(crashed);
  node_events_->restarted = std::move(restarted);
}

std::vector<FaultEvent> System::node_events_to_come() const {
  return node_events_ ? node_events_->to_come() : std::vector<FaultEvent>{};
}

FabricLosses System::losses() const {
  FabricLosses sum = fabric_->losses();
  for (const std::unique_ptr<Node>& node : nodes_) sum += node->losses();
  return sum;
}

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
