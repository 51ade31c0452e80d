/// \file
/// What the fabric may do to packets, on the last hop in front of a NIC: lose, damage and double them, delay each by a
/// random time, and turn the order of a flow's packets round. A packet that is held goes on occupying the receiver's
/// buffer that its sender has paid for; one that is lost gives it back at once; a copy is paid for by nobody and takes
/// none.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/component.hpp"
#include "base/random.hpp"
#include "base/stats.hpp"
#include "fabric/config.hpp"
#include "fabric/interfaces.hpp"

namespace rvma {

struct FaultStats {
  Counter packets{"packets", "packets that came"};
  Counter dropped{"packets", "packets lost, by chance"};
  Counter corrupted{"packets", "packets damaged, by chance"};
  Counter duplicated{"packets", "packets doubled, by chance"};
  Counter reversed{"packets", "packets delivered in a batch whose order was turned round"};
  Counter let_go{"batches", "batches let go by reverse_hold before they were full"};
  TimeSum delay_ns{"time that packets were held, by either fault"};
  BOOST_DESCRIBE_CLASS(FaultStats, (), (packets, dropped, corrupted, duplicated, reversed, let_go, delay_ns), (), ())
};

/// Stands between a link and its far end. In this order: drop, corrupt, duplicate (each by a throw of its own),
/// reverse, jitter, delivery in order of time. Data and acknowledgements alike.
class FaultStage : public Component, public PacketSinkIf {
 public:
  /// Copies come out of `packets`; what is lost and copied is added to `losses`. Both outlive the stage.
  FaultStage(const sc_core::sc_module_name& name, SimContext& context, const FaultsConfig& config, PacketSinkIf& next,
             const std::string& stats_path, PacketPool& packets, FabricLosses& losses);
  /// The link that feeds the stage, for the credit of what is lost. Before the first packet.
  void connect(LinkCreditIf& upstream) { upstream_ = &upstream; }

  /// Whether the configuration asks for a stage at all; without one the link is wired straight through.
  static bool wanted(const FaultsConfig& config);

  void deliver(PacketPtr packet, Time at) override;

  const FaultStats& stats() const { return stats_; }

 private:
  struct Held {
    PacketPtr packet;
    Time arrived;
  };
  /// Packets of one flow that wait to be delivered in reverse.
  struct Flow {
    std::vector<Held> held;
    std::uint64_t batch = 0;  ///< number of the batch being held
  };
  struct Deadline {
    Time when;
    std::uint64_t flow;
    std::uint64_t batch;
  };
  struct Departure {
    Time when;
    std::uint64_t order;  ///< of release: decides among equal times
    PacketPtr packet;
  };
  struct Later {
    bool operator()(const Departure& a, const Departure& b) const {
      return b.when < a.when || (a.when == b.when && b.order < a.order);
    }
  };

  /// Data and acknowledgements between two nodes are a flow each.
  void pass(PacketPtr packet, Time at);
  static std::uint64_t flow_of(const Packet& packet);
  void hold(PacketPtr packet, Time at);
  /// Lets go every batch whose time is up at `time` or before.
  void expire(Time time);
  void release_batch(Flow& flow, Time at);
  void depart(PacketPtr packet, Time arrived, Time released);
  void work();
  void arm();

  PacketSinkIf& next_;
  PacketPool& packets_;
  FabricLosses& losses_;
  LinkCreditIf* upstream_ = nullptr;
  std::uint64_t drop_ppb_;
  std::uint64_t corrupt_ppb_;
  std::uint64_t duplicate_ppb_;
  std::uint32_t reverse_;
  Time reverse_hold_;
  std::uint64_t jitter_ps_;
  Random random_;
  boost::unordered_flat_map<std::uint64_t, Flow> flows_;
  std::deque<Deadline> deadlines_;     ///< by time, since arrivals come in order; outdated ones are skipped
  std::vector<Departure> departures_;  ///< heap, earliest first
  std::uint64_t releases_ = 0;
  FaultStats stats_;
  Wakeup wakeup_;
};

}  // namespace rvma
