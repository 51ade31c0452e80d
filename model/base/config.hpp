/// \file
/// Configuration, declared once. A section is a struct whose members are Key<T> or nested sections, listed with
/// BOOST_DESCRIBE_CLASS; loading, `--set`, validation, `--print`, `--describe`, the echo in stats.json and the docs
/// table all follow from that declaration.
///
///     struct LinkConfig {
///       Key<Rate> rate{Rate::gbps(400), {Rate::gbps(1), Rate::gbps(10'000)}, "bit rate of a link after line coding"};
///       Key<Time> latency{Time::from_ns(40), "time of flight of a bit"};
///       BOOST_DESCRIBE_CLASS(LinkConfig, (), (rate, latency), (), ())
///     };
///
/// Units read a section through `const&`; nothing changes it after it was resolved.
#pragma once

#include <boost/describe.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11/algorithm.hpp>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "base/value_text.hpp"

namespace rvma {

/// A key without its type: what loading and printing need.
class KeyBase {
 public:
  virtual ~KeyBase() = default;
  /// "size", "rate", "integer", "one of on, off", ... for --describe.
  virtual std::string type_name() const = 0;
  virtual std::string default_text() const = 0;
  /// "min..max", or empty.
  virtual std::string range_text() const = 0;
  virtual std::string value_text() const = 0;
  /// The value as JSON; written by --print and read back unchanged.
  virtual boost::json::value to_json() const = 0;
  /// Sets from a JSON value or from the text behind `--set key=`; on error the key keeps its value.
  virtual std::optional<ValueError> set(const boost::json::value& value) = 0;
  virtual std::optional<ValueError> set_text(std::string_view text) = 0;

  std::string_view description() const { return description_; }
  /// True once the user has named this key: a key that then has no effect in the run is warned about.
  bool set_by_user() const { return set_by_user_; }

 protected:
  explicit KeyBase(std::string_view description) : description_(description) {}
  KeyBase(const KeyBase&) = default;
  KeyBase& operator=(const KeyBase&) = default;

  std::string_view description_;
  bool set_by_user_ = false;
};

namespace detail {
/// Whether T has an order; a key of another type (a Delay, say) takes no range.
template <class T, class = void>
struct is_ordered : std::false_type {};
template <class T>
struct is_ordered<T, std::void_t<decltype(std::declval<const T&>() < std::declval<const T&>())>> : std::true_type {};
}  // namespace detail

template <class T>
struct ValueRange {
  T min;
  T max;
};

/// One configured value with its default, optional inclusive range and meaning (a string literal).
template <class T>
class Key final : public KeyBase {
 public:
  Key(T default_value, std::string_view description)
      : KeyBase(description), value_(default_value), default_(std::move(default_value)) {}
  Key(T default_value, ValueRange<T> range, std::string_view description)
      : KeyBase(description), value_(default_value), default_(std::move(default_value)), range_(std::move(range)) {}

  const T& get() const { return value_; }
  operator const T&() const { return value_; }  // NOLINT(google-explicit-constructor): reads as the value it is
  const T* operator->() const { return &value_; }
  /// For tests and presets in code; not range-checked.
  Key& operator=(T value) {
    value_ = std::move(value);
    return *this;
  }

  std::string type_name() const override { return ValueText<T>::type_name(); }
  std::string default_text() const override { return ValueText<T>::print(default_); }
  std::string range_text() const override {
    return range_ ? ValueText<T>::print(range_->min) + ".." + ValueText<T>::print(range_->max) : std::string{};
  }
  std::string value_text() const override { return ValueText<T>::print(value_); }
  boost::json::value to_json() const override { return ValueText<T>::to_json(value_); }
  std::optional<ValueError> set(const boost::json::value& value) override {
    return accept(ValueText<T>::from_json(value));
  }
  std::optional<ValueError> set_text(std::string_view text) override { return accept(ValueText<T>::parse(text)); }

 private:
  std::optional<ValueError> accept(boost::system::result<T, ValueError> parsed) {
    if (!parsed) return parsed.error();
    if constexpr (detail::is_ordered<T>::value) {
      if (range_ && (*parsed < range_->min || range_->max < *parsed)) {
        return ValueError{"value " + ValueText<T>::print(*parsed) + " is out of range", "expected " + range_text()};
      }
    }
    value_ = std::move(*parsed);
    set_by_user_ = true;
    return std::nullopt;
  }

  T value_;
  T default_;
  std::optional<ValueRange<T>> range_;
};

/// A key together with its full dotted path ("nic.table.rows").
struct KeyRef {
  std::string path;
  KeyBase* key;
};

namespace detail {
/// A member whose name is a keyword of C++ carries a trailing underscore that its path leaves out.
constexpr std::string_view trim_keyword_mark(std::string_view name) {
  if (!name.empty() && name.back() == '_') name.remove_suffix(1);
  return name;
}

template <class Section>
void collect_keys(Section& section, const std::string& prefix, std::vector<KeyRef>& out) {
  using Members = boost::describe::describe_members<Section, boost::describe::mod_any_access>;
  boost::mp11::mp_for_each<Members>([&](auto member) {
    auto& value = section.*member.pointer;
    const std::string name{trim_keyword_mark(member.name)};
    const std::string path = prefix.empty() ? name : prefix + "." + name;
    if constexpr (std::is_base_of_v<KeyBase, std::decay_t<decltype(value)>>) {
      out.push_back({path, &value});
    } else {
      collect_keys(value, path, out);
    }
  });
}
}  // namespace detail

/// Every key below `root`, in declaration order. The pointers live as long as `root` stays where it is.
template <class Root>
std::vector<KeyRef> keys_of(Root& root) {
  std::vector<KeyRef> keys;
  detail::collect_keys(root, "", keys);
  return keys;
}

/// Reads a JSON file (comments and trailing commas allowed) into `keys`. Unknown keys (with the nearest name), wrong
/// types, values out of range and malformed text are added to `errors` with their position.
void load_config_file(const std::string& path, const std::vector<KeyRef>& keys, ErrorList& errors);
/// The same from text; `source` names it in positions.
void load_config_text(std::string_view text, const std::string& source, const std::vector<KeyRef>& keys,
                      ErrorList& errors);
/// Applies one `--set key=value`; its errors begin `rvma: error: --set KEY:`.
void apply_set(std::string_view assignment, const std::vector<KeyRef>& keys, ErrorList& errors);

/// The resolved configuration as JSON that load_config_* reads back unchanged.
void print_config(std::ostream& out, const std::vector<KeyRef>& keys);
boost::json::value config_to_json(const std::vector<KeyRef>& keys);
/// All keys with type, default, range and meaning: plain text for `rvma config --describe`.
void describe_config(std::ostream& out, const std::vector<KeyRef>& keys);
/// The same as a Markdown table, for the docs.
void describe_config_markdown(std::ostream& out, const std::vector<KeyRef>& keys);

}  // namespace rvma
