/// \file
/// The wire format: a packet as bytes, exactly. docs/reference/wire-format.md draws it; the offsets below are the one
/// definition. Nothing in it names another node's memory: no physical address, pointer, buffer length or queue depth.
///
///     Ethernet 14 | IPv4 20 | UDP 8 | transport header 20 | data extension 40 | payload | CRC 4 | (FCS 4)
///                                                         + get extension 20 (requests of gets, no payload)
///                                                         + RDMA extension 12 | payload, or get extension of a read
///                                                         | ack extension 12 + 8 w + ceil(n / 2) | CRC 4 | (FCS 4)
///
/// All fields are big endian (network order).
#pragma once

#include <boost/describe/enum.hpp>
#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fabric/packet.hpp"

namespace rvma {

/// Byte counts of the parts of a frame.
inline constexpr std::uint32_t kPreambleBytes = 8;  ///< 7 of preamble and the start-of-frame delimiter
inline constexpr std::uint32_t kPacketGapBytes = 12;
inline constexpr std::uint32_t kEthernetHeaderBytes = 14;
inline constexpr std::uint32_t kFrameCheckBytes = 4;
inline constexpr std::uint32_t kIpv4HeaderBytes = 20;
inline constexpr std::uint32_t kUdpHeaderBytes = 8;
inline constexpr std::uint32_t kTransportHeaderBytes = 20;
inline constexpr std::uint32_t kDataExtensionBytes = 40;
inline constexpr std::uint32_t kGetExtensionBytes = 20;   ///< behind the data extension
inline constexpr std::uint32_t kRdmaExtensionBytes = 12;  ///< behind the data extension
inline constexpr std::uint32_t kAckExtensionBytes = 12;   ///< without bitmap words and outcomes
inline constexpr std::uint32_t kCrcBytes = 4;

/// Bytes on the link around the RVMA packet proper, every type of packet.
inline constexpr std::uint32_t kFramingBytes =
    kPreambleBytes + kPacketGapBytes + kEthernetHeaderBytes + kFrameCheckBytes + kIpv4HeaderBytes + kUdpHeaderBytes;
/// What a data packet occupies on the link beyond its payload.
inline constexpr std::uint32_t kDataOverheadBytes =
    kFramingBytes + kTransportHeaderBytes + kDataExtensionBytes + kCrcBytes;
/// What an acknowledgement without bitmap words and outcomes occupies.
inline constexpr std::uint32_t kAckOverheadBytes =
    kFramingBytes + kTransportHeaderBytes + kAckExtensionBytes + kCrcBytes;

/// UDP port of RVMA, source and destination: in the range that IANA leaves to private use.
inline constexpr std::uint16_t kUdpPort = 49'200;
inline constexpr std::uint8_t kWireVersion = 1;

/// Greatest node number that has an address: node n is 10.0.0.0 + n + 1, so that neither the network's nor the
/// broadcast address is ever a node.
inline constexpr std::uint32_t kLastAddressableNode = 0xff'fffd;
constexpr std::uint32_t ipv4_of(NodeId node) { return 0x0a00'0001U + node.value(); }

/// Bytes that the packet occupies on a link: preamble, Ethernet, IPv4, UDP, RVMA headers, payload, CRC, FCS and the
/// gap to the next packet.
constexpr std::uint32_t data_wire_bytes(std::uint32_t payload_bytes) { return kDataOverheadBytes + payload_bytes; }
constexpr std::uint32_t ack_wire_bytes(std::size_t selective_words, std::size_t outcomes) {
  return kAckOverheadBytes + static_cast<std::uint32_t>(8 * selective_words + (outcomes + 1) / 2);
}
std::uint32_t wire_bytes_of(const Packet& packet);

/// What a decoder can object to, in the order in which it looks.
enum class WireField : std::uint8_t {
  truncated,         ///< fewer bytes than the headers need
  ethernet_type,     ///< not IPv4
  ipv4_header,       ///< version, header length, type of service, identification, fragment or time-to-live
  ipv4_length,       ///< total length differs from the frame's
  ipv4_protocol,     ///< not UDP
  ipv4_checksum,     //
  ipv4_address,      ///< source or destination is no node's
  ethernet_address,  ///< MAC and IPv4 address disagree
  udp_port,          //
  udp_length,        ///< differs from the IPv4 length
  udp_checksum,      //
  version,           //
  type,              //
  flags,             ///< a reserved flag is set
  ack_length,        ///< bitmap and outcome counts disagree with the UDP length
  get_length,        ///< a get's request, or an RDMA read, with a payload, or cut short
  rdma_operation,    ///< no RDMA operation
  reserved,          ///< a reserved field or padding is not 0
  outcome,           ///< no code of an outcome that travels
  introduction,      ///< an acknowledgement that says how old its sender is acknowledges something
  crc
};
BOOST_DESCRIBE_ENUM(WireField, truncated, ethernet_type, ipv4_header, ipv4_length, ipv4_protocol, ipv4_checksum,
                    ipv4_address, ethernet_address, udp_port, udp_length, udp_checksum, version, type, flags,
                    ack_length, get_length, rdma_operation, reserved, outcome, introduction, crc)

struct WireError {
  WireField field;
  std::size_t offset;  ///< of the offending field, in bytes from the first of the destination MAC address

  std::string to_string() const;
};
[[noreturn]] void throw_exception_from_error(const WireError& error, const boost::source_location& location);

/// A decoded frame. `payload` points into the decoded bytes (data.payload_length of them) and lives as long as they.
struct DecodedFrame {
  TransportHeader transport;
  DataHeader data;
  AckHeader ack;
  const std::uint8_t* payload = nullptr;
};

/// Replaces `frame` by the packet's Ethernet frame, destination MAC to RVMA CRC: as captures see it, without preamble,
/// frame check sequence and gap. A payload that the model does not carry (workload.payload = none) becomes zeros.
/// frame.size() == wire_bytes_of(packet) - preamble - FCS - gap.
void encode_frame(const Packet& packet, std::vector<std::uint8_t>& frame);
void encode_frame(const DecodedFrame& contents, std::vector<std::uint8_t>& frame);

/// Exact inverse of encode_frame: what it accepts, encode_frame turns into the same bytes. Any bytes are safe.
boost::system::result<DecodedFrame, WireError> decode_frame(const std::uint8_t* bytes, std::size_t count);

}  // namespace rvma
