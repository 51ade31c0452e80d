#include "fabric/wire.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <string>

#include "base/random.hpp"

namespace rvma {
namespace {

using Frame = std::vector<std::uint8_t>;

constexpr std::uint64_t kSeed = 20210517;

Frame hex(const std::string& text) {
  Frame bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

PacketPtr random_packet(PacketPool& pool, PayloadPool& payloads, Random& random) {
  PacketPtr packet = pool.acquire();
  TransportHeader& transport = packet->transport;
  transport.type = random.below(2) == 0 ? PacketType::data : PacketType::acknowledgement;
  transport.source = NodeId{static_cast<std::uint32_t>(random.below(kLastAddressableNode + 1))};
  transport.destination = NodeId{static_cast<std::uint32_t>(random.below(kLastAddressableNode + 1))};
  transport.source_incarnation = static_cast<std::uint32_t>(random.next());
  transport.destination_incarnation = static_cast<std::uint32_t>(random.next());
  transport.generation = static_cast<std::uint32_t>(random.next());
  if (transport.type == PacketType::data) {
    transport.sequence = static_cast<std::uint32_t>(random.next());
    DataHeader& data = packet->data;
    data.destination_pid = Pid{static_cast<std::uint16_t>(random.next())};
    data.source_pid = Pid{static_cast<std::uint16_t>(random.next())};
    data.mailbox = Mailbox{random.next()};
    data.key = static_cast<std::uint32_t>(random.next());
    data.message = MessageId{static_cast<std::uint32_t>(random.next())};
    data.open_span = static_cast<std::uint16_t>(random.next());
    data.message_length = random.next();
    data.offset = random.next();
    data.packet_index = static_cast<std::uint32_t>(random.next());
    data.is_get = random.below(4) == 0;
    if (!data.is_get && random.below(3) == 0) {
      data.rdma.operation = static_cast<RdmaOperation>(1 + random.below(5));
      data.rdma.queue_pair = static_cast<std::uint32_t>(random.next());
      data.rdma.immediate = static_cast<std::uint32_t>(random.next());
    }
    if (data.is_get || data.rdma.operation == RdmaOperation::read) {
      data.ask = GetAsk{random.next(), Mailbox{random.next()}, static_cast<std::uint32_t>(random.next())};
      return packet;
    }
    data.payload_length = static_cast<std::uint16_t>(random.below(payloads.buffer_bytes() + 1));
    packet->payload = payloads.acquire();
    for (std::uint16_t i = 0; i < data.payload_length; ++i) {
      packet->payload->data()[i] = static_cast<std::uint8_t>(random.next());
    }
  } else {
    AckHeader& ack = packet->ack;
    ack.cumulative = static_cast<std::uint32_t>(random.next());
    ack.outcomes_from = MessageId{static_cast<std::uint32_t>(random.next())};
    for (std::uint64_t i = random.below(20); i > 0; --i) ack.selective.push_back(random.next());
    for (std::uint64_t i = random.below(40); i > 0; --i) ack.outcomes.push_back(static_cast<Outcome>(random.below(9)));
  }
  return packet;
}

void expect_same(const Packet& packet, const DecodedFrame& decoded) {
  EXPECT_EQ(decoded.transport.type, packet.transport.type);
  EXPECT_EQ(decoded.transport.source, packet.transport.source);
  EXPECT_EQ(decoded.transport.destination, packet.transport.destination);
  EXPECT_EQ(decoded.transport.source_incarnation, packet.transport.source_incarnation);
  EXPECT_EQ(decoded.transport.destination_incarnation, packet.transport.destination_incarnation);
  EXPECT_EQ(decoded.transport.generation, packet.transport.generation);
  EXPECT_EQ(decoded.transport.sequence, packet.transport.sequence);
  EXPECT_EQ(decoded.data.is_get, packet.data.is_get);
  EXPECT_EQ(decoded.data.rdma.operation, packet.data.rdma.operation);
  EXPECT_EQ(decoded.data.rdma.queue_pair, packet.data.rdma.queue_pair);
  EXPECT_EQ(decoded.data.rdma.immediate, packet.data.rdma.immediate);
  EXPECT_EQ(decoded.data.ask.length, packet.data.ask.length);
  EXPECT_EQ(decoded.data.ask.mailbox, packet.data.ask.mailbox);
  EXPECT_EQ(decoded.data.ask.key, packet.data.ask.key);
  EXPECT_EQ(decoded.data.destination_pid, packet.data.destination_pid);
  EXPECT_EQ(decoded.data.source_pid, packet.data.source_pid);
  EXPECT_EQ(decoded.data.mailbox, packet.data.mailbox);
  EXPECT_EQ(decoded.data.key, packet.data.key);
  EXPECT_EQ(decoded.data.message, packet.data.message);
  EXPECT_EQ(decoded.data.open_span, packet.data.open_span);
  EXPECT_EQ(decoded.data.message_length, packet.data.message_length);
  EXPECT_EQ(decoded.data.offset, packet.data.offset);
  EXPECT_EQ(decoded.data.packet_index, packet.data.packet_index);
  ASSERT_EQ(decoded.data.payload_length, packet.data.payload_length);
  EXPECT_EQ(decoded.ack.cumulative, packet.ack.cumulative);
  EXPECT_EQ(decoded.ack.selective, packet.ack.selective);
  EXPECT_EQ(decoded.ack.outcomes_from, packet.ack.outcomes_from);
  EXPECT_EQ(decoded.ack.outcomes, packet.ack.outcomes);
  if (packet.data.payload_length > 0) {
    EXPECT_TRUE(std::equal(decoded.payload, decoded.payload + decoded.data.payload_length, packet.payload->data()));
  }
}

Frame small_data_frame() {
  PacketPool pool;
  PayloadPool payloads{64};
  PacketPtr packet = pool.acquire();
  packet->transport.source = NodeId{0};
  packet->transport.destination = NodeId{1};
  packet->transport.source_incarnation = 0x01020304;
  packet->transport.destination_incarnation = 0x05060708;
  packet->transport.generation = 0x090a0b0c;
  packet->transport.sequence = 0x0d0e0f10;
  packet->data.destination_pid = Pid{0x1112};
  packet->data.source_pid = Pid{0x1314};
  packet->data.key = 0x15161718;
  packet->data.mailbox = Mailbox{0x191a1b1c1d1e1f20};
  packet->data.message = MessageId{0x21222324};
  packet->data.packet_index = 0x25262728;
  packet->data.message_length = 0x292a2b2c2d2e2f30;
  packet->data.offset = 0x3132333435363738;
  packet->data.open_span = 0x393a;
  packet->data.payload_length = 3;
  packet->payload = payloads.acquire();
  std::copy_n("abc", 3, packet->payload->data());
  Frame frame;
  encode_frame(*packet, frame);
  return frame;
}

Frame small_ack_frame() {
  DecodedFrame contents;
  contents.transport.type = PacketType::acknowledgement;
  contents.transport.source = NodeId{1};
  contents.transport.destination = NodeId{0};
  contents.ack.cumulative = 7;
  contents.ack.selective = {5, 6};
  contents.ack.outcomes_from = MessageId{2};
  contents.ack.outcomes = {Outcome::ok, Outcome::pending, Outcome::bounds};
  Frame frame;
  encode_frame(contents, frame);
  return frame;
}

std::uint32_t ones(const std::uint8_t* at, std::size_t count) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<std::uint32_t>(at[i]) << (i % 2 == 0 ? 8U : 0U);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16U);
  return sum;
}

/// CRC and checksums as a sender would have computed them, written here a second time on purpose.
void reseal(Frame& frame) {
  const auto store = [&](std::size_t at, std::uint32_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) frame[at + i] = static_cast<std::uint8_t>(value >> (8 * (bytes - 1 - i)));
  };
  store(24, 0, 2);
  store(24, ~ones(&frame[14], 20), 2);
  const std::size_t crc_at = frame.size() - 4;
  uLong crc = crc32(0, &frame[26], 8);
  crc = crc32(crc, &frame[42], static_cast<uInt>(crc_at - 42));
  store(crc_at, static_cast<std::uint32_t>(crc), 4);
  store(40, 0, 2);
  Frame summed(frame.begin() + 26, frame.end());  // addresses and the whole datagram
  const std::size_t datagram = frame.size() - 34;
  const std::uint8_t pseudo[] = {0, 17, static_cast<std::uint8_t>(datagram >> 8U), static_cast<std::uint8_t>(datagram)};
  summed.insert(summed.begin(), pseudo, pseudo + 4);
  const std::uint32_t sum = ~ones(summed.data(), summed.size()) & 0xffff;
  store(40, sum == 0 ? 0xffff : sum, 2);
}

