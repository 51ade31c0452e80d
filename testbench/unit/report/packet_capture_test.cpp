// What NICs report becomes a capture: order, limit, length, damage.
#include "report/packet_capture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "fabric/wire.hpp"

namespace rvma {
namespace {

using ::testing::ElementsAre;

struct Block {
  std::uint32_t type = 0;
  std::string body;
};

std::uint32_t word(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes.at(at + i))} << (8 * i);
  return value;
}

std::vector<Block> blocks(const std::string& file) {
  std::vector<Block> found;
  for (std::size_t at = 0; at < file.size();) {
    const std::uint32_t length = word(file, at + 4);
    found.push_back({word(file, at), file.substr(at + 8, length - 12)});
    at += length;
  }
  return found;
}

/// The frame of a packet block.
std::vector<std::uint8_t> frame(const Block& block) {
  const std::string bytes = block.body.substr(20, word(block.body, 12));
  return {bytes.begin(), bytes.end()};
}

Packet packet_of(std::uint32_t source, std::uint32_t destination, std::uint32_t sequence) {
  Packet packet;
  packet.transport.source = NodeId{source};
  packet.transport.destination = NodeId{destination};
  packet.transport.sequence = sequence;
  packet.data.payload_length = 8;
  packet.wire_bytes = wire_bytes_of(packet);
  return packet;
}

class PacketCaptureTest : public ::testing::Test {
 protected:
  PacketCapture& capture(const PacketCapture::Options& options = {}) {
    if (!capture_) capture_ = std::make_unique<PacketCapture>(out_, options, 3, Rate::gbps(400));
    return *capture_;
  }
  /// Type 6 of the finished file, or others.
  std::vector<Block> finished(std::uint32_t type = 6) {
    capture().finish(Time::from_ns(1000), "");
    std::vector<Block> found;
    for (const Block& block : blocks(out_.str())) {
      if (block.type == type) found.push_back(block);
    }
    return found;
  }
  std::vector<std::uint32_t> times(const std::vector<Block>& packets) {
    std::vector<std::uint32_t> found;
    for (const Block& block : packets) found.push_back(word(block.body, 8));
    return found;
  }

 private:
  std::ostringstream out_;
  std::unique_ptr<PacketCapture> capture_;
};

TEST_F(PacketCaptureTest, PacketsAreInOrderOfTime) {
  capture().packet_sent(NodeId{0}, packet_of(0, 1, 0), Time::from_ns(10));
  capture().packet_arrived(NodeId{1}, packet_of(0, 1, 0), Time::from_ns(90));
  capture().packet_sent(NodeId{2}, packet_of(2, 1, 0), Time::from_ns(50));
  capture().packet_sent(NodeId{0}, packet_of(0, 1, 1), Time::from_ns(50));
  const std::vector<Block> packets = finished();
  EXPECT_THAT(times(packets), ElementsAre(10, 50, 50, 90));
  EXPECT_EQ(word(packets[1].body, 0), 2U) << "at one time in the order in which they were told";
  EXPECT_EQ(word(packets[2].body, 0), 0U);
  for (const Block& block : packets) {
    const std::vector<std::uint8_t> bytes = frame(block);
    EXPECT_TRUE(decode_frame(bytes.data(), bytes.size()));
  }
  EXPECT_EQ(capture().seen(), 4U);
  EXPECT_EQ(capture().dropped(), 0U);
}

TEST_F(PacketCaptureTest, TheLimitKeepsTheEarliest) {
  PacketCapture::Options options;
  options.limit = 2;
  capture(options).packet_arrived(NodeId{1}, packet_of(0, 1, 0), Time::from_ns(90));
  capture().packet_sent(NodeId{0}, packet_of(0, 1, 0), Time::from_ns(10));
  capture().packet_sent(NodeId{0}, packet_of(0, 1, 1), Time::from_ns(20));
  EXPECT_THAT(times(finished()), ElementsAre(10, 20));
  EXPECT_EQ(capture().dropped(), 1U);
}

TEST_F(PacketCaptureTest, OnlyTheNodesThatAreWatched) {
  PacketCapture::Options options;
  options.nodes = {NodeId{1}};
  capture(options).packet_sent(NodeId{0}, packet_of(0, 1, 0), Time::from_ns(10));
  capture().packet_arrived(NodeId{1}, packet_of(0, 1, 0), Time::from_ns(20));
  const std::vector<Block> packets = finished();
  EXPECT_THAT(times(packets), ElementsAre(20));
  EXPECT_EQ(word(packets[0].body, 0), 0U) << "interfaces are numbered by those that there are";
}

TEST_F(PacketCaptureTest, LongPacketsAreCut) {
  PacketCapture::Options options;
  options.snap_bytes = 106;
  capture(options).packet_sent(NodeId{0}, packet_of(0, 1, 0), Time::from_ns(10));
  const std::vector<Block> packets = finished();
  EXPECT_EQ(frame(packets.at(0)).size(), 106U);
  EXPECT_EQ(word(packets[0].body, 16), 114U) << "its length is what it was";
}

TEST_F(PacketCaptureTest, ADamagedPacketFailsItsCheckWhereItArrives) {
  Packet packet = packet_of(0, 1, 0);
  packet.corrupted = true;
  capture().packet_sent(NodeId{0}, packet, Time::from_ns(10));
  capture().packet_arrived(NodeId{1}, packet, Time::from_ns(20));
  const std::vector<Block> packets = finished();
  const std::vector<std::uint8_t> sent = frame(packets.at(0));
  std::vector<std::uint8_t> arrived = frame(packets.at(1));
  EXPECT_TRUE(decode_frame(sent.data(), sent.size()));
  EXPECT_FALSE(decode_frame(arrived.data(), arrived.size()));
  for (std::size_t i = arrived.size() - 4; i < arrived.size(); ++i) arrived[i] ^= 0xffU;
  EXPECT_EQ(sent, arrived);
}

}  // namespace
}  // namespace rvma
