// rvma config: what can be configured, and what is.
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/config_batch.hpp"
#include "cli/shared_files.hpp"
#include "platform/config.hpp"
#include "workload/trace.hpp"

namespace rvma::cli {
namespace po = boost::program_options;
namespace {

po::options_description describe_options() {
  po::options_description options(
      "rvma config [--describe [--json] | --markdown | --print | --batch F] [options]\n\nOptions");
  options.add_options()("help,h", "list these options")("describe", "all keys: type, default, range, meaning")(
      "json", "--describe as JSON")("markdown", "the same as a Markdown table")(
      "print", "the resolved configuration, as JSON (the default)")(
      "batch", po::value<std::string>(),
      "a file (-: stdin) with a JSON list of KEY=VALUE on each line: prints for each line the resolved configuration "
      "or "
      "its mistakes, as a line of JSON")("config", po::value<std::string>(),
                                         "configuration file (JSON, comments allowed), or the name of a preset")(
      "set", po::value<std::vector<std::string>>()->composing(), "KEY=VALUE: overrides one configuration key")(
      "trace", po::value<std::string>(), "checks this trace, and the configuration against its ranks")(
      "protocol", po::value<std::string>()->default_value("rvma"),
      "rvma or rdma: whose demands the configuration meets");
  return options;
}

/// The keys of the files and options; errors go to `errors`.
void load(const po::variables_map& values, const std::vector<KeyRef>& keys, ErrorList& errors) {
  if (values.count("config") != 0) load_config(config_file(values["config"].as<std::string>()), keys, errors);
  if (values.count("set") == 0) return;
  for (const std::string& assignment : values["set"].as<std::vector<std::string>>()) {
    apply_set(assignment, keys, errors);
  }
}

/// What a configuration is held against.
struct Demands {
  std::uint32_t ranks = 1;
  Protocol protocol = Protocol::rvma;
};

Demands read_demands(const po::variables_map& values, ErrorList& errors) {
  Demands demands;
  if (values.count("trace") != 0) {
    if (const auto trace = Trace::open(values["trace"].as<std::string>(), errors)) demands.ranks = trace->ranks();
  }
  if (const auto protocol = ValueText<Protocol>::parse(values["protocol"].as<std::string>())) {
    demands.protocol = *protocol;
  } else {
    errors.add(command_line_error("--protocol: " + protocol.error().what, protocol.error().expected));
  }
  return demands;
}

int run_batch(const std::string& source, const Config& base, const Demands& demands) {
  if (source == "-")
    return answer_batch(std::cin, "<stdin>", base, demands.ranks, demands.protocol, std::cout) ? kFine : kBadInput;
  std::ifstream file(source);
  if (!file) {
    ErrorList errors;
    errors.add(Position{source, 1, 1}, "the file cannot be read", "expected a JSON list of KEY=VALUE on each line");
    errors.print(std::cerr);
    return kBadInput;
  }
  return answer_batch(file, source, base, demands.ranks, demands.protocol, std::cout) ? kFine : kBadInput;
}

}  // namespace

int config_command(const std::vector<std::string>& arguments) {
  const po::options_description described = describe_options();
  po::variables_map values;
  Error usage;
  ErrorList errors;
  const auto fail = [&errors] {
    errors.print(std::cerr);
    return kBadInput;
  };
  if (!parse(arguments, described, {}, values, usage)) {
    errors.add(usage);
    return fail();
  }
  if (values.count("help") != 0) {
    std::cout << described << "\n";
    return kFine;
  }
  Config config;
  const std::vector<KeyRef> keys = keys_of(config);
  load(values, keys, errors);
  const Demands demands = read_demands(values, errors);
  if (!errors.empty()) return fail();
  if (values.count("batch") != 0) return run_batch(values["batch"].as<std::string>(), config, demands);
  validate(config, demands.ranks, errors);
  if (errors.empty() && demands.protocol == Protocol::rdma) validate_rdma(config, demands.ranks, errors);
  if (!errors.empty()) return fail();
  if (values.count("describe") != 0 && values.count("json") != 0) {
    describe_config_json(std::cout, keys);
  } else if (values.count("describe") != 0) {
    describe_config(std::cout, keys);
  } else if (values.count("markdown") != 0) {
    describe_config_markdown(std::cout, keys);
  } else {
    print_config(std::cout, keys);
  }
  return kFine;
}

}  // namespace rvma::cli
