/// \file
/// Amount of work over simulated time in bounded memory: a fixed number of bins whose width doubles as the run grows.
#pragma once

#include <array>
#include <cstdint>

#include "base/units.hpp"

namespace rvma {

class RateSeries {
 public:
  static constexpr std::size_t kBins = 256;

  /// Adds `amount` at `when` (>= 0, in any order).
  void add(Time when, std::uint64_t amount);
  Time bin_width() const { return width_; }
  std::uint64_t bin(std::size_t index) const { return bins_[index]; }
  std::uint64_t total() const { return total_; }
  /// Amount and time between the ends of the 10th and the 90th part of the interval from the first to the last bin in
  /// use: the steady window, without ramp-up and drain. False if fewer than 10 bins are in use.
  bool steady(std::uint64_t& amount, Time& duration) const;

 private:
  std::array<std::uint64_t, kBins> bins_{};
  Time width_ = Time::from_ns(1);
  std::uint64_t total_ = 0;
};

}  // namespace rvma
