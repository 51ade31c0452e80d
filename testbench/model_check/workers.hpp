/// \file
/// Explores scenarios one beside the other, each in a process of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "explorer.hpp"
#include "scenario.hpp"

namespace rvma::check {

/// Called with each scenario that has come to its end, in whatever order they do. False: the others are given up.
using TakeFindings = std::function<bool(const Scenario&, const Findings&)>;

/// At most `jobs` at a time; 1: in this process. A process that dies is a failure of its scenario. Throws
/// std::system_error if no process can be made.
void explore_all(const std::vector<Scenario>& scenarios, std::uint64_t most_states, unsigned jobs,
                 const TakeFindings& take);

}  // namespace rvma::check
