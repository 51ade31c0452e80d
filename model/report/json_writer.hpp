/// \file
/// Writes JSON as it goes, keys in the order of the calls; numbers are given as text and stand exactly as given.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace rvma {

class JsonWriter {
 public:
  explicit JsonWriter(std::ostream& out) : out_(out) {}

  /// `key` names the member where the enclosing value is an object; it is empty within arrays and for the root.
  void open_object(std::string_view key = {});
  void close_object();
  void open_array(std::string_view key = {});
  void close_array();
  void text(std::string_view key, std::string_view value);
  /// `digits` is a JSON number already.
  void number(std::string_view key, std::string_view digits);
  void number(std::string_view key, std::uint64_t value);
  /// In ns, exact.
  void time(std::string_view key, Time value);
  void boolean(std::string_view key, bool value);
  /// `json` is a JSON value already (on one line).
  void raw(std::string_view key, std::string_view json);

 private:
  void begin_value(std::string_view key);
  void indent();
  void write_string(std::string_view value);

  std::ostream& out_;
  std::vector<bool> has_members_;  ///< one for each open object or array
};

}  // namespace rvma
