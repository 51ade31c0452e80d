/// \file
/// Seeded generators of our own, so that a run is the same on every machine and standard library.
#pragma once

#include <cstdint>
#include <string_view>

namespace rvma {

/// SplitMix64 step: a good 64-bit mixer, also used to derive independent seeds.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// xoshiro256** (Blackman, Vigna 2018), seeded through SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed);
  /// Stream `name` of a run's seed: units draw from streams of their own, so adding one does not shift another.
  Random(std::uint64_t seed, std::string_view name);

  std::uint64_t next();
  /// Uniform in [0, bound), exact (rejection); bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// True with probability `parts_per_billion` / 10^9.
  bool chance(std::uint64_t parts_per_billion);

 private:
  std::uint64_t state_[4];
};

}  // namespace rvma
