/// \file
/// Section `workload` of the configuration.
#pragma once

#include <cstdint>

#include "base/config.hpp"

namespace rvma {

enum class PayloadMode : std::uint8_t { bytes, none };
BOOST_DESCRIBE_ENUM(PayloadMode, bytes, none)

/// The message layer: what an MPI library does above the NIC, the same for both protocols.
struct MessagesConfig {
  Key<Bytes> eager_limit{Bytes{16000},
                         {Bytes{0}, Bytes{1ULL << 30U}},
                         "messages of up to so many bytes go to a buffer that the receiver's layer has posted beforehand, "
                         "and are copied from there; longer ones ask first (rendezvous)"};
  Key<Rate> memcpy_rate{Rate::gbps(80),
                        "rate at which a core copies an eager message, once at each end; 0Gbps: copies take no time"};
  Key<Time> matching{Time::zero(),
                     {Time::zero(), Time::from_us(1000)},
                     "core time at the receiver to match a message, or a request to send one"};
  Key<std::uint32_t> slots{
      8, {1, 1024}, "messages of a pair of ranks and direction that the receiver's layer has buffers for"};
  BOOST_DESCRIBE_CLASS(MessagesConfig, (), (eager_limit, memcpy_rate, matching, slots), (), ())
};

struct WorkloadConfig {
  Key<std::uint32_t> ranks_per_node{1, {1, 4096}, "processes, each with a core of its own, on one node"};
  Key<PayloadMode> payload{PayloadMode::bytes, "bytes: real data, checkable; none: timing only, faster"};
  Key<std::uint64_t> seed{1, "seed of every random choice of the run; --seed overrides it"};
  MessagesConfig messages;
  BOOST_DESCRIBE_CLASS(WorkloadConfig, (), (ranks_per_node, payload, seed, messages), (), ())
};

}  // namespace rvma
