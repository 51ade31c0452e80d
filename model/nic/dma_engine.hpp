/// \file
/// DMA engine: the RNIC's initiator on the host's bus. Non-blocking TLM-2.0 base protocol, one transaction a burst.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <systemc>
#include <tlm>
#include <vector>

#include "base/component.hpp"
#include "base/slot_table.hpp"
#include "host/interfaces.hpp"
#include "nic/config.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"

namespace rvma {

inline constexpr Widenings kWidenedByReadTags{{{"nic.dma.reads", Effect::proportional}}};

struct DmaEngineStats {
  Counter writes{"writes", "writes asked for"};
  Counter write_bursts{"bursts", "write bursts issued"};
  Counter write_bytes{"bytes", "bytes written"};
  Counter reads{"reads", "reads asked for"};
  Counter read_bursts{"bursts", "read bursts issued"};
  Counter read_bytes{"bytes", "bytes read"};
  Peak write_queue{"writes", "writes asked for and not in the posted channel"};
  Peak reads_outstanding{"bursts", "read bursts outstanding"};
  Peak read_queue{"reads", "reads waiting for a tag"};
  Utilisation issue_write{WorkKind::operations, "write bursts, one a cycle", kWidenedByNicClock};
  Utilisation issue_read{WorkKind::operations, "read bursts, one a cycle", kWidenedByNicClock};
  Utilisation tags_full{WorkKind::stalls,
                        "time that the read at the head of the queue waited for one of nic.dma.reads tags",
                        kWidenedByReadTags};
  BOOST_DESCRIBE_CLASS(DmaEngineStats, (),
                       (writes, write_bursts, write_bytes, reads, read_bursts, read_bytes, write_queue,
                        reads_outstanding, read_queue, issue_write, issue_read, tags_full),
                       (), ())
};

/// Writes enter the bus in call order; a write of a word that is asked for ahead of its time is taken at its time, so
/// that payload which is ready earlier goes first. Targets that answer a write TLM_COMPLETED (Pcie does) cost no
/// activation. Any other target of the base protocol works too: END_REQ is then the entry into the posted channel, and
/// visibility is not known.
class DmaEngine : public Component, public DmaIf {
 public:
  tlm_utils::simple_initiator_socket<DmaEngine> dma;

  DmaEngine(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config);
  DmaEngine(const DmaEngine&) = delete;
  DmaEngine& operator=(const DmaEngine&) = delete;
  ~DmaEngine() override;

  void write(DmaWrite write, DmaClient& client, Time at) override;
  Time write_room_at() override;
  void on_write_room(std::function<void()> room) override;
  void read(DmaRead read, DmaClient& client, Time at) override;

  const DmaEngineStats& stats() const { return stats_; }

 private:
  class BurstPool;
  struct Burst;

  struct Write {
    DmaWrite request;
    DmaClient* client = nullptr;
    Time at;
    std::uint64_t number = 0;
  };
  struct Read {
    DmaRead request;
    DmaClient* client = nullptr;
    Time at;
    std::uint32_t issued = 0;     ///< segments
    std::uint32_t bytes_out = 0;  ///< of the payload, that are issued
    std::uint32_t answered = 0;   ///< segments
  };
  /// A read burst whose data will be there at `at`.
  struct Answer {
    Time at;
    std::uint64_t number = 0;  ///< among equal times, the one announced first goes first
    std::uint32_t read = 0;
    friend bool operator<(const Answer& a, const Answer& b) {
      return a.at < b.at || (a.at == b.at && a.number < b.number);
    }
  };

  /// Puts the earliest answer on top of the queue.
  struct Latest {
    bool operator()(const Answer& a, const Answer& b) const { return b < a; }
  };

  void queue_write(Write write);
  void take_due_words();
  /// Issues bursts until the queues are empty, tags are out, or a handshake is open.
  void pump();
  void issue_write_burst();
  void issue_read_burst();
  /// BEGIN_REQ at `begin`; takes the target's immediate answer.
  void begin_request(Burst& burst, Time begin);
  /// The bus has taken the burst at `at` (END_REQ or completion).
  void request_taken(Burst& burst, Time at, Time visible);
  void response(Burst& burst, Time at);
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay);
  void answer_read(std::uint32_t read, Time at);
  void finish_reads();
  Time cycle_for(Time at, Cycles& next, Utilisation& port);

  Cycles latency_;
  std::uint32_t most_reads_;

  // Writes
  std::vector<Write> early_words_;  ///< in order of their times
  FifoRing<Write> writes_;
  std::uint32_t segment_ = 0;         ///< next of the front write
  std::uint32_t segment_offset_ = 0;  ///< bytes of the front write in segments already issued
  Time job_visible_;                  ///< of the front write's bursts so far
  Cycles next_write_;                 ///< first cycle in which a write burst can be issued
  std::uint64_t write_count_ = 0;
  std::uint64_t oldest_queued_ = 0;  ///< every write below has entered the posted channel
  std::vector<Time> entered_;        ///< of the last nic.dma.write_queue writes, by number; never: not yet
  bool room_asked_ = false;
  std::vector<std::function<void()>> on_room_;

  // Reads
  SlotTable<Read> reads_;               ///< those that are queued or outstanding
  FifoRing<std::uint32_t> read_queue_;  ///< with segments to issue
  std::uint32_t outstanding_ = 0;
  Time out_of_tags_since_ = Time::max();
  Cycles next_read_;
  std::priority_queue<Answer, std::vector<Answer>, Latest> answers_;
  std::uint64_t answer_count_ = 0;

  // Bus
  BurstPool* pool_;
  Burst* handshake_ = nullptr;  ///< BEGIN_REQ sent, not yet taken
  Time bus_free_at_;            ///< the last handshake ends then
  bool pumping_ = false;
  bool reads_turn_ = false;

  DmaEngineStats stats_;
  Wakeup issue_;
  Wakeup answer_;
};

}  // namespace rvma
