#include "platform/node.hpp"

#include <string>

#include "base/random.hpp"

namespace rvma {

Node::Node(const sc_core::sc_module_name& name, SimContext& context, const Config& config, const Parameters& p,
           Pools& pools, const ObserverList& observers)
    : sc_module(name),
      nic_("nic", context,
           {config.nic, config.host.page, p.id, /*boot_number=*/1, config.workload.payload.get() == PayloadMode::none,
            p.make_table},
           pools.packets, pools.payloads, observers),
      memory_("memory", context, config.host),
      frames_(config.host.page, mix64(context.seed() ^ p.id.value())),
      pcie_("pcie", context, config.host, memory_) {
  nic_.dma.bind(pcie_.device_dma);
  pcie_.device_mmio.bind(nic_.mmio);
  processes_.reserve(p.processes);
  for (std::uint32_t i = 0; i < p.processes; ++i) {
    const Pid pid{static_cast<std::uint16_t>(i)};
    auto process = std::make_unique<Process>();
    process->core =
        std::make_unique<Core>(("core" + std::to_string(i)).c_str(), context, config.host.core, pid, memory_);
    process->core->mmio.bind(pcie_.core_mmio);
    process->space = std::make_unique<AddressSpace>(memory_, frames_);
    process->driver = std::make_unique<Driver>(RankId{p.first_rank.value() + i}, *process->core, *process->space,
                                               frames_, config.nic, p.driver_observer);
    nic_.set_ring(pid, process->driver->ring_base(), config.nic.command.depth, process->driver->consumed_word());
    processes_.push_back(std::move(process));
  }
  memory_.on_interrupt([this](Pid pid) {
    if (pid.value() < processes_.size()) core(pid).interrupt();
  });
}

Node::~Node() = default;

}  // namespace rvma
