/// \file
/// What a run's NICs had to hold of their protocol's state, in entries as hardware would hold them.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>

#include "base/ids.hpp"
#include "base/stats.hpp"
#include "nic/config.hpp"
#include "rdma/config.hpp"

namespace rvma {

// Entries of the RDMA NIC, field by field in docs/reference/units/rdma-receive.md; RVMA's: nic/on_chip_bytes.hpp.
inline constexpr std::uint64_t kQueuePairHardwareBytes = 64;
inline constexpr std::uint64_t kRegionHardwareBytes = 64;
inline constexpr std::uint64_t kReceiveHardwareBytes = 40;
/// A message of several packets that has begun. A NIC that tracks order has a bit for each packet that its sender may
/// have in flight, as a binding has.
constexpr std::uint64_t message_hardware_bytes(bool tracks_order, std::uint64_t packets) {
  return 60 + (tracks_order ? (packets + 7) / 8 : 0);
}

/// Bytes, each structure at its own peak. Histories of windows and delivery contexts, which both protocols have, are
/// left out.
struct NicStateBytes {
  std::uint64_t windows = 0;
  std::uint64_t buffers = 0;
  std::uint64_t counters = 0;
  std::uint64_t bindings = 0;
  std::uint64_t queue_pairs = 0;
  std::uint64_t regions = 0;
  std::uint64_t messages = 0;
  std::uint64_t receives = 0;
  BOOST_DESCRIBE_CLASS(NicStateBytes, (),
                       (windows, buffers, counters, bindings, queue_pairs, regions, messages, receives), (), ())
  std::uint64_t total() const {
    return windows + buffers + counters + bindings + queue_pairs + regions + messages + receives;
  }
};

struct NicStates {
  NicStateBytes all;      ///< of all NICs together
  NicStateBytes largest;  ///< of the NIC that held most
  NodeId node;            ///< whose that is; the first of several
};

struct NicStateParameters {
  const NicConfig& nic;
  const RdmaConfig* rdma;  ///< null: the NICs are RVMA's
  std::uint32_t ranks;
  std::uint32_t ranks_per_node;
};
/// Of a node whose NIC was restarted, each structure counts once: the most that any of its incarnations held.
NicStates nic_states(const StatsRegistry& stats, const NicStateParameters& parameters);

}  // namespace rvma
