/// \file
/// Writes a Timeline as trace events (the JSON format of Chrome's about:tracing), which ui.perfetto.dev opens.
/// docs/reference/results.md has the form of the file.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "report/timeline.hpp"

namespace rvma {

/// What a timeline cannot know of its run.
struct TimelineRun {
  std::string trace;     ///< as the user named it
  std::string protocol;  ///< rvma or rdma
  bool is_rdma = false;
  std::uint32_t ranks = 0;
  std::uint32_t ranks_per_node = 1;
  Time end;
  std::vector<std::string> problems;  ///< why the run is no success; empty if it is
};

void write_timeline(std::ostream& out, const Timeline& timeline, const TimelineRun& run);

}  // namespace rvma
