#include "base/units.hpp"

#include <array>
#include <cstddef>
#include <string_view>

#include "base/error.hpp"

namespace rvma {
namespace {

struct Unit {
  std::uint64_t factor;
  std::string_view suffix;
};

/// `value` / `unit` as a decimal without trailing zeros; `unit` is a power of ten.
std::string decimal(std::uint64_t value, std::uint64_t unit) {
  std::string text = std::to_string(value / unit);
  std::uint64_t rest = value % unit;
  if (rest == 0) return text;
  text += '.';
  while (rest != 0) {
    unit /= 10;
    text += static_cast<char>('0' + rest / unit);
    rest %= unit;
  }
  return text;
}

/// In the largest unit not above the value; `units` from large to small.
template <std::size_t N>
std::string in_largest_unit(std::uint64_t value, const std::array<Unit, N>& units) {
  for (const Unit& unit : units) {
    if (value >= unit.factor) return decimal(value, unit.factor).append(unit.suffix);
  }
  return decimal(value, units.back().factor).append(units.back().suffix);
}

/// Magnitude of a signed value, the least one included.
std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
}

}  // namespace

void Time::overflow() {
  detail::assertion_failed("no overflow", "Time", 0, "a simulated time left the range of +-2^63 ps (106 days)");
}

std::string to_string(Time time) {
  static constexpr std::array<Unit, 5> kUnits{
      {{1'000'000'000'000, "s"}, {1'000'000'000, "ms"}, {1'000'000, "us"}, {1'000, "ns"}, {1, "ps"}}};
  if (time.is_never()) return "never";
  if (time == Time::zero()) return "0ns";
  return (time < Time::zero() ? "-" : "") + in_largest_unit(magnitude(time.ps()), kUnits);
}

std::string to_string(Cycles cycles) { return std::to_string(cycles.count()) + "cyc"; }

std::string to_string(Bytes bytes) {
  // Binary units first: 500KiB rather than 512kB.
  static constexpr std::array<Unit, 12> kUnits{{{std::uint64_t{1} << 60U, "EiB"},
                                                {std::uint64_t{1} << 50U, "PiB"},
                                                {std::uint64_t{1} << 40U, "TiB"},
                                                {std::uint64_t{1} << 30U, "GiB"},
                                                {std::uint64_t{1} << 20U, "MiB"},
                                                {std::uint64_t{1} << 10U, "KiB"},
                                                {1'000'000'000'000'000'000, "EB"},
                                                {1'000'000'000'000'000, "PB"},
                                                {1'000'000'000'000, "TB"},
                                                {1'000'000'000, "GB"},
                                                {1'000'000, "MB"},
                                                {1'000, "kB"}}};
  const std::uint64_t count = bytes.count();
  for (const Unit& unit : kUnits) {
    if (count != 0 && count % unit.factor == 0) return std::to_string(count / unit.factor).append(unit.suffix);
  }
  return std::to_string(count) + "B";
}

std::string to_string(Rate rate) {
  static constexpr std::array<Unit, 5> kUnits{
      {{1'000'000'000'000, "Tbps"}, {1'000'000'000, "Gbps"}, {1'000'000, "Mbps"}, {1'000, "kbps"}, {1, "bps"}}};
  return in_largest_unit(rate.bits_per_s(), kUnits);
}

std::string to_string(Frequency frequency) {
  static constexpr std::array<Unit, 4> kUnits{
      {{1'000'000'000'000'000, "GHz"}, {1'000'000'000'000, "MHz"}, {1'000'000'000, "kHz"}, {1'000'000, "Hz"}}};
  return in_largest_unit(frequency.uhz(), kUnits);
}

std::string to_string(Delay delay) { return delay.in_cycles() ? to_string(delay.cycles()) : to_string(delay.time()); }

std::string to_ns_string(Time time) { return (time < Time::zero() ? "-" : "") + decimal(magnitude(time.ps()), 1'000); }

}  // namespace rvma
