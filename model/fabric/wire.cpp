#include "fabric/wire.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/error.hpp"
#include "base/value_text.hpp"

namespace rvma {
namespace {

// Where each header begins, from the first byte of the destination MAC address.
constexpr std::size_t kIpv4At = kEthernetHeaderBytes;
constexpr std::size_t kUdpAt = kIpv4At + kIpv4HeaderBytes;
constexpr std::size_t kTransportAt = kUdpAt + kUdpHeaderBytes;
constexpr std::size_t kExtensionAt = kTransportAt + kTransportHeaderBytes;

// Fields of the transport header.
constexpr std::size_t kVersionTypeAt = kTransportAt;
constexpr std::size_t kFlagsAt = kTransportAt + 1;
constexpr std::size_t kSpanAt = kTransportAt + 2;  // data: open span; acknowledgement: bitmap words
constexpr std::size_t kSourceIncarnationAt = kTransportAt + 4;
constexpr std::size_t kDestinationIncarnationAt = kTransportAt + 8;
constexpr std::size_t kGenerationAt = kTransportAt + 12;
constexpr std::size_t kSequenceAt = kTransportAt + 16;

// Fields of the data extension.
constexpr std::size_t kDestinationPidAt = kExtensionAt;
constexpr std::size_t kSourcePidAt = kExtensionAt + 2;
constexpr std::size_t kKeyAt = kExtensionAt + 4;
constexpr std::size_t kMailboxAt = kExtensionAt + 8;
constexpr std::size_t kMessageAt = kExtensionAt + 16;
constexpr std::size_t kPacketIndexAt = kExtensionAt + 20;
constexpr std::size_t kMessageLengthAt = kExtensionAt + 24;
constexpr std::size_t kOffsetAt = kExtensionAt + 32;
constexpr std::size_t kPayloadAt = kExtensionAt + kDataExtensionBytes;

// Fields of the RDMA extension, behind the data extension.
constexpr std::size_t kRdmaOperationAt = kPayloadAt;
constexpr std::size_t kRdmaReservedAt = kPayloadAt + 1;  // 3 bytes
constexpr std::size_t kQueuePairAt = kPayloadAt + 4;
constexpr std::size_t kImmediateAt = kPayloadAt + 8;
/// Of a data packet with an RDMA extension.
constexpr std::uint8_t kRdmaType = 4;
constexpr auto kLastRdmaOperation = static_cast<std::uint8_t>(RdmaOperation::read_answer);

// Fields of the get extension, from where the payload would stand: of a get's request, and of an RDMA read.
constexpr std::size_t kGetLengthAt = 0;
constexpr std::size_t kAnswerMailboxAt = 8;
constexpr std::size_t kAnswerKeyAt = 16;
/// The type of a get's request: a data packet otherwise.
constexpr std::uint8_t kGetType = 3;

bool is_rdma(const DataHeader& data) { return data.rdma.operation != RdmaOperation::none; }
/// It asks for bytes, and carries none.
bool is_request(const DataHeader& data) { return data.is_get || data.rdma.operation == RdmaOperation::read; }
/// Bytes behind the data extension.
std::uint32_t data_bytes_of(const DataHeader& data) {
  return (is_rdma(data) ? kRdmaExtensionBytes : 0) + (is_request(data) ? kGetExtensionBytes : data.payload_length);
}

// Fields of the acknowledgement extension.
constexpr std::size_t kCumulativeAt = kExtensionAt;
constexpr std::size_t kOutcomesFromAt = kExtensionAt + 4;
constexpr std::size_t kOutcomeCountAt = kExtensionAt + 8;
constexpr std::size_t kAckReservedAt = kExtensionAt + 10;
constexpr std::size_t kSelectiveAt = kExtensionAt + kAckExtensionBytes;

constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint8_t kVersionAndLength = 0x45;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint8_t kTimeToLive = 64;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::size_t kLongestFrame = kEthernetHeaderBytes + 0xffff;
/// Last outcome that a receiver tells; `timeout` and `unfinished` exist at the sender only.
constexpr auto kLastToldOutcome = static_cast<std::uint8_t>(Outcome::busy);

template <class T>
void store(std::uint8_t* at, T value) {
  for (std::size_t i = sizeof(T); i-- > 0;) {
    at[i] = static_cast<std::uint8_t>(value & 0xffU);
    value = static_cast<T>(static_cast<std::uint64_t>(value) >> 8U);
  }
}
template <class T>
T load(const std::uint8_t* at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = (value << 8U) | at[i];
  return static_cast<T>(value);
}

/// The Internet checksum's running sum (RFC 1071).
std::uint64_t ones_sum(const std::uint8_t* bytes, std::size_t count, std::uint64_t sum) {
  for (std::size_t i = 0; i + 1 < count; i += 2) sum += load<std::uint16_t>(bytes + i);
  if (count % 2 != 0) sum += static_cast<std::uint64_t>(bytes[count - 1]) << 8U;
  return sum;
}
std::uint16_t fold(std::uint64_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16U);
  return static_cast<std::uint16_t>(~sum);
}
/// Over the header with a checksum field taken as 0.
std::uint16_t ipv4_checksum(const std::uint8_t* header) {
  return fold(ones_sum(header, 10, 0) + ones_sum(header + 12, 8, 0));
}
/// Over the pseudo-header and the datagram with a checksum field taken as 0; never 0, which means "none".
std::uint16_t udp_checksum(const std::uint8_t* frame, std::size_t datagram_bytes) {
  std::uint64_t sum = ones_sum(frame + kIpv4At + 12, 8, kProtocolUdp + datagram_bytes);
  sum = ones_sum(frame + kUdpAt, 6, sum);
  const std::uint16_t checksum = fold(ones_sum(frame + kTransportAt, datagram_bytes - kUdpHeaderBytes, sum));
  return checksum == 0 ? std::uint16_t{0xffff} : checksum;
}
/// CRC-32 (IEEE 802.3, as zlib's) over source and destination address, then everything from the transport header to
/// the field itself: a packet that reaches a wrong node fails it too.
std::uint32_t rvma_crc(const std::uint8_t* frame, std::size_t crc_at) {
  uLong crc = crc32(0, frame + kIpv4At + 12, 8);
  crc = crc32(crc, frame + kTransportAt, static_cast<uInt>(crc_at - kTransportAt));
  return static_cast<std::uint32_t>(crc);
}

void store_mac(std::uint8_t* at, std::uint32_t address) {
  store<std::uint16_t>(at, 0x0200);  // locally administered, unicast
  store<std::uint32_t>(at + 2, address);
}
bool is_mac_of(const std::uint8_t* at, std::uint32_t address) {
  return load<std::uint16_t>(at) == 0x0200 && load<std::uint32_t>(at + 2) == address;
}
bool is_node_address(std::uint32_t address) {
  return address >= ipv4_of(NodeId{0}) && address <= ipv4_of(NodeId{kLastAddressableNode});
}

void store_network_headers(std::uint8_t* frame, const TransportHeader& transport, std::size_t frame_bytes) {
  const std::uint32_t source = ipv4_of(transport.source);
  const std::uint32_t destination = ipv4_of(transport.destination);
  store_mac(frame, destination);
  store_mac(frame + 6, source);
  store<std::uint16_t>(frame + 12, kEtherTypeIpv4);
  std::uint8_t* ip = frame + kIpv4At;
  ip[0] = kVersionAndLength;
  ip[1] = 0;
  store<std::uint16_t>(ip + 2, static_cast<std::uint16_t>(frame_bytes - kIpv4At));
  store<std::uint16_t>(ip + 4, 0);
  store<std::uint16_t>(ip + 6, kDontFragment);
  ip[8] = kTimeToLive;
  ip[9] = kProtocolUdp;
  store<std::uint32_t>(ip + 12, source);
  store<std::uint32_t>(ip + 16, destination);
  store<std::uint16_t>(ip + 10, ipv4_checksum(ip));
  std::uint8_t* udp = frame + kUdpAt;
  store<std::uint16_t>(udp, kUdpPort);
  store<std::uint16_t>(udp + 2, kUdpPort);
  store<std::uint16_t>(udp + 4, static_cast<std::uint16_t>(frame_bytes - kUdpAt));
}

std::uint8_t type_of(const TransportHeader& transport, const DataHeader& data) {
  if (transport.type != PacketType::data) return static_cast<std::uint8_t>(transport.type);
  return is_rdma(data) ? kRdmaType : data.is_get ? kGetType : static_cast<std::uint8_t>(PacketType::data);
}

void store_transport(std::uint8_t* frame, const TransportHeader& transport, std::uint8_t type,
                     std::uint32_t sequence_or_age, std::uint16_t span) {
  frame[kVersionTypeAt] = static_cast<std::uint8_t>((kWireVersion << 4U) | type);
  frame[kFlagsAt] = 0;
  store(frame + kSpanAt, span);
  store(frame + kSourceIncarnationAt, transport.source_incarnation);
  store(frame + kDestinationIncarnationAt, transport.destination_incarnation);
  store(frame + kGenerationAt, transport.generation);
  store(frame + kSequenceAt, sequence_or_age);
}

void store_data(std::uint8_t* frame, const DataHeader& data, const std::uint8_t* payload) {
  store(frame + kDestinationPidAt, data.destination_pid.value());
  store(frame + kSourcePidAt, data.source_pid.value());
  store(frame + kKeyAt, data.key);
  store(frame + kMailboxAt, data.mailbox.value());
  store(frame + kMessageAt, data.message.value());
  store(frame + kPacketIndexAt, data.packet_index);
  store(frame + kMessageLengthAt, data.message_length);
  store(frame + kOffsetAt, data.offset);
  std::uint8_t* at = frame + kPayloadAt;
  if (is_rdma(data)) {
    frame[kRdmaOperationAt] = static_cast<std::uint8_t>(data.rdma.operation);
    std::fill_n(frame + kRdmaReservedAt, 3, std::uint8_t{0});
    store(frame + kQueuePairAt, data.rdma.queue_pair);
    store(frame + kImmediateAt, data.rdma.immediate);
    at += kRdmaExtensionBytes;
  }
  if (is_request(data)) {
    store(at + kGetLengthAt, data.ask.length);
    store(at + kAnswerMailboxAt, data.ask.mailbox.value());
    store(at + kAnswerKeyAt, data.ask.key);
  } else if (payload == nullptr) {
    std::fill_n(at, data.payload_length, std::uint8_t{0});
  } else {
    std::copy_n(payload, data.payload_length, at);
  }
}

void store_ack(std::uint8_t* frame, const AckHeader& ack) {
  store(frame + kCumulativeAt, ack.cumulative);
  store(frame + kOutcomesFromAt, ack.outcomes_from.value());
  store(frame + kOutcomeCountAt, static_cast<std::uint16_t>(ack.outcomes.size()));
  store<std::uint16_t>(frame + kAckReservedAt, 0);
  std::uint8_t* at = frame + kSelectiveAt;
  for (const std::uint64_t word : ack.selective) {
    store(at, word);
    at += 8;
  }
  std::fill_n(at, (ack.outcomes.size() + 1) / 2, std::uint8_t{0});
  for (std::size_t i = 0; i < ack.outcomes.size(); ++i) {
    const auto code = static_cast<std::uint8_t>(ack.outcomes[i]);
    RVMA_ASSERT(code <= kLastToldOutcome, "an outcome that only the sender knows was about to be sent");
    at[i / 2] = static_cast<std::uint8_t>(at[i / 2] | (code << (4 * (i % 2))));
  }
}

void encode(const TransportHeader& transport, const DataHeader& data, const AckHeader& ack, const std::uint8_t* payload,
            std::vector<std::uint8_t>& frame) {
  const bool is_data = transport.type == PacketType::data;
  RVMA_ASSERT(transport.source.value() <= kLastAddressableNode && transport.destination.value() <= kLastAddressableNode,
              "node number without an address");
  RVMA_ASSERT(is_data || (ack.selective.size() <= 0xffff && ack.outcomes.size() <= 0xffff),
              "acknowledgement with more entries than its counts can say");
  RVMA_ASSERT(!is_data || !is_request(data) || data.payload_length == 0, "a request has no payload");
  const std::size_t bytes =
      (is_data ? data_wire_bytes(data_bytes_of(data)) : ack_wire_bytes(ack.selective.size(), ack.outcomes.size())) -
      kPreambleBytes - kPacketGapBytes - kFrameCheckBytes;
  RVMA_ASSERT(bytes <= kLongestFrame, "packet is longer than an IPv4 datagram");
  frame.resize(bytes);
  store_network_headers(frame.data(), transport, bytes);
  store_transport(frame.data(), transport, type_of(transport, data), is_data ? transport.sequence : ack.age_us,
                  is_data ? data.open_span : static_cast<std::uint16_t>(ack.selective.size()));
  if (is_data) {
    store_data(frame.data(), data, payload);
  } else {
    store_ack(frame.data(), ack);
  }
  const std::size_t crc_at = bytes - kCrcBytes;
  store(frame.data() + crc_at, rvma_crc(frame.data(), crc_at));
  store(frame.data() + kUdpAt + 6, udp_checksum(frame.data(), bytes - kUdpAt));
}

/// Looks at one frame; the first thing that is wrong ends it.
class Decoder {
 public:
  Decoder(const std::uint8_t* bytes, std::size_t count) : bytes_(bytes), count_(count) {}

