/// \file
/// Quantities with units. All are exact integers: nothing on the model's path goes through floating point, so a run
/// neither drifts nor depends on the machine. Construction from a raw number always names the unit.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace rvma {

/// A point in simulated time, or the distance between two: whole picoseconds (range about +-106 days).
/// Overflow in +, - and * is an assertion failure in every build, never a wrap.
class Time {
 public:
  constexpr Time() = default;
  static constexpr Time from_ps(std::int64_t ps) { return Time{ps}; }
  static constexpr Time from_ns(std::int64_t ns) { return Time{scaled(ns, 1'000)}; }
  static constexpr Time from_us(std::int64_t us) { return Time{scaled(us, 1'000'000)}; }
  static constexpr Time zero() { return Time{0}; }
  /// Later than every time that occurs; "never" for a deadline.
  static constexpr Time max() { return Time{std::numeric_limits<std::int64_t>::max()}; }

  constexpr std::int64_t ps() const { return ps_; }
  constexpr bool is_never() const { return ps_ == max().ps_; }

  friend constexpr Time operator+(Time a, Time b) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a.ps_, b.ps_, &sum)) overflow();
    return Time{sum};
  }
  friend constexpr Time operator-(Time a, Time b) {
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(a.ps_, b.ps_, &difference)) overflow();
    return Time{difference};
  }
  friend constexpr Time operator*(Time a, std::int64_t factor) { return Time{scaled(a.ps_, factor)}; }
  constexpr Time& operator+=(Time other) { return *this = *this + other; }
  constexpr Time& operator-=(Time other) { return *this = *this - other; }
  friend constexpr bool operator==(Time a, Time b) { return a.ps_ == b.ps_; }
  friend constexpr bool operator!=(Time a, Time b) { return a.ps_ != b.ps_; }
  friend constexpr bool operator<(Time a, Time b) { return a.ps_ < b.ps_; }
  friend constexpr bool operator<=(Time a, Time b) { return a.ps_ <= b.ps_; }
  friend constexpr bool operator>(Time a, Time b) { return a.ps_ > b.ps_; }
  friend constexpr bool operator>=(Time a, Time b) { return a.ps_ >= b.ps_; }

 private:
  explicit constexpr Time(std::int64_t ps) : ps_(ps) {}
  static constexpr std::int64_t scaled(std::int64_t value, std::int64_t factor) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(value, factor, &product)) overflow();
    return product;
  }
  [[noreturn]] static void overflow();

  std::int64_t ps_ = 0;
};

/// A number of clock cycles, or the index of a clock edge; means something only together with a ClockDomain.
class Cycles {
 public:
  constexpr Cycles() = default;
  explicit constexpr Cycles(std::int64_t count) : count_(count) {}
  constexpr std::int64_t count() const { return count_; }

  friend constexpr Cycles operator+(Cycles a, Cycles b) { return Cycles{a.count_ + b.count_}; }
  friend constexpr Cycles operator-(Cycles a, Cycles b) { return Cycles{a.count_ - b.count_}; }
  constexpr Cycles& operator+=(Cycles other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Cycles& operator++() {
    ++count_;
    return *this;
  }
  friend constexpr bool operator==(Cycles a, Cycles b) { return a.count_ == b.count_; }
  friend constexpr bool operator!=(Cycles a, Cycles b) { return a.count_ != b.count_; }
  friend constexpr bool operator<(Cycles a, Cycles b) { return a.count_ < b.count_; }
  friend constexpr bool operator<=(Cycles a, Cycles b) { return a.count_ <= b.count_; }
  friend constexpr bool operator>(Cycles a, Cycles b) { return a.count_ > b.count_; }
  friend constexpr bool operator>=(Cycles a, Cycles b) { return a.count_ >= b.count_; }

 private:
  std::int64_t count_ = 0;
};

/// A size in bytes, for configuration and interfaces where a bare integer would be ambiguous.
class Bytes {
 public:
  constexpr Bytes() = default;
  explicit constexpr Bytes(std::uint64_t count) : count_(count) {}
  static constexpr Bytes kib(std::uint64_t n) { return Bytes{n * 1024}; }
  static constexpr Bytes mib(std::uint64_t n) { return Bytes{n * 1024 * 1024}; }
  constexpr std::uint64_t count() const { return count_; }
  friend constexpr bool operator==(Bytes a, Bytes b) { return a.count_ == b.count_; }
  friend constexpr bool operator!=(Bytes a, Bytes b) { return a.count_ != b.count_; }
  friend constexpr bool operator<(Bytes a, Bytes b) { return a.count_ < b.count_; }
  friend constexpr bool operator<=(Bytes a, Bytes b) { return a.count_ <= b.count_; }