TEST(Wire, RandomPacketsComeBackUnchanged) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random{kSeed};
  PayloadPool payloads{300};
  PacketPool pool;
  for (int i = 0; i < 5000; ++i) {
    const PacketPtr packet = random_packet(pool, payloads, random);
    Frame frame;
    encode_frame(*packet, frame);
    ASSERT_EQ(frame.size() + kPreambleBytes + kPacketGapBytes + kFrameCheckBytes, wire_bytes_of(*packet));
    const auto decoded = decode_frame(frame.data(), frame.size());
    ASSERT_TRUE(decoded) << decoded.error().to_string();
    expect_same(*packet, *decoded);
    Frame again;
    encode_frame(*decoded, again);
    ASSERT_EQ(again, frame);
  }
}

TEST(Wire, SizesOnTheLink) {
  PacketPool pool;
  const PacketPtr packet = pool.acquire();
  // 8 preamble + 14 Ethernet + 20 IPv4 + 8 UDP + 20 transport + 40 data + 4 CRC + 4 FCS + 12 gap
  EXPECT_EQ(wire_bytes_of(*packet), 130U);
  packet->data.payload_length = 4096;
  EXPECT_EQ(wire_bytes_of(*packet), 4226U);
  packet->transport.type = PacketType::acknowledgement;
  EXPECT_EQ(wire_bytes_of(*packet), 102U);
  packet->ack.selective.assign(16, 0);
  packet->ack.outcomes.assign(5, Outcome::ok);
  EXPECT_EQ(wire_bytes_of(*packet), 102U + 16 * 8 + 3);
}

