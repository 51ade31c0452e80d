#include "nic/descriptor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/random.hpp"

namespace rvma {
namespace {

Descriptor put() {
  Descriptor descriptor;
  descriptor.opcode = Opcode::put;
  descriptor.key = 0x11223344;
  descriptor.mailbox = Mailbox{0xbeef'0000'0000'0001};
  descriptor.offset = 0xffff'ffff'ffff'fff0;
  descriptor.length = 4096;
  descriptor.local = VirtualAddress{0x7000'0000'1234};
  descriptor.page_list = PhysicalAddress{0x55'5000};
  descriptor.single_page = true;
  descriptor.completion = PhysicalAddress{0x120};
  descriptor.destination_node = NodeId{0x01020304};
  descriptor.destination_pid = Pid{0x0506};
  return descriptor;
}

bool same(const Descriptor& a, const Descriptor& b) { return encode(a) == encode(b); }

TEST(Descriptor, PutHasItsFieldsWhereTheLayoutSaysAndComesBackUnchanged) {
  const DescriptorBytes bytes = encode(put());
  EXPECT_EQ(bytes[0], static_cast<std::uint8_t>(Opcode::put));
  EXPECT_EQ(bytes[1], 0x80);
  EXPECT_EQ(bytes[4], 0x44);
  EXPECT_EQ(bytes[8], 0x01);
  EXPECT_EQ(bytes[15], 0xbe);
  EXPECT_EQ(bytes[16], 0xf0);
  EXPECT_EQ(bytes[25], 0x10);
  EXPECT_EQ(bytes[56], 0x04);
  EXPECT_EQ(bytes[59], 0x01);
  EXPECT_EQ(bytes[60], 0x06);
  EXPECT_EQ(bytes[61], 0x05);

  const auto decoded = decode_descriptor(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->offset, put().offset);
  EXPECT_EQ(decoded->threshold, 0U);
  EXPECT_EQ(decoded->destination_node, put().destination_node);
  EXPECT_EQ(decoded->destination_pid, put().destination_pid);
  EXPECT_EQ(decoded->response.value(), 0U);
  EXPECT_TRUE(decoded->single_page);
  EXPECT_TRUE(same(*decoded, put()));
}

TEST(Descriptor, WindowCallCarriesThresholdAndResponseInstead) {
  Descriptor call;
  call.opcode = Opcode::init_window;
  call.window_flags = kWindowReadable | kWindowInterrupt;
  call.threshold_type = ThresholdType::ops;
  call.placement = Placement::managed;
  call.threshold = 0x1234'5678'9abc'def0;
  call.response = PhysicalAddress{0xabcd0};
  const auto decoded = decode_descriptor(encode(call));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->window_flags, call.window_flags);
  EXPECT_EQ(decoded->threshold_type, ThresholdType::ops);
  EXPECT_EQ(decoded->placement, Placement::managed);
  EXPECT_EQ(decoded->threshold, call.threshold);
  EXPECT_EQ(decoded->offset, 0U);
  EXPECT_EQ(decoded->response, call.response);
  EXPECT_EQ(decoded->destination_node.value(), 0U);
}

TEST(Descriptor, RefusesWhatIsNone) {
  const DescriptorBytes good = encode(put());
  ASSERT_TRUE(decode_descriptor(good));
  struct Case {
    const char* what;
    std::size_t at;
    std::uint8_t value;
  };
  for (const Case& bad :
       {Case{"opcode 0", 0, 0}, Case{"opcode beyond the last", 0, 20}, Case{"reserved flag", 1, 0x08},
        Case{"reserved flag", 1, 0x40}, Case{"threshold type", 2, 2}, Case{"placement", 3, 2},
        Case{"misaligned completion", 48, 0x08}, Case{"reserved bytes", 62, 1}, Case{"reserved bytes", 63, 1}}) {
    SCOPED_TRACE(bad.what);
    DescriptorBytes bytes = good;
    bytes.at(bad.at) = bad.value;
    EXPECT_FALSE(decode_descriptor(bytes));
  }
  Descriptor call;
  call.opcode = Opcode::close_window;
  call.response = PhysicalAddress{0x18};
  EXPECT_FALSE(decode_descriptor(encode(call)));
}

TEST(Descriptor, OnlyWhatSendsLocalMemoryHasPayloadBehindIt) {
  for (unsigned code = 1; code <= static_cast<unsigned>(Opcode::rdma_deregister); ++code) {
    Descriptor descriptor;
    descriptor.opcode = static_cast<Opcode>(code);
    descriptor.payload_follows = true;
    const auto decoded = decode_descriptor(encode(descriptor));
    const bool is_right = descriptor.opcode == Opcode::put || descriptor.opcode == Opcode::rdma_write ||
                          descriptor.opcode == Opcode::rdma_write_immediate || descriptor.opcode == Opcode::rdma_send;
    ASSERT_EQ(decoded.has_value(), is_right) << code;
    EXPECT_EQ(decoded.has_value() && decoded->payload_follows, is_right) << code;
  }
}

TEST(Descriptor, AnyBytesAreRefusedOrComeBackExactly) {
  const std::uint64_t seed = 20;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random{seed};
  int accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    DescriptorBytes bytes{};
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
    // Most random bytes fail at the first field: make the likely killers plausible half of the time.
    if (random.below(2) == 0) {
      bytes[0] = static_cast<std::uint8_t>(1 + random.below(11));
      bytes[1] &= 0xa7;
      bytes[2] &= 1;
      bytes[3] &= 1;
      bytes[48] &= 0xf0;
      bytes[56] &= 0xf0;
      bytes[62] = bytes[63] = 0;
    }
    const auto decoded = decode_descriptor(bytes);
    if (!decoded) continue;
    ++accepted;
    ASSERT_EQ(encode(*decoded), bytes);
  }
  EXPECT_GT(accepted, 50'000);
}

}  // namespace
}  // namespace rvma