  boost::system::result<DecodedFrame, WireError> decode() {
    const bool good = network_headers() && transport_header() &&
                      (frame_.transport.type == PacketType::data ? data_extension() : ack_extension()) && crc();
    if (!good) return error_;
    return std::move(frame_);
  }

 private:
  bool fail(WireField field, std::size_t offset) {
    error_ = WireError{field, offset};
    return false;
  }
  bool check(bool good, WireField field, std::size_t offset) { return good || fail(field, offset); }
  template <class T>
  T at(std::size_t offset) const {
    return load<T>(bytes_ + offset);
  }

  bool network_headers() {
    return check(count_ >= kExtensionAt + kCrcBytes, WireField::truncated, count_) &&
           check(at<std::uint16_t>(12) == kEtherTypeIpv4, WireField::ethernet_type, 12) && ipv4() && addresses() &&
           udp();
  }
  bool ipv4() {
    const std::size_t ip = kIpv4At;
    return check(bytes_[ip] == kVersionAndLength, WireField::ipv4_header, ip) &&
           check(bytes_[ip + 1] == 0, WireField::ipv4_header, ip + 1) &&
           check(at<std::uint16_t>(ip + 2) == count_ - ip, WireField::ipv4_length, ip + 2) &&
           check(at<std::uint16_t>(ip + 4) == 0, WireField::ipv4_header, ip + 4) &&
           check(at<std::uint16_t>(ip + 6) == kDontFragment, WireField::ipv4_header, ip + 6) &&
           check(bytes_[ip + 8] == kTimeToLive, WireField::ipv4_header, ip + 8) &&
           check(bytes_[ip + 9] == kProtocolUdp, WireField::ipv4_protocol, ip + 9) &&
           check(at<std::uint16_t>(ip + 10) == ipv4_checksum(bytes_ + ip), WireField::ipv4_checksum, ip + 10);
  }
  bool addresses() {
    const auto source = at<std::uint32_t>(kIpv4At + 12);
    const auto destination = at<std::uint32_t>(kIpv4At + 16);
    if (!check(is_node_address(source), WireField::ipv4_address, kIpv4At + 12) ||
        !check(is_node_address(destination), WireField::ipv4_address, kIpv4At + 16) ||
        !check(is_mac_of(bytes_, destination), WireField::ethernet_address, 0) ||
        !check(is_mac_of(bytes_ + 6, source), WireField::ethernet_address, 6)) {
      return false;
    }
    frame_.transport.source = NodeId{source - ipv4_of(NodeId{0})};
    frame_.transport.destination = NodeId{destination - ipv4_of(NodeId{0})};
    return true;
  }
  bool udp() {
    return check(at<std::uint16_t>(kUdpAt) == kUdpPort, WireField::udp_port, kUdpAt) &&
           check(at<std::uint16_t>(kUdpAt + 2) == kUdpPort, WireField::udp_port, kUdpAt + 2) &&
           check(at<std::uint16_t>(kUdpAt + 4) == count_ - kUdpAt, WireField::udp_length, kUdpAt + 4) &&
           check(at<std::uint16_t>(kUdpAt + 6) == udp_checksum(bytes_, count_ - kUdpAt), WireField::udp_checksum,
                 kUdpAt + 6);
  }

