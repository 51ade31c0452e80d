/// \file
/// What a trace can have at most, for those who write one as well as for its reader.
#pragma once

#include <cstdint>

namespace rvma::trace_detail {

inline constexpr std::uint64_t kMaxRanks = 1U << 20U;
/// Every buffer and every source of a put is real memory of its process: more than this no rank can have, in bytes.
inline constexpr std::uint64_t kMostLocalBytes = 1ULL << 34U;

}  // namespace rvma::trace_detail
