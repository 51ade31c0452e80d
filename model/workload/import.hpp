/// \file
/// Workloads of other simulators as traces of this one. The formats are in one table (import.cpp), a file pair each;
/// every importer reads its text into an ImportGraph, from which the trace is made in one way for all.
/// Reference: docs/reference/import.md.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "workload/trace_text.hpp"

namespace rvma {

/// What the user may choose; which format reads what is in its ImportFormat.
struct ImportOptions {
  bool lenient = false;             ///< a wrong count in a header is a warning
  bool keep_start = false;          ///< flows start at their own times, instead of the first one at 0
  std::string start_unit = "ps";    ///< of an htsim start time
  Time latency = Time::from_us(1);  ///< of a message, for the order of a rank's operations
};

/// One input and the name that positions quote.
struct ImportSource {
  std::string name;
  std::unique_ptr<trace_detail::TextSource> text;
};

/// Mistakes, and what is no mistake but lost. The first of each are kept, the others counted.
class ImportLog {
 public:
  explicit ImportLog(bool lenient = false) : lenient_(lenient) {}
  ErrorList& errors() { return errors_; }
  const ErrorList& errors() const { return errors_; }
  /// A mistake that --lenient overlooks.
  void doubt(Position position, std::string what, std::string expected);
  /// Something of the input that the trace does not have.
  void lost(const Position& position, const std::string& what);
  /// `FILE:LINE:COLUMN: warning: what` each, at most ErrorList::kShown, then how many more.
  void print_warnings(std::ostream& out) const;
  std::uint64_t warnings() const { return warning_count_; }

 private:
  void warn(const Position& position, const std::string& what);

  bool lenient_;
  ErrorList errors_;
  std::vector<std::string> warnings_;
  std::uint64_t warning_count_ = 0;
};

struct ImportFormat {
  std::string name;
  std::string noun;                  ///< what a file of it is, "GOAL schedule"
  std::vector<std::string> options;  ///< of the command line, beside those that all formats have
  bool file_a_rank = false;          ///< takes a file for each rank
  bool is_binary = false;
  std::string begins_with;  ///< what a file of it begins with, for the error about an empty one
  std::string missing;      ///< why this program cannot read it; empty: it can
};

/// All formats, in the order in which help lists them.
const std::vector<ImportFormat>& import_formats();
const ImportFormat* find_import_format(std::string_view name);

/// Reads `sources` as `format` and writes the trace to `out`, unless there are errors; then nothing is written.
void import_workload(const ImportFormat& format, const std::vector<ImportSource>& sources, const ImportOptions& options,
                     std::ostream& out, ImportLog& log);

/// An HPCC topology as a link list for `fabric.topology=file` (written to `links`) and the configuration of its links,
/// which names that list `links_path`. See import_hpcc.hpp.
void import_topology(const ImportSource& source, const std::string& links_path, std::ostream& links,
                     std::ostream& config, ImportLog& log);

}  // namespace rvma
