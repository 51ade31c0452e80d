/// \file
/// What two cores of the translation table must agree on in a cycle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nic/translation_table.hpp"

namespace rvma {

struct OutputComparison {
  std::uint32_t matched = 0;             ///< groups of outputs that were valid on both sides and agreed
  std::vector<std::string> differences;  ///< "lookup_slot is 3, reference 4"
};

/// Compares every output whose valid is set, and every handshake.
OutputComparison compare_outputs(const TableOutputs& design, const TableOutputs& reference);

}  // namespace rvma
