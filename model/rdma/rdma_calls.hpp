/// \file
/// Calls of the RDMA NIC's software: regions, queue pairs, receives.
#pragma once

#include <functional>
#include <systemc>

#include "base/component.hpp"
#include "nic/config.hpp"
#include "nic/interfaces.hpp"
#include "rdma/rdma_state.hpp"
#include "rdma/state_cache.hpp"

namespace rvma {

struct RdmaCallsStats {
  Counter calls{"calls", "calls executed"};
  Counter failed{"calls", "calls answered with another status than ok"};
  Counter receives{"receives", "receives posted"};
  BOOST_DESCRIBE_CLASS(RdmaCallsStats, (), (calls, failed, receives), (), ())
};

/// Each call is executed in its cycle.
class RdmaCalls : public Component, public WindowCallsIf {
 public:
  /// Everything that is referred to outlives the unit. The caches are the receive path's.
  RdmaCalls(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, RdmaState& state,
            StateCache& queue_pairs, StateCache& regions);
  void execute(const Descriptor& call, Pid pid, Cycles at, std::function<void(const CallAnswer&)> done) override;
  /// At once and free of charge.
  Status perform(const Descriptor& call, Pid pid);

  const RdmaCallsStats& stats() const { return stats_; }

 private:
  RdmaState& state_;
  StateCache& queue_pairs_;
  StateCache& regions_;
  RdmaCallsStats stats_;
};

}  // namespace rvma
