/// \file
/// Ratios as exact decimal text: integer arithmetic only, so results are the same on every machine.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.hpp"

namespace rvma {

/// numerator / denominator with `decimals` (0..9) digits, rounded half up; "0" for a denominator of 0. The integer part
/// must fit 64 bits.
std::string ratio_text(std::uint64_t numerator, std::uint64_t denominator, unsigned decimals);
/// amount x scale / time, with `decimals` digits, where `amount` / `time` is per ps.
std::string rate_text(std::uint64_t amount, std::uint64_t scale, Time time, unsigned decimals = 3);
/// Bytes in a time, as Gb/s with three decimals.
std::string gbps_text(std::uint64_t bytes, Time time);
/// Parts per million as per cent with one decimal ("97.3").
std::string percent_text(std::uint64_t ppm);

}  // namespace rvma
