#include "base/error.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "base/last_words.hpp"

namespace rvma {
namespace {

constexpr std::size_t kQuotedCharacters = 64;
constexpr int kInternalErrorStatus = 3;

/// Bytes of the well-formed, printable UTF-8 character of two or more bytes at the start of `text`, or 0.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t length = 0;
  unsigned char least_second = 0x80;
  unsigned char greatest_second = 0xbf;
  if (byte(0) >= 0xc2 && byte(0) <= 0xdf) {
    length = 2;
    if (byte(0) == 0xc2) least_second = 0xa0;  // U+0080..U+009F are control characters
  } else if (byte(0) >= 0xe0 && byte(0) <= 0xef) {
    length = 3;
    if (byte(0) == 0xe0) least_second = 0xa0;
    if (byte(0) == 0xed) greatest_second = 0x9f;
  } else if (byte(0) >= 0xf0 && byte(0) <= 0xf4) {
    length = 4;
    if (byte(0) == 0xf0) least_second = 0x90;
    if (byte(0) == 0xf4) greatest_second = 0x8f;
  }
  if (length == 0 || text.size() < length) return 0;
  if (byte(1) < least_second || byte(1) > greatest_second) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  return length;
}

std::string escaped_byte(unsigned char byte) {
  switch (byte) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\'':
      return "\\'";
    case '\\':
      return "\\\\";
    default:
      break;
  }
  if (byte >= 0x20 && byte < 0x7f) return std::string(1, static_cast<char>(byte));
  static constexpr char kHex[] = "0123456789abcdef";
  return {'\\', 'x', kHex[byte >> 4U], kHex[byte & 15U]};
}

std::string lower_case(std::string_view text) {
  std::string lower{text};
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// Edit distance with insertion, deletion, substitution and the swap of two neighbours, each at cost 1.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_previous(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before_previous[j - 2] + 1);
      }
    }
    before_previous.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

/// Set once by whatever knows the simulated time; see set_assertion_context().
detail::AssertionContext& assertion_context() {
  static detail::AssertionContext context = nullptr;
  return context;
}

/// Null: none.
LastWords*& last_words() {
  static LastWords* words = nullptr;
  return words;
}

}  // namespace

Error::Error(Position where, std::string wrong, std::string wanted)
    : position(std::move(where)), what(std::move(wrong)), expected(std::move(wanted)) {}

std::string Error::to_string() const {
  std::string text = position.source;
  if (position.line != 0) {
    text += ':' + std::to_string(position.line) + ':' + std::to_string(position.column);
  }
  text += ": error: " + what;
  if (!expected.empty()) text += "; " + expected;
  return text;
}

void throw_exception_from_error(const Error& error, const boost::source_location& location) {
  detail::assertion_failed("the result holds a value", location.file_name(), static_cast<int>(location.line()),
                           error.to_string());
}

void ErrorList::add(Error error) {
  if (shown_.size() < kShown) shown_.push_back(std::move(error));
  ++count_;
}

void ErrorList::add(Position position, std::string what, std::string expected) {
  add(Error{std::move(position), std::move(what), std::move(expected)});
}

void ErrorList::add_all(const ErrorList& other) {
  for (const Error& error : other.shown_) add(error);
  count_ += other.count_ - other.shown_.size();
}

void ErrorList::print(std::ostream& out) const {
  for (const Error& error : shown_) out << error.to_string() << '\n';
  const std::uint64_t hidden = count_ - shown_.size();
  if (hidden != 0) out << "... and " << hidden << (hidden == 1 ? " more error\n" : " more errors\n");
}

std::string quoted(std::string_view text) {
  std::string shown;
  std::size_t characters = 0;
  std::size_t fits = 0;  // bytes of `shown` that leave room for the mark of a cut
  static constexpr std::string_view kCut = "...";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string piece =
        length != 0 ? std::string{text.substr(0, length)} : escaped_byte(static_cast<unsigned char>(text[0]));
    const std::size_t width = length != 0 ? 1 : piece.size();
    if (characters + width > kQuotedCharacters) return "'" + shown.substr(0, fits) + std::string{kCut} + "'";
    shown += piece;
    characters += width;
    if (characters + kCut.size() <= kQuotedCharacters) fits = shown.size();
    text.remove_prefix(length != 0 ? length : 1);
  }
  return "'" + shown + "'";
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : known) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    const std::size_t shorter = std::min(name.size(), candidate.size());
    const std::size_t limit = std::max<std::size_t>(1, candidate.size() / 3);
    if (name.empty() || longer - shorter > limit) continue;
    const std::size_t distance = edit_distance(lower_case(name), lower_case(candidate));
    if (distance <= limit && distance < longer && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

namespace detail {

void set_assertion_context(AssertionContext context) { assertion_context() = context; }

void assertion_failed(const char* condition, const char* file, int line, const std::string& message) {
  // What was already written must not be lost: the process ends without destructors.
  std::cout.flush();
  std::cerr.flush();
  std::clog.flush();
  std::string text = std::string{"rvma: internal error: "} + file;
  if (line > 0) text += ":" + std::to_string(line);
  text += ": " + message + " (broken: " + condition + ")";
  if (assertion_context() != nullptr) text += " at " + assertion_context()();
  std::fputs((text + '\n').c_str(), stderr);
  std::fflush(nullptr);
  if (LastWords* words = std::exchange(last_words(), nullptr)) words->speak_(text);
  std::fflush(nullptr);
  std::_Exit(kInternalErrorStatus);
}

}  // namespace detail

LastWords::LastWords(std::function<void(const std::string& why)> speak) : speak_(std::move(speak)) {
  RVMA_ASSERT(last_words() == nullptr, "two last words");
  last_words() = this;
}

LastWords::~LastWords() { last_words() = nullptr; }

}  // namespace rvma
