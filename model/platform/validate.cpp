#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/wire.hpp"
#include "nic/delivery.hpp"
#include "nic/transmit_context.hpp"
#include "platform/config.hpp"

namespace rvma {
namespace {

class Validator {
 public:
  explicit Validator(ErrorList& errors) : errors_(errors) {}

  void require(bool condition, const std::string& what, const std::string& expected) {
    if (!condition) errors_.add(Error{Position{"rvma", 0, 0}, what, expected});
  }
  void power_of_two(const char* key, std::uint64_t value) {
    require(value != 0 && (value & (value - 1)) == 0, fmt::format("{}: {} is not a power of two", key, value),
            "expected a power of two");
  }

 private:
  ErrorList& errors_;
};

/// Crashes and restarts of nodes that exist, in turns.
void validate_node_events(const Config& config, std::uint32_t nodes, ErrorList& errors) {
  Validator check(errors);
  const std::vector<FaultEvent>& events = config.fabric.faults.events->events;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!is_link_event(events[i].kind)) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return events[a].at < events[b].at; });
  std::map<std::uint32_t, bool> down;
  std::map<std::uint32_t, Time> latest;
  bool restarts = false;
  for (const std::size_t i : order) {
    const FaultEvent& event = events[i];
    const std::string key = fmt::format("fabric.faults.events[{}]", i);
    const std::optional<NodeId> node = node_of(event);
    check.require(
        node && node->value() < nodes,
        fmt::format("{}.where: {} is no node of the {} that the trace needs", key, quoted(event.where), nodes),
        fmt::format("expected a number from 0 to {}", nodes - 1));
    if (!node) continue;
    const bool crash = event.kind == FaultKind::node_crash;
    bool& is_down = down[node->value()];
    check.require(crash != is_down,
                  fmt::format("{}: node {} is {} already at {}", key, node->value(), is_down ? "down" : "up",
                              to_string(event.at)),
                  "expected node_crash and node_restart in turns");
    // Programs end and begin by events of their own: a node is up or down at any one time, not both.
    const auto [before, is_first] = latest.try_emplace(node->value(), event.at);
    check.require(is_first || before->second < event.at,
                  fmt::format("{}: node {} crashes and restarts at {}", key, node->value(), to_string(event.at)),
                  "expected times that differ");
    before->second = event.at;
    is_down = crash;
    restarts = restarts || !crash;
  }
  const FaultsConfig& faults = config.fabric.faults;
  const Time life = faults.jitter.get() + (faults.reverse.get() > 1 ? faults.reverse_hold.get() : Time::zero());
  check.require(!restarts || config.nic.reliability.quiet.get() > life,
                fmt::format("nic.reliability.quiet: {} is no longer than a packet can be delayed ({} by "
                            "fabric.faults.jitter and reverse_hold)",
                            to_string(config.nic.reliability.quiet.get()), to_string(life)),
                "expected a longer time, as a node restarts");
}

}  // namespace

void validate(const Config& config, std::uint32_t ranks, ErrorList& errors) {
  Validator check(errors);
  const NicConfig& nic = config.nic;
  const HostConfig& host = config.host;

  // 1. Shapes of hardware.
  check.power_of_two("nic.table.rows", nic.table.rows);
  check.power_of_two("nic.command.depth", nic.command.depth);
  check.power_of_two("host.page", host.page->count());
  check.power_of_two("host.pcie.max_payload", host.pcie.max_payload->count());
  check.power_of_two("host.pcie.max_read_request", host.pcie.max_read_request->count());
  check.power_of_two("host.pcie.lanes", host.pcie.lanes);
  // An inline descriptor is never fetched.
  check.require(nic.command.mode.get() == CommandMode::inline_ || nic.command.fetch <= nic.command.depth,
                fmt::format("nic.command.fetch: {} is more than nic.command.depth = {}", nic.command.fetch.get(),
                            nic.command.depth.get()),
                "expected at most nic.command.depth");

  // 2. What must fit into what.
  check.require(nic.command.inline_payload->count() <= nic.mtu->count(),
                fmt::format("nic.command.inline_payload: {} B is more than nic.mtu = {} B",
                            nic.command.inline_payload->count(), nic.mtu->count()),
                "expected at most nic.mtu");
  const std::uint64_t longest_data = data_wire_bytes(static_cast<std::uint32_t>(nic.mtu->count()));
  const std::uint64_t longest_ack = largest_acknowledgement_bytes(nic.reliability.window, nic.reliability.messages);
  const auto holds = [&](std::uint64_t bytes, const std::string& what) {
    const Bytes buffer = nic.receive.buffer;
    check.require(buffer.count() >= bytes,
                  fmt::format("nic.receive.buffer: {} does not hold {}", to_string(buffer), what),
                  fmt::format("expected at least {}B", bytes));
  };
  holds(longest_data,
        fmt::format("one packet of nic.mtu = {} ({} bytes on the wire)", to_string(nic.mtu), longest_data));
  holds(longest_ack,
        fmt::format("the longest acknowledgement ({} bytes on the wire with nic.reliability.window = {} and "
                    "nic.reliability.messages = {})",
                    longest_ack, nic.reliability.window.get(), nic.reliability.messages.get()));
  check.require(nic.receive.parse_latency.get() >= nic.table.latency.get(),
                fmt::format("nic.receive.parse_latency: {} is less than nic.table.latency = {}",
                            to_string(nic.receive.parse_latency.get()), to_string(nic.table.latency.get())),
                "expected at least nic.table.latency");
  check.require(host.pcie.posted_data->count() >= host.pcie.max_payload->count(),
                fmt::format("host.pcie.posted_data: {} holds no TLP of host.pcie.max_payload = {}",
                            to_string(host.pcie.posted_data), to_string(host.pcie.max_payload)),
                "expected at least host.pcie.max_payload");

  TransmitLimits limits;
  limits.max_tries = nic.reliability.max_tries;
  limits.rto = nic.reliability.rto;
  check.require(
      nic.reliability.idle.get() > limits.patience(),
      fmt::format("nic.reliability.idle: {} is no longer than a sender tries ({} with nic.reliability.rto = {} "
                  "and max_tries = {})",
                  to_string(nic.reliability.idle.get()), to_string(limits.patience()),
                  to_string(nic.reliability.rto.get()), nic.reliability.max_tries.get()),
      "expected a longer time: a receiver that cuts off a sender too early loses what it goes on sending");

  // 3. The trace's ranks on this machine.
  const std::uint32_t per_node = config.workload.ranks_per_node;
  const std::uint32_t nodes = (ranks + per_node - 1) / per_node;
  validate_node_events(config, nodes, errors);
  validate_fabric(config.fabric, nodes, {longest_data, longest_ack}, errors);
}

}  // namespace rvma
