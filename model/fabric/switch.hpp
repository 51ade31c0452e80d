/// \file
/// An input-buffered switch: a buffer at each input paid for by credits, a virtual queue for each output in it, and
/// round-robin arbitration over the inputs at each output.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/component.hpp"
#include "base/stats.hpp"
#include "fabric/config.hpp"
#include "fabric/interfaces.hpp"

namespace rvma {

struct SwitchStats {
  Counter packets{"packets", "packets forwarded"};
  Counter wire_bytes{"bytes", "their bytes on the link"};
  Counter unroutable{"packets", "packets dropped because no port leads to their destination"};
  TimeSum waited_ns{"time that packets waited for their output beyond the switch's latency"};
  Peak queued{"packets", "most packets known to one output at a time, arriving ones included"};
  BOOST_DESCRIBE_CLASS(SwitchStats, (), (packets, wire_bytes, unroutable, waited_ns, queued), (), ())
};

/// Store and forward: a packet may leave `fabric.switch.latency` after its last bit has arrived, and occupies its input
/// buffer until its last bit has left.
class Switch : public Component {
 public:
  Switch(const sc_core::sc_module_name& name, SimContext& context, const SwitchConfig& config, std::uint32_t ports,
         const std::string& stats_path);
  ~Switch() override;

  /// Far end of the link that comes into `port`.
  PacketSinkIf& input(std::uint32_t port);
  /// The link that comes into `port` gets its credits through `upstream`; what leaves through `port` goes to `output`.
  void connect(std::uint32_t port, LinkCreditIf& upstream, LinkIf& output);
  /// Packets for `destination` leave through `port`.
  void set_route(NodeId destination, std::uint32_t port);

  std::uint32_t ports() const { return static_cast<std::uint32_t>(inputs_.size()); }
  const SwitchStats& stats() const { return stats_; }

 private:
  struct Input;
  struct Output;
  void accept(std::uint32_t port, PacketPtr packet, Time at);
  /// Makes every decision of `output` that nothing unknown can change, then sleeps until the next.
  void arbitrate(Output& output);
  void forward(Output& output, std::uint32_t port, Time decision);

  Time latency_;
  std::vector<std::unique_ptr<Input>> inputs_;
  std::vector<std::unique_ptr<Output>> outputs_;
  IdVector<NodeId, std::uint32_t> routes_;
  SwitchStats stats_;
};

}  // namespace rvma
