/// \file
/// PCI Express between a host and its RNIC. A transaction is a burst; its TLPs are computed, not simulated.
///
/// Source of the figures: the public pcie-bench model (Neugebauer et al., SIGCOMM'18, github.com/pcie-bench/pcie-model,
/// model/pcie.py) and the PCIe base specification it cites; see references.md.
///  - Rate after line coding: lanes x GT/s x 128/130 (generations 3 to 5) or x 242/256 (generations 6 to 8).
///  - Of it, ACK and flow-control DLLPs and SKP ordered sets take 8/L + 8/L + 4/1538, where L is the specification's
///    acknowledgement latency limit, L = floor((max_payload + 28) x ack_factor / lanes) + 115 symbol times, and
///    ack_factor is 1.4 (up to 256 B; 2.5 with 8 lanes, 3.0 with 16) or 1.0 (from 512 B; 2.0 with 16 lanes).
///    x16: L = 144, 168, 182, 246, 374, 630 for 128 B to 4 KiB. Generations 6 to 8 use generation 5's (approximate).
///  - Overhead of a TLP with 64-bit addresses: write 24 B, read request 24 B, completion 20 B.
#pragma once

#include <tlm_utils/multi_passthrough_target_socket.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstddef>
#include <cstdint>
#include <systemc>
#include <tlm>

#include "base/clock.hpp"
#include "base/component.hpp"
#include "host/config.hpp"
#include "host/interfaces.hpp"
#include "host/memory_channels.hpp"
#include "host/ring_queue.hpp"

namespace rvma {

/// Figures that follow from the configuration; plain arithmetic.
struct PcieLink {
  static constexpr std::uint64_t kWriteOverheadBytes = 24;
  static constexpr std::uint64_t kReadRequestBytes = 24;
  /// A core's stores leave in write-combining buffers of this size.
  static constexpr std::uint64_t kWriteCombiningBytes = 64;
  static constexpr std::uint64_t kCompletionOverheadBytes = 20;
  /// Flow-control unit of posted data.
  static constexpr std::uint64_t kDataCreditBytes = 16;
  /// No TLP crosses a multiple of this.
  static constexpr std::uint64_t kAddressBoundaryBytes = 4096;

  /// Rate of each direction after line coding.
  static Rate line_rate(std::uint32_t generation, std::uint32_t lanes);
  /// What is left of it for TLPs.
  static Rate tlp_rate(std::uint32_t generation, std::uint32_t lanes, Bytes max_payload);
  /// TLPs of at most `most_bytes` (a power of two) that [address, address + bytes) takes.
  static std::uint64_t tlps(std::uint64_t address, std::uint64_t bytes, std::uint64_t most_bytes);
};

inline constexpr Widenings kWidenedByLanes{
    {{"host.pcie.lanes", Effect::powers_of_two}, {"host.pcie.generation", Effect::steps}}};
inline constexpr Widenings kWidenedByChannels{
    {{"host.memory.channels", Effect::proportional}, {"host.memory.channel_rate", Effect::proportional}}};

struct PcieStats {
  Counter dma_writes{"bursts", "DMA write bursts"};
  Counter dma_reads{"bursts", "DMA read bursts"};
  Counter mmio_writes{"writes", "writes of cores to the NIC"};
  Counter upstream_tlps{"TLPs", "TLPs from the NIC to the host: writes and read requests"};
  Counter upstream_payload_bytes{"bytes", "payload from the NIC to the host"};
  Counter upstream_wire_bytes{"bytes", "payload and TLP overhead from the NIC to the host"};
  Counter downstream_tlps{"TLPs", "TLPs from the host to the NIC: completions and MMIO writes"};
  Counter downstream_payload_bytes{"bytes", "payload from the host to the NIC"};
  Counter downstream_wire_bytes{"bytes", "payload and TLP overhead from the host to the NIC"};
  Counter credit_stalls{"stalls", "times that a posted write had to wait for flow-control credits"};
  TimeSum credit_stalled_ns{"time that the upstream channel was idle for want of posted credits"};
  TimeSum memory_wait_ns{"time that inbound writes waited for a busy memory channel"};
  Histogram read_ns{"from the start of a DMA read's first request to its last completion byte"};
  Utilisation upstream{WorkKind::bits, "PCIe, NIC to host, TLP bits", kWidenedByLanes};
  Utilisation downstream{WorkKind::bits, "PCIe, host to NIC, TLP bits", kWidenedByLanes};
  Utilisation memory{WorkKind::bits, "memory channels, inbound writes", kWidenedByChannels};
  BOOST_DESCRIBE_CLASS(PcieStats, (),
                       (dma_writes, dma_reads, mmio_writes, upstream_tlps, upstream_payload_bytes, upstream_wire_bytes,
                        downstream_tlps, downstream_payload_bytes, downstream_wire_bytes, credit_stalls,
                        credit_stalled_ns, memory_wait_ns, read_ns, upstream, downstream, memory),
                       (), ())
};

/// The PCIe link and the host's end of it.
///
/// DMA writes are posted: TLM_COMPLETED, with the delay raised to the time at which the burst has entered the posted
/// channel, and BurstExtension::visible set. DMA reads return TLM_UPDATED/END_REQ (delay: the requests have left) and
/// answer BEGIN_RESP when the last completion byte has arrived; one response at a time, as the base protocol asks.
/// Burst n of a direction occupies it before burst n + 1, in call order; annotated delays count from now.
/// A transaction that PCIe cannot carry (no bytes, byte enables, streaming, a read of the interrupt window, an MMIO
/// read) completes at once with the TLM error response that says so.
class Pcie : public Component {
 public:
  /// From a posted write's last byte on the bus until the host has taken it from its queue and returned its credits.
  /// At the defaults credits then never limit: 50 ns of 873 Gb/s hold fewer than 220 of the smallest TLPs.
  static constexpr Time kDrain = Time::from_ns(50);

