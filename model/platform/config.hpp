/// \file
/// The whole configuration: the sections of all blocks under one root.
#pragma once

#include <string_view>

#include "base/config.hpp"
#include "fabric/config.hpp"
#include "host/config.hpp"
#include "nic/config.hpp"
#include "rdma/config.hpp"
#include "workload/config.hpp"

namespace rvma {

/// What the ranks' calls run on.
enum class Protocol : std::uint8_t { rvma, rdma };
BOOST_DESCRIBE_ENUM(Protocol, rvma, rdma)

struct Config {
  NicConfig nic;
  HostConfig host;
  FabricConfig fabric;
  WorkloadConfig workload;
  RdmaConfig rdma;
  BOOST_DESCRIBE_CLASS(Config, (), (nic, host, fabric, workload, rdma), (), ())
};

/// Checks that span keys (powers of two, a table that holds the windows, a topology that holds the nodes): adds an
/// error that names both sides to `errors`.
void validate(const Config& config, std::uint32_t ranks, ErrorList& errors);

/// What is built before simulated time begins. The configuration is valid.
struct Footprint {
  std::uint64_t nodes = 0;
  std::uint64_t switches = 0;
  std::uint64_t cables = 0;
  Bytes least;  ///< memory of the machine that a run takes at least; most take several times that
};
Footprint footprint(const Config& config, std::uint32_t ranks);
/// What is expected where rdma.completion needs a NIC that tracks.
inline constexpr std::string_view kExpectTracking = "expected rdma.ooo_tracking on, or another completion";
/// What the RDMA baseline demands beyond that. Who runs a NIC that does not track whatever the user says has advice of
/// its own in the place of kExpectTracking.
void validate_rdma(const Config& config, std::uint32_t ranks, ErrorList& errors,
                   std::string_view expect_tracking = kExpectTracking);

/// Whether packets from one node to another arrive in the order in which they were sent: one path, nothing lost, copied
/// or delayed.
bool is_ordered(const Config& config, std::uint32_t ranks);
/// rdma.completion; `auto` becomes the fastest one that is right on this fabric and host.
RdmaCompletion completion_of(const Config& config, std::uint32_t ranks);

}  // namespace rvma
