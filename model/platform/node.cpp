#include "platform/node.hpp"

#include <string>

#include "base/random.hpp"

namespace rvma {

Node::Node(const sc_core::sc_module_name& name, SimContext& context, const Config& config, const Parameters& p,
           Pools& pools, const ObserverList& observers)
    : sc_module(name),
      context_(context),
      config_(config),
      parameters_(p),
      observers_(observers),
      memory_("memory", context, config.host),
      frames_(config.host.page, mix64(context.seed() ^ p.id.value())),
      pcie_("pcie", context, config.host, memory_) {
  // 1. The RNIC; where it may lose power, a slot with one for each time that it comes back.
  if (p.may_crash) slot_ = std::make_unique<NicSlot>("slot", 1 + p.restarts);
  for (std::uint32_t i = 0; i <= p.restarts; ++i) {
    const std::uint32_t boot_number = 1 + i;
    incarnations_.push_back(std::make_unique<Incarnation>(Incarnation{observers}));
    const std::string nic_name = i == 0 ? "nic" : "nic_boot" + std::to_string(boot_number);
    const bool timing_only = config.workload.payload.get() == PayloadMode::none;
    const Rnic::Parameters nic_parameters{
        config.nic, config.host.page, p.id, boot_number, timing_only, config.workload.ranks_per_node, p.make_table};
    nics_.push_back(std::make_unique<Rnic>(nic_name.c_str(), context, nic_parameters, pools.packets, pools.payloads,
                                           incarnations_.back()->observers));
    if (slot_) slot_->insert(i, *nics_.back());
  }
  if (slot_) {
    slot_->dma.bind(pcie_.device_dma);
    pcie_.device_mmio.bind(slot_->mmio);
  } else {
    nic().dma.bind(pcie_.device_dma);
    pcie_.device_mmio.bind(nic().mmio);
  }
  // What does not fit on the NIC goes to memory that the host lends it, whichever incarnation it is.
  const std::uint64_t spill_bytes = SpillArea::at({}, config.nic).bytes;
  const SpillArea spill_area = SpillArea::at(frames_.allocate_contiguous(spill_bytes), config.nic);
  for (const std::unique_ptr<Rnic>& nic : nics_) nic->set_spill_area(spill_area);
  // 2. Processes.
  processes_.reserve(p.processes);
  for (std::uint32_t i = 0; i < p.processes; ++i) {
    const Pid pid{static_cast<std::uint16_t>(i)};
    auto process = std::make_unique<Process>();
    process->core =
        std::make_unique<Core>(("core" + std::to_string(i)).c_str(), context, config.host.core, pid, memory_);
    process->core->mmio.bind(pcie_.core_mmio);
    process->space = std::make_unique<AddressSpace>(memory_, frames_);
    make_driver(*process, pid);
    processes_.push_back(std::move(process));
  }
  memory_.on_interrupt([this](Pid pid) {
    if (pid.value() < processes_.size()) core(pid).interrupt();
  });
}

void Node::make_driver(Process& process, Pid pid) {
  if (process.driver) process.dead_drivers.push_back(std::move(process.driver));
  process.driver = std::make_unique<Driver>(RankId{parameters_.first_rank.value() + pid.value()}, *process.core,
                                            *process.space, frames_, config_.nic, parameters_.driver_observer);
  nic().set_ring(pid, process.driver->ring_base(), config_.nic.command.depth, process.driver->consumed_word());
}

PacketSinkIf& Node::network_input() {
  if (slot_) return *slot_;
  return nic().network_input();
}

void Node::connect(LinkIf& link, LinkCreditIf& credit) {
  if (slot_) {
    slot_->connect(link, credit);
  } else {
    nic().connect(link, credit);
  }
}

void Node::crash() {
  RVMA_ASSERT(slot_ != nullptr, "a node crashes that was not built to");
  if (!slot_->alive()) return;
  slot_->power_off();
  for (const auto& process : processes_) process->core->crash();
  incarnations_[incarnation_]->observers.clear();
  observers_.tell([&](NicObserver& observer) { observer.node_crashed(parameters_.id, context_.now()); });
}

void Node::restart() {
  RVMA_ASSERT(slot_ != nullptr, "a node restarts that was not built to");
  if (slot_->alive()) return;
  slot_->power_on(context_.now() + config_.nic.reliability.quiet);
  ++incarnation_;
  for (std::uint32_t i = 0; i < processes_.size(); ++i) make_driver(*processes_[i], Pid{static_cast<std::uint16_t>(i)});
  observers_.tell(
      [&](NicObserver& observer) { observer.node_restarted(parameters_.id, 1 + incarnation_, context_.now()); });
}

Node::~Node() = default;

}  // namespace rvma
