// rvma import: a workload of another simulator as a trace, to stdout or --output.
#include "workload/import.hpp"

#include <algorithm>
#include <iostream>
#include <optional>

#include "base/value_text.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/shared_files.hpp"
#include "report/atomic_file.hpp"

namespace rvma::cli {
namespace po = boost::program_options;
namespace {

po::options_description describe() {
  std::string formats = "format of FILE:";
  for (const ImportFormat& format : import_formats()) formats += " " + format.name;
  po::options_description described(
      "rvma import --from FORMAT FILE [options]: a workload of another simulator as a trace\n\n"
      "FILE may be packed (gzip or zstd); - reads standard input.\n\nOptions");
  auto add = described.add_options();
  add("help,h", "list these options");
  add("from", po::value<std::string>(), formats.c_str());
  add("file", po::value<std::vector<std::string>>()->composing(), "FILE; of some formats one for each rank");
  add("output", po::value<std::string>(), "trace to write, instead of standard output");
  add("lenient", "a wrong count in a header is a warning");
  add("latency", po::value<std::string>()->default_value("1us"),
      "goal, chakra: time that a message is taken to need when a rank's operations are put in order");
  add("keep-start", "htsim, hpcc: flows start at their own times, instead of the first one at 0");
  add("start-unit", po::value<std::string>()->default_value("ps"), "htsim: unit of start times: ps, ns, us, ms or s");
  add("topology", po::value<std::string>(), "hpcc: topology file; its hosts are the ranks");
  add("config-output", po::value<std::string>(),
      "hpcc: configuration to write that has this topology; its links go to a file of that name with .links behind it");
  return described;
}

void list_formats(std::ostream& out) {
  out << "\nFormats:\n";
  for (const ImportFormat& format : import_formats()) {
    out << "  " << format.name << std::string(10 - std::min<std::size_t>(9, format.name.size()), ' ') << format.noun;
    if (!format.missing.empty()) out << " (" << format.missing << ")";
    out << "\n";
  }
}

std::string links_of(const std::string& config) { return config + ".links"; }

int fail(const Error& error) {
  std::cerr << error.to_string() << "\n";
  return kBadInput;
}

int fail(const ErrorList& errors) {
  errors.print(std::cerr);
  return kBadInput;
}

const ImportFormat* choose_format(const po::variables_map& values, ErrorList& errors) {
  std::vector<std::string> names;
  std::string list;
  for (const ImportFormat& format : import_formats()) {
    names.push_back(format.name);
    list += (list.empty() ? "expected one of " : ", ") + format.name;
  }
  if (values.count("from") == 0) {
    errors.add(command_line_error("--from is missing", list));
    return nullptr;
  }
  const std::string& name = values["from"].as<std::string>();
  const ImportFormat* const format = find_import_format(name);
  if (format == nullptr) {
    const std::string near = nearest_name(name, names);
    errors.add(command_line_error("--from: unknown format " + quoted(name),
                                  near.empty() ? list : "did you mean '" + near + "'?"));
  } else if (!format->missing.empty()) {
    errors.add(command_line_error("--from " + name + ": " + format->missing));
  }
  return format;
}

/// What the format does not read is a mistake, not nothing.
void check_options(const ImportFormat& format, const po::variables_map& values, ErrorList& errors) {
  static const std::vector<std::string> kOfAll{"help", "from", "file", "output", "lenient"};
  for (const auto& [name, value] : values) {
    const auto is_name = [option = name](const std::string& other) { return other == option; };
    if (value.defaulted() || std::any_of(kOfAll.begin(), kOfAll.end(), is_name)) continue;
    if (std::any_of(format.options.begin(), format.options.end(), is_name)) continue;
    errors.add(command_line_error("--" + name + ": --from " + format.name + " has no use for it"));
  }
}

ImportOptions read_options(const po::variables_map& values, ErrorList& errors) {
  ImportOptions options;
  options.lenient = values.count("lenient") != 0;
  const auto latency = parse_time(values["latency"].as<std::string>());
  if (latency) options.latency = *latency;
  if (!latency) errors.add(command_line_error("--latency: " + latency.error().what, latency.error().expected));
  options.keep_start = values.count("keep-start") != 0;
  options.start_unit = values["start-unit"].as<std::string>();
  if (!parse_time("1" + options.start_unit)) {
    errors.add(
        command_line_error("--start-unit: unknown unit " + quoted(options.start_unit), "expected ps, ns, us, ms or s"));
  }
  if (values.count("config-output") != 0 && values.count("topology") == 0)
    errors.add(command_line_error("--config-output needs --topology"));
  return options;
}

void open_source(const std::string& path, const trace_detail::TextKind& kind, std::vector<ImportSource>& sources,
                 ErrorList& errors) {
  const std::string name = path == "-" ? "<stdin>" : path;
  auto text = trace_detail::open_text(path, name, kind);
  if (!text) {
    errors.add(text.error());
  } else {
    sources.push_back({name, std::move(*text)});
  }
}

std::vector<ImportSource> open_sources(const ImportFormat& format, const po::variables_map& values, ErrorList& errors) {
  std::vector<ImportSource> sources;
  if (values.count("file") == 0) {
    errors.add(command_line_error("FILE is missing", "expected the file to import, or - for standard input"));
    return sources;
  }
  const auto& paths = values["file"].as<std::vector<std::string>>();
  if (paths.size() > 1 && !format.file_a_rank) {
    errors.add(command_line_error("too many arguments", "expected one file of --from " + format.name));
    return sources;
  }
  for (const std::string& path : paths)
    open_source(path, {format.noun, format.begins_with, format.is_binary}, sources, errors);
  if (values.count("topology") != 0) {
    open_source(values["topology"].as<std::string>(), {"HPCC topology", "'NODES SWITCHES LINKS'"}, sources, errors);
  }
  return sources;
}

void check_outputs(const po::variables_map& values, ErrorList& errors) {
  std::vector<std::string> inputs = values["file"].as<std::vector<std::string>>();
  if (values.count("topology") != 0) inputs.push_back(values["topology"].as<std::string>());
  if (values.count("output") != 0) keep_inputs("output", values["output"].as<std::string>(), inputs, errors);
  if (values.count("config-output") == 0) return;
  const std::string config = values["config-output"].as<std::string>();
  keep_inputs("config-output", config, inputs, errors);
  keep_inputs("config-output", links_of(config), inputs, errors);
}

/// The configuration of the topology and the list of its links, which it names.
int write_topology(const ImportSource& topology, const std::string& path, bool lenient) {
  const std::string links_path = links_of(path);
  AtomicFile config(path);
  AtomicFile links(links_path);
  if (const auto error = config.open()) return fail(*error);
  if (const auto error = links.open()) return fail(*error);
  ImportLog log(lenient);
  import_topology(topology, links_path, links.stream(), config.stream(), log);
  if (!log.errors().empty()) return fail(log.errors());
  if (const auto error = links.commit()) return fail(*error);
  if (const auto error = config.commit()) return fail(*error);
  log.print_warnings(std::cerr);
  return kFine;
}

int write(const ImportFormat& format, const std::vector<ImportSource>& sources, const ImportOptions& options,
          const po::variables_map& values) {
  std::optional<AtomicFile> file;
  if (values.count("output") != 0) {
    file.emplace(values["output"].as<std::string>());
    if (const auto error = file->open()) return fail(*error);
  }
  ImportLog log(options.lenient);
  import_workload(format, sources, options, file ? file->stream() : std::cout, log);
  if (!log.errors().empty()) return fail(log.errors());
  if (file) {
    if (const auto error = file->commit()) return fail(*error);
  }
  log.print_warnings(std::cerr);
  if (values.count("config-output") == 0) return kFine;
  return write_topology(sources.back(), values["config-output"].as<std::string>(), options.lenient);
}

}  // namespace

int import_command(const std::vector<std::string>& arguments) {
  const po::options_description described = describe();
  po::variables_map values;
  Error usage;
  if (!parse(arguments, described, {"file..."}, values, usage)) return fail(usage);
  if (values.count("help") != 0) {
    std::cout << described;
    list_formats(std::cout);
    return kFine;
  }
  ErrorList errors;
  const ImportFormat* const format = choose_format(values, errors);
  if (!errors.empty()) return fail(errors);
  check_options(*format, values, errors);
  const ImportOptions options = read_options(values, errors);
  if (!errors.empty()) return fail(errors);
  const std::vector<ImportSource> sources = open_sources(*format, values, errors);
  if (!errors.empty()) return fail(errors);
  check_outputs(values, errors);
  if (!errors.empty()) return fail(errors);
  return write(*format, sources, options, values);
}

}  // namespace rvma::cli