 private:
  std::uint64_t count_ = 0;
};

/// A data rate in bits a second.
class Rate {
 public:
  constexpr Rate() = default;
  static constexpr Rate from_bits_per_s(std::uint64_t bits_per_s) { return Rate{bits_per_s}; }
  static constexpr Rate gbps(std::uint64_t n) { return Rate{n * 1'000'000'000}; }
  constexpr std::uint64_t bits_per_s() const { return bits_per_s_; }
  friend constexpr bool operator==(Rate a, Rate b) { return a.bits_per_s_ == b.bits_per_s_; }
  friend constexpr bool operator!=(Rate a, Rate b) { return a.bits_per_s_ != b.bits_per_s_; }
  friend constexpr bool operator<(Rate a, Rate b) { return a.bits_per_s_ < b.bits_per_s_; }
  friend constexpr bool operator<=(Rate a, Rate b) { return a.bits_per_s_ <= b.bits_per_s_; }

 private:
  explicit constexpr Rate(std::uint64_t bits_per_s) : bits_per_s_(bits_per_s) {}
  std::uint64_t bits_per_s_ = 0;
};

/// A clock frequency in microhertz, so that 322.265625 MHz and every other decimal figure is exact.
class Frequency {
 public:
  constexpr Frequency() = default;
  static constexpr Frequency from_uhz(std::uint64_t uhz) { return Frequency{uhz}; }
  static constexpr Frequency mhz(std::uint64_t n) { return Frequency{n * 1'000'000'000'000}; }
  constexpr std::uint64_t uhz() const { return uhz_; }
  friend constexpr bool operator==(Frequency a, Frequency b) { return a.uhz_ == b.uhz_; }
  friend constexpr bool operator!=(Frequency a, Frequency b) { return a.uhz_ != b.uhz_; }
  friend constexpr bool operator<(Frequency a, Frequency b) { return a.uhz_ < b.uhz_; }
  friend constexpr bool operator<=(Frequency a, Frequency b) { return a.uhz_ <= b.uhz_; }

 private:
  explicit constexpr Frequency(std::uint64_t uhz) : uhz_(uhz) {}
  std::uint64_t uhz_ = 0;
};

/// A latency given either as a time or as cycles of the clock it belongs to ("250ns" or "12cyc").
/// Resolve with ClockDomain::cycles(Delay) or ClockDomain::time(Delay).
class Delay {
 public:
  constexpr Delay() = default;
  // Implicit: a delay is written as the time or the cycles that it is.
  constexpr Delay(Time time) : value_(time.ps()) {}                             // NOLINT(google-explicit-constructor)
  constexpr Delay(Cycles cycles) : value_(cycles.count()), in_cycles_(true) {}  // NOLINT(google-explicit-constructor)
  constexpr bool in_cycles() const { return in_cycles_; }
  constexpr Time time() const { return Time::from_ps(value_); }
  constexpr Cycles cycles() const { return Cycles{value_}; }

 private:
  std::int64_t value_ = 0;
  bool in_cycles_ = false;
};

/// Exact text of a quantity: times, rates and clocks as a decimal of the largest unit not above them ("1.5us",
/// "400Gbps", "322.265625MHz"), sizes in the largest unit that needs no fraction ("4KiB", "1500B"). What these print,
/// parse_* in value_text.hpp read back unchanged (negative times and "never" aside, which no user may give).
std::string to_string(Time time);
std::string to_string(Cycles cycles);
std::string to_string(Bytes bytes);
std::string to_string(Rate rate);
std::string to_string(Frequency frequency);
std::string to_string(Delay delay);
/// Nanoseconds as an exact decimal ("1234.567"): the form of every `_ns` column.
std::string to_ns_string(Time time);

}  // namespace rvma
