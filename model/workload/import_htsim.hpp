/// \file
/// htsim's connection matrices (*.cm): docs/reference/import.md.
#pragma once

#include <vector>

#include "workload/import_graph.hpp"

namespace rvma::import_detail {

/// Reads the one source. Mistakes have positions; reading goes on behind them.
void read_htsim(const std::vector<ImportSource>& sources, const ImportOptions& options, ImportGraph& graph,
                ImportLog& log);

}  // namespace rvma::import_detail
