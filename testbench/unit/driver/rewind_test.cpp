// What the driver keeps so that buffers can be filled anew.
#include <gtest/gtest.h>

#include <vector>

#include "driver/driver.hpp"
#include "mock_nic.hpp"

namespace rvma {
namespace {

using test::Host;

/// Posts `n` buffers of three pages and lets the first `done` of them complete.
struct RewindHost : Host {
  explicit RewindHost(std::uint32_t history) : Host(with_history(history)) {}
  static NicConfig with_history(std::uint32_t history) {
    NicConfig config;
    config.history = history;
    return config;
  }
  void fill(int n, int done) {
    for (int i = 0; i < n; ++i) {
      buffers.push_back(space.allocate(12288, 4096));
      words.push_back(driver.allocate_completion());
      driver.post_buffer({Mailbox{1}}, buffers.back(), 12288, words.back());
    }
    driver.wait_calls_executed();
    for (int i = 0; i < done; ++i) complete(i);
  }
  void complete(int i) {
    nic.complete_at(now() + Time::from_ns(10), words[i], buffers[i].value(), 5);
    driver.wait(words[i], WaitHow::mwait);
  }
  /// The NIC zeroes the words and answers `epoch`.
  Status rewind(std::uint64_t n, std::uint64_t epoch) {
    for (std::uint64_t i = epoch; i < epoch + n; ++i) nic.write_word(words[i].address, 0, 0);
    nic.answer = [epoch](const Descriptor&) { return test::MockAnswer{Status::ok, epoch}; };
    std::uint64_t answered = 99;
    const Status status = driver.rewind({Mailbox{1}}, n, answered);
    EXPECT_EQ(answered, epoch);
    return status;
  }
  const Descriptor& last() { return nic.executed.back(); }
  std::vector<VirtualAddress> buffers;
  std::vector<CompletionPointer> words;
};

TEST(DriverRewind, ARewoundBufferIsWaitedForAnew) {
  RewindHost host{16};
  EXPECT_TRUE(host.run([&] {
    host.fill(3, 2);
    EXPECT_EQ(host.rewind(1, 1), Status::ok);
    EXPECT_EQ(host.last().opcode, Opcode::rewind);
    EXPECT_EQ(host.last().threshold, 1U);
    EXPECT_EQ(host.last().length, 0U) << "all epochs may come again";
    EXPECT_TRUE(host.driver.test(host.words[0]));
    EXPECT_FALSE(host.driver.test(host.words[1]));
    const Time before = Host::now();
    host.complete(1);
    EXPECT_GT(Host::now(), before);
  }));
}

TEST(DriverRewind, PageListsStayAsLongAsABufferMayComeBack) {
  RewindHost host{2};
  EXPECT_TRUE(host.run([&] {
    host.fill(3, 3);
    std::vector<PhysicalAddress> lists;
    for (const Descriptor& call : host.nic.executed) lists.push_back(call.page_list);
    // The oldest of three is forgotten, the other two are not: a new list takes its place.
    host.fill(1, 0);
    EXPECT_EQ(host.last().page_list, lists[0]);
    host.fill(1, 0);
    EXPECT_NE(host.last().page_list, lists[1]);
    EXPECT_NE(host.last().page_list, lists[2]);
    std::uint64_t epoch = 0;
    host.driver.rewind({Mailbox{1}}, 2, epoch);
    EXPECT_EQ(host.last().length, 1U);
  }));
}

TEST(DriverRewind, WhatWasPostedAgainOrFreedDoesNotComeBack) {
  RewindHost host{16};
  EXPECT_TRUE(host.run([&] {
    host.fill(4, 4);
    std::uint64_t epoch = 0;
    host.driver.post_buffer({Mailbox{2}}, host.buffers[1], 64, host.driver.allocate_completion());
    host.driver.rewind({Mailbox{1}}, 2, epoch);
    EXPECT_EQ(host.last().length, 2U) << "epoch 1 was posted to another window";
    host.driver.free_completion(host.words[2]);
    host.driver.rewind({Mailbox{1}}, 1, epoch);
    EXPECT_EQ(host.last().length, 3U);
    host.driver.put({NodeId{1}, Pid{0}}, Mailbox{9}, 0, host.buffers[0], 8, 0, host.words[3]);
    host.driver.rewind({Mailbox{1}}, 1, epoch);
    EXPECT_EQ(host.last().length, 4U);
  }));
}

TEST(DriverRewind, RefusedPostsAreNoEpochs) {
  RewindHost host{16};
  EXPECT_TRUE(host.run([&] {
    host.nic.answer = [](const Descriptor&) { return test::MockAnswer{Status::full, 0}; };
    host.fill(2, 0);
    host.nic.answer = [](const Descriptor&) { return test::MockAnswer{}; };
    host.buffers.clear();
    host.words.clear();
    host.fill(2, 2);
    host.driver.free_completion(host.words[0]);
    std::uint64_t epoch = 0;
    host.driver.rewind({Mailbox{1}}, 1, epoch);
    EXPECT_EQ(host.last().length, 1U);
  }));
}

}  // namespace
}  // namespace rvma
