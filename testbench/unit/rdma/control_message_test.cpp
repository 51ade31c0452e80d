// Messages of the RDMA baseline's software as bytes.
#include "rdma/control_message.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace rvma {
namespace {

ControlMessage random_message(Random& random) {
  ControlMessage message;
  message.kind = static_cast<ControlKind>(1 + random.below(16));
  message.outcome = static_cast<Outcome>(random.below(11));
  message.rank = static_cast<std::uint32_t>(random.next());
  message.request = static_cast<std::uint32_t>(random.next());
  message.ticket = static_cast<std::uint32_t>(random.next());
  message.key = static_cast<std::uint32_t>(random.next());
  message.message = static_cast<std::uint32_t>(random.next());
  message.mailbox = random.next();
  message.offset = random.next();
  message.length = random.next();
  message.least = random.next();
  message.era = static_cast<std::uint32_t>(random.next());
  message.sequence = static_cast<std::uint32_t>(random.next());
  message.is_managed = random.below(2) == 1;
  message.does_not_suit = random.below(2) == 1;
  return message;
}

TEST(ControlMessage, RandomMessagesComeBackAsTheyWere) {
  constexpr std::uint64_t kSeed = 20;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int i = 0; i < 1000; ++i) {
    const ControlMessage sent = random_message(random);
    const ControlMessage got = decode_control(encode(sent));
    ASSERT_EQ(got.kind, sent.kind);
    ASSERT_EQ(got.outcome, sent.outcome);
    ASSERT_EQ(got.rank, sent.rank);
    ASSERT_EQ(got.request, sent.request);
    ASSERT_EQ(got.ticket, sent.ticket);
    ASSERT_EQ(got.key, sent.key);
    ASSERT_EQ(got.message, sent.message);
    ASSERT_EQ(got.mailbox, sent.mailbox);
    ASSERT_EQ(got.offset, sent.offset);
    ASSERT_EQ(got.length, sent.length);
    ASSERT_EQ(got.least, sent.least);
    ASSERT_EQ(got.era, sent.era);
    ASSERT_EQ(got.sequence, sent.sequence);
    ASSERT_EQ(got.is_managed, sent.is_managed);
    ASSERT_EQ(got.does_not_suit, sent.does_not_suit);
  }
}

TEST(ControlMessage, EveryByteHasItsPlace) {
  ControlMessage message;
  message.kind = ControlKind::written;
  message.outcome = Outcome::timeout;
  message.rank = 0x04'03'02'01;
  message.request = 0x14'13'12'11;
  message.ticket = 0x24'23'22'21;
  message.key = 0x34'33'32'31;
  message.message = 0x44'43'42'41;
  message.mailbox = 0x58'57'56'55'54'53'52'51ULL;
  message.offset = 0x68'67'66'65'64'63'62'61ULL;
  message.length = 0x78'77'76'75'74'73'72'71ULL;
  message.least = 0x88'87'86'85'84'83'82'81ULL;
  message.era = 0x94'93'92'91;
  message.sequence = 0xa4'a3'a2'a1;
  message.does_not_suit = true;
  const ControlBytes expected{9,    9,    0,    1,    0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x21,
                              0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44, 0x51, 0x52,
                              0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67,
                              0x68, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x81, 0x82, 0x83, 0x84,
                              0x85, 0x86, 0x87, 0x88, 0x91, 0x92, 0x93, 0x94, 0xa1, 0xa2, 0xa3, 0xa4};
  EXPECT_EQ(encode(message), expected);
}

TEST(ControlMessage, KindsKeepTheirNumbers) {
  // 0 is none of them: a buffer that nothing was received into is no message.
  EXPECT_EQ(static_cast<int>(ControlKind::connect_request), 1);
  EXPECT_EQ(static_cast<int>(ControlKind::put_request), 4);
  EXPECT_EQ(static_cast<int>(ControlKind::refusal), 8);
  EXPECT_EQ(static_cast<int>(ControlKind::revoked), 13);
  EXPECT_EQ(static_cast<int>(ControlKind::given_up), 16);
}

}  // namespace
}  // namespace rvma
