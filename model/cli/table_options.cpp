#include "cli/table_options.hpp"

#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/value_text.hpp"
#include "cli/command_line.hpp"

namespace rvma::cli {
namespace po = boost::program_options;
namespace {

/// Bytes of a wave file in which nothing happens, and more: a disk that is full before the run is found before it.
constexpr std::size_t kLeastRoom = std::size_t{128} * 1024;

bool ends_in(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

void check_wave_name(const TableOptions& options, ErrorList& errors) {
  if (options.kind == TableKind::model) {
    errors.add(
        command_line_error("--wave: only the Verilog table has signals", "expected --table rtl or both with it"));
  }
  const std::string file = std::filesystem::path(options.wave).filename().string();
  std::error_code unknown;
  if (ends_in(file, ".vcd")) {
    errors.add(command_line_error("--wave: waves are written as FST",
                                  "expected another name; fst2vcd (Debian package gtkwave) converts an FST file"));
  } else if (std::filesystem::is_directory(options.wave, unknown)) {
    errors.add(
        command_line_error("--wave: " + quoted(options.wave) + " is a directory", "expected the name of a file in it"));
  } else if (!ends_in(file, ".fst") || file == ".fst") {
    errors.add(command_line_error("--wave: " + quoted(options.wave) + " is no name of a wave file",
                                  "expected one that ends in .fst: F.fst becomes F.node0.fst, .."));
  }
}

void read_flip(const po::variables_map& values, TableOptions& options, ErrorList& errors) {
  const auto lookup = parse_integer(values["table-flip"].as<std::string>(), ~std::uint64_t{0}, "number of a lookup");
  if (!lookup || *lookup == 0) {
    errors.add(command_line_error(
        lookup ? "--table-flip: lookups are numbered from 1" : "--table-flip: " + lookup.error().what,
        lookup ? "expected 1 or more" : lookup.error().expected));
    return;
  }
  options.flip_at_lookup = *lookup;
  if (options.kind == TableKind::both) return;
  errors.add(command_line_error("--table-flip: nothing is compared", "expected --table both with it"));
}

}  // namespace

void add_table_options(po::options_description& options) {
  options.add_options()("table", po::value<std::string>()->default_value("model"),
                        "translation table: model (C++), rtl (Verilog), or both in lock step")(
      "wave", po::value<std::string>(),
      "signals of the Verilog table, an FST file a node: F.fst becomes F.node0.fst, ..")(
      "table-flip", po::value<std::string>(),
      "a try of --table both: flips a stored bit of each Verilog table when the lookup of this number, or the first "
      "one "
      "after it that hits, is about to read it");
}

TableOptions read_table_options(const po::variables_map& values, ErrorList& errors) {
  TableOptions options;
  const std::string& table = values["table"].as<std::string>();
  if (table == "rtl") {
    options.kind = TableKind::rtl;
  } else if (table == "both") {
    options.kind = TableKind::both;
  } else if (table != "model") {
    errors.add(command_line_error("--table: unknown value " + quoted(table), "expected model, rtl or both"));
  }
  if (values.count("table-flip") != 0) read_flip(values, options, errors);
  if (values.count("wave") == 0) return options;
  options.wave = values["wave"].as<std::string>();
  check_wave_name(options, errors);
  return options;
}

void check_waves(const std::string& wave, const Config& config, std::uint32_t ranks, ErrorList& errors) {
  const std::uint32_t per_node = config.workload.ranks_per_node;
  for (std::uint32_t node = 0; node < (ranks + per_node - 1) / per_node; ++node) {
    const std::string path = waves_path(wave, "node" + std::to_string(node));
    std::ofstream file{path, std::ios::binary};
    file << std::string(kLeastRoom, '\0') << std::flush;
    if (file && std::ofstream{path}) continue;
    errors.add(command_line_error("--wave: cannot write " + quoted(path), "expected a place with room for a file"));
    return;
  }
}

std::vector<std::string> OpenWaves::close() {
  std::vector<std::string> problems;
  for (const File& file : files_) {
    if (file.table->close_waves()) continue;
    problems.push_back("--wave: " + quoted(file.path) + " was not written whole: is its disk full?");
  }
  files_.clear();
  return problems;
}

std::string describe_difference(const std::string& unit, const std::string& waves,
                                const LockstepTableCore::Difference& difference) {
  std::string text = unit + ": the Verilog table differs from the C++ one in its cycle " +
                     std::to_string(difference.cycle) + ", which ends at " + to_string(difference.edge) + "\n";
  for (const std::string& line : difference.outputs) text += "  " + line + "\n";
  text += "Last cycles in which it was clocked:\n" + difference.history;
  return text + "Signals of the last cycles: " + (difference.has_waves ? waves : "cannot be written to " + waves) +
         "\n";
}

}  // namespace rvma::cli