  bool transport_header() {
    const std::uint8_t version_type = bytes_[kVersionTypeAt];
    const std::uint8_t code = version_type & 0x0fU;
    frame_.data.is_get = code == kGetType;
    has_rdma_ = code == kRdmaType;
    const auto type = frame_.data.is_get || has_rdma_ ? PacketType::data : static_cast<PacketType>(code);
    if (!check(version_type >> 4U == kWireVersion, WireField::version, kVersionTypeAt) ||
        !check(type == PacketType::data || type == PacketType::acknowledgement, WireField::type, kVersionTypeAt) ||
        !check(bytes_[kFlagsAt] == 0, WireField::flags, kFlagsAt)) {
      return false;
    }
    TransportHeader& transport = frame_.transport;
    transport.type = type;
    transport.source_incarnation = at<std::uint32_t>(kSourceIncarnationAt);
    transport.destination_incarnation = at<std::uint32_t>(kDestinationIncarnationAt);
    transport.generation = at<std::uint32_t>(kGenerationAt);
    transport.sequence = at<std::uint32_t>(kSequenceAt);
    if (type == PacketType::acknowledgement) frame_.ack.age_us = std::exchange(transport.sequence, 0);
    return true;
  }

  bool data_extension() {
    if (!check(count_ >= kPayloadAt + kCrcBytes, WireField::truncated, count_)) return false;
    DataHeader& data = frame_.data;
    data.destination_pid = Pid{at<std::uint16_t>(kDestinationPidAt)};
    data.source_pid = Pid{at<std::uint16_t>(kSourcePidAt)};
    data.mailbox = Mailbox{at<std::uint64_t>(kMailboxAt)};
    data.key = at<std::uint32_t>(kKeyAt);
    data.message = MessageId{at<std::uint32_t>(kMessageAt)};
    data.open_span = at<std::uint16_t>(kSpanAt);
    data.message_length = at<std::uint64_t>(kMessageLengthAt);
    data.offset = at<std::uint64_t>(kOffsetAt);
    data.packet_index = at<std::uint32_t>(kPacketIndexAt);
    // The IPv4 total length is 16 bits wide and was compared with count_: the difference fits.
    data.payload_length = static_cast<std::uint16_t>(count_ - kPayloadAt - kCrcBytes);
    frame_.payload = bytes_ + kPayloadAt;
    if (has_rdma_) return rdma_extension();
    return !data.is_get || get_extension(kPayloadAt);
  }

