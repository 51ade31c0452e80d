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
    digest_.low = mix64(digest_.low ^ part);
    digest_.high = mix64(digest_.high + mix64(part ^ kOther));
  }
  void put(const Digest& part) {
    put(part.low);
    put(part.high);
  }
  Digest digest() const { return digest_; }

 private:
  static constexpr std::uint64_t kOther = 0x9e3779b97f4a7c15ULL;
  Digest digest_;
};

}  // namespace rvma::check
