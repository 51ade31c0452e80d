#include "workload/import_lines.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/value_text.hpp"

namespace rvma::import_detail {
namespace {

constexpr std::size_t kCacheBytes = 1U << 20U;
constexpr std::string_view kBlanks = " \t\r\f\v";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

ImportLines::ImportLines(const ImportSource& source, std::uint32_t source_index, ImportLog& log)
    : source_(source), source_index_(source_index), log_(log), reader_(*source.text, kCacheBytes) {}

bool ImportLines::next() {
  while (reader_.next(line_)) {
    RVMA_ASSERT(number_ < std::numeric_limits<std::uint32_t>::max(), "more lines than are counted");
    ++number_;
    if (!line_.too_long) return true;
    fail(1, "the line is too long: " + rvma::quoted(line_.text),
         "expected at most " + std::to_string(trace_detail::kMaxLineBytes) + " bytes");
  }
  if (reader_.offset() < source_.text->size()) {
    fail(1, "cannot read the whole file", "expected " + std::to_string(source_.text->size()) + " bytes");
  }
  return false;
}

const std::vector<Word>& ImportLines::words() {
  words_.clear();
  std::size_t at = 0;
  while ((at = line_.text.find_first_not_of(kBlanks, at)) != std::string_view::npos) {
    const std::size_t end = std::min(line_.text.find_first_of(kBlanks, at), line_.text.size());
    words_.push_back({line_.text.substr(at, end - at), static_cast<std::uint32_t>(at + 1)});
    at = end;
  }
  return words_;
}

void ImportLines::fail(std::uint32_t column, std::string what, std::string expected) {
  log_.errors().add(Position{source_.name, std::max<std::uint32_t>(number_, 1), column}, std::move(what),
                    std::move(expected));
}

std::optional<std::uint64_t> ImportLines::integer(const Word& word, std::uint64_t max, std::string_view what) {
  // The formats have decimal integers only: what parse_integer() reads as hexadecimal is none of theirs.
  const bool decimal = std::all_of(word.text.begin(), word.text.end(), is_digit);
  const auto value = parse_integer(decimal ? word.text : std::string_view{"?"}, max, what);
  if (value) return *value;
  const std::string name(what);
  fail(word, decimal ? value.error().what : rvma::quoted(word.text) + " is no " + name,
       decimal ? value.error().expected : "expected a decimal integer");
  return std::nullopt;
}

std::optional<Time> ImportLines::time(const Word& word, std::string_view unit, std::string_view what) {
  const auto value = parse_time(std::string(word.text) + std::string(unit));
  if (value) return *value;
  fail(word, rvma::quoted(word.text) + " is no " + std::string(what) + " in " + std::string(unit),
       "expected a decimal number that is whole in picoseconds and less than 2^63 of them");
  return std::nullopt;
}

}  // namespace rvma::import_detail
