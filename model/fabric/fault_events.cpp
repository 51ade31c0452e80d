#include "fabric/fault_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.hpp"

namespace rvma {
namespace {

namespace json = boost::json;

const std::vector<std::string> kNames{"at", "kind", "where"};
constexpr const char* kExpected = R"(expected entries such as {"at": "1us", "kind": "link_down", "where": "0-1"})";

/// One member of an entry as text that its parser reads; an error knows its place.
ValueResult<std::string> member_text(const json::object& entry, const std::string& name, const std::string& place) {
  const json::value* const found = entry.if_contains(name);
  if (found == nullptr) return ValueError{"an event without " + quoted(name), kExpected, place};
  auto text = detail::json_scalar_text(*found, "text");
  if (!text) return ValueError{name + ": " + text.error().what, text.error().expected, place + "/" + name};
  return text;
}

ValueResult<FaultEvent> parse_event(const json::value& value, const std::string& place) {
  if (!value.is_object()) return ValueError{"an entry is not an object", kExpected, place};
  const json::object& entry = value.get_object();
  for (const auto& member : entry) {
    const std::string name{member.key().data(), member.key().size()};
    if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) continue;
    const std::string nearest = nearest_name(name, kNames);
    std::string expected = kExpected;
    if (!nearest.empty()) expected = fmt::format("did you mean {}?", quoted(nearest));
    return ValueError{fmt::format("unknown name {} in an event", quoted(name)), expected,
                      fmt::format("{}/{}", place, name)};
  }
  FaultEvent event;
  const auto at_text = member_text(entry, "at", place);
  if (!at_text) return at_text.error();
  const auto at = parse_time(*at_text);
  if (!at) return ValueError{"at: " + at.error().what, at.error().expected, place + "/at"};
  event.at = *at;
  const auto kind_text = member_text(entry, "kind", place);
  if (!kind_text) return kind_text.error();
  const auto kind = ValueText<FaultKind>::parse(*kind_text);
  if (!kind) return ValueError{"kind: " + kind.error().what, kind.error().expected, place + "/kind"};
  event.kind = *kind;
  auto where = member_text(entry, "where", place);
  if (!where) return where.error();
  event.where = std::move(*where);
  return event;
}

}  // namespace

ValueResult<FaultEventList> ValueText<FaultEventList>::parse(std::string_view text) {
  json::error_code code;
  const json::value value = json::parse({text.data(), text.size()}, code);
  if (code) return ValueError{"not a JSON list: " + quoted(text), kExpected};
  return from_json(value);
}

std::string ValueText<FaultEventList>::print(const FaultEventList& list) { return json::serialize(to_json(list)); }

ValueResult<FaultEventList> ValueText<FaultEventList>::from_json(const json::value& value) {
  if (!value.is_array()) return ValueError{"not a list", kExpected};
  FaultEventList list;
  for (const json::value& entry : value.get_array()) {
    auto event = parse_event(entry, "/" + std::to_string(list.events.size()));
    if (!event) return event.error();
    list.events.push_back(std::move(*event));
  }
  return list;
}

json::value ValueText<FaultEventList>::to_json(const FaultEventList& list) {
  json::array array;
  for (const FaultEvent& event : list.events) {
    array.push_back(json::object{
        {"at", to_string(event.at)}, {"kind", ValueText<FaultKind>::print(event.kind)}, {"where", event.where}});
  }
  return array;
}

std::optional<NodeId> node_of(const FaultEvent& event) {
  const auto number = parse_integer(event.where, std::numeric_limits<std::uint32_t>::max(), "node");
  if (!number) return std::nullopt;
  return NodeId{static_cast<std::uint32_t>(*number)};
}

}  // namespace rvma
