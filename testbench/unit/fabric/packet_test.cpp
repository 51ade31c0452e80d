#include "fabric/packet.hpp"

#include <gtest/gtest.h>

namespace rvma {
namespace {

TEST(PayloadPool, RecyclesWhenTheLastReferenceGoes) {
  PayloadPool pool{4096};
  PayloadRef first = pool.acquire();
  EXPECT_EQ(first->capacity(), 4096U);
  const std::uint8_t* bytes = first->data();
  PayloadRef second = first;
  first.reset();
  EXPECT_EQ(pool.in_use(), 1U);
  second.reset();
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_EQ(pool.acquire()->data(), bytes);
  EXPECT_EQ(pool.made(), 1U);
}

TEST(PayloadPool, BuffersInUseAreDistinct) {
  PayloadPool pool{64};
  const PayloadRef first = pool.acquire();
  const PayloadRef second = pool.acquire();
  EXPECT_NE(first->data(), second->data());
  EXPECT_EQ(pool.in_use(), 2U);
}

TEST(PayloadPool, SmallBuffersAreSmallAndComeBackForTheirSize) {
  PayloadPool pool{4096};
  PayloadRef small = pool.acquire(65);
  EXPECT_EQ(small->capacity(), 128U);
  EXPECT_EQ(pool.acquire(1)->capacity(), 64U);
  EXPECT_EQ(pool.acquire(4095)->capacity(), 4096U);
  const std::uint8_t* bytes = small->data();
  small.reset();
  EXPECT_EQ(pool.made(), 3U);
  EXPECT_NE(pool.acquire(129)->data(), bytes);
  EXPECT_EQ(pool.acquire(128)->data(), bytes);
  EXPECT_EQ(pool.made(), 4U);
}

TEST(PayloadPool, AnMtuThatIsNoPowerOfTwoBoundsItsBuffers) {
  PayloadPool pool{3000};
  EXPECT_EQ(pool.acquire()->capacity(), 3000U);
  EXPECT_EQ(pool.acquire(1025)->capacity(), 2048U);
}

TEST(Packet, ComesBackAsNewButKeepsItsCapacity) {
  PayloadPool payloads{64};
  PacketPool pool;
  PacketPtr packet = pool.acquire();
  packet->transport.type = PacketType::acknowledgement;
  packet->transport.sequence = 5;
  packet->data.key = 7;
  packet->ack.cumulative = 9;
  packet->ack.selective.assign(16, 1);
  packet->ack.outcomes.assign(16, Outcome::ok);
  packet->ack.outcomes_from = MessageId{3};
  packet->ack.age_us = 4;
  packet->payload = payloads.acquire();
  packet->wire_bytes = 100;
  packet->corrupted = true;
  packet->stamp(Stage::visible, Time::from_ns(1));
  packet.reset();
  EXPECT_EQ(payloads.in_use(), 0U);

  packet = pool.acquire();
  EXPECT_EQ(pool.made(), 1U);
  EXPECT_EQ(packet->transport.type, PacketType::data);
  EXPECT_EQ(packet->transport.sequence, 0U);
  EXPECT_EQ(packet->data.key, 0U);
  EXPECT_EQ(packet->ack.cumulative, 0U);
  EXPECT_EQ(packet->ack.outcomes_from, MessageId{0});
  EXPECT_EQ(packet->ack.age_us, 0U);
  EXPECT_TRUE(packet->ack.selective.empty());
  EXPECT_TRUE(packet->ack.outcomes.empty());
  EXPECT_GE(packet->ack.selective.capacity(), 16U);
  EXPECT_EQ(packet->payload, nullptr);
  EXPECT_EQ(packet->wire_bytes, 0U);
  EXPECT_FALSE(packet->corrupted);
  for (const Time left : packet->left) EXPECT_EQ(left, Time::zero());
}

}  // namespace
}  // namespace rvma
