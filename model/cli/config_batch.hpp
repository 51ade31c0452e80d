/// \file
/// What a design-space sweep asks about configurations, in one process: whether each of thousands is right, and what it
/// resolves to; and all keys in a form that programs read.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "platform/config.hpp"

namespace rvma::cli {

/// Reads lines of `in`, each a JSON list of "KEY=VALUE" texts, and answers each with a line of JSON on `out`. The
/// assignments are made on a copy of `base`, and what results is held against `ranks` ranks of `protocol`:
///
///     {"config": {...resolved...}, "warnings": ["fabric.star.ports has no effect in this run: ..."]}
///     {"errors": [{"what": "...", "expected": "..."}], "values": true}
///
/// `values`: true where a value or a key by itself is wrong, false where values do not go together. Returns false,
/// after a message on stderr that names `source` and the line, where a line is no such list.
bool answer_batch(std::istream& in, const std::string& source, const Config& base, std::uint32_t ranks,
                  Protocol protocol, std::ostream& out);

/// All keys as a JSON list of {"key", "type", "default", "min", "max", "meaning"}; all but the key are texts as
/// `--describe` prints them, `min` and `max` only where the key has a range.
void describe_config_json(std::ostream& out, const std::vector<KeyRef>& keys);

}  // namespace rvma::cli
