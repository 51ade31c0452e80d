#include "report/json_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/error.hpp"

namespace rvma {

void JsonWriter::indent() {
  constexpr std::string_view kSpaces = "                                ";
  out_ << '\n' << kSpaces.substr(0, std::min(kSpaces.size(), 2 * has_members_.size()));
}

void JsonWriter::begin_value(std::string_view key) {
  if (has_members_.empty()) return;
  if (has_members_.back()) out_ << ',';
  has_members_.back() = true;
  indent();
  if (key.empty()) return;
  write_string(key);
  out_ << ": ";
}

void JsonWriter::write_string(std::string_view value) {
  out_ << '"';
  // Characters that stand for themselves in runs: one by one they were a tenth of a short run's time.
  const auto is_plain = [](char c) { return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20; };
  while (!value.empty()) {
    const auto special = std::find_if_not(value.begin(), value.end(), is_plain);
    const auto plain = static_cast<std::size_t>(special - value.begin());
    out_ << value.substr(0, plain);
    value.remove_prefix(plain);
    if (value.empty()) break;
    const char c = value.front();
    value.remove_prefix(1);
    if (c == '"' || c == '\\') {
      out_ << '\\' << c;
    } else {
      out_ << fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    }
  }
  out_ << '"';
}

void JsonWriter::open_object(std::string_view key) {
  begin_value(key);
  out_ << '{';
  has_members_.push_back(false);
}

void JsonWriter::close_object() {
  RVMA_ASSERT(!has_members_.empty(), "JSON: nothing is open");
  const bool had_members = has_members_.back();
  has_members_.pop_back();
  if (had_members) indent();
  out_ << '}';
  if (has_members_.empty()) out_ << '\n';
}

void JsonWriter::open_array(std::string_view key) {
  begin_value(key);
  out_ << '[';
  has_members_.push_back(false);
}

void JsonWriter::close_array() {
  RVMA_ASSERT(!has_members_.empty(), "JSON: nothing is open");
  const bool had_members = has_members_.back();
  has_members_.pop_back();
  if (had_members) indent();
  out_ << ']';
}

void JsonWriter::text(std::string_view key, std::string_view value) {
  begin_value(key);
  write_string(value);
}

void JsonWriter::number(std::string_view key, std::string_view digits) {
  begin_value(key);
  out_ << digits;
}

void JsonWriter::number(std::string_view key, std::uint64_t value) { number(key, std::to_string(value)); }

void JsonWriter::time(std::string_view key, Time value) { number(key, to_ns_string(value)); }

void JsonWriter::boolean(std::string_view key, bool value) { number(key, value ? "true" : "false"); }

void JsonWriter::raw(std::string_view key, std::string_view json) { number(key, json); }

}  // namespace rvma
