/// \file
/// Maps from the names of a rank's program to what they stand for.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>

#include "workload/trace.hpp"

namespace rvma {

struct NameHash {
  std::size_t operator()(const NameRef& ref) const {
    std::uint64_t hash = ref.name;
    for (const std::uint64_t pass : ref.passes) hash = hash * 0x9e3779b97f4a7c15ULL + pass + 1;
    return static_cast<std::size_t>(hash ^ (hash >> 29));
  }
};
template <class T>
using NameMap = boost::unordered_flat_map<NameRef, T, NameHash>;

}  // namespace rvma
