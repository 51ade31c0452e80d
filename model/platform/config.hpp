/// \file
/// The whole configuration: the sections of all blocks under one root.
#pragma once

#include "base/config.hpp"
#include "fabric/config.hpp"
#include "host/config.hpp"
#include "nic/config.hpp"
#include "workload/config.hpp"

namespace rvma {

struct Config {
  NicConfig nic;
  HostConfig host;
  FabricConfig fabric;
  WorkloadConfig workload;
  BOOST_DESCRIBE_CLASS(Config, (), (nic, host, fabric, workload), (), ())
};

/// Checks that span keys (powers of two, a table that holds the windows, a topology that holds the nodes): adds an
/// error that names both sides to `errors`.
void validate(const Config& config, std::uint32_t ranks, ErrorList& errors);

}  // namespace rvma
