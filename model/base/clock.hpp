/// \file
/// Clock domains whose edges never drift, and serialisers that carry their remainder.
#pragma once

#include <cstdint>
#include <limits>

#include "base/units.hpp"

namespace rvma {

/// Edge k of a clock of f uHz stands at ceil(k * 10^18 / f) ps: exact for any frequency, without accumulated error.
class ClockDomain {
 public:
  explicit ClockDomain(Frequency frequency);

  Frequency frequency() const { return frequency_; }
  /// Time of edge `cycle`.
  Time time_of(Cycles cycle) const {
    return whole_period_ps_ != 0 ? Time::from_ps(whole_period_ps_) * cycle.count() : exact_time_of(cycle);
  }
  /// Index of the first edge at or after `time`: what enters the domain is taken at this edge.
  Cycles edge_at_or_after(Time time) const {
    if (whole_period_ps_ == 0) return exact_edge_at_or_after(time);
    const std::int64_t whole = time.ps() / whole_period_ps_;
    return Cycles{whole * whole_period_ps_ < time.ps() ? whole + 1 : whole};
  }
  /// Shortest whole number of cycles that lasts at least `delay`.
  Cycles cycles(Delay delay) const;
  /// A delay as time; cycles count from edge 0.
  Time time(Delay delay) const { return delay.in_cycles() ? time_of(delay.cycles()) : delay.time(); }

 private:
  Time exact_time_of(Cycles cycle) const;
  Cycles exact_edge_at_or_after(Time time) const;

  Frequency frequency_;
  std::int64_t whole_period_ps_;  ///< the period if it is a whole number of ps (the fast path), else 0
};

/// A channel of a fixed bit rate that sends one thing after another. Fractions of a picosecond are carried to the next
/// item while the channel stays busy, so that a long run has exactly the configured rate.
class Serializer {
 public:
  explicit Serializer(Rate rate);

  struct Slot {
    Time start;
    Time end;
  };
  /// Occupies the channel for `bytes` from `not_before` or when it is next free, whichever is later.
  Slot occupy(std::uint64_t bytes, Time not_before) {
    if (whole_ps_per_byte_ == 0 || bytes > std::numeric_limits<std::uint32_t>::max()) {
      return occupy_exactly(bytes, not_before);
    }
    const Time start = not_before > free_at_ ? not_before : free_at_;
    free_at_ = start + Time::from_ps(whole_ps_per_byte_) * static_cast<std::int64_t>(bytes);
    return {start, free_at_};
  }
  Time free_at() const { return free_at_; }
  Rate rate() const { return rate_; }
  /// Time that `bytes` take on an idle channel, rounded up to whole ps.
  Time duration_of(std::uint64_t bytes) const;

 private:
  Slot occupy_exactly(std::uint64_t bytes, Time not_before);

  Rate rate_;
  std::int64_t whole_ps_per_byte_ = 0;  ///< if a byte lasts a whole number of ps (then nothing is ever carried), else 0
  Time free_at_;
  std::uint64_t remainder_ = 0;  ///< of the last end, in 1/bits_per_s of a ps: true end = free_at_ - 1ps + remainder
};

}  // namespace rvma
