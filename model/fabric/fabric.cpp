#include "fabric/fabric.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace rvma {

/// Far end of a lone node's link: swallows what comes.
class Fabric::Unplugged : public PacketSinkIf {
 public:
  void plug(LinkCreditIf& credit) { credit_ = &credit; }
  void deliver(PacketPtr packet, Time at) override { credit_->return_credit(packet->wire_bytes, at); }

 private:
  LinkCreditIf* credit_ = nullptr;
};

Fabric::Fabric(const sc_core::sc_module_name& name, SimContext& context, const FabricConfig& config,
               const std::vector<FabricAttachment>& nodes, PacketPool& packets, ChannelUse use)
    : sc_module(name),
      context_(context),
      config_(config),
      packets_(packets),
      topology_(resolve(config.topology, static_cast<std::uint32_t>(nodes.size()))) {
  const auto count = static_cast<std::uint32_t>(nodes.size());
  RVMA_ASSERT(count >= 1 && count <= most_nodes(config, count), "number of nodes does not fit the topology");
  for (const FabricAttachment& node : nodes) RVMA_ASSERT(node.input != nullptr, "node without an input");
  if (topology_ != Topology::p2p) {
    ErrorList errors;
    shape_ = make_shape(config, count, errors);
    RVMA_ASSERT(shape_ != nullptr, "the shape of the fabric is wrong: " + errors.shown().front().to_string());
    build_switches(nodes, use);
  } else if (count == 2) {
    build_p2p(nodes);
  } else {
    build_single();
  }
  schedule_events();
  publish();
}

Fabric::~Fabric() {
  destroy_backwards(faults_);
  destroy_backwards(switches_);
}

void Fabric::build_single() {
  unplugged_ = std::make_unique<Unplugged>();
  Link& link = add_link(*unplugged_, {Bytes::mib(1)}, {});
  unplugged_->plug(link);
  transmit_ = {&link};
  receive_ = {&link};
}

void Fabric::build_p2p(const std::vector<FabricAttachment>& nodes) {
  Link& forth = add_last_link(1, nodes[1], {});
  Link& back = add_last_link(0, nodes[0], {});
  transmit_ = {&forth, &back};
  receive_ = {&back, &forth};
}

void Fabric::build_switches(const std::vector<FabricAttachment>& nodes, ChannelUse use) {
  router_ = std::make_unique<Router>(*shape_, config_.routing, config_.switch_.flow_control, use);
  const bool is_paid = config_.switch_.flow_control.get() == FlowControl::credit;
  const std::uint32_t count = shape_->switches();
  transmit_.resize(nodes.size());
  receive_.resize(nodes.size());

  // 1. The switches. Where there are many, one group counts for all.
  const bool is_many = 2 * shape_->cables() > kMostUnits;
  switch_stats_.resize(is_many ? 1 : count);
  switches_.reserve(count);
  for (std::uint32_t number = 0; number < count; ++number) {
    const SwitchId at{number};
    switches_.push_back(std::make_unique<Switch>(shape_->switch_name(at).c_str(), context_, config_.switch_, *router_,
                                                 at, switch_stats_[is_many ? 0 : number]));
  }

  // 2. What leaves each port, and what comes from a node.
  std::vector<std::vector<Link*>> leaving(count);
  for (std::uint32_t number = 0; number < count; ++number) {
    const SwitchId at{number};
    leaving[number].resize(shape_->ports(at));
    for (Port port = 0; port < shape_->ports(at); ++port) {
      const PortEnd there = shape_->end(at, port);
      if (there.is_node()) {
        const FabricAttachment& node = nodes[there.index];
        transmit_[there.index] =
            &add_link(switches_[number]->input(port), {config_.switch_.buffer, 1, is_paid}, {at, port, true});
        // The last hop is always paid for: a NIC never throws away what it has let in.
        receive_[there.index] = leaving[number][port] = &add_last_link(there.index, node, {at, port, false});
      } else if (there.is_switch()) {
        const std::uint32_t channels = router_->channels(at, port);
        leaving[number][port] =
            &add_link(switches_[there.index]->input(there.port),
                      {Bytes{config_.switch_.buffer->count() / channels}, channels, is_paid}, {at, port, false});
      }
    }
  }

  // 3. Plug them in.
  for (std::uint32_t number = 0; number < count; ++number) {
    const SwitchId at{number};
    for (Port port = 0; port < shape_->ports(at); ++port) {
      const PortEnd there = shape_->end(at, port);
      if (there.kind == PortEnd::Kind::nothing) continue;
      Link& coming = there.is_node() ? *transmit_[there.index] : *leaving[there.index][there.port];
      switches_[number]->connect(port, coming, *leaving[number][port]);
    }
  }
}

