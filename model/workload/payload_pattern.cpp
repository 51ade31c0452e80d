#include "workload/payload_pattern.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace rvma {
namespace {

/// In i the formula repeats after 256 rows of 256 bytes, and a seed only says where in that period a message begins.
constexpr std::size_t kPeriod = 256 * 256;

/// Two periods: a run of up to one period lies in one place wherever it begins.
const std::array<std::uint8_t, 2 * kPeriod>& periods() {
  static const std::array<std::uint8_t, 2 * kPeriod> bytes = [] {
    std::array<std::uint8_t, 2 * kPeriod> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = pattern_byte(0, i);
    return all;
  }();
  return bytes;
}

const std::uint8_t* place_of(std::uint64_t seed, std::uint64_t from) {
  return periods().data() + static_cast<std::size_t>((seed * 131 * 256 + from) % kPeriod);
}

}  // namespace

PatternPiece pattern_piece(std::uint64_t seed, std::uint64_t from, std::uint64_t bytes) {
  return {place_of(seed, from), static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kPeriod))};
}

const std::uint8_t* pattern_run(std::uint64_t seed, std::uint64_t from, std::uint64_t bytes) {
  return bytes <= kPeriod ? place_of(seed, from) : nullptr;
}

void fill_pattern(std::uint8_t* to, std::size_t bytes, std::uint64_t seed, std::uint64_t from) {
  for (std::size_t done = 0; done < bytes;) {
    const PatternPiece piece = pattern_piece(seed, from + done, bytes - done);
    std::memcpy(to + done, piece.data, piece.bytes);
    done += piece.bytes;
  }
}

std::size_t matching_pattern_bytes(const std::uint8_t* data, std::size_t bytes, std::uint64_t seed,
                                   std::uint64_t from) {
  for (std::size_t done = 0; done < bytes;) {
    const PatternPiece piece = pattern_piece(seed, from + done, bytes - done);
    if (std::memcmp(data + done, piece.data, piece.bytes) != 0) {
      const auto* mismatch = std::mismatch(piece.data, piece.data + piece.bytes, data + done).first;
      return done + static_cast<std::size_t>(mismatch - piece.data);
    }
    done += piece.bytes;
  }
  return bytes;
}

}  // namespace rvma
