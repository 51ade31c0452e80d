/// \file
/// Gets, at both ends. The asker's end opens a one-time window for the answer, has the request sent, and ends the get.
/// The target's end queues accepted requests and has them answered by puts.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <systemc>
#include <utility>
#include <vector>

#include "base/component.hpp"
#include "base/random.hpp"
#include "base/slot_table.hpp"
#include "nic/config.hpp"
#include "nic/context_cache.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "nic/interrupt_arm.hpp"
#include "nic/observer.hpp"
#include "nic/window_store.hpp"

namespace rvma {

struct GetStats {
  Counter gets{"gets", "gets accepted from the command unit"};
  Counter ended_ok{"gets", "gets whose bytes have come"};
  Counter ended_otherwise{"gets", "gets that ended with a refusal or a time-out"};
  Counter without_window{"gets", "of these, gets for which no window could be opened here"};
  Counter window_retries{"retries", "times that a get waited to open its window again"};
  Counter timed_out{"gets", "of these, gets whose request was accepted and whose answer stayed away"};
  Counter requests{"requests", "requests of others that were accepted"};
  Counter requests_turned_away{"requests",
                               "requests refused because the queue was full, or no transmit context was left"};
  Counter answers_ended{"answers", "answers that ended ok"};
  Counter answers_failed{"answers", "answers that ended otherwise"};
  Peak open{"gets", "gets from acceptance to end at a time"};
  Peak serving{"requests", "requests being answered at a time"};
  BOOST_DESCRIBE_CLASS(GetStats, (),
                       (gets, ended_ok, ended_otherwise, without_window, window_retries, timed_out, requests,
                        requests_turned_away, answers_ended, answers_failed, open, serving),
                       (), ())
};

/// The answer's window: a random mailbox and a random key, threshold one operation, one buffer, the get's. So the
/// receive path treats the answer as any message, and the get is over when the epoch is: its word, (outcome, bytes),
/// takes the place of the completion word. A refusal or time-out of the request, or nic.get.timeout without a packet of
/// the answer after the request was accepted, closes the window first, and cuts off what has bound there.
///
/// Where the NIC has no room for the window, the get is busy, and tries again as a put does that is refused so.
///
/// A request holds one of nic.get.queue places from its acceptance to the end of its answer, and with it an entry of
/// the open-put table that is kept for answers: whatever the own puts and requests wait for, it is answered. The answer
/// reads the buffer while it is sent; nothing reserves it.
class GetUnit : public Component, public TransmitIf, public GetServeIf, public GetSinkIf, public DmaClient {
 public:
  sc_core::sc_port<DeliveryIf> delivery;
  sc_core::sc_port<DmaIf> dma;
  sc_core::sc_port<TransmitIf> transmit;

  /// `page` is the host's page size. Everything that is referred to outlives the unit.
  GetUnit(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, Bytes page, NodeId node,
          WindowStore& windows, ContextCache& contexts, InterruptArm& arm, const ObserverList& observers);

  /// Set-up: whether an answer could be sent to a node, with what that takes kept for it. Requests of others are
  /// refused `busy`; unset, none is.
  void on_request(std::function<bool(NodeId)> can_answer) { can_answer_ = std::move(can_answer); }

  // TransmitIf, for the command unit: gets.
  bool submit(const PutRequest& get, Cycles at) override;
  void on_room(std::function<void()> room) override { room_.push_back(std::move(room)); }
  // Target
  bool serve(NodeId source, const DataHeader& request, WindowId slot, BufferId buffer) override;
  // What transmit says of requests and answers
  void ended(const PutRequest& request, Outcome outcome, std::uint32_t tries, Time at) override;
  bool may_read(const PutRequest& answer) override;
  /// The epoch of an answer's window is complete; its word may be written from cycle `at` on.
  void answer_complete(const Completion& completion, Cycles at);

  void dma_written(std::uint64_t /*tag*/, Time /*entered*/, Time /*visible*/) override {}
  void dma_read_done(std::uint64_t tag) override;

  const GetStats& stats() const { return stats_; }

 private:
  using Index = std::uint32_t;
  enum class State : std::uint8_t { free, opening, asking, waiting, closing };
  struct Get {
    PutRequest request;
    State state = State::free;
    std::uint32_t uses = 0;  ///< of this entry: tells late events of an earlier get apart
    std::uint32_t tries = 0;
    std::uint32_t openings = 0;  ///< of its window that found no room
    Mailbox mailbox;             ///< of the answer
    std::uint32_t key = 0;
    WindowId window;
    std::uint64_t activity = 0;  ///< packets of the answer when its time-out was last looked at
    Outcome outcome = Outcome::pending;
  };
  struct Due {
    Time at;
    Index get = 0;
    std::uint32_t uses = 0;
  };

  void end_of_elaboration() override;
  void open_window(Index index);
  void opened(Index index, BufferId buffer, const Descriptor& window, TableStatus status);
  void wait_for_room(Index index);
  void open_again();
  void ask(Index index);
  void close(Index index, Outcome outcome);
  void close_window(Index index);
  void drained(Index index);
  void end(Index index, Outcome outcome, Time at);
  void wait_for_answer(Index index);
  void look_at_time_outs();
  void hand_on();
  bool is_current(Index index, std::uint32_t uses) const { return index < gets_.made() && gets_[index].uses == uses; }

  const GetConfig& config_;
  const ReliabilityConfig& reliability_;
  const Time completion_latency_;
  const std::uint64_t page_bytes_;
  const NodeId node_;
  WindowStore& windows_;
  ContextCache& contexts_;
  InterruptArm& arm_;
  const ObserverList& observers_;
  Random random_;
  GetStats stats_;

  SlotTable<Get> gets_;
  std::size_t open_ = 0;
  bool starved_ = false;
  std::vector<std::function<void()>> room_;
  boost::unordered_flat_map<WindowId, Index> by_slot_;
  FifoRing<Due> due_;        ///< one for each get that waits for its answer, by time
  std::size_t waiting_ = 0;  ///< of them, those that still do
  std::size_t serving_ = 0;
  std::function<bool(NodeId)> can_answer_;
  FifoRing<Due> openings_;          ///< gets that will try to open their window again, by time
  FifoRing<PutRequest> asking_;     ///< requests for which transmit had no room
  FifoRing<PutRequest> answering_;  ///< answers that are handed on in this cycle or the next
  std::vector<WindowStore::CutMessage> cut_;
  Wakeup hand_on_;
  Wakeup time_out_;
  Wakeup open_again_;
};

}  // namespace rvma
