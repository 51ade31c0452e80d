#include "workload/import.hpp"

#include <algorithm>
#include <ostream>
#include <utility>

#include "workload/import_chakra.hpp"
#include "workload/import_goal.hpp"
#include "workload/import_graph.hpp"
#include "workload/import_hpcc.hpp"
#include "workload/import_htsim.hpp"

namespace rvma {

using import_detail::ImportGraph;

namespace {

struct Importer {
  ImportFormat format;
  void (*read)(const std::vector<ImportSource>&, const ImportOptions&, ImportGraph&, ImportLog&);
};

// The one place that names a format: command line, help and errors follow.
const std::vector<Importer>& importers() {
  static const std::vector<Importer> all{
      {{"goal", "GOAL schedule", {"latency"}, false, false, "'num_ranks N'", ""}, import_detail::read_goal},
      {{"htsim", "htsim connection matrix", {"keep-start", "start-unit"}, false, false, "'Nodes N'", ""},
       import_detail::read_htsim},
      {{"hpcc", "HPCC flow file", {"keep-start", "topology", "config-output"}, false, false, "the number of flows", ""},
       import_detail::read_hpcc},
      {{"chakra",
        "Chakra execution traces, one for each rank",
        {"latency"},
        true,
        true,
        "messages of the Chakra schema",
        import_detail::chakra_missing()},
       import_detail::read_chakra},
  };
  return all;
}

}  // namespace

void ImportLog::doubt(Position position, std::string what, std::string expected) {
  if (lenient_) return warn(position, what);
  errors_.add(std::move(position), std::move(what), std::move(expected));
}

void ImportLog::lost(const Position& position, const std::string& what) { warn(position, what); }

void ImportLog::warn(const Position& position, const std::string& what) {
  if (warnings_.size() < ErrorList::kShown) {
    warnings_.push_back(position.source + ":" + std::to_string(position.line) + ":" + std::to_string(position.column) +
                        ": warning: " + what);
  }
  ++warning_count_;
}

void ImportLog::print_warnings(std::ostream& out) const {
  for (const std::string& warning : warnings_) out << warning << '\n';
  const std::uint64_t hidden = warning_count_ - warnings_.size();
  if (hidden != 0) out << "... and " << hidden << (hidden == 1 ? " more warning\n" : " more warnings\n");
}

const std::vector<ImportFormat>& import_formats() {
  static const std::vector<ImportFormat> formats = [] {
    std::vector<ImportFormat> all;
    for (const Importer& importer : importers()) all.push_back(importer.format);
    return all;
  }();
  return formats;
}

const ImportFormat* find_import_format(std::string_view name) {
  const std::vector<ImportFormat>& formats = import_formats();
  const auto found =
      std::find_if(formats.begin(), formats.end(), [&](const ImportFormat& format) { return format.name == name; });
  return found == formats.end() ? nullptr : &*found;
}

void import_workload(const ImportFormat& format, const std::vector<ImportSource>& sources, const ImportOptions& options,
                     std::ostream& out, ImportLog& log) {
  const auto importer = std::find_if(importers().begin(), importers().end(),
                                     [&](const Importer& one) { return one.format.name == format.name; });
  RVMA_ASSERT(importer != importers().end(), "a format that is not in the table");
  ImportGraph graph;
  for (const ImportSource& source : sources) graph.sources.push_back(source.name);
  importer->read(sources, options, graph, log);
  if (!log.errors().empty()) return;
  const import_detail::ImportPlan plan = import_detail::plan_import(graph, options.latency, log);
  if (log.errors().empty()) import_detail::write_import(graph, plan, out);
}

}  // namespace rvma
