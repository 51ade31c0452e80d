/// \file
/// Send side of the RDMA NIC: work requests of queue pairs, and the answers to other nodes' reads, on their way to
/// transmit; and the completion entries of both.
#pragma once

#include <cstdint>
#include <functional>
#include <systemc>
#include <vector>

#include "base/component.hpp"
#include "nic/config.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "rdma/completion_queue_writer.hpp"
#include "rdma/config.hpp"
#include "rdma/rdma_receive.hpp"
#include "rdma/rdma_state.hpp"

namespace rvma {

struct WorkUnitStats {
  Counter writes{"requests", "writes taken"};
  Counter sends{"requests", "sends taken"};
  Counter reads{"requests", "reads taken"};
  Counter malformed{"requests", "requests that name no queue pair: dropped"};
  Counter ended_ok{"requests", "writes, sends and reads that ended ok"};
  Counter ended_otherwise{"requests", "writes, sends and reads that ended otherwise"};
  Counter reads_timed_out{"reads", "of these, reads that were accepted and whose answer stayed away"};
  Counter answers{"answers", "answers to other nodes' reads"};
  Peak held{"requests", "requests waiting for their queue pair's context"};
  Peak serving{"answers", "reads of others being answered at a time"};
  BOOST_DESCRIBE_CLASS(WorkUnitStats, (),
                       (writes, sends, reads, malformed, ended_ok, ended_otherwise, reads_timed_out, answers, held,
                        serving),
                       (), ())
};

class WorkUnit : public Component, public TransmitIf, public RdmaAnswerIf, public GetSinkIf {
 public:
  sc_core::sc_port<TransmitIf> transmit;

  /// Everything that is referred to outlives the unit. `queue_pairs` is the receive path's: one cache a NIC.
  WorkUnit(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& nic, const RdmaConfig& rdma,
           RdmaState& state, StateCache& queue_pairs, CompletionQueueWriter& completions);

  /// A work request, from the command unit. It waits here for its queue pair's context; those of one queue pair stay in
  /// order.
  bool submit(const PutRequest& request, Cycles at) override;
  void on_room(std::function<void()> room) override { room_.push_back(std::move(room)); }
  bool answer(NodeId asker, const DataHeader& request, const Descriptor& answer) override;
  void ended(const PutRequest& request, Outcome outcome, std::uint32_t tries, Time at) override;
  bool may_read(const PutRequest& /*answer*/) override { return true; }

  const WorkUnitStats& stats() const { return stats_; }

 private:
  static constexpr std::size_t kMostHeld = 64;
  struct Due {
    Time at;
    std::uint32_t read = 0;
  };
  void end_of_elaboration() override;
  void prepare(PutRequest& request);
  void hand_on();
  void complete(Pid pid, CqeKind kind, std::uint64_t id, Outcome outcome, Time at);
  void answered();
  void look_at_time_outs();

  Time read_timeout_;
  std::uint32_t most_answers_;
  RdmaState& state_;
  StateCache& queue_pairs_;
  CompletionQueueWriter& completions_;
  FifoRing<PutRequest> ready_;  ///< for transmit
  std::size_t held_ = 0;
  bool starved_ = false;
  std::uint32_t serving_ = 0;
  std::vector<std::function<void()>> room_;
  FifoRing<Due> due_;  ///< accepted reads, by time
  WorkUnitStats stats_;
  Wakeup time_out_;
  Wakeup resume_;
};

}  // namespace rvma
