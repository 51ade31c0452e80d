/// \file
/// Generators: traces of known communication patterns, written as text. Every trace passes the reader's check; no put
/// of it is ever refused and every buffer completes, by construction and not by luck of timing.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace rvma {

enum class GeneratorOptionType : std::uint8_t { integer, size, time, decimal, shape, word, flag };

/// One option of a pattern, `--name VALUE` (a flag has no value).
struct GeneratorOption {
  std::string name;  ///< without the dashes
  GeneratorOptionType type = GeneratorOptionType::integer;
  std::string default_text;  ///< as the user would write it; a flag: empty (off)
  std::string meaning;
};

struct GeneratorPattern {
  std::string name;
  std::string meaning;
  std::vector<GeneratorOption> options;
};

/// All patterns, in the order in which help lists them.
const std::vector<GeneratorPattern>& generator_patterns();

/// Option name to text, as given by the user; a flag that is set has any text. What is not named has its default.
using GeneratorArguments = std::map<std::string, std::string>;

/// Writes the trace of `pattern` to `out`. An error (of source "rvma", naming the option) is found before anything is
/// written, except that `out` cannot be written.
std::optional<Error> generate(std::string_view pattern, const GeneratorArguments& arguments, std::ostream& out);

}  // namespace rvma