TEST(Wire, EveryByteStandsWhereThePageSays) {
  Frame frame = small_data_frame();
  Frame expected =
      hex("02000a000002"
          "02000a000001"
          "0800"                  // Ethernet
          "4500005f000040004011"  // IPv4: 95 bytes, don't fragment, TTL 64, UDP
          "0000"                  // checksum, below
          "0a0000010a000002"      //
          "c030c030004b0000"      // UDP: ports 49200, 75 bytes, checksum below
          "1100393a"              // version 1, type 1, no flags, open span
          "01020304"
          "05060708"  // incarnations
          "090a0b0c"
          "0d0e0f10"  // generation, sequence
          "11121314"
          "15161718"          // pids, key
          "191a1b1c1d1e1f20"  // mailbox
          "21222324"
          "25262728"          // message, packet index
          "292a2b2c2d2e2f30"  // message length
          "3132333435363738"  // offset
          "616263"            // payload
          "00000000");        // CRC, below
  ASSERT_EQ(expected.size(), frame.size());
  reseal(expected);
  EXPECT_EQ(frame, expected);
}

TEST(Wire, AcknowledgementBytes) {
  Frame expected =
      hex("02000a00000102000a0000020800"
          "45000052000040004011"
          "0000"
          "0a0000020a000001"
          "c030c030003e0000"
          "12000002"
          "00000000"
          "00000000"
          "00000000"
          "00000000"
          "00000007"
          "00000002"
          "0003"
          "0000"
          "0000000000000005"
          "0000000000000006"
          "0107"
          "00000000");
  ASSERT_EQ(expected.size(), small_ack_frame().size());
  reseal(expected);
  EXPECT_EQ(small_ack_frame(), expected);
}

