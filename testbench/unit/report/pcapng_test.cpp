// A small capture, byte by byte, as the format's draft has it.
#include "report/pcapng.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace rvma {
namespace {

std::string hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return text;
}

class PcapngTest : public ::testing::Test {
 protected:
  PcapngTest() : writer_(out_, "rvma") {}
  PcapngWriter& writer() { return writer_; }
  /// What was written since the last call.
  std::string written() {
    const std::string text = hex(out_.str());
    out_.str("");
    return text;
  }

 private:
  std::ostringstream out_;
  PcapngWriter writer_;
};

TEST_F(PcapngTest, BeginsWithASection) {
  EXPECT_EQ(written(),
            "0a0d0d0a"
            "28000000"
            "4d3c2b1a"
            "0100"
            "0000"
            "ffffffffffffffff"
            "0400"
            "0400"
            "72766d61"  // shb_userappl
            "00000000"
            "28000000");
}

TEST_F(PcapngTest, AnInterface) {
  written();
  writer().declare({"n1", "abc", 0x0a00'0002, 256, 400'000'000'000});
  EXPECT_EQ(written(),
            "01000000"
            "54000000"
            "0100"
            "0000"
            "00010000"
            "0200"
            "0200"
            "6e310000"  // if_name, filled up
            "0300"
            "0300"
            "61626300"  // if_description
            "0400"
            "0800"
            "0a000002"
            "ff000000"  // if_IPv4addr
            "0600"
            "0600"
            "02000a0000020000"  // if_MACaddr
            "0800"
            "0800"
            "00a0db215d000000"  // if_speed
            "0900"
            "0100"
            "09000000"  // if_tsresol
            "00000000"
            "54000000");
}

TEST_F(PcapngTest, APacket) {
  written();
  PcapngWriter::Packet packet;
  packet.interface = 3;
  packet.direction = PcapngWriter::Direction::out;
  packet.at = Time::from_ps((std::int64_t{5} << 32) * 1000 + 7'999);
  packet.bytes = 1000;
  packet.kept = {0xde, 0xad, 0xbe, 0xef, 0x01};
  writer().write(packet);
  EXPECT_EQ(written(),
            "06000000"
            "34000000"
            "03000000"
            "05000000"
            "07000000"
            "05000000"
            "e8030000"
            "deadbeef01000000"
            "0200"
            "0400"
            "02000000"  // epb_flags
            "00000000"
            "34000000");
  packet.direction = PcapngWriter::Direction::in;
  packet.has_bad_crc = true;
  packet.comment = "no";
  packet.kept.clear();
  writer().write(packet);
  EXPECT_EQ(written(),
            "06000000"
            "34000000"
            "03000000"
            "05000000"
            "07000000"
            "00000000"
            "e8030000"
            "0100"
            "0200"
            "6e6f0000"  // opt_comment
            "0200"
            "0400"
            "01000001"
            "00000000"
            "34000000");
}

TEST_F(PcapngTest, Statistics) {
  written();
  writer().write(1, Time::from_ns(258), {10, 3, ""});
  EXPECT_EQ(written(),
            "05000000"
            "34000000"
            "01000000"
            "00000000"
            "02010000"
            "0400"
            "0800"
            "0a00000000000000"  // isb_ifrecv
            "0500"
            "0800"
            "0300000000000000"  // isb_ifdrop
            "00000000"
            "34000000");
}

}  // namespace
}  // namespace rvma
