/// \file
/// Command unit: takes descriptors from the processes' MMIO pages (or fetches them from their rings) and hands them on,
/// in order within a process and in turn between processes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <systemc>
#include <vector>

#include "base/component.hpp"
#include "base/slot_table.hpp"
#include "fabric/packet.hpp"
#include "nic/config.hpp"
#include "nic/descriptor.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "nic/interrupt_arm.hpp"

namespace rvma {

struct CommandStats {
  Counter doorbells{"writes", "MMIO writes of a ring's tail index"};
  Counter inline_descriptors{"descriptors", "descriptors written to the NIC directly"};
  Counter inline_payloads{"descriptors", "of these, with their payload behind them"};
  Counter fetched_descriptors{"descriptors", "descriptors fetched from rings"};
  Counter fetches{"reads", "DMA reads that fetched them"};
  Counter puts{"puts", "puts handed to transmit"};
  Counter work_requests{"requests", "RDMA work requests handed to transmit"};
  Counter gets{"gets", "gets handed to the get unit"};
  Counter calls{"calls", "window calls executed"};
  Counter arms{"calls", "interrupts armed"};
  Counter interrupts{"interrupts", "interrupts written because the armed word had been written before"};
  Counter malformed{"descriptors", "descriptors that are none, or of a call that this NIC does not take"};
  Counter bad_writes{"writes", "MMIO writes ignored: wrong place or length, impossible tail, or queue overrun"};
  Counter put_waits{"puts", "times that a put waited for room in the open-put table, or a get for nic.get.open"};
  Peak queue{"descriptors", "descriptors waiting in one process's queue"};
  Utilisation execute{WorkKind::operations, "descriptors executed, one a cycle", kWidenedByNicClock};
  BOOST_DESCRIBE_CLASS(CommandStats, (),
                       (doorbells, inline_descriptors, inline_payloads, fetched_descriptors, fetches, puts,
                        work_requests, gets, calls, arms, interrupts, malformed, bad_writes, put_waits, queue, execute),
                       (), ())
};

class CommandUnit : public Component, public DmaClient {
 public:
  sc_core::sc_port<DmaIf> dma;
  sc_core::sc_port<WindowCallsIf> window_calls;
  sc_core::sc_port<TransmitIf> transmit;
  /// Unbound: gets are malformed.
  sc_core::sc_port<TransmitIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> gets;
  /// Takes RDMA work requests. Bound: RVMA's commands are malformed; unbound: RDMA's are.
  sc_core::sc_port<TransmitIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> work_requests;

  CommandUnit(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, PayloadPool& payloads,
              InterruptArm& arm);

  /// Set-up of process `pid`, before its first command: its ring of `entries` descriptors (a power of two) at `base`
  /// (unused in inline mode), and the 16-byte aligned word to which the NIC writes how many descriptors it has consumed
  /// (0: not wanted). The count is written after every entries / 4 descriptors: a driver that keeps at most `entries`
  /// unconsumed always sees it move on.
  void set_ring(Pid pid, PhysicalAddress base, std::uint32_t entries, PhysicalAddress consumed_word);

  /// An MMIO write of `length` bytes at `offset` of process `pid`'s page arrives at `at` (>= now). False: nothing is
  /// there to write to (it is counted and ignored).
  bool mmio_write(Pid pid, std::uint64_t offset, const std::uint8_t* bytes, std::uint32_t length, Time at);

  void dma_written(std::uint64_t tag, Time entered, Time visible) override;
  void dma_read_done(std::uint64_t tag) override;

  const CommandStats& stats() const { return stats_; }

 private:
  struct Command {
    DescriptorBytes bytes{};
    PayloadRef payload;  ///< that came with it
    std::uint32_t payload_bytes = 0;
    Time doorbell;
    Cycles ready;  ///< may be executed from then on
  };
  /// One DMA read of descriptors, in ring order.
  struct Fetch {
    PayloadRef bytes;
    std::uint32_t count = 0;
    bool done = false;
  };
  struct Doorbell {
    std::uint64_t tail = 0;
    Time at;
  };
  struct Process {
    Pid pid;
    PhysicalAddress ring;
    std::uint32_t entries = 0;
    PhysicalAddress consumed_word;
    std::uint64_t tail = 0;      ///< descriptors announced by doorbells
    std::uint64_t fetched = 0;   ///< of these, asked for
    std::uint64_t arrived = 0;   ///< of these, here
    std::uint64_t consumed = 0;  ///< of all, executed
    FifoRing<Doorbell> doorbells;
    FifoRing<Fetch> fetches;
    std::uint64_t first_fetch = 0;  ///< number of fetches' front
    FifoRing<Command> commands;
    bool answer_due = false;  ///< a call has not been answered yet
    bool waits_for_room = false;
    bool in_turn = false;
  };

  void end_of_elaboration() override;
  Process& process(Pid pid);
  bool doorbell(Process& process, const std::uint8_t* bytes, Time at);
  bool inline_descriptor(Process& process, const std::uint8_t* bytes, std::uint32_t length, Time at);
  void fetch(Process& process, Time at);
  void fetches_arrived(Process& process);
  void queue_command(Process& process, const std::uint8_t* bytes, PayloadRef payload, std::uint32_t payload_bytes,
                     Time doorbell, Time at);

  void run();
  /// Null: it is not handed over, but executed here or by the window calls.
  TransmitIf* taker_of(Opcode opcode);
  bool is_known(Opcode opcode);
  bool hand_over(Process& process, TransmitIf& taker, const Descriptor& descriptor, Cycles cycle);
  /// Executes the process's first command at `cycle`; false: it stays.
  bool execute(Process& process, Cycles cycle);
  void call(Process& process, const Descriptor& descriptor, Cycles cycle);
  void arm_interrupt(Process& process, const Descriptor& descriptor, Time at);
  void fence_due();
  void look(std::uint32_t index, Time at);
  void look_done(std::uint32_t index);
  void malformed(const DescriptorBytes& bytes, Time at);
  void answer(PhysicalAddress response, const CallAnswer& answer, Time at);
  void consumed(Process& process, Time at);
  void wake_for(Process& process);
  void take_turn(Process& process);

  const CommandConfig& config_;
  const Cycles fence_delay_;
  PayloadPool& payloads_;
  InterruptArm& arm_;
  CommandStats stats_;
  std::vector<std::unique_ptr<Process>> processes_;  ///< by pid; null: never heard of
  FifoRing<std::uint16_t> turn_;                     ///< pids with a command that may be executed, round robin
  Cycles next_cycle_;                                ///< first one in which nothing is executed yet
  /// An armed word that is being looked at.
  struct Look {
    PayloadRef bytes;
    PhysicalAddress word;
    Pid pid;
  };
  struct Fence {
    std::uint32_t look = 0;
    Time due;
  };
  SlotTable<Look> looks_;
  FifoRing<Fence> fences_;  ///< looks that have not asked for their fence yet
  Wakeup fence_;
  Wakeup wake_;
};

}  // namespace rvma
