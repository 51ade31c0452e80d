/// \file
/// Draws of numbers of which a few are much more frequent than others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/int128.hpp"
#include "base/random.hpp"

namespace rvma::generator {

/// Numbers 0..n-1; number k is drawn with a weight of (k+1)^-skew. In fixed point throughout: a seed must give the same
/// trace on every machine, and pow() does not.
class Zipf {
 public:
  Zipf(std::uint64_t n, std::uint64_t skew_hundredths) {
    fill_roots();
    up_to_.reserve(n);
    std::uint64_t sum = 0;
    for (std::uint64_t k = 1; k <= n; ++k) {
      sum += weight(log2(k) * skew_hundredths / 100);
      up_to_.push_back(sum);
    }
  }

  std::uint64_t draw(Random& random) const {
    const std::uint64_t at = random.below(up_to_.back());
    return static_cast<std::uint64_t>(std::upper_bound(up_to_.begin(), up_to_.end(), at) - up_to_.begin());
  }

 private:
  static constexpr unsigned kFraction = 32;  ///< bits of a logarithm behind the point
  static constexpr unsigned kOne = 40;       ///< the largest weight is 2^40
  static constexpr unsigned kUnit = 62;      ///< mantissas are in units of 2^-62

  static std::uint64_t log2(std::uint64_t k) {
    unsigned whole = 0;
    while (k >> whole > 1) ++whole;
    std::uint64_t result = whole;
    std::uint64_t mantissa = k << (kUnit - whole);  // in [1, 2)
    for (unsigned bit = 0; bit < kFraction; ++bit) {
      mantissa = static_cast<std::uint64_t>(detail::uint128{mantissa} * mantissa >> kUnit);
      const bool set = mantissa >> (kUnit + 1) != 0;
      result = result << 1U | (set ? 1U : 0U);
      if (set) mantissa >>= 1U;
    }
    return result;
  }

  /// 2^-exponent, and never nothing.
  std::uint64_t weight(std::uint64_t exponent) const {
    std::uint64_t mantissa = 1ULL << kUnit;
    for (unsigned bit = 0; bit < kFraction; ++bit) {
      if ((exponent >> (kFraction - 1 - bit) & 1U) != 0)
        mantissa = static_cast<std::uint64_t>(detail::uint128{mantissa} * roots_[bit] >> kUnit);
    }
    const std::uint64_t shift = (exponent >> kFraction) + kUnit - kOne;
    return std::max<std::uint64_t>(shift < 64 ? mantissa >> shift : 0, 1);
  }

  /// roots_[i] = 2^-(2^-(i+1)).
  void fill_roots() {
    std::uint64_t root = 1ULL << (kUnit - 1);
    for (std::uint64_t& entry : roots_) {
      root = square_root(detail::uint128{root} << kUnit);
      entry = root;
    }
  }

  static std::uint64_t square_root(detail::uint128 square) {
    std::uint64_t root = 0;
    for (std::uint64_t bit = 1ULL << 63U; bit != 0; bit >>= 1U) {
      const std::uint64_t tried = root | bit;
      if (detail::uint128{tried} * tried <= square) root = tried;
    }
    return root;
  }

  std::vector<std::uint64_t> up_to_;  ///< sums of weights
  std::uint64_t roots_[kFraction] = {};
};

}  // namespace rvma::generator
