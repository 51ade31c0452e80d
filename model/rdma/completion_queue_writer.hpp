/// \file
/// Writes entries of the processes' completion queues to host memory: the RDMA counterpart of the completion writer.
#pragma once

#include <cstdint>
#include <systemc>
#include <vector>

#include "base/component.hpp"
#include "nic/config.hpp"
#include "nic/interfaces.hpp"
#include "rdma/rdma_state.hpp"

namespace rvma {

struct CompletionQueueStats {
  Counter entries{"entries", "entries written"};
  TimeSum write_ns{"time from a due entry to its place in the posted channel, each on its own"};
  Utilisation write{WorkKind::operations, "entries, one a cycle", kWidenedByNicClock};
  BOOST_DESCRIBE_CLASS(CompletionQueueStats, (), (entries, write_ns, write), (), ())
};

/// An entry stands nic.completion.latency cycles after it is due in the posted channel, behind everything that was
/// written before. Nothing keeps software from reading too late: a queue that overflows loses entries, as on hardware;
/// software keeps fewer requests under way than the queue has entries.
class CompletionQueueWriter : public Component, public DmaClient {
 public:
  sc_core::sc_port<DmaIf> dma;

  CompletionQueueWriter(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config);

  /// Set-up of process `pid`: a ring of `entries` (a power of two) at `base`, all zero.
  void set_queue(Pid pid, PhysicalAddress base, std::uint32_t entries);
  void push(const DueCqe& due, Time at);

  void dma_written(std::uint64_t tag, Time entered, Time visible) override;
  void dma_read_done(std::uint64_t /*tag*/) override {}

  const CompletionQueueStats& stats() const { return stats_; }

 private:
  struct Queue {
    PhysicalAddress base;
    std::uint32_t entries = 0;
    std::uint64_t written = 0;
  };
  Cycles latency_;
  Cycles next_;
  std::vector<Queue> queues_;  ///< by pid
  CompletionQueueStats stats_;
};

}  // namespace rvma
