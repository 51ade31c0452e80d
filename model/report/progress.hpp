/// \file
/// The progress line of long runs, on stderr.
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "report/recorder.hpp"

namespace rvma {

class Progress {
 public:
  /// `total_operations`: of all ranks, unrolled; the share that is done is the share of operations done.
  Progress(bool enabled, std::uint64_t total_operations, const RunRecorder& recorder)
      : enabled_(enabled), total_operations_(total_operations), recorder_(recorder) {}

  /// Prints at most twice a second; nothing in a run of less than a second.
  void update(Time now, std::uint64_t wall_ns);
  /// Clears the line.
  void finish();

 private:
  bool enabled_;
  std::uint64_t total_operations_;
  const RunRecorder& recorder_;
  std::uint64_t next_wall_ns_ = 1'000'000'000;
  bool printed_ = false;
};

}  // namespace rvma
