#include "report/number_format.hpp"

#include "base/int128.hpp"

namespace rvma {
namespace {

std::string wide_ratio_text(detail::uint128 numerator, detail::uint128 denominator, unsigned decimals) {
  if (denominator == 0) return "0";
  detail::uint128 scale = 1;
  for (unsigned i = 0; i < decimals; ++i) scale *= 10;
  const detail::uint128 scaled = (numerator * scale * 2 + denominator) / (denominator * 2);
  std::string text = std::to_string(static_cast<std::uint64_t>(scaled / scale));
  if (decimals == 0) return text;
  std::string fraction = std::to_string(static_cast<std::uint64_t>(scaled % scale));
  return text + "." + std::string(decimals - fraction.size(), '0') + fraction;
}

}  // namespace

std::string ratio_text(std::uint64_t numerator, std::uint64_t denominator, unsigned decimals) {
  return wide_ratio_text(numerator, denominator, decimals);
}

std::string rate_text(std::uint64_t amount, std::uint64_t scale, Time time, unsigned decimals) {
  if (time <= Time::zero()) return "0";
  return wide_ratio_text(detail::uint128{amount} * scale, static_cast<std::uint64_t>(time.ps()), decimals);
}

std::string gbps_text(std::uint64_t bytes, Time time) {
  // bytes x 8 bits / ps is Tb/s; x 1000 is Gb/s.
  return rate_text(bytes, 8000, time);
}

std::string percent_text(std::uint64_t ppm) { return ratio_text(ppm, 10'000, 1); }

}  // namespace rvma
