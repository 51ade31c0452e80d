/// \file
/// Text and JSON forms of every type that a configuration key or a trace argument can have. Numbers are read as exact
/// integers, never through floating point; overflow, sign, NaN and a missing or wrong unit are errors.
#pragma once

#include <boost/describe.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11/algorithm.hpp>
#include <boost/system/result.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/units.hpp"

namespace rvma {

/// Why a value was refused, without its place (the caller knows it).
struct ValueError {
  std::string what;
  std::string expected;
  /// Where in a list it stands, as a JSON pointer ("/2/kind"); empty: the whole value.
  std::string within{};
};
[[noreturn]] void throw_exception_from_error(const ValueError& error, const boost::source_location& location);

template <class T>
using ValueResult = boost::system::result<T, ValueError>;

/// A share of one in parts per billion, exact: "0.05", "1e-3", "5%".
class Probability {
 public:
  constexpr Probability() = default;
  static constexpr Probability from_ppb(std::uint64_t ppb) { return Probability{ppb}; }
  constexpr std::uint64_t ppb() const { return ppb_; }
  friend constexpr bool operator<(Probability a, Probability b) { return a.ppb_ < b.ppb_; }
  friend constexpr bool operator==(Probability a, Probability b) { return a.ppb_ == b.ppb_; }

