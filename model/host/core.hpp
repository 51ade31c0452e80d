/// \file
/// A core that runs one rank's program: it spends time on calls, writes to the NIC, and waits for words in memory by
/// mwait, polling or interrupt, each at its price.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <functional>
#include <systemc>
#include <tlm>

#include "base/component.hpp"
#include "host/config.hpp"
#include "host/interfaces.hpp"

namespace rvma {

enum class WaitHow : std::uint8_t { mwait, poll, interrupt };
BOOST_DESCRIBE_ENUM(WaitHow, mwait, poll, interrupt)

struct CoreStats {
  Counter calls{"calls", "driver calls issued"};
  Counter polls{"polls", "loads issued by polling waits"};
  Counter wakeups{"wake-ups", "returns from mwait"};
  Counter interrupts{"interrupts", "interrupts taken"};
  TimeSum issue_ns{"time spent issuing calls"};
  TimeSum burned_ns{"time spent polling or handling interrupts and wake-ups: core time lost to waiting"};
  TimeSum asleep_ns{"time spent in mwait or blocked on an interrupt: core time free for others"};
  TimeSum compute_ns{"time spent in compute"};
  BOOST_DESCRIBE_CLASS(CoreStats, (), (calls, polls, wakeups, interrupts, issue_ns, burned_ns, asleep_ns, compute_ns),
                       (), ())
};

/// One core; `program` runs in its thread once the simulation starts. All functions below are for that thread.
class Core : public Component {
 public:
  /// MMIO writes to the NIC (posted, through PCIe).
  tlm_utils::simple_initiator_socket<Core> mmio;

  Core(const sc_core::sc_module_name& name, SimContext& context, const CoreConfig& config, Pid pid, MemoryIf& memory);
  ~Core() override;

  void run(std::function<void()> program);
  bool finished() const { return finished_; }
  Pid pid() const { return pid_; }
  MemoryIf& memory() { return memory_; }

  /// Core time of one call.
  void spend_issue();
  void compute(Time time);
  /// Posted write to the NIC at bus address `address` of the device.
  void mmio_write(std::uint64_t address, const void* bytes, std::uint32_t length);
  std::uint64_t load64(PhysicalAddress address);
  /// Returns once the 8 bytes at `word` + 8 x `index` differ from `old`... for completions: the word is not 0. Charges
  /// what the way of waiting costs; returns the time at which the core knows. `arm` is called for interrupts, to ring
  /// the arming doorbell; the core re-reads the word after arming.
  Time wait_nonzero(PhysicalAddress word, WaitHow how, const std::function<void()>& arm);
  /// Returns once the 8-byte word at `address` is no longer `old` (flow control of the command ring), by mwait.
  void wait_change(PhysicalAddress address, std::uint64_t old);
  /// Sleeps until `wake` is notified (barriers and other things outside the machine); costs nothing.
  void block_on(sc_core::sc_event& wake);
  /// What the core waits for now, for the report of a run that cannot end; empty if it runs.
  bool waiting() const { return waiting_; }

  /// Called by the host's interrupt controller when the NIC's MSI for this core arrives.
  void interrupt();

  const CoreStats& stats() const { return stats_; }

 private:
  struct Impl;
  CoreConfig config_;
  Pid pid_;
  MemoryIf& memory_;
  CoreStats stats_;
  bool finished_ = false;
  bool waiting_ = false;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rvma
