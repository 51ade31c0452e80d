#include "base/clock.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/int128.hpp"

namespace rvma {
namespace {

using detail::int128;
using detail::uint128;

/// ps * uHz in a second: one period of f uHz lasts kPsUhz / f ps.
constexpr std::int64_t kPsUhz = 1'000'000'000'000'000'000;
constexpr std::uint64_t kPsPerSecond = 1'000'000'000'000;

std::int64_t to_int64(int128 value) {
  RVMA_ASSERT(value <= std::numeric_limits<std::int64_t>::max() && value >= std::numeric_limits<std::int64_t>::min(),
              "a time or a count of cycles left the range of 64 bits");
  return static_cast<std::int64_t>(value);
}

int128 floor_divide(int128 dividend, int128 divisor) {
  const int128 quotient = dividend / divisor;
  return dividend % divisor < 0 ? quotient - 1 : quotient;
}

int128 ceil_divide(int128 dividend, int128 divisor) {
  const int128 quotient = dividend / divisor;
  return dividend % divisor > 0 ? quotient + 1 : quotient;
}

std::int64_t ceil_divide_64(std::int64_t dividend, std::int64_t divisor) {
  return dividend / divisor + (dividend % divisor > 0 ? 1 : 0);
}

std::int64_t whole_period(Frequency frequency) {
  RVMA_ASSERT(frequency.uhz() > 0, "a clock needs a frequency above zero");
  return kPsUhz % frequency.uhz() == 0 ? static_cast<std::int64_t>(kPsUhz / frequency.uhz()) : 0;
}

}  // namespace

ClockDomain::ClockDomain(Frequency frequency) : frequency_(frequency), whole_period_ps_(whole_period(frequency)) {}

Time ClockDomain::exact_time_of(Cycles cycle) const {
  return Time::from_ps(to_int64(ceil_divide(int128{cycle.count()} * kPsUhz, frequency_.uhz())));
}

Cycles ClockDomain::exact_edge_at_or_after(Time time) const {
  // The least k with ceil(k * P) >= t is the least k with k * P > t - 1, because t is whole.
  return Cycles{to_int64(floor_divide((int128{time.ps()} - 1) * frequency_.uhz(), kPsUhz) + 1)};
}

Cycles ClockDomain::cycles(Delay delay) const {
  if (delay.in_cycles()) return delay.cycles();
  if (whole_period_ps_ != 0) return Cycles{ceil_divide_64(delay.time().ps(), whole_period_ps_)};
  return Cycles{to_int64(ceil_divide(int128{delay.time().ps()} * frequency_.uhz(), kPsUhz))};
}

Serializer::Serializer(Rate rate) : rate_(rate) {
  RVMA_ASSERT(rate.bits_per_s() > 0, "a channel needs a rate above zero");
  if (8 * kPsPerSecond % rate.bits_per_s() == 0) {
    whole_ps_per_byte_ = static_cast<std::int64_t>(8 * kPsPerSecond / rate.bits_per_s());
  }
}

Serializer::Slot Serializer::occupy_exactly(std::uint64_t bytes, Time not_before) {
  // 1. The true start: a channel that never fell idle goes on at the fraction of a ps where it ended.
  if (not_before > free_at_) {
    free_at_ = not_before;
    remainder_ = 0;
  }
  const Time start = free_at_;
  const Time whole_start = remainder_ == 0 ? start : start - Time::from_ps(1);

  // 2. The true end, in 1/rate of a ps after whole_start.
  const std::uint64_t rate = rate_.bits_per_s();
  std::uint64_t narrow = 0;
  std::uint64_t whole = 0;
  if (!__builtin_mul_overflow(bytes, 8 * kPsPerSecond, &narrow) &&
      !__builtin_add_overflow(narrow, remainder_, &narrow)) {
    whole = narrow / rate;
    remainder_ = narrow % rate;
  } else {
    const uint128 wide = uint128{bytes} * 8 * kPsPerSecond + remainder_;
    RVMA_ASSERT(wide / rate <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
                "an item would occupy a channel for more than 106 days");
    whole = static_cast<std::uint64_t>(wide / rate);
    remainder_ = static_cast<std::uint64_t>(wide % rate);
  }

  // 3. What others see is rounded up to whole ps.
  free_at_ = whole_start + Time::from_ps(static_cast<std::int64_t>(whole)) + Time::from_ps(remainder_ == 0 ? 0 : 1);
  return {start, free_at_};
}

Time Serializer::duration_of(std::uint64_t bytes) const {
  std::uint64_t narrow = 0;
  const std::uint64_t rate = rate_.bits_per_s();
  if (!__builtin_mul_overflow(bytes, 8 * kPsPerSecond, &narrow)) {
    const std::uint64_t ps = narrow / rate + (narrow % rate != 0 ? 1 : 0);
    return Time::from_ps(to_int64(int128{ps}));
  }
  return Time::from_ps(to_int64(ceil_divide(static_cast<int128>(uint128{bytes} * 8 * kPsPerSecond), rate)));
}

}  // namespace rvma
