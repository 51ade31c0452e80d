/// \file
/// The payload formula of traces: byte i of a message is (seed*131 + i*7 + i/256) mod 256, so that anyone can compute
/// what must be in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rvma {

/// Byte `index` of the message of `seed`, straight from the formula.
constexpr std::uint8_t pattern_byte(std::uint64_t seed, std::uint64_t index) {
  return static_cast<std::uint8_t>(seed * 131 + index * 7 + index / 256);
}

/// The longest piece, at most `bytes`, of the message of `seed` from byte `from` on that lies in one place in memory.
struct PatternPiece {
  const std::uint8_t* data;
  std::size_t bytes;
};
PatternPiece pattern_piece(std::uint64_t seed, std::uint64_t from, std::uint64_t bytes);

/// Bytes [from, from + bytes) of the message of `seed` in one place that lasts as long as the program; null if `bytes`
/// is more than 64 KiB.
const std::uint8_t* pattern_run(std::uint64_t seed, std::uint64_t from, std::uint64_t bytes);

/// Writes bytes [from, from + bytes) of the message of `seed` to `to`.
void fill_pattern(std::uint8_t* to, std::size_t bytes, std::uint64_t seed, std::uint64_t from);

/// How many of the `bytes` at `data` agree with bytes [from, from + bytes) of the message of `seed` before the first
/// that does not; `bytes` if all agree.
std::size_t matching_pattern_bytes(const std::uint8_t* data, std::size_t bytes, std::uint64_t seed, std::uint64_t from);

}  // namespace rvma
