#include "cli/command_line.hpp"

#include <string_view>
#include <utility>

namespace rvma::cli {
namespace po = boost::program_options;

Error command_line_error(std::string what, std::string expected) {
  return Error{Position{"rvma", 0, 0}, std::move(what), std::move(expected)};
}

namespace {

constexpr std::string_view kMany = "...";

std::vector<std::string> long_names(const po::options_description& options) {
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  return names;
}

Error unknown_option(const std::string& option, const po::options_description& options) {
  const std::string near = nearest_name(option, long_names(options));
  return command_line_error(option.substr(0, 64) + ": unknown option",
                            near.empty() ? "see --help" : "did you mean " + near + "?");
}

}  // namespace

bool parse(const std::vector<std::string>& arguments, const po::options_description& options,
           const std::vector<std::string>& positional_names, po::variables_map& values, Error& error) {
  po::positional_options_description positional;
  for (const std::string& name : positional_names) {
    const bool many = name.size() > kMany.size() && name.compare(name.size() - kMany.size(), kMany.size(), kMany) == 0;
    positional.add(many ? name.substr(0, name.size() - kMany.size()).c_str() : name.c_str(), many ? -1 : 1);
  }
  const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  try {
    po::store(po::command_line_parser(arguments).options(options).positional(positional).style(style).run(), values);
    po::notify(values);
    return true;
  } catch (const po::unknown_option& unknown) {
    error = unknown_option(unknown.get_option_name(), options);
  } catch (const po::too_many_positional_options_error&) {
    error = command_line_error("too many arguments", "see --help");
  } catch (const po::error_with_option_name& bad) {
    const std::string name = bad.get_option_name();
    error = command_line_error((name.empty() ? std::string{} : name + ": ") + "cannot be used so: " + bad.what(),
                               "see --help");
  } catch (const po::error& bad) {
    error = command_line_error(bad.what(), "see --help");
  }
  return false;
}

}  // namespace rvma::cli
