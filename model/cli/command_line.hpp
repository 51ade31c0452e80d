/// \file
/// Command-line parsing shared by the sub-commands: declared options only, errors in the program's own form.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace rvma::cli {

/// Exit statuses of the program.
enum ExitStatus : int { kFine = 0, kFailed = 1, kBadInput = 2, kInternal = 3 };

/// A mistake on the command line: prints as `rvma: error: what; expected`.
Error command_line_error(std::string what, std::string expected = "");

/// Parses `arguments` against `options` (long and declared short names, no abbreviations, each at most once unless it
/// is a list); up to `positional_names.size()` positional arguments go to those options, and any number to one whose
/// name ends in "...". On error: false, and `error` names the option and the nearest known one.
bool parse(const std::vector<std::string>& arguments, const boost::program_options::options_description& options,
           const std::vector<std::string>& positional_names, boost::program_options::variables_map& values,
           Error& error);

}  // namespace rvma::cli
