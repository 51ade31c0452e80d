#include "base/value_text.hpp"

#include <algorithm>
#include <array>
#include <boost/json/string.hpp>
#include <cstddef>
#include <limits>

#include "base/error.hpp"
#include "base/int128.hpp"

namespace rvma {
namespace {

using detail::uint128;

struct Unit {
  std::string_view suffix;
  std::uint64_t factor;  ///< base units in one of these
};

/// A family of units: what parse_decimal_with_unit() needs to read one quantity.
struct Quantity {
  std::string_view expected;   ///< "expected a time in ps, ns, us, ms or s, such as 250ns"
  std::string_view base_name;  ///< "ps"
  const Unit* units;
  std::size_t unit_count;
  std::uint64_t max;  ///< in base units
};

constexpr std::array<Unit, 13> kSizeUnits{{{"B", 1},
                                           {"kB", 1'000},
                                           {"MB", 1'000'000},
                                           {"GB", 1'000'000'000},
                                           {"TB", 1'000'000'000'000},
                                           {"PB", 1'000'000'000'000'000},
                                           {"EB", 1'000'000'000'000'000'000},
                                           {"KiB", std::uint64_t{1} << 10U},
                                           {"MiB", std::uint64_t{1} << 20U},
                                           {"GiB", std::uint64_t{1} << 30U},
                                           {"TiB", std::uint64_t{1} << 40U},
                                           {"PiB", std::uint64_t{1} << 50U},
                                           {"EiB", std::uint64_t{1} << 60U}}};
constexpr std::array<Unit, 5> kTimeUnits{
    {{"ps", 1}, {"ns", 1'000}, {"us", 1'000'000}, {"ms", 1'000'000'000}, {"s", 1'000'000'000'000}}};
constexpr std::array<Unit, 10> kRateUnits{{{"bps", 1},
                                           {"kbps", 1'000},
                                           {"Mbps", 1'000'000},
                                           {"Gbps", 1'000'000'000},
                                           {"Tbps", 1'000'000'000'000},
                                           {"B/s", 8},
                                           {"kB/s", 8'000},
                                           {"MB/s", 8'000'000},
                                           {"GB/s", 8'000'000'000},
                                           {"TB/s", 8'000'000'000'000}}};
constexpr std::array<Unit, 4> kFrequencyUnits{
    {{"Hz", 1'000'000}, {"kHz", 1'000'000'000}, {"MHz", 1'000'000'000'000}, {"GHz", 1'000'000'000'000'000}}};

constexpr std::uint64_t kMaxUint64 = std::numeric_limits<std::uint64_t>::max();
/// Time::max() means "never", which no user may write.
constexpr std::uint64_t kMaxTimePs = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - 1;
constexpr std::uint64_t kMaxCycles = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

constexpr Quantity kSize{"expected a size in bytes, or in B, kB, MB, GB, KiB, MiB or GiB, such as 4KiB", "bytes",
                         kSizeUnits.data(), kSizeUnits.size(), kMaxUint64};
constexpr Quantity kTime{"expected a time in ps, ns, us, ms or s, such as 250ns", "ps", kTimeUnits.data(),
                         kTimeUnits.size(), kMaxTimePs};
constexpr Quantity kDelay{"expected a time in ps, ns, us, ms or s, or clock cycles in cyc, such as 250ns or 12cyc",
                          "ps", kTimeUnits.data(), kTimeUnits.size(), kMaxTimePs};
constexpr Quantity kRate{
    "expected a rate in bps, kbps, Mbps, Gbps or Tbps, or in B/s, kB/s, MB/s, GB/s or TB/s, such as 400Gbps",
    "bits a second", kRateUnits.data(), kRateUnits.size(), kMaxUint64};
constexpr Quantity kFrequency{"expected a clock in Hz, kHz, MHz or GHz, such as 1GHz", "microhertz",
                              kFrequencyUnits.data(), kFrequencyUnits.size(), kMaxUint64};
constexpr std::string_view kCyclesExpected = "expected clock cycles, such as 12cyc or 12";
constexpr std::string_view kProbabilityExpected = "expected a probability from 0 to 1, such as 0.05, 1e-3 or 5%";

/// Fraction digits that are read; no unit is so large that more of them could end in a whole base unit.
constexpr std::size_t kFractionDigits = 18;
constexpr std::uint64_t kPpbOfOne = 1'000'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Removes the leading digits of `text` and returns them.
std::string_view take_digits(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  const std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  return digits;
}

bool starts_hex(std::string_view text) {
  return text.size() > 1 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

ValueError error(std::string what, std::string_view expected) { return {std::move(what), std::string{expected}}; }

/// Faults that every number has in common: nothing at all, a sign, a word.
ValueError not_a_number(std::string_view text, std::string_view expected) {
  if (text.empty()) return error("the value is empty", expected);
  if (text[0] == '-') return error(quoted(text) + " is negative", expected);
  return error(quoted(text) + " is not a number", expected);
}

ValueError too_large(std::string_view text, const std::string& max) {
  return {quoted(text) + " is too large", "expected at most " + max};
}

/// Digits of `base` 10 or 16; empty if they are more than 64 bits.
boost::system::result<std::uint64_t> digits_to_integer(std::string_view digits, unsigned base) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    unsigned digit = 0;
    if (is_digit(c)) {
      digit = static_cast<unsigned>(c - '0');
    } else {
      digit = static_cast<unsigned>((c | 0x20) - 'a') + 10;
    }
    if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value)) {
      return boost::system::errc::make_error_code(boost::system::errc::value_too_large);
    }
  }
  return value;
}

/// A bare integer, decimal or hex, that fills all of `text`.
ValueResult<std::uint64_t> parse_bare_integer(std::string_view text, std::uint64_t max, std::string_view expected) {
  std::string_view rest = text;
  unsigned base = 10;
  std::string_view digits;
  if (starts_hex(text)) {
    base = 16;
    digits = text.substr(2);
    const auto is_hex = [](char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); };
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_hex)) {
      return error(quoted(text) + " is not a hexadecimal number", expected);
    }
  } else {
    digits = take_digits(rest);
    if (digits.empty()) return not_a_number(text, expected);
    if (!rest.empty()) return error(quoted(text) + " is not a whole number", expected);
  }
  const auto value = digits_to_integer(digits, base);
  if (!value || *value > max) return too_large(text, std::to_string(max));
  return *value;
}

/// "12.5us" in base units, exactly.
ValueResult<std::uint64_t> parse_decimal_with_unit(std::string_view text, const Quantity& quantity) {
  // 1. Split into digits, fraction and unit.
  std::string_view rest = text;
  const std::string_view integer = take_digits(rest);
  if (integer.empty()) return not_a_number(text, quantity.expected);
  std::string_view fraction;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    fraction = take_digits(rest);
    if (fraction.empty()) return error(quoted(text) + " has no digits after the point", quantity.expected);
    while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  }
  if (rest.empty()) return error(quoted(text) + " has no unit", quantity.expected);

  // 2. The unit.
  const Unit* const end = quantity.units + quantity.unit_count;
  const Unit* const unit = std::find_if(quantity.units, end, [&](const Unit& u) { return u.suffix == rest; });
  if (unit == end) return error(quoted(text) + " has the unknown unit " + quoted(rest), quantity.expected);

  // 3. Whole units.
  const std::string max = std::to_string(quantity.max) + " " + std::string{quantity.base_name};
  const auto whole = digits_to_integer(integer, 10);
  if (!whole) return too_large(text, max);
  uint128 total = uint128{*whole} * unit->factor;

  // 4. The fraction must come out whole.
  if (!fraction.empty()) {
    uint128 scaled = 0;
    uint128 divisor = 1;
    if (fraction.size() <= kFractionDigits) {
      for (const char c : fraction) {
        scaled = scaled * 10 + static_cast<unsigned>(c - '0');
        divisor *= 10;
      }
      scaled *= unit->factor;
    }
    if (fraction.size() > kFractionDigits || scaled % divisor != 0) {
      return error(quoted(text) + " is not a whole number of " + std::string{quantity.base_name}, quantity.expected);
    }
    total += scaled / divisor;
  }
  if (total > quantity.max) return too_large(text, max);
  return static_cast<std::uint64_t>(total);
}

bool is_bare_integer(std::string_view text) {
  return starts_hex(text) || (!text.empty() && std::all_of(text.begin(), text.end(), is_digit));
}

}  // namespace

void throw_exception_from_error(const ValueError& error, const boost::source_location& location) {
  detail::assertion_failed("the result holds a value", location.file_name(), static_cast<int>(location.line()),
                           error.what);
}

ValueResult<Bytes> parse_size(std::string_view text) {
  const auto value = is_bare_integer(text) ? parse_bare_integer(text, kSize.max, kSize.expected)
                                           : parse_decimal_with_unit(text, kSize);
  if (!value) return value.error();
  return Bytes{*value};
}

ValueResult<Time> parse_time(std::string_view text) {
  const auto value = parse_decimal_with_unit(text, kTime);
  if (!value) return value.error();
  return Time::from_ps(static_cast<std::int64_t>(*value));
}

ValueResult<Delay> parse_delay(std::string_view text) {
  static constexpr std::string_view kSuffix = "cyc";
  if (text.size() > kSuffix.size() && text.substr(text.size() - kSuffix.size()) == kSuffix) {
    const auto cycles = parse_cycles(text);
    if (!cycles) return cycles.error();
    return Delay{*cycles};
  }
  const auto value = parse_decimal_with_unit(text, kDelay);
  if (!value) return value.error();
  return Delay{Time::from_ps(static_cast<std::int64_t>(*value))};
}

ValueResult<Cycles> parse_cycles(std::string_view text) {
  std::string_view count = text;
  static constexpr std::string_view kSuffix = "cyc";
  if (count.size() > kSuffix.size() && count.substr(count.size() - kSuffix.size()) == kSuffix) {
    count.remove_suffix(kSuffix.size());
  }
  const auto value = parse_bare_integer(count, kMaxCycles, kCyclesExpected);
  if (!value) return value.error();
  return Cycles{static_cast<std::int64_t>(*value)};
}

ValueResult<Rate> parse_rate(std::string_view text) {
  const auto value = parse_decimal_with_unit(text, kRate);
  if (!value) return value.error();
  return Rate::from_bits_per_s(*value);
}

ValueResult<Frequency> parse_frequency(std::string_view text) {
  const auto value = parse_decimal_with_unit(text, kFrequency);
  if (!value) return value.error();
  return Frequency::from_uhz(*value);
}

ValueResult<std::uint64_t> parse_integer(std::string_view text, std::uint64_t max, std::string_view what) {
  const std::string expected = "expected " + std::string{what} + ": decimal or 0x hex, at most " + std::to_string(max);
  return parse_bare_integer(text, max, expected);
}

ValueResult<Probability> parse_probability(std::string_view text) {
  // 1. digits[.digits][e[+-]digits][%]
  std::string_view rest = text;
  std::string digits{take_digits(rest)};
  if (digits.empty()) return not_a_number(text, kProbabilityExpected);
  std::int64_t exponent = 9;  // the value in parts per billion is digits * 10^exponent
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    const std::string_view fraction = take_digits(rest);
    if (fraction.empty()) return error(quoted(text) + " has no digits after the point", kProbabilityExpected);
    digits += fraction;
    exponent -= static_cast<std::int64_t>(fraction.size());
  }
  if (!rest.empty() && (rest[0] == 'e' || rest[0] == 'E')) {
    rest.remove_prefix(1);
    const bool negative = !rest.empty() && rest[0] == '-';
    if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) rest.remove_prefix(1);
    const auto power = digits_to_integer(take_digits(rest), 10);
    static constexpr std::uint64_t kMaxPower = 1000;
    if (!power || *power > kMaxPower) return error(quoted(text) + " has too large an exponent", kProbabilityExpected);
    exponent += negative ? -static_cast<std::int64_t>(*power) : static_cast<std::int64_t>(*power);
  }
  if (rest == "%") {
    rest.remove_prefix(1);
    exponent -= 2;
  }
  if (!rest.empty()) return error(quoted(text) + " is not a probability", kProbabilityExpected);

  // 2. Exactly, in parts per billion.
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return Probability{};
  while (digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  if (exponent < 0) return error(quoted(text) + " is finer than 1e-9", kProbabilityExpected);
  if (static_cast<std::int64_t>(digits.size()) + exponent > 10) return too_large(text, "1");
  digits.append(static_cast<std::size_t>(exponent), '0');
  const auto ppb = digits_to_integer(digits, 10);
  if (!ppb || *ppb > kPpbOfOne) return too_large(text, "1");
  return Probability::from_ppb(*ppb);
}

