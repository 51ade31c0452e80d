/// \file
/// What breaks and comes back in a run, and when: the values of `fabric.faults.events`.
#pragma once

#include <boost/describe/enum.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "base/value_text.hpp"

namespace rvma {

enum class FaultKind : std::uint8_t { link_down, link_up, node_crash, node_restart };
BOOST_DESCRIBE_ENUM(FaultKind, link_down, link_up, node_crash, node_restart)

constexpr bool is_link_event(FaultKind kind) { return kind == FaultKind::link_down || kind == FaultKind::link_up; }

struct FaultEvent {
  Time at;
  FaultKind kind = FaultKind::link_down;
  /// A link by its name in the results ("0-1", "3-switch7", "switch2-switch3", either end first: both directions are
  /// meant), or a node's number.
  std::string where;
};

/// The node that a node's event names; none if `where` is no number.
std::optional<NodeId> node_of(const FaultEvent& event);

/// In the order of the configuration.
struct FaultEventList {
  std::vector<FaultEvent> events;
};

/// A list of objects {"at": "1us", "kind": "link_down", "where": "0-1"}; every name must be there. An error names its
/// entry (ValueError::within).
template <>
struct ValueText<FaultEventList> {
  static std::string type_name() { return "list of {at, kind, where}"; }
  /// The same as JSON text, for `--set`.
  static ValueResult<FaultEventList> parse(std::string_view text);
  static std::string print(const FaultEventList& list);
  static ValueResult<FaultEventList> from_json(const boost::json::value& value);
  static boost::json::value to_json(const FaultEventList& list);
};

}  // namespace rvma
