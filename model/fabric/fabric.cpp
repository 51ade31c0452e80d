#include "fabric/fabric.hpp"

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

std::uint32_t most_nodes(const FabricConfig& config, std::uint32_t nodes) {
  return resolve(config.topology, nodes) == Topology::p2p ? 2 : config.star.ports.get();
}

Fabric::Fabric(const sc_core::sc_module_name& name, SimContext& context, const FabricConfig& config,
               const std::vector<FabricAttachment>& nodes, PacketPool& packets)
    : sc_module(name),
      context_(context),
      config_(config),
      packets_(packets),
      topology_(resolve(config.topology, static_cast<std::uint32_t>(nodes.size()))) {
  const auto count = static_cast<std::uint32_t>(nodes.size());
  RVMA_ASSERT(count >= 1 && count <= most_nodes(config, count), "number of nodes does not fit the topology");
  for (const FabricAttachment& node : nodes) RVMA_ASSERT(node.input != nullptr, "node without an input");
  if (topology_ == Topology::star) {
    build_star(nodes);
  } else if (count == 2) {
    build_p2p(nodes);
  } else {
    build_single();
  }
}

Fabric::~Fabric() = default;

void Fabric::build_single() {
  unplugged_ = std::make_unique<Unplugged>();
  Link& link = add_link("0-none", *unplugged_, Bytes::mib(1));
  unplugged_->plug(link);
  transmit_ = {&link};
  receive_ = {&link};
}

void Fabric::build_p2p(const std::vector<FabricAttachment>& nodes) {
  Link& forth = add_last_link("0-1", 1, nodes[1]);
  Link& back = add_last_link("1-0", 0, nodes[0]);
  transmit_ = {&forth, &back};
  receive_ = {&back, &forth};
}

void Fabric::build_star(const std::vector<FabricAttachment>& nodes) {
  const auto count = static_cast<std::uint32_t>(nodes.size());
  switch_ = std::make_unique<Switch>("switch", context_, config_.switch_, count, std::string{name()} + ".switch");
  for (std::uint32_t node = 0; node < count; ++node) {
    const std::string number = std::to_string(node);
    Link& up = add_link(number + "-switch", switch_->input(node), config_.switch_.buffer);
    Link& down = add_last_link("switch-" + number, node, nodes[node]);
    switch_->connect(node, up, down);
    switch_->set_route(NodeId{node}, node);
    transmit_.push_back(&up);
    receive_.push_back(&down);
  }
}

PacketSinkIf& Fabric::last_hop(std::uint32_t node, const FabricAttachment& attachment) {
  if (!FaultStage::wanted(config_.faults)) return *attachment.input;
  const std::string number = std::to_string(node);
  faults_.push_back(std::make_unique<FaultStage>(("faults_" + number).c_str(), context_, config_.faults,
                                                 *attachment.input, std::string{name()} + ".faults." + number, packets_,
                                                 losses_));
  return *faults_.back();
}

Link& Fabric::add_last_link(const std::string& ends, std::uint32_t node, const FabricAttachment& attachment) {
  const std::size_t stages = faults_.size();
  Link& link = add_link(ends, last_hop(node, attachment), attachment.receive_buffer);
  if (faults_.size() > stages) faults_.back()->connect(link);
  return link;
}

Link& Fabric::add_link(const std::string& ends, PacketSinkIf& far_end, Bytes receiver_buffer) {
  links_.push_back(std::make_unique<Link>(("link_" + ends).c_str(), context_, config_.link, far_end, receiver_buffer,
                                          std::string{name()} + ".link." + ends));
  return *links_.back();
}

}  // namespace rvma
