/// \file
/// The flow and topology files of the HPCC simulator (ns-3): docs/reference/import.md.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "workload/import_graph.hpp"

namespace rvma::import_detail {

/// Reads the first source as flows. With a second one, a topology, only its hosts are ranks, in the order of their
/// numbers. Mistakes have positions; reading goes on behind them.
void read_hpcc(const std::vector<ImportSource>& sources, const ImportOptions& options, ImportGraph& graph,
               ImportLog& log);

}  // namespace rvma::import_detail