TEST(Wire, AnIntroductionCarriesAnAgeAndNothingElse) {
  DecodedFrame contents;
  contents.transport.type = PacketType::acknowledgement;
  contents.transport.source = NodeId{1};
  contents.ack.age_us = 0x01020304;
  Frame frame;
  encode_frame(contents, frame);
  EXPECT_EQ(std::vector<std::uint8_t>(frame.begin() + 58, frame.begin() + 62), (std::vector<std::uint8_t>{1, 2, 3, 4}));
  const auto decoded = decode_frame(frame.data(), frame.size());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->ack.age_us, 0x01020304U);
  EXPECT_EQ(decoded->transport.sequence, 0U);
}

TEST(Wire, NoFlippedBitIsAccepted) {
  for (const Frame& good : {small_data_frame(), small_ack_frame()}) {
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      Frame frame = good;
      frame[bit / 8] = static_cast<std::uint8_t>(frame[bit / 8] ^ (1U << (bit % 8)));
      const auto decoded = decode_frame(frame.data(), frame.size());
      ASSERT_FALSE(decoded) << "bit " << bit;
      ASSERT_LE(decoded.error().offset, frame.size());
    }
  }
}

TEST(Wire, NoOtherLengthIsAccepted) {
  for (const Frame& good : {small_data_frame(), small_ack_frame()}) {
    for (std::size_t count = 0; count < good.size(); ++count) {
      // A copy of exactly that size, so that a sanitizer sees a read beyond it.
      const Frame frame(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(count));
      ASSERT_FALSE(decode_frame(frame.data(), frame.size())) << count;
    }
    Frame longer = good;
    longer.push_back(0);
    ASSERT_FALSE(decode_frame(longer.data(), longer.size()));
  }
}

TEST(Wire, RandomBytesAreRefused) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random{kSeed};
  for (int i = 0; i < 20'000; ++i) {
    Frame frame(random.below(200));
    for (std::uint8_t& byte : frame) byte = static_cast<std::uint8_t>(random.next());
    ASSERT_FALSE(decode_frame(frame.data(), frame.size()));
  }
}

TEST(Wire, ErrorsNameFieldAndOffset) {
  struct Case {
    bool data;
    std::size_t at;
    std::uint8_t value;
    WireField field;
    std::size_t offset;
  };
  const Case cases[] = {
      {true, 12, 0x86, WireField::ethernet_type, 12}, {true, 14, 0x46, WireField::ipv4_header, 14},
      {true, 15, 1, WireField::ipv4_header, 15},      {true, 17, 0, WireField::ipv4_length, 16},
      {true, 18, 1, WireField::ipv4_header, 18},      {true, 20, 0, WireField::ipv4_header, 20},
      {true, 22, 63, WireField::ipv4_header, 22},     {true, 23, 6, WireField::ipv4_protocol, 23},
      {true, 26, 11, WireField::ipv4_address, 26},    {true, 33, 0, WireField::ipv4_address, 30},
      {true, 5, 9, WireField::ethernet_address, 0},   {true, 6, 0, WireField::ethernet_address, 6},
      {true, 35, 0, WireField::udp_port, 34},         {true, 37, 0, WireField::udp_port, 36},
      {true, 39, 0, WireField::udp_length, 38},       {true, 42, 0x21, WireField::version, 42},
      {true, 42, 0x15, WireField::type, 42},          {true, 42, 0x14, WireField::truncated, 109},
      {true, 42, 0x13, WireField::get_length, 102},   {true, 43, 1, WireField::flags, 43},
      {true, 42, 0x12, WireField::ack_length, 44},    {false, 45, 1, WireField::ack_length, 44},
      {false, 71, 5, WireField::ack_length, 44},      {false, 61, 1, WireField::introduction, 58},
      {false, 73, 1, WireField::reserved, 72},        {false, 90, 0x09, WireField::outcome, 90},
      {false, 91, 0x17, WireField::reserved, 91},     {false, 42, 0x11, WireField::truncated, 96},
  };
  for (const Case& c : cases) {
    Frame frame = c.data ? small_data_frame() : small_ack_frame();
    frame[c.at] = c.value;
    reseal(frame);
    const auto decoded = decode_frame(frame.data(), frame.size());
    ASSERT_FALSE(decoded) << c.at;
    EXPECT_EQ(decoded.error().field, c.field) << "byte " << c.at << ": " << decoded.error().to_string();
    EXPECT_EQ(decoded.error().offset, c.offset) << "byte " << c.at;
  }
}

