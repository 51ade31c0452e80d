/// \file
/// What is explored.
#pragma once

#include <vector>

#include "scenario.hpp"

namespace rvma::check {

/// Short: seconds. Full: 3 messages x 3 packets and everything that may happen; many minutes.
std::vector<Scenario> short_scenarios();
std::vector<Scenario> full_scenarios();

}  // namespace rvma::check
