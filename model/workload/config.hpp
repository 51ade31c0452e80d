/// \file
/// Section `workload` of the configuration.
#pragma once

#include <cstdint>

#include "base/config.hpp"

namespace rvma {

enum class PayloadMode : std::uint8_t { bytes, none };
BOOST_DESCRIBE_ENUM(PayloadMode, bytes, none)

/// When a send by rendezvous has ended. A library may call its buffer free once the receiver has acknowledged it; the
/// public model of RVMA (SST, 2020) does so once the NIC has been told to send it.
enum class SendEnd : std::uint8_t { acknowledged, issued };
BOOST_DESCRIBE_ENUM(SendEnd, acknowledged, issued)

/// The message layer: what an MPI library does above the NIC, the same for both protocols.
struct MessagesConfig {
  Key<Bytes> eager_limit{
      Bytes{16000},
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
  Key<SendEnd> send_end{SendEnd::acknowledged,
                        "when a send by rendezvous has ended: its payload is acknowledged, or its put is issued"};
  BOOST_DESCRIBE_CLASS(MessagesConfig, (), (eager_limit, memcpy_rate, matching, slots, send_end), (), ())
};

struct WorkloadConfig {
  Key<std::uint32_t> ranks_per_node{1, {1, 4096}, "processes, each with a core of its own, on one node"};
  Key<PayloadMode> payload{PayloadMode::bytes, "bytes: real data, checkable; none: timing only, faster"};
  Key<std::uint64_t> seed{1, "seed of every random choice of the run; --seed overrides it"};
  MessagesConfig messages;
  BOOST_DESCRIBE_CLASS(WorkloadConfig, (), (ranks_per_node, payload, seed, messages), (), ())
};

}  // namespace rvma
