/// \file
/// Contracts between links, switches, faults and NICs. Time is annotated: a call may announce what happens later.
#pragma once

#include <cstdint>
#include <functional>
#include <systemc>

#include "fabric/packet.hpp"

namespace rvma {

/// What the fabric lost and made, each counted where it happens: sent + copied = lost + arrived.
struct FabricLosses {
  std::uint64_t data_lost = 0;  ///< packets
  std::uint64_t acknowledgements_lost = 0;
  std::uint64_t data_copied = 0;  ///< packets that arrive once more than they were sent
  std::uint64_t acknowledgements_copied = 0;

  void lose(const Packet& packet) { ++(packet.transport.type == PacketType::data ? data_lost : acknowledgements_lost); }
  FabricLosses& operator+=(const FabricLosses& other) {
    data_lost += other.data_lost;
    acknowledgements_lost += other.acknowledgements_lost;
    data_copied += other.data_copied;
    acknowledgements_copied += other.acknowledgements_copied;
    return *this;
  }
  void copy(const Packet& packet) {
    ++(packet.transport.type == PacketType::data ? data_copied : acknowledgements_copied);
  }
};

/// Input of a NIC, a switch port or a fault stage.
class PacketSinkIf : public virtual sc_core::sc_interface {
 public:
  /// The last bit of `packet` is at this input at `at` (>= now). The pusher guarantees that `at` never decreases from
  /// one call to the next, and that it has obtained credit for packet->wire_bytes where the link is lossless.
  virtual void deliver(PacketPtr packet, Time at) = 0;
};

/// Sending side of one direction of a link. One sender.
class LinkIf : public virtual sc_core::sc_interface {
 public:
  /// Earliest time (>= not_before) at which `wire_bytes` could start, given the link's occupancy and the credits that
  /// are known to return; Time::max() if it waits for credit whose return is not known yet.
  virtual Time earliest_start(std::uint32_t wire_bytes, Time not_before) = 0;
  /// Sends now or later: starts at earliest_start(), which must not be "never". Returns when the first bit leaves.
  /// The far end gets deliver() with the arrival of the last bit.
  virtual Time send(PacketPtr packet, Time not_before) = 0;
  /// `ready` is called (from whatever process returns the credit) whenever credit comes back after earliest_start()
  /// said "never".
  virtual void on_credit(std::function<void()> ready) = 0;
};

/// Receiving side of the same direction: gives buffer space back to the sender.
class LinkCreditIf : public virtual sc_core::sc_interface {
 public:
  /// `wire_bytes` of input buffer are free from `at` (>= now) on; the sender knows one link latency later.
  virtual void return_credit(std::uint32_t wire_bytes, Time at) = 0;
};

}  // namespace rvma
