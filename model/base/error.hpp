/// \file
/// Two kinds of error. A user's fault (trace, configuration, command line, file, wire bytes) is a *value* with a
/// position; a broken invariant of the model is an RVMA_ASSERT, which stays on in every build.
#pragma once

#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace rvma {

/// Where the user's mistake stands. `source` is a file's path as it was given, "<stdin>", or "rvma" for the command
/// line (then line is 0 and only the text is printed).
struct Position {
  std::string source;
  std::uint64_t line = 0;    ///< from 1; 0: no place within the source
  std::uint64_t column = 0;  ///< from 1, in bytes
};

/// One mistake, ready to print as `FILE:LINE:COLUMN: error: what; expected`.
struct Error {
  Error() = default;
  Error(Position where, std::string wrong, std::string wanted = {});

  Position position;
  std::string what;      ///< what is wrong, quoting at most 64 characters of the input (see quoted())
  std::string expected;  ///< what was expected, or the nearest known name; may be empty

  std::string to_string() const;
};

template <class T>
using Result = boost::system::result<T, Error>;

[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& location);

/// Collects mistakes; prints the first 20, then how many more there were.
class ErrorList {
 public:
  static constexpr std::size_t kShown = 20;
  void add(Error error);
  void add(Position position, std::string what, std::string expected = {});
  /// All errors of `other`, those that it only counted as well.
  void add_all(const ErrorList& other);
  bool empty() const { return count_ == 0; }
  std::uint64_t count() const { return count_; }
  const std::vector<Error>& shown() const { return shown_; }
  void print(std::ostream& out) const;

 private:
  std::vector<Error> shown_;
  std::uint64_t count_ = 0;
};

/// `text` in single quotes, control characters escaped, cut to 64 characters.
std::string quoted(std::string_view text);
// Without these, argument-dependent look-up would prefer std::quoted wherever <iomanip> is included.
inline std::string quoted(const std::string& text) { return quoted(std::string_view{text}); }
inline std::string quoted(std::string& text) { return quoted(std::string_view{text}); }
inline std::string quoted(const char* text) { return quoted(std::string_view{text}); }

/// The entry of `known` nearest to `name` by edit distance, or empty if none is near enough to be a likely slip.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

namespace detail {
/// Says when and where the simulation stands ("1.5us, in node0.nic.parser"), for the message of a failed assertion.
using AssertionContext = std::string (*)();
/// Set by the simulation, so that this file needs no SystemC; asked only when an assertion fails.
void set_assertion_context(AssertionContext context);

/// Flushes all output, prints, and ends the process with exit status 3 without running destructors.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line, const std::string& message);
}  // namespace detail

}  // namespace rvma

/// An invariant of the model itself. On failure: prints place and message, ends the process with exit status 3.
#define RVMA_ASSERT(condition, message) \
  ((condition) ? static_cast<void>(0) : ::rvma::detail::assertion_failed(#condition, __FILE__, __LINE__, (message)))
