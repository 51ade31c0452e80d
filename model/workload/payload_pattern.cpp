#include "workload/payload_pattern.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace rvma {
namespace {

constexpr std::size_t kRow = 256;
/// 7 * kInverseOf7 = 1 (mod 256).
constexpr unsigned kInverseOf7 = 183;
static_assert(7 * kInverseOf7 % 256 == 1);

/// Within a row of 256 bytes i/256 is constant, so the row is the sequence 7*j mod 256 begun at some place. Two periods
/// of that sequence make every such row one contiguous copy.
constexpr std::array<std::uint8_t, 2 * kRow> make_sequence() {
  std::array<std::uint8_t, 2 * kRow> sequence{};
  for (std::size_t j = 0; j < sequence.size(); ++j) sequence[j] = static_cast<std::uint8_t>(7 * j);
  return sequence;
}
constexpr std::array<std::uint8_t, 2 * kRow> kSequence = make_sequence();

/// Calls visit(expected, done, length) for each piece of a row; stops when it returns false.
template <class Visit>
void for_each_row(std::size_t bytes, std::uint64_t seed, std::uint64_t from, Visit visit) {
  std::size_t done = 0;
  while (done < bytes) {
    const std::uint64_t index = from + done;
    const std::size_t length = std::min<std::size_t>(bytes - done, kRow - index % kRow);
    const std::size_t start = pattern_byte(seed, index) * kInverseOf7 % kRow;
    if (!visit(kSequence.data() + start, done, length)) return;
    done += length;
  }
}

}  // namespace

void fill_pattern(std::uint8_t* to, std::size_t bytes, std::uint64_t seed, std::uint64_t from) {
  for_each_row(bytes, seed, from, [&](const std::uint8_t* expected, std::size_t done, std::size_t length) {
    std::memcpy(to + done, expected, length);
    return true;
  });
}

std::size_t matching_pattern_bytes(const std::uint8_t* data, std::size_t bytes, std::uint64_t seed,
                                   std::uint64_t from) {
  std::size_t matching = bytes;
  for_each_row(bytes, seed, from, [&](const std::uint8_t* expected, std::size_t done, std::size_t length) {
    if (std::memcmp(data + done, expected, length) == 0) return true;
    const auto* mismatch = std::mismatch(expected, expected + length, data + done).first;
    matching = done + static_cast<std::size_t>(mismatch - expected);
    return false;
  });
  return matching;
}

}  // namespace rvma
