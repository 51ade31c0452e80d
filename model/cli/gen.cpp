// rvma gen: a trace of a known pattern, to stdout or --output.
#include <iostream>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "report/atomic_file.hpp"
#include "workload/generate.hpp"

namespace rvma::cli {
namespace po = boost::program_options;
namespace {

po::options_description describe(const GeneratorPattern& pattern) {
  po::options_description described("rvma gen " + pattern.name + " [options]: " + pattern.meaning + "\n\nOptions");
  auto add = described.add_options();
  add("help,h", "list these options");
  add("output", po::value<std::string>(), "file to write, instead of standard output");
  for (const GeneratorOption& option : pattern.options) {
    if (option.type == GeneratorOptionType::flag) {
      add(option.name.c_str(), option.meaning.c_str());
    } else {
      add(option.name.c_str(), po::value<std::string>(),
          (option.meaning + " (default " + option.default_text + ")").c_str());
    }
  }
  return described;
}

void list_patterns(std::ostream& out) {
  out << "usage: rvma gen PATTERN [options]\n\n";
  for (const GeneratorPattern& pattern : generator_patterns()) {
    out << "  " << pattern.name << std::string(12 - std::min<std::size_t>(11, pattern.name.size()), ' ')
        << pattern.meaning << "\n";
  }
  out << "\nrvma gen PATTERN --help lists a pattern's options.\n";
}

const GeneratorPattern* find_pattern(const std::string& name) {
  for (const GeneratorPattern& pattern : generator_patterns()) {
    if (pattern.name == name) return &pattern;
  }
  return nullptr;
}

int fail(const Error& error) {
  std::cerr << error.to_string() << "\n";
  return kBadInput;
}

int write(const GeneratorPattern& pattern, const po::variables_map& values) {
  GeneratorArguments arguments;
  for (const GeneratorOption& option : pattern.options) {
    if (values.count(option.name) == 0) continue;
    arguments[option.name] = option.type == GeneratorOptionType::flag ? "on" : values[option.name].as<std::string>();
  }
  if (values.count("output") == 0) {
    const auto error = generate(pattern.name, arguments, std::cout);
    return error ? fail(*error) : kFine;
  }
  AtomicFile file(values["output"].as<std::string>());
  if (const auto error = file.open()) return fail(*error);
  if (const auto error = generate(pattern.name, arguments, file.stream())) return fail(*error);
  if (const auto error = file.commit()) return fail(*error);
  return kFine;
}

}  // namespace

int gen_command(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    list_patterns(std::cerr);
    return kBadInput;
  }
  if (arguments[0] == "--help" || arguments[0] == "-h") {
    list_patterns(std::cout);
    return kFine;
  }
  const GeneratorPattern* pattern = find_pattern(arguments[0]);
  if (pattern == nullptr) {
    std::vector<std::string> names;
    for (const GeneratorPattern& known : generator_patterns()) names.push_back(known.name);
    const std::string near = nearest_name(arguments[0], names);
    return fail(command_line_error("unknown pattern " + quoted(arguments[0]),
                                   near.empty() ? "see rvma gen --help" : "did you mean " + near + "?"));
  }
  const po::options_description described = describe(*pattern);
  po::variables_map values;
  Error usage;
  if (!parse({arguments.begin() + 1, arguments.end()}, described, {}, values, usage)) return fail(usage);
  if (values.count("help") != 0) {
    std::cout << described << "\n";
    return kFine;
  }
  return write(*pattern, values);
}

}  // namespace rvma::cli