std::string to_string(Probability probability) {
  std::string text = std::to_string(probability.ppb() / kPpbOfOne);
  std::uint64_t rest = probability.ppb() % kPpbOfOne;
  if (rest != 0) text += '.';
  for (std::uint64_t unit = kPpbOfOne / 10; rest != 0; unit /= 10) {
    text += static_cast<char>('0' + rest / unit);
    rest %= unit;
  }
  return text;
}

ValueResult<bool> ValueText<bool>::parse(std::string_view text) {
  if (text == "on" || text == "true") return true;
  if (text == "off" || text == "false") return false;
  return ValueError{quoted(text) + " is neither on nor off", "expected on or off"};
}

ValueResult<bool> ValueText<bool>::from_json(const boost::json::value& value) {
  if (value.is_bool()) return value.get_bool();
  const auto text = detail::json_scalar_text(value, type_name());
  if (!text) return text.error();
  return parse(*text);
}

namespace detail {

ValueResult<std::string> json_scalar_text(const boost::json::value& value, std::string_view expected) {
  const std::string wanted = "expected " + std::string{expected};
  switch (value.kind()) {
    case boost::json::kind::string:
      return std::string{value.get_string().data(), value.get_string().size()};
    case boost::json::kind::int64:
      return std::to_string(value.get_int64());
    case boost::json::kind::uint64:
      return std::to_string(value.get_uint64());
    case boost::json::kind::double_:
      // Only a program can hand one in: the configuration reader keeps the digits as they were written.
      return ValueError{"a floating-point number is not exact", wanted + " as text or as an integer"};
    case boost::json::kind::bool_:
      return ValueError{value.get_bool() ? "true is not a value of this key" : "false is not a value of this key",
                        wanted};
    case boost::json::kind::null:
      return ValueError{"null is not a value", wanted};
    case boost::json::kind::array:
      return ValueError{"a list stands where one value belongs", wanted};
    case boost::json::kind::object:
      return ValueError{"a section stands where one value belongs", wanted};
  }
  return ValueError{"unknown kind of JSON value", wanted};
}

boost::json::value json_string(const std::string& text) { return boost::json::string(text); }
boost::json::value json_unsigned(std::uint64_t value) { return value; }
boost::json::value json_bool(bool value) { return value; }

ValueError unknown_enumerator(std::string_view text, const std::vector<std::string>& known) {
  std::string what = text.empty() ? "the value is empty" : quoted(text) + " is unknown";
  const std::string nearest = nearest_name(text, known);
  if (!nearest.empty()) return {std::move(what), "did you mean " + quoted(nearest) + "?"};
  std::string all = "expected one of ";
  for (const std::string& name : known) {
    if (&name != known.data()) all += ", ";
    all += name;
  }
  return {std::move(what), std::move(all)};
}

}  // namespace detail
}  // namespace rvma
