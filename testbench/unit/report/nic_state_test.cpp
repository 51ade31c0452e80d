#include "report/nic_state.hpp"

#include <gtest/gtest.h>

namespace rvma {
namespace {

struct CallsStats {
  Peak windows_peak{"windows", ""};
  Peak buffers_peak{"buffers", ""};
  Peak counters_peak{"counters", ""};
  Peak bindings_peak{"bindings", ""};
  BOOST_DESCRIBE_CLASS(CallsStats, (), (windows_peak, buffers_peak, counters_peak, bindings_peak), (), ())
};
struct EntriesStats {
  Peak entries{"entries", ""};
  BOOST_DESCRIBE_CLASS(EntriesStats, (), (entries), (), ())
};
struct BoundStats {
  Peak bound{"messages", ""};
  BOOST_DESCRIBE_CLASS(BoundStats, (), (bound), (), ())
};

TEST(NicState, OfARestartedNicEachStructureCountsOnce) {
  CallsStats first;
  CallsStats second;
  CallsStats other;
  first.windows_peak.observe(3);
  first.bindings_peak.observe(1);
  second.windows_peak.observe(2);
  second.bindings_peak.observe(2);
  other.buffers_peak.observe(1);
  other.counters_peak.observe(1);
  StatsRegistry stats;
  stats.add("node0.nic.window_calls", other);
  stats.add("node11.nic.window_calls", first);
  stats.add("node11.nic_boot2.window_calls", second);
  NicConfig nic;
  nic.reliability.window = 64;
  const NicStates states = nic_states(stats, {nic, nullptr, 12, 1});
  EXPECT_EQ(states.node, NodeId{11});
  EXPECT_EQ(states.largest.total(), 3 * 60 + 2 * (64 + 8));
  EXPECT_EQ(states.all.total(), states.largest.total() + 43 + 28);
}

TEST(NicState, RdmasHasMessagesAndReceives) {
  EntriesStats queue_pairs;
  EntriesStats regions;
  BoundStats bound;
  queue_pairs.entries.observe(2);
  regions.entries.observe(5);
  bound.bound.observe(3);
  StatsRegistry stats;
  stats.add("node1.nic.receive.queue_pairs", queue_pairs);
  stats.add("node1.nic.receive.regions", regions);
  stats.add("node1.nic.delivery", bound);
  NicConfig nic;
  nic.reliability.window = 64;
  RdmaConfig rdma;
  rdma.receives = 10;
  // Three processes: two on the first node, and one on the second.
  NicStates states = nic_states(stats, {nic, &rdma, 3, 2});
  EXPECT_EQ(states.node, NodeId{1});
  EXPECT_EQ(states.largest.total(), 7 * 64 + 3 * 60 + 10 * 40);
  EXPECT_EQ(states.all.receives, 30 * 40);
  rdma.ooo_tracking = true;
  states = nic_states(stats, {nic, &rdma, 3, 2});
  EXPECT_EQ(states.all.messages, 3 * (60 + 8));
}

}  // namespace
}  // namespace rvma