PacketSinkIf& Fabric::last_hop(std::uint32_t node, const FabricAttachment& attachment) {
  if (!FaultStage::wanted(config_.faults)) return *attachment.input;
  const std::string number = std::to_string(node);
  faults_.push_back(std::make_unique<FaultStage>(("faults_" + number).c_str(), context_, config_.faults,
                                                 *attachment.input, std::string{name()} + ".faults." + number, packets_,
                                                 stats_.losses));
  return *faults_.back();
}

Link& Fabric::add_last_link(std::uint32_t node, const FabricAttachment& attachment, const Origin& origin) {
  const std::size_t stages = faults_.size();
  Link& link = add_link(last_hop(node, attachment), {attachment.receive_buffer}, origin);
  if (faults_.size() > stages) faults_.back()->connect(link);
  return link;
}

Link& Fabric::add_link(PacketSinkIf& far_end, const Link::Buffer& buffer, const Origin& origin) {
  origins_.push_back(origin);
  return links_.emplace_back(config_.link, far_end, buffer, &stats_);
}

void Fabric::schedule_events() {
  std::vector<FaultEvent> in_order = events();
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const FaultEvent& a, const FaultEvent& b) { return a.at < b.at; });
  for (const FaultEvent& event : in_order) {
    if (!is_link_event(event.kind)) continue;
    const bool up = event.kind == FaultKind::link_up;
    if (shape_ == nullptr) {
      for (Link& link : links_) link.change_at(event.at, up);
      continue;
    }
    const auto place = shape_->find_link(event.where);
    RVMA_ASSERT(place.has_value(), "an event names no link: " + event.where);
    const PortEnd there = shape_->end(place->at, place->port);
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const Origin& origin = origins_[i];
      const bool is_here = origin.at == place->at && origin.port == place->port;
      const bool is_there = there.is_switch() && origin.at == there.to_switch() && origin.port == there.port;
      if (is_here || is_there) links_[i].change_at(event.at, up);
    }
  }
}

void Fabric::publish() {
  const std::string path = name();
  context_.stats().add(path, stats_);
  if (!switches_.empty()) {
    context_.stats().add_level(path + ".switch", "queued", [this] {
      std::uint64_t most = 0;
      for (const auto& one : switches_) most = std::max(most, one->take_most_queued());
      return most;
    });
  }
  if (links_.size() > kMostUnits) {
    context_.stats().add(path + ".switches", switch_stats_.front());
    context_.stats().add_table(*this);
    return;
  }
  for (std::size_t i = 0; i < links_.size(); ++i)
    links_[i].publish(context_.stats(), path + ".link." + describe(i).name);
  for (std::size_t i = 0; i < switch_stats_.size(); ++i) {
    context_.stats().add(switch_stats_.size() == 1 ? path + ".switch" : path + ".switch." + std::to_string(i),
                         switch_stats_[i]);
  }
}

std::string Fabric::unit(std::size_t index) const {
  return std::string{name()} + ".link." + describe(index).name + ".wire";
}

FabricLink Fabric::describe(std::size_t index) const {
  if (shape_ == nullptr) {
    const std::string from = std::to_string(index);
    const std::string to = unplugged_ != nullptr ? "none" : std::to_string(1 - index);
    return {from + "-" + to, from, to};
  }
  const Origin& origin = origins_[index];
  const PortEnd there = shape_->end(origin.at, origin.port);
  const std::string here = shape_->switch_name(origin.at);
  if (there.is_switch())
    return {shape_->link_name(origin.at, origin.port), here, shape_->switch_name(there.to_switch())};
  const std::string node = std::to_string(there.index);
  if (origin.is_from_node) return {node + "-" + here, node, here};
  return {here + "-" + node, here, node};
}

}  // namespace rvma
