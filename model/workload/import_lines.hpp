/// \file
/// The lines of an imported text, by words with their columns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workload/import.hpp"
#include "workload/import_graph.hpp"
#include "workload/trace_text.hpp"

namespace rvma::import_detail {

struct Word {
  std::string_view text;     ///< lives until the next line
  std::uint32_t column = 0;  ///< from 1, in bytes
};

/// Reads lines forward; those that are too long are mistakes and are passed over.
class ImportLines {
 public:
  ImportLines(const ImportSource& source, std::uint32_t source_index, ImportLog& log);

  /// The next line. False at the end of the text.
  bool next();
  std::string_view text() const { return line_.text; }
  std::uint32_t number() const { return number_; }
  /// The line's words, parted by blanks and tabs.
  const std::vector<Word>& words();

  ImportPlace place(std::uint32_t column) const { return {number_, column, source_index_}; }
  ImportPlace place(const Word& word) const { return place(word.column); }
  Position position(std::uint32_t column) const { return {source_.name, number_, column}; }
  void fail(const Word& word, std::string what, std::string expected) {
    fail(word.column, std::move(what), std::move(expected));
  }
  void fail(std::uint32_t column, std::string what, std::string expected);
  /// An integer of at most `max`; if it is none, a mistake. `what` names the quantity.
  std::optional<std::uint64_t> integer(const Word& word, std::uint64_t max, std::string_view what);
  /// A number of `unit` ("s"), with a fraction perhaps ("2.000000001"): exactly that time; else a mistake.
  std::optional<Time> time(const Word& word, std::string_view unit, std::string_view what);

 private:
  const ImportSource& source_;
  std::uint32_t source_index_;
  ImportLog& log_;
  trace_detail::LineReader reader_;
  trace_detail::Line line_;
  std::uint32_t number_ = 0;
  std::vector<Word> words_;
};

}  // namespace rvma::import_detail