  bool rdma_extension() {
    DataHeader& data = frame_.data;
    if (!check(data.payload_length >= kRdmaExtensionBytes, WireField::truncated, count_)) return false;
    const std::uint8_t operation = bytes_[kRdmaOperationAt];
    if (!check(operation > 0 && operation <= kLastRdmaOperation, WireField::rdma_operation, kRdmaOperationAt)) {
      return false;
    }
    for (std::size_t i = 0; i < 3; ++i) {
      if (!check(bytes_[kRdmaReservedAt + i] == 0, WireField::reserved, kRdmaReservedAt + i)) return false;
    }
    data.rdma.operation = static_cast<RdmaOperation>(operation);
    data.rdma.queue_pair = at<std::uint32_t>(kQueuePairAt);
    data.rdma.immediate = at<std::uint32_t>(kImmediateAt);
    data.payload_length = static_cast<std::uint16_t>(data.payload_length - kRdmaExtensionBytes);
    frame_.payload = bytes_ + kPayloadAt + kRdmaExtensionBytes;
    return !is_request(data) || get_extension(kPayloadAt + kRdmaExtensionBytes);
  }

  bool get_extension(std::size_t from) {
    DataHeader& data = frame_.data;
    if (!check(data.payload_length == kGetExtensionBytes, WireField::get_length, from)) return false;
    data.payload_length = 0;
    data.ask.length = at<std::uint64_t>(from + kGetLengthAt);
    data.ask.mailbox = Mailbox{at<std::uint64_t>(from + kAnswerMailboxAt)};
    data.ask.key = at<std::uint32_t>(from + kAnswerKeyAt);
    return true;
  }

