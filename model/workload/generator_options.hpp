/// \file
/// What the generators share: reading a pattern's options, and the words of a trace.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "host/core.hpp"
#include "workload/generate.hpp"

namespace rvma::generator {

/// Messages of more than this are no test of a NIC but of the host's memory.
inline constexpr std::uint64_t kMaxMessageBytes = 1ULL << 30U;
inline constexpr std::uint64_t kMaxCount = 1ULL << 48U;
/// Of the option `messages`.
inline constexpr const char* kMessagesMeaning = "send and recv (the message layer) instead of puts";

/// Values of a pattern's options; the first error is kept and everything read after it is a default.
class Options {
 public:
  Options(const GeneratorPattern& pattern, const GeneratorArguments& arguments);

  std::uint64_t integer(std::string_view name, std::uint64_t min, std::uint64_t max);
  std::uint64_t size(std::string_view name, std::uint64_t min, std::uint64_t max);
  Time time(std::string_view name);
  /// A decimal number of at most two places, in hundredths: "0.99" is 99.
  std::uint64_t hundredths(std::string_view name, std::uint64_t max);
  /// Index into `choices`.
  std::size_t choice(std::string_view name, const std::vector<std::string>& choices);
  WaitHow wait_how(std::string_view name);
  bool flag(std::string_view name) const { return is_given(name); }
  /// Whether the user names it, or leaves it to its default.
  bool is_given(std::string_view name) const { return arguments_.count(std::string(name)) != 0; }
  /// The user leaves the choice to the generator.
  bool is_automatic(std::string_view name) const { return text(name) == "auto"; }

  /// Options `shape` (`AxB...`, as many numbers as `dimensions`) and `ranks` together: the shape as given; or that of
  /// `ranks` which is nearest to a cube, longest side first. If both are given they must agree.
  template <std::size_t dimensions>
  std::array<std::uint64_t, dimensions> shape(std::uint64_t min_ranks) {
    const std::vector<std::uint64_t> sides = shape(dimensions, min_ranks);
    std::array<std::uint64_t, dimensions> all{};
    for (std::size_t i = 0; i < dimensions; ++i) all[i] = sides[i];
    return all;
  }

  void fail(std::string_view name, const std::string& what, std::string expected);
  const std::optional<Error>& error() const { return error_; }

 private:
  const GeneratorOption* find(std::string_view name) const;
  void fail_unknown(const std::string& name);
  const std::string& text(std::string_view name) const;
  std::vector<std::uint64_t> shape(std::size_t dimensions, std::uint64_t min_ranks);
  std::vector<std::uint64_t> parse_shape(std::size_t dimensions);

  const GeneratorPattern& pattern_;
  const GeneratorArguments& arguments_;
  std::optional<Error> error_;
};

/// Sides whose product is `ranks`, as equal as can be, the longest first.
std::vector<std::uint64_t> balanced_shape(std::uint64_t ranks, std::size_t dimensions);
/// "4x2x1"
std::string shape_text(const std::vector<std::uint64_t>& sides);

std::string size_text(std::uint64_t bytes);
/// ` how=poll`; the default needs no words.
std::string how_text(WaitHow how);
/// Messages of no bytes can only be counted.
std::string threshold_text(std::uint64_t messages, std::uint64_t size);
/// A buffer has at least a byte.
std::uint64_t buffer_bytes(std::uint64_t messages, std::uint64_t size);
void write_header(std::ostream& out, std::uint64_t ranks, const std::string& title);
/// `repeat N`, what `body` writes, `end`; once needs no loop, never writes nothing.
template <class Body>
void write_repeated(std::ostream& out, const std::string& indent, std::uint64_t count, Body&& body) {
  if (count == 0) return;
  if (count == 1) return body(indent);
  out << indent << "repeat " << count << "\n";
  body(indent + "  ");
  out << indent << "end\n";
}

using Writer = std::optional<Error> (*)(Options&, std::ostream&);

GeneratorPattern alltoall_pattern();
std::optional<Error> write_alltoall(Options& options, std::ostream& out);
GeneratorPattern allreduce_pattern();
std::optional<Error> write_allreduce(Options& options, std::ostream& out);
GeneratorPattern halo3d_pattern();
std::optional<Error> write_halo3d(Options& options, std::ostream& out);
GeneratorPattern sweep3d_pattern();
std::optional<Error> write_sweep3d(Options& options, std::ostream& out);
GeneratorPattern kv_pattern();
std::optional<Error> write_kv(Options& options, std::ostream& out);
GeneratorPattern mailboxes_pattern();
std::optional<Error> write_mailboxes(Options& options, std::ostream& out);
GeneratorPattern storm_pattern();
std::optional<Error> write_storm(Options& options, std::ostream& out);

}  // namespace rvma::generator