 private:
  explicit constexpr Probability(std::uint64_t ppb) : ppb_(ppb) {}
  std::uint64_t ppb_ = 0;
};

/// `64B 4KiB 1MiB 1kB 1GB`, or a bare integer (bytes), decimal or 0x hex. A fraction is fine if the result is whole.
ValueResult<Bytes> parse_size(std::string_view text);
/// `250ns 1.5us 10ms 800ps 1s`; a bare integer is an error that names the units.
ValueResult<Time> parse_time(std::string_view text);
/// A time, or `12cyc`.
ValueResult<Delay> parse_delay(std::string_view text);
/// `12cyc` or a bare count.
ValueResult<Cycles> parse_cycles(std::string_view text);
/// `400Gbps 50GB/s`.
ValueResult<Rate> parse_rate(std::string_view text);
/// `1GHz 322.265625MHz`.
ValueResult<Frequency> parse_frequency(std::string_view text);
/// A bare decimal or 0x hex integer not above `max`; `what` names the quantity in the error.
ValueResult<std::uint64_t> parse_integer(std::string_view text, std::uint64_t max, std::string_view what);
ValueResult<Probability> parse_probability(std::string_view text);
std::string to_string(Probability probability);

namespace detail {
/// JSON strings and numbers both become the text that the parsers above read; integers exactly.
ValueResult<std::string> json_scalar_text(const boost::json::value& value, std::string_view expected);
boost::json::value json_string(const std::string& text);
boost::json::value json_unsigned(std::uint64_t value);
boost::json::value json_bool(bool value);
ValueError unknown_enumerator(std::string_view text, const std::vector<std::string>& known);
}  // namespace detail

/// The type's text and JSON form; specialise beside the type. Members: type_name, parse, print, from_json, to_json.
template <class T, class Enable = void>
struct ValueText;

namespace detail {
/// Shared by all scalar types: JSON in and out through the text form.
template <class T, class Derived>
struct ScalarText {
  static ValueResult<T> from_json(const boost::json::value& value);
  static boost::json::value to_json(const T& value) { return json_string(Derived::print(value)); }
};
template <class T, class Derived>
ValueResult<T> ScalarText<T, Derived>::from_json(const boost::json::value& value) {
  auto text = json_scalar_text(value, Derived::type_name());
  if (!text) return text.error();
  return Derived::parse(*text);
}
}  // namespace detail

template <>
struct ValueText<Bytes> : detail::ScalarText<Bytes, ValueText<Bytes>> {
  static std::string type_name() { return "size"; }
  static ValueResult<Bytes> parse(std::string_view text) { return parse_size(text); }
  static std::string print(Bytes value) { return to_string(value); }
};
template <>
struct ValueText<Time> : detail::ScalarText<Time, ValueText<Time>> {
  static std::string type_name() { return "time"; }
  static ValueResult<Time> parse(std::string_view text) { return parse_time(text); }
  static std::string print(Time value) { return to_string(value); }
};
template <>
struct ValueText<Delay> : detail::ScalarText<Delay, ValueText<Delay>> {
  static std::string type_name() { return "time or cycles"; }
  static ValueResult<Delay> parse(std::string_view text) { return parse_delay(text); }
  static std::string print(Delay value) { return to_string(value); }
};
template <>
struct ValueText<Cycles> : detail::ScalarText<Cycles, ValueText<Cycles>> {
  static std::string type_name() { return "cycles"; }
  static ValueResult<Cycles> parse(std::string_view text) { return parse_cycles(text); }
  static std::string print(Cycles value) { return to_string(value); }
};
template <>
struct ValueText<Rate> : detail::ScalarText<Rate, ValueText<Rate>> {
  static std::string type_name() { return "rate"; }
  static ValueResult<Rate> parse(std::string_view text) { return parse_rate(text); }
  static std::string print(Rate value) { return to_string(value); }
};
template <>
struct ValueText<Frequency> : detail::ScalarText<Frequency, ValueText<Frequency>> {
  static std::string type_name() { return "clock"; }
  static ValueResult<Frequency> parse(std::string_view text) { return parse_frequency(text); }
  static std::string print(Frequency value) { return to_string(value); }
};
template <>
struct ValueText<Probability> : detail::ScalarText<Probability, ValueText<Probability>> {
  static std::string type_name() { return "probability"; }
  static ValueResult<Probability> parse(std::string_view text) { return parse_probability(text); }
  static std::string print(Probability value) { return to_string(value); }
};
template <class T>
struct ValueText<T, std::enable_if_t<std::is_unsigned_v<T> && !std::is_same_v<T, bool>>>
    : detail::ScalarText<T, ValueText<T>> {
  static std::string type_name() { return "integer"; }
  static ValueResult<T> parse(std::string_view text) {
    auto value = parse_integer(text, static_cast<T>(~T{0}), "integer");
    if (!value) return value.error();
    return static_cast<T>(*value);
  }
  static std::string print(T value) { return std::to_string(value); }
  static boost::json::value to_json(T value) { return detail::json_unsigned(value); }
};
/// Any text, taken as it is.
template <>
struct ValueText<std::string> : detail::ScalarText<std::string, ValueText<std::string>> {
  static std::string type_name() { return "text"; }
  static ValueResult<std::string> parse(std::string_view text) { return std::string{text}; }
  static std::string print(const std::string& value) { return value; }
};
/// `on` and `off`; JSON true and false as well.
template <>
struct ValueText<bool> {
  static std::string type_name() { return "on or off"; }
  static ValueResult<bool> parse(std::string_view text);
  static std::string print(bool value) { return value ? "on" : "off"; }
  static ValueResult<bool> from_json(const boost::json::value& value);
  static boost::json::value to_json(bool value) { return detail::json_string(print(value)); }
};
/// Enumerations declared with BOOST_DESCRIBE_ENUM: the enumerators' names; an enumerator may end in `_` where its name
/// is a C++ keyword, which the text form leaves out.
template <class T>
struct ValueText<T, std::enable_if_t<std::is_enum_v<T>>> : detail::ScalarText<T, ValueText<T>> {
  static std::vector<std::string> names() {
    std::vector<std::string> all;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>(
        [&](auto entry) { all.push_back(spelling(entry.name)); });
    return all;
  }
  static std::string type_name() {
    std::string text = "one of ";
    for (const std::string& name : names()) text += name + " ";
    text.pop_back();
    return text;
  }
  static ValueResult<T> parse(std::string_view text) {
    ValueResult<T> found = detail::unknown_enumerator(text, names());
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto entry) {
      if (text == spelling(entry.name)) found = entry.value;
    });
    return found;
  }
  static std::string print(T value) {
    std::string text;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto entry) {
      if (entry.value == value) text = spelling(entry.name);
    });
    return text;
  }

 private:
  static std::string spelling(std::string_view name) {
    if (!name.empty() && name.back() == '_') name.remove_suffix(1);
    return std::string{name};
  }
};

}  // namespace rvma
