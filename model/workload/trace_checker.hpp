/// \file
/// The first reading of a trace: finds every mistake and notes what cursors need. Loops are checked once, whatever
/// their count, so the time depends on the length of the text alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "workload/trace_program.hpp"
#include "workload/trace_text.hpp"

namespace rvma::trace_detail {

struct CheckedTrace {
  std::uint32_t ranks = 0;
  std::vector<std::unique_ptr<Program>> programs;          ///< by rank; null: no block, an empty program
  std::vector<std::unique_ptr<Program>> restart_programs;  ///< by rank; null: no restart block; empty: none has
  std::vector<std::pair<RankId, Position>> restart_blocks;
  std::vector<std::string> warnings;  ///< `FILE:LINE:COLUMN: warning: ...`
};

/// Checks all of `text`; mistakes go to `errors` in the order of their places. `source` names the text in positions.
/// The result is of use only if no error was added.
CheckedTrace check_trace(const TextSource& text, const std::string& source, ErrorList& errors);

}  // namespace rvma::trace_detail
