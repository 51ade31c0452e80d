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

TEST(CommandQueue, ShortPayloadWithinAPageGoesBehindItsDescriptor) {
  NicConfig config = with(CommandMode::inline_, 8);
  config.command.inline_payload = Bytes{100};
  Host host{config};
  const std::uint64_t page = host.space.page_bytes();
  const VirtualAddress memory = host.space.allocate(2 * page, page);
  std::vector<std::uint8_t> bytes(2 * page);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  host.space.write(memory, bytes.data(), bytes.size());
  struct Case {
    std::uint64_t offset;
    std::uint64_t length;
    std::size_t payload;
  };
  const Case cases[] = {{5, 100, 100}, {5, 101, 0}, {5, 0, 0}, {page - 10, 10, 10}, {page - 10, 11, 0}};
  EXPECT_TRUE(host.run([&] {
    for (const Case& one : cases) {
      const CompletionPointer completion = host.driver.allocate_completion();
      const VirtualAddress source{memory.value() + one.offset};
      EXPECT_EQ(host.driver.put({NodeId{1}, Pid{0}}, Mailbox{5}, 0, source, one.length, 0, completion), Status::ok);
    }
  }));
  ASSERT_EQ(host.nic.payloads.size(), std::size(cases));
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const std::vector<std::uint8_t>& payload = host.nic.payloads[i];
    ASSERT_EQ(payload.size(), cases[i].payload) << i;
    EXPECT_EQ(host.nic.executed[i].payload_follows, !payload.empty());
    EXPECT_TRUE(
        std::equal(payload.begin(), payload.end(), bytes.begin() + static_cast<std::ptrdiff_t>(cases[i].offset)));
  }
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
