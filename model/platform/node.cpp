#include "platform/node.hpp"

#include <string>

#include "base/random.hpp"
#include "nic/rnic.hpp"
#include "rdma/rdma_nic.hpp"

namespace rvma {
Node::Node(const sc_core::sc_module_name& name, SimContext& context, const Config& config, const Parameters& p,
           Pools& pools, const ObserverList& observers)
    : sc_module(name),
      context_(context),
      config_(config),
      parameters_(p),
      nic_config_(p.nic_config),
      observers_(observers),
      nics_(make_nics(pools)),
      memory_("memory", context, config.host),
      frames_(config.host.page, mix64(context.seed() ^ p.id.value())),
      pcie_("pcie", context, config.host, memory_) {
  // 1. The RNIC's place; where it may lose power, a slot with one for each time that it comes back.
  if (p.may_crash) {
    slot_ = std::make_unique<NicSlot>("slot", 1 + p.restarts);
    for (std::uint32_t i = 0; i <= p.restarts; ++i) slot_->insert(i, *nics_[i]);
  }
  if (slot_) {
    slot_->dma.bind(pcie_.device_dma);
    pcie_.device_mmio.bind(slot_->mmio);
  } else {
    nic().dma.bind(pcie_.device_dma);
    pcie_.device_mmio.bind(nic().mmio);
  }
  if (p.protocol == Protocol::rdma) {
    make_provider();
  } else {
    lend_memory();
  }
  // 2. Processes.
  processes_.reserve(p.processes);
  for (std::uint32_t i = 0; i < p.processes; ++i) {
    const Pid pid{static_cast<std::uint16_t>(i)};
    auto process = std::make_unique<Process>();
    process->core =
        std::make_unique<Core>(("core" + std::to_string(i)).c_str(), context, config.host.core, pid, memory_);
    if (provider_) {
      process->core->complete_in_software();
      process->core->mmio.bind(provider_->commands);
    } else {
      process->core->mmio.bind(pcie_.core_mmio);
    }
    process->space = std::make_unique<AddressSpace>(memory_, frames_);
    make_driver(*process, pid);
    processes_.push_back(std::move(process));
  }
  memory_.on_interrupt([this](Pid pid) {
    if (pid.value() < processes_.size()) core(pid).interrupt();
  });
}

std::vector<std::unique_ptr<Nic>> Node::make_nics(Pools& pools) {
  std::vector<std::unique_ptr<Nic>> nics;
  for (std::uint32_t i = 0; i <= parameters_.restarts; ++i) {
    incarnations_.push_back(std::make_unique<Incarnation>(Incarnation{observers_}));
    nics.push_back(make_nic(i, pools, incarnations_.back()->observers));
  }
  return nics;
}

std::unique_ptr<Nic> Node::make_nic(std::uint32_t index, Pools& pools, const ObserverList& observers) {
  const Parameters& p = parameters_;
  const std::uint32_t boot_number = 1 + index;
  const std::string name = index == 0 ? "nic" : "nic_boot" + std::to_string(boot_number);
  const bool timing_only = config_.workload.payload.get() == PayloadMode::none;
  if (p.protocol == Protocol::rdma) {
    const RdmaNic::Parameters parameters{nic_config_, config_.rdma, config_.host.page, p.id, boot_number, timing_only};
    return std::make_unique<RdmaNic>(name.c_str(), context_, parameters, pools.packets, pools.payloads, observers);
  }
  const Rnic::Parameters parameters{
      nic_config_, config_.host.page, p.id, boot_number, timing_only, config_.workload.ranks_per_node, p.make_table};
  return std::make_unique<Rnic>(name.c_str(), context_, parameters, pools.packets, pools.payloads, observers);
}

/// What does not fit on the RNIC goes to memory that the host lends it, whichever incarnation it is.
void Node::lend_memory() {
  const std::uint64_t bytes = SpillArea::at({}, nic_config_).bytes;
  const SpillArea area = SpillArea::at(frames_.allocate_contiguous(bytes), nic_config_);
  for (const std::unique_ptr<Nic>& nic : nics_) static_cast<Rnic&>(*nic).set_spill_area(area);
}

void Node::make_provider() {
  const Parameters& p = parameters_;
  const Provider::Parameters parameters{nic_config_,
                                        config_.rdma,
                                        config_.host,
                                        p.id,
                                        p.first_rank,
                                        p.ranks,
                                        config_.workload.ranks_per_node,
                                        completion_of(config_, p.ranks),
                                        p.directory};
  auto& nic = static_cast<RdmaNic&>(*nics_.front());
  provider_ = std::make_unique<Provider>("software", context_, parameters, memory_, frames_, nic,
                                         incarnations_.front()->observers);
  provider_->mmio.bind(pcie_.core_mmio);
}

void Node::make_driver(Process& process, Pid pid) {
  if (process.driver) process.dead_drivers.push_back(std::move(process.driver));
  // Under RDMA it speaks to software on its own core, which reads the payload itself.
  NicConfig nic_config = nic_config_;
  if (provider_) nic_config.command.inline_payload = Bytes{0};
  process.driver = std::make_unique<Driver>(RankId{parameters_.first_rank.value() + pid.value()}, *process.core,
                                            *process.space, frames_, nic_config, parameters_.driver_observer);
  if (provider_) {
    provider_->add_process(*process.core, *process.space, process.driver->consumed_word());
  } else {
    nic().set_ring(pid, process.driver->ring_base(), nic_config_.command.depth, process.driver->consumed_word());
  }
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
  if (!provider_) static_cast<Rnic&>(nic()).power_on(context_.now());
  for (std::uint32_t i = 0; i < processes_.size(); ++i) make_driver(*processes_[i], Pid{static_cast<std::uint16_t>(i)});
  observers_.tell(
      [&](NicObserver& observer) { observer.node_restarted(parameters_.id, 1 + incarnation_, context_.now()); });
}

Node::~Node() = default;

}  // namespace rvma
