/// \file
/// The receive half of the packet-delivery contexts as a unit: one context for each source that has sent something, and
/// the timing of acknowledgements.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <systemc>
#include <vector>

#include "base/component.hpp"
#include "fabric/packet.hpp"
#include "nic/config.hpp"
#include "nic/delivery.hpp"
#include "nic/egress.hpp"
#include "nic/index_allocator.hpp"
#include "nic/interfaces.hpp"
#include "nic/spilled_cache.hpp"

namespace rvma {

struct DeliveryStats {
  Counter fresh{"packets", "first copies of packets of open messages"};
  Counter duplicate{"packets", "packets seen before: acknowledged again, otherwise ignored"};
  Counter stale{"packets", "packets of an older incarnation or generation, for another incarnation, or out of window"};
  Counter closed{"packets", "first copies of packets of messages that had ended"};
  Counter out_of_order{"packets", "first copies that were not the next in their context's sequence"};
  Counter refused{"messages", "messages refused"};
  Counter refusals_held_back{"times", "acknowledgements that left a refusal out because its budget was used up"};
  Counter acknowledgements{"packets", "acknowledgements made"};
  Counter cut_off{"messages", "bound messages cut off"};
  Counter silences{"times", "sources that fell silent with messages bound"};
  Counter incarnations_told{"packets", "answers to packets for an earlier incarnation of this NIC"};
  Counter no_room{"packets", "packets of further sources, dropped since their contexts may not spill"};
  Peak contexts{"contexts", "sources with a context"};
  Peak bound{"messages", "messages of several packets under way, of all sources together"};
  BOOST_DESCRIBE_CLASS(DeliveryStats, (),
                       (fresh, duplicate, stale, closed, out_of_order, refused, refusals_held_back, acknowledgements,
                        cut_off, silences, incarnations_told, no_room, contexts, bound),
                       (), ())
};

class DeliveryUnit : public Component, public DeliveryIf, public ReceiveContextsIf {
 public:
  sc_core::sc_port<EgressIf> egress;
  /// Unbound: nothing is ever cut off (a unit driven alone).
  sc_core::sc_port<CutOffIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> bindings;

  /// `boot_number`: incarnation of this NIC. Packets come out of `packets`.
  DeliveryUnit(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, NodeId node,
               std::uint32_t boot_number, PacketPool& packets);

  /// Set-up: where the contexts lie, numbered in the order in which sources came. Without it all are on chip. Outlives
  /// the unit's use. What packets, counts and refusals tell a context is noted with its pending acknowledgement, so
  /// that it has to be on the NIC when a packet is decided about and when it is acknowledged, and not between.
  void use_cache(SpilledCache& contexts);
  /// This incarnation begins: what a sender cut after `at` was never counted by an earlier one. Without it that is the
  /// start of the simulation.
  void power_on(Time at) { powered_on_ = at; }
  bool has_context(const Packet& packet) override;
  void fetch_context(const Packet& packet, std::function<void()> done) override;
  std::optional<std::uint32_t> binding_of(const Packet& packet) override;

  Admission admit(const Packet& packet) override;
  bool is_first(const Packet& packet) override;
  void bind(const MessageRef& message, std::uint32_t binding) override;
  void refuse(const MessageRef& message, Outcome reason, Time at) override;
  void refuse_unidentified(const MessageRef& message, Time at) override;
  void dispose(const MessageRef& message, std::uint32_t sequence, Time at) override;
  void end(const MessageRef& message, Time at) override;
  void withdraw(NodeId source, MessageId message, Time at) override;

  const DeliveryStats& stats() const { return stats_; }
  std::size_t contexts() const { return sources_.size(); }

 private:
  struct Source {
    Source(NodeId node_id, ReceiveContext receive_context) : node(node_id), context(std::move(receive_context)) {}
    NodeId node;
    std::uint32_t number = 0;  ///< its entry in the cache of contexts
    ReceiveContext context;
    std::uint32_t bound = 0;     ///< messages, as they were last added to those of all sources
    bool tentative = true;       ///< opened by a packet whose fate is not known yet
    std::uint32_t untold = 0;    ///< packets that no acknowledgement has covered
    Time heard_at;               ///< of the last packet
    Time watched = Time::max();  ///< entry in idle_; never: nothing is bound
    Time due = Time::max();      ///< of the next acknowledgement; "never": nothing to tell
  };
  struct Due {
    Time at;
    NodeId source;
    bool operator>(const Due& other) const { return at != other.at ? at > other.at : other.source < source; }
  };

  Source* find(NodeId node);
  /// The context that the message belongs to, if it is still the latest one of its source.
  Source* find(const MessageRef& message);
  Source* context_of(const TransportHeader& header);
  void want_acknowledgement(Source& source, Time at);
  void wake();
  void acknowledge(Source& source);
  void send_acknowledgement(Source& source);
  /// Type, addresses and incarnations: of an acknowledgement to `node`.
  PacketPtr make_acknowledgement(NodeId node, std::uint32_t incarnation, std::uint32_t generation);
  void forget(NodeId node);
  void cut_off(const Source& source, const std::vector<ReceiveContext::Bound>& bound);
  void tell_incarnation(const TransportHeader& header);
  /// Meant for this incarnation. One that names none is, in the first life: in a later one it may have been sent, and
  /// counted, before.
  bool is_addressed(const TransportHeader& header) const;
  /// After a change of what the source has bound.
  void count_bound(Source& source);
  void watch(Source& source);
  /// Nothing of the source is bound any more, perhaps.
  void unwatch_if_idle(Source& source);
  /// Cuts off what silent sources have bound.
  void look_for_silence();

  const ReliabilityConfig& reliability_;
  const bool nack_;
  const NodeId node_;
  const std::uint32_t boot_number_;
  Time powered_on_;
  PacketPool& packets_;
  DeliveryStats stats_;
  std::uint64_t bound_messages_ = 0;
  boost::unordered_flat_map<NodeId, std::unique_ptr<Source>> sources_;
  SpilledCache* cache_ = nullptr;
  IndexAllocator numbers_{std::numeric_limits<std::uint32_t>::max()};
  std::vector<Source*> by_number_;
  Source* latest_ = nullptr;  ///< most packets come from the same source as the one before
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::vector<ReceiveContext::Bound> bound_;  ///< scratch
  Time next_incarnation_told_;
  /// Sources with bound messages, each with a time at which it may have been silent for too long.
  std::priority_queue<Due, std::vector<Due>, std::greater<>> idle_;
  std::size_t watched_ = 0;  ///< sources
  Wakeup wake_;
  Wakeup silence_;
};

}  // namespace rvma
