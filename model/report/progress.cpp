#include "report/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace rvma {

void Progress::update(Time now, std::uint64_t wall_ns) {
  if (!enabled_ || wall_ns < next_wall_ns_) return;
  next_wall_ns_ = wall_ns + 500'000'000;
  printed_ = true;
  const std::uint64_t done = recorder_.operations();
  const std::uint64_t packets = recorder_.totals().packets_delivered;
  const std::uint64_t wall_ms = std::max<std::uint64_t>(1, wall_ns / 1'000'000);
  std::string line = fmt::format("\r{} operations", done);
  if (total_operations_ > 0) {
    const std::uint64_t percent =
        std::min<std::uint64_t>(100, done / std::max<std::uint64_t>(1, total_operations_ / 100));
    line += fmt::format(" ({} %)", percent);
    if (percent > 0) line += fmt::format(", about {} s left", wall_ms * (100 - percent) / percent / 1000);
  }
  line += fmt::format(", {} ns simulated, {} packets/s", to_ns_string(now), packets * 1000 / wall_ms);
  fmt::print(stderr, "{:<98.98}", line);
  std::fflush(stderr);
}

void Progress::finish() {
  if (printed_) fmt::print(stderr, "\r{:<98}\r", "");
}

}  // namespace rvma