  tlm_utils::simple_target_socket<Pcie> device_dma;            ///< the RNIC reads and writes host memory
  tlm_utils::multi_passthrough_target_socket<Pcie> core_mmio;  ///< cores write to the RNIC
  tlm_utils::simple_initiator_socket<Pcie> device_mmio;        ///< those writes, on to the RNIC

  Pcie(const sc_core::sc_module_name& name, SimContext& context, const HostConfig& config, MemoryIf& memory);
  ~Pcie() override;

  Rate tlp_rate() const { return upstream_.rate(); }
  const PcieStats& stats() const { return stats_; }

 private:
  struct Credits {
    Time back_at;
    std::uint64_t headers = 0;
    std::uint64_t data = 0;
  };
  struct Read {
    tlm::tlm_generic_payload* transaction = nullptr;
    sc_core::sc_event* blocked = nullptr;  ///< b_transport waits here; null: non-blocking
    bool acquired = false;                 ///< the transaction has a memory manager
    Time started;                          ///< first request byte
    Time ready;                            ///< first completion may leave
    Time done;                             ///< last completion byte has arrived; known once scheduled
    std::uint64_t completions = 0;
    std::uint64_t wire_bytes = 0;
  };

  tlm::tlm_sync_enum dma_nb_transport(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                      sc_core::sc_time& delay);
  void dma_b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay);
  unsigned dma_debug_transport(tlm::tlm_generic_payload& transaction);
  tlm::tlm_sync_enum mmio_nb_transport(int core, tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                       sc_core::sc_time& delay);
  void mmio_b_transport(int core, tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay);

  /// Checks what PCIe can carry; sets the error response and returns false if it cannot.
  static bool accept(tlm::tlm_generic_payload& transaction);
  /// Returns the time at which the burst has entered the posted channel.
  Time post_write(tlm::tlm_generic_payload& transaction, Time start);
  Time send_posted(std::uint64_t address, std::uint64_t bytes, Time start, bool to_memory, Time& memory_wait);
  Time send_unit(std::uint64_t address, std::uint64_t bytes, std::uint64_t tlps, Time start, bool to_memory,
                 Time& memory_wait);
  Time wait_for_credits(std::uint64_t headers, std::uint64_t data, Time start);
  /// Returns the time at which the requests have left.
  Time request_read(tlm::tlm_generic_payload& transaction, sc_core::sc_event* blocked, Time start);
  void schedule_completions(Time until);
  void send_mmio(tlm::tlm_generic_payload& transaction, Time start);
  void respond_due();
  void respond(const Read& read);
  void arm();

  MemoryIf& memory_;
  std::uint64_t max_payload_;
  std::uint64_t max_read_request_;
  Time read_latency_;
  Time write_latency_;
  bool relaxed_ordering_;
  Serializer upstream_;
  Serializer downstream_;
  MemoryChannels channels_;

  std::uint64_t free_headers_;
  std::uint64_t free_data_;
  std::uint64_t all_headers_;
  std::uint64_t all_data_;
  std::uint64_t draining_tlps_;      ///< most TLPs that are between their last byte and kDrain after it
  std::uint64_t draining_data_;      ///< most data credits that they hold
  RingQueue<Credits> lent_credits_;  ///< by the time at which they come back
  Time last_visible_;                ///< of all DMA writes so far

  RingQueue<Read> reads_;  ///< in order of their requests, and so of their completions
  std::size_t scheduled_reads_ = 0;
  bool response_pending_ = false;  ///< BEGIN_RESP was sent, END_RESP has not come
  Time response_free_at_;
  PcieStats stats_;
  Wakeup wakeup_;
};

}  // namespace rvma
