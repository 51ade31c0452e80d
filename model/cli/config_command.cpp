// rvma config: what can be configured, and what is.
#include <iostream>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "platform/config.hpp"

namespace rvma::cli {
namespace po = boost::program_options;

int config_command(const std::vector<std::string>& arguments) {
  po::options_description described("rvma config [--describe | --markdown | --print] [options]\n\nOptions");
  described.add_options()("help,h", "list these options")("describe", "all keys: type, default, range, meaning")(
      "markdown", "the same as a Markdown table")("print", "the resolved configuration, as JSON (the default)")(
      "config", po::value<std::string>(), "configuration file (JSON, comments allowed)")(
      "set", po::value<std::vector<std::string>>()->composing(), "KEY=VALUE: overrides one configuration key");
  po::variables_map values;
  Error usage;
  ErrorList errors;
  if (!parse(arguments, described, {}, values, usage)) {
    errors.add(usage);
    errors.print(std::cerr);
    return kBadInput;
  }
  if (values.count("help") != 0) {
    std::cout << described << "\n";
    return kFine;
  }
  Config config;
  const std::vector<KeyRef> keys = keys_of(config);
  if (values.count("config") != 0) load_config_file(values["config"].as<std::string>(), keys, errors);
  if (values.count("set") != 0) {
    for (const std::string& assignment : values["set"].as<std::vector<std::string>>()) {
      apply_set(assignment, keys, errors);
    }
  }
  if (errors.empty()) validate(config, 1, errors);
  if (!errors.empty()) {
    errors.print(std::cerr);
    return kBadInput;
  }
  if (values.count("describe") != 0) {
    describe_config(std::cout, keys);
  } else if (values.count("markdown") != 0) {
    describe_config_markdown(std::cout, keys);
  } else {
    print_config(std::cout, keys);
  }
  return kFine;
}

}  // namespace rvma::cli
