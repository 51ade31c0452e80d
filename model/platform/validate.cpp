#include <fmt/format.h>

#include "fabric/fabric.hpp"
#include "fabric/wire.hpp"
#include "nic/delivery.hpp"
#include "nic/interfaces.hpp"
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
  const std::uint64_t longest_data = data_wire_bytes(static_cast<std::uint32_t>(nic.mtu->count()));
  const std::uint64_t longest_ack = largest_acknowledgement_bytes(nic.reliability.window, nic.reliability.messages);
  const auto holds_packets = [&](const char* key, Bytes buffer) {
    check.require(buffer.count() >= longest_data,
                  fmt::format("{}: {} does not hold one packet of nic.mtu = {} ({} bytes on the wire)", key,
                              to_string(buffer), to_string(nic.mtu), longest_data),
                  fmt::format("expected at least {}B", longest_data));
    check.require(
        buffer.count() >= longest_ack,
        fmt::format("{}: {} does not hold the longest acknowledgement ({} bytes on the wire with "
                    "nic.reliability.window = {} and nic.reliability.messages = {})",
                    key, to_string(buffer), longest_ack, nic.reliability.window.get(), nic.reliability.messages.get()),
        fmt::format("expected at least {}B", longest_ack));
  };
  holds_packets("nic.receive.buffer", nic.receive.buffer);
  holds_packets("fabric.switch.buffer", config.fabric.switch_.buffer);
  check.require(nic.receive.parse_latency.get() >= nic.table.latency.get(),
                fmt::format("nic.receive.parse_latency: {} is less than nic.table.latency = {}",
                            to_string(nic.receive.parse_latency.get()), to_string(nic.table.latency.get())),
                "expected at least nic.table.latency");
  check.require(
      nic.mtu->count() / host.page->count() + 2 <= SegmentList::kMost,
      fmt::format("nic.mtu: {} touches too many pages of host.page = {}", to_string(nic.mtu), to_string(host.page)),
      "expected at most 16 pages a packet");
  check.require(host.pcie.posted_data->count() >= host.pcie.max_payload->count(),
                fmt::format("host.pcie.posted_data: {} holds no TLP of host.pcie.max_payload = {}",
                            to_string(host.pcie.posted_data), to_string(host.pcie.max_payload)),
                "expected at least host.pcie.max_payload");

  // 3. The trace's ranks on this machine.
  const std::uint32_t per_node = config.workload.ranks_per_node;
  const std::uint32_t nodes = (ranks + per_node - 1) / per_node;
  const std::uint32_t room = most_nodes(config.fabric, nodes);
  check.require(
      nodes <= room,
      fmt::format("fabric.topology: {} holds {} nodes, the trace needs {} ({} ranks, {} a node)",
                  ValueText<Topology>::print(resolve(config.fabric.topology, nodes)), room, nodes, ranks, per_node),
      config.fabric.topology.get() == Topology::p2p ? "expected topology star"
                                                    : "expected more fabric.star.ports or workload.ranks_per_node");
}

}  // namespace rvma
