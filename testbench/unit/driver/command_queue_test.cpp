#include "driver/command_queue.hpp"

#include <gtest/gtest.h>

#include "mock_nic.hpp"

namespace rvma {
namespace {

using test::Host;

NicConfig with(CommandMode mode, std::uint32_t depth) {
  NicConfig config;
  config.command.mode = mode;
  config.command.depth = depth;
  return config;
}

/// `count` puts of 64 bytes with the numbers 0.. as offsets.
void put_many(Host& host, std::uint64_t count) {
  const VirtualAddress source = host.space.allocate(64, 64);
  for (std::uint64_t i = 0; i < count; ++i) {
    const CompletionPointer completion = host.driver.allocate_completion();
    EXPECT_EQ(host.driver.put({NodeId{1}, Pid{0}}, Mailbox{5}, i, source, 64, 0, completion), Status::ok);
  }
}

void expect_in_order(const Host& host, std::uint64_t count) {
  ASSERT_EQ(host.nic.executed.size(), count);
  for (std::uint64_t i = 0; i < count; ++i) EXPECT_EQ(host.nic.executed[i].offset, i);
}

TEST(CommandQueue, InlineGoesToTheWindowOfTheOwnPage) {
  Host host{with(CommandMode::inline_, 8)};
  EXPECT_EQ(host.driver.ring_base(), PhysicalAddress{0});
  EXPECT_TRUE(host.run([&] { put_many(host, 1); }));
  ASSERT_EQ(host.nic.addresses.size(), 1U);
  EXPECT_EQ(host.nic.addresses[0], 3 * 4096U + 64U);
}

TEST(CommandQueue, RingRingsTheDoorbellOfTheOwnPage) {
  Host host{with(CommandMode::ring, 8)};
  EXPECT_NE(host.driver.ring_base(), PhysicalAddress{0});
  EXPECT_TRUE(host.run([&] { put_many(host, 100); }));
  expect_in_order(host, 100);
  for (const std::uint64_t address : host.nic.addresses) EXPECT_EQ(address, 3 * 4096U);
  EXPECT_LE(host.nic.most_unconsumed, 8U);
}

TEST(CommandQueue, InlineGoesAroundManyTimes) {
  Host host{with(CommandMode::inline_, 4)};
  EXPECT_TRUE(host.run([&] { put_many(host, 1000); }));
  expect_in_order(host, 1000);
  EXPECT_LE(host.nic.most_unconsumed, 4U);
}

TEST(CommandQueue, WaitsForRoomExactlyAsLongAsNeeded) {
  Host host{with(CommandMode::inline_, 8)};
  host.nic.stalled = true;
  host.nic.do_at(Time::from_us(10), [&] { host.nic.resume(); });
  std::vector<Time> done;
  EXPECT_TRUE(host.run([&] {
    for (int i = 0; i < 9; ++i) {
      put_many(host, 1);
      done.push_back(Host::now());
    }
  }));
  // Eight go at the price of the call; the ninth when the core has seen the consumed word.
  EXPECT_EQ(done[7], Time::from_ns(8 * 2));
  EXPECT_EQ(done[8], Time::from_us(10) + Time::from_ns(500) + Time::from_ns(150));
  EXPECT_EQ(host.nic.most_unconsumed, 8U);
}

TEST(CommandQueue, TheShallowestQueueWorks) {
  Host host{with(CommandMode::ring, 2)};
  EXPECT_TRUE(host.run([&] { put_many(host, 50); }));
  expect_in_order(host, 50);
  EXPECT_LE(host.nic.most_unconsumed, 2U);
}

}  // namespace
}  // namespace rvma
