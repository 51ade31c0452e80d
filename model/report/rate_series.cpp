#include "report/rate_series.hpp"

namespace rvma {

void RateSeries::add(Time when, std::uint64_t amount) {
  while (when.ps() / width_.ps() >= static_cast<std::int64_t>(kBins)) {
    for (std::size_t i = 0; i < kBins / 2; ++i) bins_[i] = bins_[2 * i] + bins_[2 * i + 1];
    for (std::size_t i = kBins / 2; i < kBins; ++i) bins_[i] = 0;
    width_ = width_ * 2;
  }
  bins_[static_cast<std::size_t>(when.ps() / width_.ps())] += amount;
  total_ += amount;
}

bool RateSeries::steady(std::uint64_t& amount, Time& duration) const {
  std::size_t first = 0;
  while (first < kBins && bins_[first] == 0) ++first;
  if (first == kBins) return false;
  std::size_t last = kBins - 1;
  while (bins_[last] == 0) --last;
  const std::size_t used = last - first + 1;
  if (used < 10) return false;
  const std::size_t skip = (used + 9) / 10;
  amount = 0;
  for (std::size_t i = first + skip; i <= last - skip; ++i) amount += bins_[i];
  duration = width_ * static_cast<std::int64_t>(used - 2 * skip);
  return true;
}

}  // namespace rvma
