/// \file
/// Keys that the user set although nothing in this run reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/config.hpp"

namespace rvma::cli {

/// One line for each such key, without prefix.
std::vector<std::string> keys_without_effect(Config& config, std::uint32_t ranks, Protocol protocol);

/// Keys that only the other protocol reads.
std::vector<std::string> keys_of_other_protocol(Config& config, Protocol protocol);
/// The line that says so, without prefix.
std::string describe_other_protocol(const std::vector<std::string>& keys, Protocol protocol);

}  // namespace rvma::cli
