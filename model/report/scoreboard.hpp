/// \file
/// `--check`: holds every claim of the NICs against the trace and against host memory, by rules of its own. It shares
/// no state and no code with the units it judges: from them it takes only the order of decisions.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "nic/observer.hpp"
#include "report/message_key.hpp"
#include "report/put_registry.hpp"
#include "report/recorder.hpp"
#include "workload/player.hpp"

namespace rvma {

class Scoreboard : public NicObserver, public PlayerObserver {
 public:
  static constexpr std::size_t kShown = 20;

  struct Host {
    /// Copies `bytes` of a process's memory, as a load now would see them.
    std::function<void(NodeId, Pid, VirtualAddress, std::uint64_t, std::vector<std::uint8_t>&)> read;
    /// Loads 8 bytes of physical memory.
    std::function<std::uint64_t(NodeId, PhysicalAddress)> load64;
    /// Asks for settle() at a time.
    std::function<void(Time)> wake_at;
  };
  /// `with_bytes` false (workload.payload = none): counts only.
  Scoreboard(PutRegistry& registry, Host host, std::uint32_t mtu_bytes, bool with_bytes);
  ~Scoreboard() override;

  /// Checks the completions that are visible by `now`.
  void settle(Time now);
  /// Conservation, and what no completion has covered. `drained` false: the run was stopped, so that packets and writes
  /// are on their way, and what they would bring is not missed.
  void finish(Time now, const RunTotals& totals, bool drained = true);

  /// A check of somebody else's has failed.
  void add_failure(Time at, const std::string& what) { fail(at, what); }

  bool passed() const { return failure_count_ == 0; }
  std::uint64_t failure_count() const { return failure_count_; }
  /// The first kShown failures, in order.
  const std::vector<std::string>& failures() const { return failures_; }
  std::uint64_t checked_completions() const { return checked_completions_; }
  std::uint64_t checked_bytes() const { return checked_bytes_; }

  // PlayerObserver
  void put_freed(NodeId node, PhysicalAddress word) override;
  void post_issued(const BufferPost& post) override;
  void buffer_freed(NodeId node, PhysicalAddress word) override;
  // NicObserver
  void get_opened(NodeId node, Pid pid, WindowId slot, BufferId buffer, const Descriptor& window, Time at) override;
  void get_given_up(NodeId node, WindowId slot, Time at) override;
  void get_accepted(NodeId node, const MessageRef& request, BufferId buffer, Time at) override;
  void packet_sent(NodeId node, const Packet& packet, Time at) override;
  void put_ended(NodeId node, PhysicalAddress put, Outcome outcome, std::uint32_t tries, Time at) override;
  void packet_arrived(NodeId node, const Packet& packet, Time at) override;
  void message_refused(NodeId node, const MessageRef& message, Outcome reason, Time at) override;
  void message_bound(NodeId node, const MessageRef& message, WindowId slot, BufferId buffer, Epoch epoch,
                     std::uint64_t buffer_offset, std::uint64_t length, Time at) override;
  void packet_placed(NodeId node, const PlacedPacket& packet, std::uint64_t buffer_offset, Time at) override;
  void record_placed(NodeId node, const PlacedPacket& packet, std::uint64_t buffer_offset, Time at) override;
  void message_cut_off(NodeId node, const MessageRef& message, BufferId buffer, bool is_broken, Time at) override;
  void message_counted(NodeId node, const MessageRef& message, BufferId buffer, Time at) override;
  void completion_written(NodeId node, const Completion& completion, Time at, Time visible) override;
  void window_opened(NodeId node, Pid pid, WindowId slot, const Descriptor& call, Time at) override;
  void buffer_posted(NodeId node, Pid pid, WindowId slot, BufferId buffer, const Descriptor& call, Time at) override;
  void epoch_retired(NodeId node, WindowId slot, BufferId buffer, Epoch epoch, bool by_call, Time at) override;
  void node_crashed(NodeId node, Time at) override;
  void window_rewinding(NodeId node, WindowId slot, Time at) override;
  void window_rewound(NodeId node, WindowId slot, Epoch epoch, const std::vector<RewoundBuffer>& buffers,
                      Time at) override;
  void window_closed(NodeId node, WindowId slot, const std::vector<BufferId>& returned, Time at) override;

 private:
  struct ShadowBuffer;
  struct ShadowWindow;
  struct BoundMessage;
  struct PendingCheck;
  struct ShadowGet;
  struct NodeKey {  ///< a slot, buffer id or word address of one node
    std::uint32_t node = 0;
    std::uint64_t id = 0;
    friend bool operator==(const NodeKey& a, const NodeKey& b) { return a.node == b.node && a.id == b.id; }
  };
  struct Hash {
    std::size_t operator()(const NodeKey& key) const;
  };
  struct LaterCheck {
    bool operator()(const PendingCheck& a, const PendingCheck& b) const;
  };

  /// Records a failure unless `condition` holds; returns it.
  template <class Describe>
  bool expect(bool condition, Time at, Describe&& describe) {
    if (!condition) fail(at, describe());
    return condition;
  }
  void fail(Time at, const std::string& text);
  void cut_off_all(const std::shared_ptr<ShadowWindow>& window);
  void take_answer(ShadowGet& get, std::uint64_t place, const std::uint8_t* payload, std::uint64_t bytes, Time at);
  void check_get(const ShadowGet& get, Time at);
  bool is_open(NodeId node, Pid pid, Mailbox mailbox) const;
  void expect_retired_where_due(const ShadowWindow& window, Time at);
  void compare_memory(ShadowBuffer& buffer, Time at);
  void take_base(ShadowBuffer& buffer);
  void check_visible(const PendingCheck& check);
  bool may_be_on_its_way(const ShadowBuffer& buffer, std::uint64_t offset, std::uint8_t found) const;
  std::uint64_t right_bytes(const ShadowBuffer& buffer, std::uint64_t from, std::uint64_t bytes,
                            std::uint8_t& wanted_byte) const;

  PutRegistry& registry_;
  Host host_;
  std::uint32_t mtu_bytes_;
  bool with_bytes_;

  boost::unordered_flat_map<NodeKey, std::shared_ptr<ShadowWindow>, Hash> windows_;  ///< by slot
  boost::unordered_flat_map<NodeKey, std::shared_ptr<ShadowBuffer>, Hash> posted_;   ///< by completion word
  boost::unordered_flat_map<NodeKey, std::shared_ptr<ShadowBuffer>, Hash> buffers_;  ///< by buffer id: its latest
  boost::unordered_flat_map<MessageKey, std::unique_ptr<BoundMessage>> messages_;    ///< bound, not counted
  boost::unordered_flat_map<NodeKey, std::unique_ptr<ShadowGet>, Hash> gets_;        ///< by word, until it is recycled
  std::priority_queue<PendingCheck, std::vector<PendingCheck>, LaterCheck> pending_;
  std::uint64_t lost_bound_ = 0;  ///< messages that were bound when their node crashed
  std::uint64_t packets_arrived_ = 0;
  std::uint64_t open_misfits_ = 0;  ///< windows whose managed misfit is not explained yet
  std::uint64_t completions_claimed_ = 0;
  std::uint64_t checked_completions_ = 0;
  std::uint64_t checked_bytes_ = 0;
  std::uint64_t next_check_ = 0;
  bool drained_ = true;
  std::vector<std::uint8_t> memory_;
  std::vector<std::string> failures_;
  std::uint64_t failure_count_ = 0;
};

}  // namespace rvma
