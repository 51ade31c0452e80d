/// \file
/// The second reading of a trace: one rank's operations, in order, with every loop played out.
#pragma once

#include <cstddef>
#include <memory>

#include "workload/trace.hpp"
#include "workload/trace_program.hpp"
#include "workload/trace_syntax.hpp"
#include "workload/trace_text.hpp"

namespace rvma::trace_detail {

/// What one cursor may hold in memory.
struct CursorBudget {
  std::size_t cache_bytes = 64 * 1024;  ///< of the text
  std::uint32_t statements = 4096;      ///< longest loop body that is kept parsed, in lines
};

/// The budget that keeps the sum over all cursors of a trace bounded.
CursorBudget cursor_budget(std::uint32_t ranks);

/// `text`, `program` and `scratch` outlive the cursor. Any number of cursors may share a scratch: none keeps anything
/// in it from call to call, and a line's parts would be a kilobyte for each.
std::unique_ptr<Trace::Cursor> make_cursor(const TextSource& text, const Program& program, CursorBudget budget,
                                           Statement& scratch);

}  // namespace rvma::trace_detail
