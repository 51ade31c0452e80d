/// \file
/// An input-buffered switch: a buffer at each input, divided into virtual channels paid for by credits, a virtual queue
/// for each output in it, and arbitration over them at each output.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/component.hpp"
#include "base/random.hpp"
#include "base/stats.hpp"
#include "fabric/config.hpp"
#include "fabric/interfaces.hpp"
#include "fabric/link.hpp"
#include "fabric/routing.hpp"

namespace rvma {

struct SwitchStats {
  Counter packets{"packets", "packets forwarded"};
  Counter wire_bytes{"bytes", "their bytes on the link"};
  Counter unroutable{"packets", "packets dropped because no port leads to their destination"};
  Counter escaped{"packets",
                  "packets that found no credit on an adaptive channel and moved over to the escape channels"};
  TimeSum waited_ns{"time that packets waited for their output beyond the switch's latency"};
  Peak queued{"packets", "most packets known to one output at a time, arriving ones included"};
  BOOST_DESCRIBE_CLASS(SwitchStats, (), (packets, wire_bytes, unroutable, escaped, waited_ns, queued), (), ())
};

/// A packet may leave `fabric.switch.latency` after its last bit (cut_through: its header) has arrived, and occupies
/// its input buffer until its last bit has left. Memory follows what is queued: a port by itself costs some hundred
/// bytes.
///
/// Its output is chosen when it is announced: when the first bit leaves the switch or NIC before.
class Switch : public Component, private OutputView {
 public:
  /// `router` is shared by all switches of a fabric and outlives them; `stats` may be shared too.
  Switch(const sc_core::sc_module_name& name, SimContext& context, const SwitchConfig& config, Router& router,
         SwitchId id, SwitchStats& stats);
  ~Switch() override;

  /// Far end of the link that comes into `port`.
  PacketSinkIf& input(Port port);
  /// `upstream` comes into `port` and gets its credits back; what leaves through `port` goes to `output`.
  void connect(Port port, Link& upstream, Link& output);

  Port ports() const { return static_cast<Port>(outputs_.size()); }
  /// Packets that are here or announced.
  std::uint64_t queued() const { return queued_; }
  /// The most since this was last asked.
  std::uint64_t take_most_queued() { return recent_queued_.take(queued_); }

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  /// A packet that waits for its output, or is on its way in.
  struct Waiting {
    PacketPtr packet;
    Time ready;  ///< earliest first bit at the output
    Router::Hop hop;
    Port input = 0;
    std::uint32_t input_channel = 0;
    std::uint32_t next = kNone;  ///< in its queue, or of the free ones
    bool is_lost = false;        ///< found its buffer full (drop-tail)
  };
  /// The packets of one input for one output and channel, in order of arrival; exists while there are any. What
  /// arbitration asks of the head is kept here, next to that of the other queues.
  struct Queue {
    std::uint64_t key;   ///< input, then channel: the order of the round
    std::uint32_t head;  ///< in waiting_
    std::uint32_t tail;
    Time ready;  ///< of the head
    std::uint32_t head_bytes;
    bool may_escape;  ///< the head
  };
  struct Output {
    Link* link = nullptr;
    std::vector<Queue> queues;  ///< by key
    std::uint64_t last_winner = ~std::uint64_t{0};
    std::uint64_t queued_bytes = 0;
    std::uint32_t queued = 0;
    Time due = Time::max();  ///< when it decides next
  };
  /// Drop-tail only: what arrives, against what leaves. Filled and emptied in order of time.
  struct Tail {
    struct Arrival {
      Time at;
      std::uint32_t waiting;
    };
    struct Departure {
      Time at;
      std::uint32_t bytes;
    };
    std::deque<Arrival> arrivals;       ///< not looked at yet
    std::vector<Departure> departures;  ///< heap, earliest first
    std::uint64_t occupied_bytes = 0;
  };
  struct Input : PacketSinkIf {
    Input(Switch& switch_here, Port number) : owner(switch_here), port(number) {}
    void deliver(PacketPtr packet, Time at) override { owner.accept(*this, std::move(packet), at); }

    Switch& owner;
    Port port;
    bool is_from_node = false;
    Link* upstream = nullptr;
    std::unique_ptr<Tail> tail;
  };
  struct Due {
    Time at;
    Port output;
    /// For a heap with the earliest first; ports decide ties, so that a run repeats.
    friend bool operator<(const Due& a, const Due& b) { return b.at < a.at || (a.at == b.at && b.output < a.output); }
  };

  // OutputView
  std::uint64_t load_bytes(Port port) const override;
  bool is_up(Port port) const override { return outputs_[port].link->is_up(routed_at_); }

  void accept(Input& input, PacketPtr packet, Time at);
  /// Lets every output decide whose time has come.
  void work();
  void decide_at(Port port, Time when);
  /// Makes every decision of an output that nothing unknown can change, then sets when it decides next.
  void arbitrate(Port port);
  /// Fills turns_: when the head of each queue could start, or has to move over; credit that is not known yet to come:
  /// never. Returns the earliest.
  Time find_turns(Output& output);
  void note_head(Queue& queue) const;
  /// The queue that is served at `decision`: index in output.queues.
  std::size_t winner(const Output& output, Time decision) const;
  void forward(Port port, std::size_t queue, Time decision);
  void move_to_escape(Port port, std::size_t queue);
  /// Drop-tail: decides which of the packets that have arrived by now found room; true if queue heads were thrown away.
  bool discard_lost(Port port);
  void admit(Input& input);

  std::uint32_t take_slot(Waiting waiting);
  void enqueue(Port port, std::uint32_t slot);
  /// Takes the head off; the queue goes with its last packet.
  std::uint32_t dequeue(Port port, std::size_t queue);
  Waiting release_slot(std::uint32_t slot);

  Router& router_;
  SwitchId id_;
  Time latency_;
  std::uint64_t buffer_bytes_;
  bool cuts_through_;
  bool oldest_first_;
  bool drops_;
  std::deque<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<Waiting> waiting_;
  std::uint32_t free_slot_ = kNone;
  std::uint64_t queued_ = 0;
  RecentPeak recent_queued_;
  std::vector<Due> due_;     ///< heap; entries that an output no longer means are skipped
  std::vector<Time> turns_;  ///< scratch, as is the next
  /// When credit for so many bytes is there on a channel: the same for most queues.
  struct CreditAt {
    std::uint32_t bytes = 0;
    Time at;
  };
  std::vector<CreditAt> credit_at_;  ///< by channel
  Time routed_at_;                   ///< when the packet that is being routed has its header here
  Random random_;
  SwitchStats& stats_;
  Wakeup wakeup_;
};

}  // namespace rvma
