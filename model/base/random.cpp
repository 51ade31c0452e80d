#include "base/random.hpp"

#include "base/error.hpp"
#include "base/int128.hpp"

namespace rvma {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
constexpr std::uint64_t kPartsPerBillion = 1'000'000'000;

constexpr std::uint64_t rotate_left(std::uint64_t x, unsigned bits) { return (x << bits) | (x >> (64U - bits)); }

/// FNV-1a.
std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace

Random::Random(std::uint64_t seed)
    : state_{mix64(seed), mix64(seed + kGolden), mix64(seed + 2 * kGolden), mix64(seed + 3 * kGolden)} {}

Random::Random(std::uint64_t seed, std::string_view name) : Random(mix64(seed) ^ hash_of(name)) {}

std::uint64_t Random::next() {
  const std::uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17U;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = rotate_left(state_[3], 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t bound) {
  RVMA_ASSERT(bound > 0, "a random number below zero was asked for");
  // Lemire's method: the high half of a 128-bit product; draws that would bias the low values are refused.
  detail::uint128 product = detail::uint128{next()} * bound;
  auto low = static_cast<std::uint64_t>(product);
  if (low < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (low < threshold) {
      product = detail::uint128{next()} * bound;
      low = static_cast<std::uint64_t>(product);
    }
  }
  return static_cast<std::uint64_t>(product >> 64U);
}

bool Random::chance(std::uint64_t parts_per_billion) {
  if (parts_per_billion == 0) return false;
  return below(kPartsPerBillion) < parts_per_billion;
}

}  // namespace rvma