  bool ack_extension() {
    if (!check(count_ >= kSelectiveAt + kCrcBytes, WireField::truncated, count_)) return false;
    const std::size_t words = at<std::uint16_t>(kSpanAt);
    const std::size_t outcomes = at<std::uint16_t>(kOutcomeCountAt);
    const std::size_t outcomes_at = kSelectiveAt + 8 * words;
    if (!check(count_ == outcomes_at + (outcomes + 1) / 2 + kCrcBytes, WireField::ack_length, kSpanAt) ||
        !check(at<std::uint16_t>(kAckReservedAt) == 0, WireField::reserved, kAckReservedAt)) {
      return false;
    }
    AckHeader& ack = frame_.ack;
    ack.cumulative = at<std::uint32_t>(kCumulativeAt);
    ack.outcomes_from = MessageId{at<std::uint32_t>(kOutcomesFromAt)};
    for (std::size_t i = 0; i < words; ++i) ack.selective.push_back(at<std::uint64_t>(kSelectiveAt + 8 * i));
    for (std::size_t i = 0; i < outcomes; ++i) {
      const std::uint8_t code = (bytes_[outcomes_at + i / 2] >> (4 * (i % 2))) & 0x0fU;
      if (!check(code <= kLastToldOutcome, WireField::outcome, outcomes_at + i / 2)) return false;
      ack.outcomes.push_back(static_cast<Outcome>(code));
    }
    const bool padded = outcomes % 2 != 0;
    const bool says_nothing = words == 0 && outcomes == 0 && ack.cumulative == 0 && ack.outcomes_from.value() == 0;
    return check(!padded || bytes_[outcomes_at + outcomes / 2] >> 4U == 0, WireField::reserved,
                 outcomes_at + outcomes / 2) &&
           check(ack.age_us == 0 || says_nothing, WireField::introduction, kSequenceAt);
  }

