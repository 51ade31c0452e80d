/// \file
/// What a network analyser at the NICs would see: every packet that leaves a NIC or arrives at one, as a pcapng file.
/// docs/how-to/see-what-happened.md says how to read it.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "nic/observer.hpp"
#include "report/pcapng.hpp"

namespace rvma {

/// An interface is a node. `out`: the packet's first bit leaves the NIC; `in`: its last bit is at the NIC. Packets
/// stand in order of their times: memory is that of the packets on their way.
class PacketCapture : public NicObserver {
 public:
  struct Options {
    std::vector<NodeId> nodes;                  ///< those that are watched; empty: all
    std::uint64_t limit = 100'000;              ///< most packets in the file: the earliest ones
    std::uint32_t snap_bytes = kMostSnapBytes;  ///< most bytes of each
  };
  static constexpr std::uint32_t kMostSnapBytes = 262'144;

  /// `nodes` are all of the run's. Declares the interfaces at once.
  PacketCapture(std::ostream& out, const Options& options, std::uint32_t nodes, Rate link_rate);

  /// Writes what is left, and for each interface how much it saw. `remark` stands there, too, if it is not empty.
  void finish(Time now, const std::string& remark);
  std::uint64_t seen() const { return seen_; }
  /// Of them, not in the file: they came behind the limit.
  std::uint64_t dropped() const { return seen_ - kept_; }

  void packet_sent(NodeId node, const Packet& packet, Time at) override;
  void packet_arrived(NodeId node, const Packet& packet, Time at) override;

 private:
  struct Waiting {
    std::uint64_t number = 0;  ///< of the report: among packets of one time the order in which they were told
    PcapngWriter::Packet packet;
  };
  /// For a heap with the earliest packet at its front.
  static bool is_later(const Waiting& a, const Waiting& b);
  void take(NodeId node, const Packet& packet, Time at, PcapngWriter::Direction direction);
  void write_until(Time end);

  static constexpr std::uint32_t kUnwatched = ~std::uint32_t{0};

  PcapngWriter writer_;
  Options options_;
  std::vector<std::uint32_t> interface_of_;  ///< by node
  std::vector<std::uint64_t> seen_at_;       ///< by interface
  std::vector<std::uint64_t> kept_at_;
  std::vector<Waiting> waiting_;
  std::uint64_t seen_ = 0;
  std::uint64_t kept_ = 0;
};

}  // namespace rvma
