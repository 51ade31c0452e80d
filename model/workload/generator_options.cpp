#include "workload/generator_options.hpp"

#include <algorithm>
#include <ostream>
#include <utility>

#include "base/units.hpp"
#include "base/value_text.hpp"
#include "workload/trace_syntax.hpp"

namespace rvma::generator {
namespace {

Error option_error(std::string_view option, const std::string& what, std::string expected) {
  return Error{Position{"rvma", 0, 0}, "--" + std::string(option) + ": " + what, std::move(expected)};
}

std::string at_least(std::uint64_t min) { return "expected at least " + std::to_string(min); }

}  // namespace

Options::Options(const GeneratorPattern& pattern, const GeneratorArguments& arguments)
    : pattern_(pattern), arguments_(arguments) {
  for (const auto& [name, value] : arguments) {
    if (find(name) == nullptr) fail_unknown(name);
  }
}

std::uint64_t Options::integer(std::string_view name, std::uint64_t min, std::uint64_t max) {
  const auto value = parse_integer(text(name), max, "an integer");
  if (!value) return fail(name, value.error().what, value.error().expected), min;
  if (*value < min) return fail(name, quoted(text(name)) + " is too small", at_least(min)), min;
  return *value;
}

std::uint64_t Options::size(std::string_view name, std::uint64_t min, std::uint64_t max) {
  const auto value = parse_size(text(name));
  if (!value) return fail(name, value.error().what, value.error().expected), 1;
  if (value->count() > max)
    return fail(name, quoted(text(name)) + " is too large", "expected at most " + to_string(Bytes{max})), 1;
  if (value->count() < min)
    return fail(name, quoted(text(name)) + " is too small", "expected at least " + to_string(Bytes{min})), 1;
  return value->count();
}

Time Options::time(std::string_view name) {
  const auto value = parse_time(text(name));
  if (!value) return fail(name, value.error().what, value.error().expected), Time::zero();
  return *value;
}

std::uint64_t Options::hundredths(std::string_view name, std::uint64_t max) {
  const std::string& given = text(name);
  const std::size_t point = given.find('.');
  const std::string whole = given.substr(0, point);
  std::string part = point == std::string::npos ? "" : given.substr(point + 1);
  const auto is_digits = [](const std::string& digits) {
    return std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  // Eight digits fit; no sensible value has more.
  if (whole.empty() || whole.size() > 8 || part.size() > 2 || (point != std::string::npos && part.empty()) ||
      !is_digits(whole) || !is_digits(part)) {
    return fail(name, quoted(given) + " is no such number", "expected a decimal number of at most two places"), 0;
  }
  part.resize(2, '0');
  const std::uint64_t value = std::stoull(whole) * 100 + std::stoull(part);
  if (value > max)
    return fail(name, quoted(given) + " is too large", "expected at most " + std::to_string(max / 100)), 0;
  return value;
}

std::size_t Options::choice(std::string_view name, const std::vector<std::string>& choices) {
  const auto found = std::find(choices.begin(), choices.end(), text(name));
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "expected one of " : ", ") + choice;
  const std::string near = nearest_name(text(name), choices);
  fail(name, "unknown " + std::string(name) + " " + quoted(text(name)),
       near.empty() ? list : "did you mean '" + near + "'?");
  return 0;
}

WaitHow Options::wait_how(std::string_view name) {
  const auto value = ValueText<WaitHow>::parse(text(name));
  if (!value) return fail(name, value.error().what, value.error().expected), WaitHow::mwait;
  return *value;
}

void Options::fail(std::string_view name, const std::string& what, std::string expected) {
  if (!error_) error_ = option_error(name, what, std::move(expected));
}

const GeneratorOption* Options::find(std::string_view name) const {
  const auto found = std::find_if(pattern_.options.begin(), pattern_.options.end(),
                                  [&](const GeneratorOption& option) { return option.name == name; });
  return found == pattern_.options.end() ? nullptr : &*found;
}

void Options::fail_unknown(const std::string& name) {
  std::vector<std::string> known;
  for (const GeneratorOption& option : pattern_.options) known.push_back(option.name);
  const std::string near = nearest_name(name, known);
  fail(name, "unknown option of '" + pattern_.name + "'",
       near.empty() ? "see 'rvma gen " + pattern_.name + " --help'" : "did you mean '--" + near + "'?");
}

const std::string& Options::text(std::string_view name) const {
  const auto given = arguments_.find(std::string(name));
  if (given != arguments_.end()) return given->second;
  const GeneratorOption* const option = find(name);
  RVMA_ASSERT(option != nullptr, "a generator reads an option that it does not declare");
  return option->default_text;
}

std::vector<std::uint64_t> Options::shape(std::size_t dimensions, std::uint64_t min_ranks) {
  const std::uint64_t ranks = integer("ranks", min_ranks, trace_detail::kMaxRanks);
  if (is_automatic("shape")) return balanced_shape(ranks, dimensions);
  std::vector<std::uint64_t> sides = parse_shape(dimensions);
  std::uint64_t product = 1;
  for (const std::uint64_t side : sides) product *= side;  // each fits 2^20 and so does each partial product, see there
  if (product < min_ranks) {
    fail("shape", quoted(text("shape")) + " is too small", at_least(min_ranks) + " ranks");
  } else if (is_given("ranks") && ranks != product) {
    fail("ranks", quoted(text("ranks")) + " is not the number of ranks of --shape " + shape_text(sides),
         "expected " + std::to_string(product) + ", or only one of the two options");
  }
  return sides;
}

std::vector<std::uint64_t> Options::parse_shape(std::size_t dimensions) {
  const std::string& given = text("shape");
  std::vector<std::uint64_t> sides;
  std::uint64_t product = 1;
  for (std::size_t at = 0; at <= given.size();) {
    const std::size_t end = std::min(given.find('x', at), given.size());
    const auto side = parse_integer(given.substr(at, end - at), trace_detail::kMaxRanks, "a side");
    at = end + 1;
    if (!side || *side == 0) break;
    sides.push_back(*side);
    product *= *side;
    if (product > trace_detail::kMaxRanks) {
      fail("shape", quoted(given) + " has too many ranks",
           "expected at most " + std::to_string(trace_detail::kMaxRanks));
      return std::vector<std::uint64_t>(dimensions, 1);
    }
    if (at > given.size() && sides.size() == dimensions) return sides;
  }
  fail("shape", quoted(given) + " is no shape of this pattern",
       std::string("expected ") + (dimensions == 2 ? "AxB" : "AxBxC") + ", each at least 1");
  return std::vector<std::uint64_t>(dimensions, 1);
}

std::vector<std::uint64_t> balanced_shape(std::uint64_t ranks, std::size_t dimensions) {
  if (dimensions == 1) return {ranks};
  // Of all choices of the shortest side, the one that leaves the shortest longest side.
  std::vector<std::uint64_t> best;
  for (std::uint64_t side = 1;; ++side) {
    std::uint64_t power = 1;
    for (std::size_t i = 0; i < dimensions; ++i) power *= side;
    if (power > ranks) break;
    if (ranks % side != 0) continue;
    std::vector<std::uint64_t> sides = balanced_shape(ranks / side, dimensions - 1);
    if (!best.empty() && sides.front() > best.front()) continue;
    sides.push_back(side);
    best = std::move(sides);
  }
  return best;
}

std::string shape_text(const std::vector<std::uint64_t>& sides) {
  std::string text;
  for (const std::uint64_t side : sides) text += (text.empty() ? "" : "x") + std::to_string(side);
  return text;
}

std::string size_text(std::uint64_t bytes) { return to_string(Bytes{bytes}); }

std::string how_text(WaitHow how) {
  return how == WaitHow::mwait ? std::string{} : " how=" + ValueText<WaitHow>::print(how);
}

std::string threshold_text(std::uint64_t messages, std::uint64_t size) {
  return size == 0 ? std::to_string(messages) + "op" : size_text(messages * size);
}

std::uint64_t buffer_bytes(std::uint64_t messages, std::uint64_t size) {
  return std::max<std::uint64_t>(messages * size, 1);
}

void write_header(std::ostream& out, std::uint64_t ranks, const std::string& title) {
  out << "rvma-trace 1\n# " << title << "\nranks " << ranks << "\n";
}

}  // namespace rvma::generator
