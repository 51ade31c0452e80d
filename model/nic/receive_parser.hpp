/// \file
/// First unit of the receive path: input buffer, checksum, header fields, table lookup. Takes a header every cycle; the
/// payload streams behind it at the datapath's width. Needs no activation of its own.
#pragma once

#include <cstdint>
#include <systemc>

#include "base/component.hpp"
#include "fabric/interfaces.hpp"
#include "nic/config.hpp"
#include "nic/interfaces.hpp"
#include "nic/observer.hpp"

namespace rvma {

struct ReceiveParserStats {
  Counter data_packets{"packets", "data packets with a good checksum"};
  Counter ack_packets{"packets", "acknowledgements with a good checksum"};
  Counter corrupt_packets{"packets", "packets dropped for a bad checksum"};
  Counter payload_bytes{"bytes", "payload of the data packets"};
  TimeSum wait_ns{"time that packets waited for the parser behind the packet before"};
  Utilisation parse{WorkKind::bits, "payload through the parser; a header without payload takes a cycle too",
                    kWidenedByDatapath};
  BOOST_DESCRIBE_CLASS(ReceiveParserStats, (),
                       (data_packets, ack_packets, corrupt_packets, payload_bytes, wait_ns, parse), (), ())
};

class ReceiveParser : public Component, public PacketSinkIf {
 public:
  sc_core::sc_port<TableLookupIf> lookup;
  sc_core::sc_port<AddressConversionIf> conversion;
  sc_core::sc_port<AckSinkIf> acknowledgements;
  /// Of the link that feeds this NIC. Unbound: nobody counts credits.
  sc_core::sc_port<LinkCreditIf, 1, sc_core::SC_ZERO_OR_MORE_BOUND> credit;

  /// `config` and `observers` outlive the unit.
  ReceiveParser(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, NodeId node,
                const ObserverList& observers);

  /// Takes the packet at the first edge at or after `at` at which the parser is free. Its lookup is presented so that
  /// the answer is there `nic.receive.parse_latency` cycles later, when the packet is handed on.
  void deliver(PacketPtr packet, Time at) override;

  const ReceiveParserStats& stats() const { return stats_; }

 private:
  void return_credit(const Packet& packet, Time at);

  NodeId node_;
  const ObserverList& observers_;
  std::uint32_t datapath_bytes_;
  Cycles parse_latency_;
  Cycles free_at_;  ///< first cycle in which the parser can take a header
  ReceiveParserStats stats_;
};

/// Arrivals from the link and from the own egress, in one order: the parser's times must not go back, so a packet that
/// turned round may wait for one whose arrival the link has already announced.
class NicInput : public PacketSinkIf {
 public:
  explicit NicInput(ReceiveParser& parser) : parser_(parser) {}
  void deliver(PacketPtr packet, Time at) override;

 private:
  ReceiveParser& parser_;
  Time latest_;
};

}  // namespace rvma