  bool crc() {
    const std::size_t crc_at = count_ - kCrcBytes;
    return check(at<std::uint32_t>(crc_at) == rvma_crc(bytes_, crc_at), WireField::crc, crc_at);
  }

  const std::uint8_t* bytes_;
  std::size_t count_;
  bool has_rdma_ = false;
  DecodedFrame frame_;
  WireError error_{WireField::truncated, 0};
};

}  // namespace

std::uint32_t wire_bytes_of(const Packet& packet) {
  return packet.transport.type == PacketType::data
             ? data_wire_bytes(data_bytes_of(packet.data))
             : ack_wire_bytes(packet.ack.selective.size(), packet.ack.outcomes.size());
}

std::string WireError::to_string() const {
  return "wire format: bad " + ValueText<WireField>::print(field) + " at byte " + std::to_string(offset);
}

void throw_exception_from_error(const WireError& error, const boost::source_location& /*location*/) {
  throw std::runtime_error(error.to_string());
}

void encode_frame(const Packet& packet, std::vector<std::uint8_t>& frame) {
  encode(packet.transport, packet.data, packet.ack, packet.payload ? packet.payload->data() : nullptr, frame);
}

void encode_frame(const DecodedFrame& contents, std::vector<std::uint8_t>& frame) {
  encode(contents.transport, contents.data, contents.ack, contents.payload, frame);
}

boost::system::result<DecodedFrame, WireError> decode_frame(const std::uint8_t* bytes, std::size_t count) {
  return Decoder{bytes, count}.decode();
}

}  // namespace rvma
