/// \file
/// 128 bits that stand for a state: two different states have the same with a likelihood of 10^-22 among a hundred
/// million.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.hpp"

namespace rvma::check {

struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Digest& a, const Digest& b) { return a.low == b.low && a.high == b.high; }
  friend std::size_t hash_value(const Digest& digest) { return static_cast<std::size_t>(digest.low); }
};

/// Takes the parts of a state, one by one.
class Digester {
 public:
  void put(std::uint64_t part) {
    low_ = (turned(low_, 27) ^ part) * 0x9e3779b97f4a7c15ULL;
    high_ = (turned(high_, 41) ^ part) * 0xd6e8feb86659fd93ULL;
  }
  void put(const Digest& part) {
    put(part.low);
    put(part.high);
  }
  Digest digest() const { return {mix64(low_), mix64(high_)}; }

 private:
  static std::uint64_t turned(std::uint64_t lane, unsigned bits) { return lane << bits | lane >> (64 - bits); }

  // Two lanes that share nothing.
  std::uint64_t low_ = 1;
  std::uint64_t high_ = 2;
};

}  // namespace rvma::check
