/// \file
/// A core that runs one rank's program: it spends time on calls, writes to the NIC, and waits for words in memory by
/// mwait, polling or interrupt, each at its price.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "base/component.hpp"
#include "host/config.hpp"
#include "host/interfaces.hpp"

namespace rvma {

enum class WaitHow : std::uint8_t { mwait, poll, interrupt };
BOOST_DESCRIBE_ENUM(WaitHow, mwait, poll, interrupt)

inline constexpr Widenings kWidenedByIssueTime{{{"host.core.issue", Effect::inverse}}};

struct CoreStats {
  Counter calls{"calls", "driver calls issued"};
  Counter mmio_writes{"writes", "writes to the NIC"};
  Counter polls{"polls", "loads issued by polling waits"};
  Counter wakeups{"wake-ups", "returns from mwait"};
  Counter interrupts{"interrupts", "interrupts taken"};
  TimeSum issue_ns{"time spent issuing calls"};
  TimeSum burned_ns{"time spent polling or handling interrupts and wake-ups: core time lost to waiting"};
  TimeSum asleep_ns{"time spent in mwait or blocked on an interrupt: core time free for others"};
  TimeSum compute_ns{"time spent in compute"};
  Utilisation issue{WorkKind::operations, "calls that the core issues, back to back", kWidenedByIssueTime};
  BOOST_DESCRIBE_CLASS(CoreStats, (),
                       (calls, mmio_writes, polls, wakeups, interrupts, issue_ns, burned_ns, asleep_ns, compute_ns,
                        issue),
                       (), ())
};

/// One core; `program` runs in its thread once the simulation starts. All functions below are for that thread.
class Core : public Component {
 public:
  /// MMIO writes to the NIC (posted, through PCIe).
  tlm_utils::simple_initiator_socket<Core> mmio;

  Core(const sc_core::sc_module_name& name, SimContext& context, const CoreConfig& config, Pid pid, MemoryIf& memory);
  ~Core() override;

  /// One program at a time; another one after crash(), while the simulation runs.
  void run(std::function<void()> program);
  /// The host loses power: the program ends in the middle of whatever it does. Not from its own thread.
  void crash();
  bool finished() const { return finished_; }
  Pid pid() const { return pid_; }
  MemoryIf& memory() { return memory_; }

  /// Core time of one call.
  void spend_issue();
  void compute(Time time);
  /// End of the present compute(); zero outside of it.
  Time computing_until() const { return computing_until_; }
  /// What the program waits for is written by software on this core, not by the NIC: every wait polls, and knows at
  /// once.
  void complete_in_software() { completes_in_software_ = true; }
  /// Posted write to the NIC at bus address `address` of the device; takes none of the core's time.
  void mmio_write(std::uint64_t address, const void* bytes, std::uint32_t length);
  std::uint64_t load64(PhysicalAddress address);
  /// Returns once the 8-byte word at `word` is not 0. Charges what the way of waiting costs; returns the time at which
  /// the core knows:
  ///  - mwait: visible + mwait_wakeup; the core sleeps until then.
  ///  - poll: the first of start, start + poll_interval, ... at or after visible; the core is burned all the time.
  ///  - interrupt: the interrupt's arrival + interrupt_latency; the core sleeps until it arrives. `arm` is called once,
  ///    to ring the arming doorbell (it may take time); the word is read again after it.
  /// A word that is written already costs nothing (poll: one load). A wake-up that finds the word still 0 (the
  /// interrupt was for something else) is paid for, and the wait goes on.
  Time wait_nonzero(PhysicalAddress word, WaitHow how, const std::function<void()>& arm);
  /// Returns once the 8-byte word at `address` is no longer `old` (flow control of the command ring), by mwait.
  void wait_change(PhysicalAddress address, std::uint64_t old);
  /// Returns once one of the 8-byte words is not 0, or `wake` is notified (null: nothing else wakes it); by mwait, or
  /// by polling all of them, as wait_nonzero() does. A wake-up by `wake` costs nothing.
  void wait_any(const std::vector<PhysicalAddress>& words, WaitHow how, sc_core::sc_event* wake);
  /// Sleeps until `wake` is notified (barriers and other things outside the machine); costs nothing.
  void block_on(sc_core::sc_event& wake);
  /// True while the core is in wait_nonzero(), wait_change() or block_on(): a run that ends so cannot finish.
  bool waiting() const { return waiting_; }

  /// Called by the host's interrupt controller (Memory::on_interrupt) when the NIC's MSI for this core arrives. One
  /// that comes while the core does not wait for an interrupt is counted and changes nothing: the word it announces is
  /// visible, and the core reads it before it blocks.
  void interrupt();

  const CoreStats& stats() const { return stats_; }

 private:
  /// What the thread sleeps in; interrupt only until the interrupt has come.
  enum class Sleep : std::uint8_t { none, mwait, poll, interrupt };

  void thread(const std::function<void()>& program);
  void resume_after(Time delay);
  void watch(PhysicalAddress word);
  void unwatch();
  void pause(Time time);
  void block();
  void mwait(PhysicalAddress word);
  void on_word_written();

  Pid pid_;
  MemoryIf& memory_;
  Time issue_;
  Time poll_interval_;
  Time mwait_wakeup_;
  Time interrupt_latency_;
  CoreStats stats_;
  bool finished_ = false;
  bool waiting_ = false;
  bool completes_in_software_ = false;
  Time computing_until_;

  sc_core::sc_process_handle thread_;
  std::vector<std::uint64_t> watched_;  ///< handles of the monitors that the thread sleeps on
  Sleep sleep_ = Sleep::none;
  Time sleep_from_;  ///< poll: the instant of the last poll before the word was written
  Time woken_at_;    ///< the cause of the wake-up
  sc_core::sc_event resume_;
  tlm::tlm_generic_payload write_;
};

}  // namespace rvma