TEST(Wire, RdmaBytes) {
  PacketPool pool;
  PacketPtr packet = pool.acquire();
  packet->data.rdma = {RdmaOperation::read, 0x01020304, 0x05060708};
  packet->data.ask = GetAsk{0x1112131415161718, Mailbox{0x2122232425262728}, 0x31323334};
  Frame frame;
  encode_frame(*packet, frame);
  EXPECT_EQ(frame[42], 0x14);
  const Frame extension(frame.begin() + 102, frame.end() - 4);
  EXPECT_EQ(extension, hex("04000000"
                           "01020304"
                           "05060708"
                           "1112131415161718"
                           "2122232425262728"
                           "31323334"));
  EXPECT_EQ(wire_bytes_of(*packet), data_wire_bytes(kRdmaExtensionBytes + kGetExtensionBytes));

  struct Case {
    std::size_t at;
    std::uint8_t value;
    WireField field;
    std::size_t offset;
  };
  for (const Case& c : {Case{102, 0, WireField::rdma_operation, 102}, Case{102, 6, WireField::rdma_operation, 102},
                        Case{104, 1, WireField::reserved, 104}}) {
    Frame bad = frame;
    bad[c.at] = c.value;
    reseal(bad);
    const auto decoded = decode_frame(bad.data(), bad.size());
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().field, c.field);
    EXPECT_EQ(decoded.error().offset, c.offset);
  }
}

TEST(Wire, SumsAreChecked) {
  Frame frame = small_data_frame();
  frame[25] ^= 1U;
  EXPECT_EQ(decode_frame(frame.data(), frame.size()).error().field, WireField::ipv4_checksum);
  frame = small_data_frame();
  frame[41] ^= 1U;
  EXPECT_EQ(decode_frame(frame.data(), frame.size()).error().field, WireField::udp_checksum);
  // Two payload bytes and two words swapped leave the UDP checksum as it was; the CRC sees it.
  frame = small_data_frame();
  std::swap(frame[46], frame[48]);
  std::swap(frame[47], frame[49]);
  const auto decoded = decode_frame(frame.data(), frame.size());
  EXPECT_EQ(decoded.error().field, WireField::crc);
  EXPECT_EQ(decoded.error().to_string(), "wire format: bad crc at byte " + std::to_string(frame.size() - 4));
}

TEST(Wire, PayloadThatIsNotCarriedBecomesZeros) {
  PacketPool pool;
  const PacketPtr packet = pool.acquire();
  packet->data.payload_length = 10;
  Frame frame;
  encode_frame(*packet, frame);
  const auto decoded = decode_frame(frame.data(), frame.size());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(Frame(decoded->payload, decoded->payload + 10), Frame(10, 0));
}

}  // namespace
}  // namespace rvma
