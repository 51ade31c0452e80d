/// \file
/// Options of `rvma run` about the translation table: C++, Verilog or both, their waves, and what is told of a
/// difference.
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "platform/config.hpp"
#include "rtl/adapter/table_factory.hpp"

namespace rvma::cli {

enum class TableKind : std::uint8_t { model, rtl, both };

struct TableOptions {
  TableKind kind = TableKind::model;
  std::string wave;                             ///< FST file, which gets the node into its name; empty: none
  std::optional<std::uint64_t> flip_at_lookup;  ///< see LockstepTableCore::flip_bit_at_lookup()
};

void add_table_options(boost::program_options::options_description& options);
/// What is wrong goes to `errors`.
TableOptions read_table_options(const boost::program_options::variables_map& values, ErrorList& errors);

/// Whether the wave files of all nodes can be written; creates them.
void check_waves(const std::string& wave, const Config& config, std::uint32_t ranks, ErrorList& errors);

/// Wave files that are being written.
class OpenWaves {
 public:
  /// `table` lives until close().
  void add(std::string path, VerilatedTable& table) { files_.push_back({std::move(path), &table}); }
  /// Ends them all. A line for each that could not be written whole.
  std::vector<std::string> close();

 private:
  struct File {
    std::string path;
    VerilatedTable* table;
  };
  std::vector<File> files_;
};

/// For the user: the difference of `unit`'s two tables, with `waves`, the file that its waves were meant for.
std::string describe_difference(const std::string& unit, const std::string& waves,
                                const LockstepTableCore::Difference& difference);

}  // namespace rvma::cli
