/// \file
/// MLCommons Chakra execution traces: a file for each rank, varint-delimited protobuf messages (a GlobalMetadata, then
/// Nodes). Read with libprotobuf's wire reader; only the fields that matter here are looked at. Without that library at
/// configure time the format is listed as missing. Positions: the line is the number of the message in the file, the
/// column the byte in it. docs/reference/import.md.
#pragma once

#include <vector>

#include "workload/import_graph.hpp"

namespace rvma::import_detail {

/// Why this program cannot read Chakra traces; empty if it can.
const char* chakra_missing();

/// Reads source i as rank i. Mistakes have positions; reading goes on behind them where the framing allows it.
void read_chakra(const std::vector<ImportSource>& sources, const ImportOptions& options, ImportGraph& graph,
                 ImportLog& log);

}  // namespace rvma::import_detail
