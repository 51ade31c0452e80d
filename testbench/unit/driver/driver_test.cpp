#include "driver/driver.hpp"

#include <gtest/gtest.h>

#include <set>

#include "mock_nic.hpp"

namespace rvma {
namespace {

using test::Host;
using test::MockAnswer;

constexpr Time kIssue = Time::from_ns(2);
constexpr Time kAnswer = Time::from_ns(500);
constexpr Time kMwait = Time::from_ns(150);

std::vector<PhysicalAddress> page_list_in_memory(Host& host, const Descriptor& descriptor, std::size_t pages) {
  std::vector<PhysicalAddress> list;
  for (std::size_t i = 0; i < pages; ++i) {
    list.push_back(PhysicalAddress{host.core.load64(PhysicalAddress{descriptor.page_list.value() + 8 * i})});
  }
  return list;
}

TEST(Driver, InitWindowSaysWhatTheCallerSaid) {
  Host host;
  Window window;
  Status status{};
  EXPECT_TRUE(host.run([&] {
    status = host.driver.init_window(Mailbox{0xbeef}, 7, ThresholdType::ops, Placement::managed, 99,
                                     kWindowReadable | kWindowInterrupt, window);
    // The call waits for its answer, and the core for the word.
    EXPECT_EQ(Host::now(), kIssue + kAnswer + kMwait);
  }));
  EXPECT_EQ(status, Status::ok);
  EXPECT_EQ(window.mailbox, Mailbox{0xbeef});
  ASSERT_EQ(host.nic.executed.size(), 1U);
  const Descriptor& descriptor = host.nic.executed[0];
  EXPECT_EQ(descriptor.opcode, Opcode::init_window);
  EXPECT_EQ(descriptor.mailbox, Mailbox{0xbeef});
  EXPECT_EQ(descriptor.threshold, 7U);
  EXPECT_EQ(descriptor.threshold_type, ThresholdType::ops);
  EXPECT_EQ(descriptor.placement, Placement::managed);
  EXPECT_EQ(descriptor.key, 99U);
  EXPECT_EQ(descriptor.window_flags, kWindowReadable | kWindowInterrupt);
  EXPECT_EQ(host.core.stats().calls.value(), 1U);
}

TEST(Driver, EveryStatusOfACallComesThrough) {
  Host host;
  std::deque<Status> answers{Status::exists, Status::full, Status::no_window, Status::no_buffer, Status::history};
  host.nic.answer = [&](const Descriptor&) {
    const Status status = answers.front();
    answers.pop_front();
    return MockAnswer{status, 77};
  };
  EXPECT_TRUE(host.run([&] {
    Window failed;
    EXPECT_EQ(host.driver.init_window(Mailbox{1}, 1, ThresholdType::bytes, Placement::steered, 0, 0, failed),
              Status::exists);
    const Window window{Mailbox{1}};
    EXPECT_EQ(host.driver.inc_epoch(window), Status::full);
    std::uint64_t untouched = 5;
    EXPECT_EQ(host.driver.get_epoch(window, untouched), Status::no_window);
    EXPECT_EQ(untouched, 5U);
    EXPECT_EQ(host.driver.close_window(window), Status::no_buffer);
    EXPECT_EQ(host.driver.rewind(window, 3, untouched), Status::history);
    EXPECT_EQ(untouched, 5U);
  }));
  EXPECT_EQ(host.nic.executed[4].opcode, Opcode::rewind);
  EXPECT_EQ(host.nic.executed[4].threshold, 3U);
}

TEST(Driver, AHandleStandsForTheWindowThatItsCallOpened) {
  Host host;
  EXPECT_TRUE(host.run([&] {
    const auto init = [&](Window& window) {
      return host.driver.init_window(Mailbox{1}, 1, ThresholdType::bytes, Placement::steered, 0, 0, window);
    };
    const VirtualAddress buffer = host.space.allocate(64, 64);
    Window first;
    ASSERT_EQ(init(first), Status::ok);
    // 1. Of a call that failed: no window, although the mailbox has one.
    Window failed;
    host.nic.answer = [](const Descriptor&) { return MockAnswer{Status::exists, 0}; };
    EXPECT_EQ(init(failed), Status::exists);
    host.nic.answer = [](const Descriptor&) { return MockAnswer{Status::ok, 7}; };
    std::size_t executed = host.nic.executed.size();
    Time before = Host::now();
    EXPECT_EQ(host.driver.inc_epoch(failed), Status::no_window);
    const CompletionPointer word = host.driver.allocate_completion();
    EXPECT_EQ(host.driver.post_buffer(failed, buffer, 64, word), Status::no_window);
    EXPECT_EQ(host.driver.wait(word, WaitHow::mwait).status, Status::no_window);
    EXPECT_EQ(host.driver.close_window(failed), Status::no_window);
    EXPECT_EQ(host.nic.executed.size(), executed) << "the driver answers";
    EXPECT_EQ(Host::now(), before + kIssue * 3) << "for the price of a call";
    // 2. Of a window that was closed: closed, although the mailbox has one again.
    ASSERT_EQ(host.driver.close_window(first), Status::ok);
    Window second;
    ASSERT_EQ(init(second), Status::ok);
    executed = host.nic.executed.size();
    std::uint64_t epoch = 0;
    std::vector<CompletedBufferInfo> buffers;
    EXPECT_EQ(host.driver.get_epoch(first, epoch), Status::closed);
    EXPECT_EQ(host.driver.get_buf_ptrs(first, 1, buffers), Status::closed);
    EXPECT_EQ(host.driver.rewind(first, 1, epoch), Status::closed);
    EXPECT_EQ(host.driver.post_buffer(first, buffer, 64, word), Status::closed);
    EXPECT_EQ(host.nic.executed.size(), executed);
    // 3. The mailbox's own, by its handle and by its mailbox.
    EXPECT_EQ(host.driver.get_epoch(second, epoch), Status::ok);
    EXPECT_EQ(host.driver.get_epoch({Mailbox{1}}, epoch), Status::ok);
    EXPECT_EQ(host.driver.close_window({Mailbox{1}}), Status::ok);
    EXPECT_EQ(host.driver.status_of(second), Status::closed);
  }));
}

TEST(Driver, AnswersThatNoCallLooksAtAnyMoreCanBeTaken) {
  Host host;
  host.nic.answer = [](const Descriptor&) { return MockAnswer{Status::full, 0}; };
  EXPECT_TRUE(host.run([&] {
    host.driver.post_buffer({Mailbox{1}}, host.space.allocate(64, 64), 64, host.driver.allocate_completion());
  }));
  EXPECT_TRUE(host.log.answered.empty());
  host.driver.take_answers();
  ASSERT_EQ(host.log.answered.size(), 1U);
  EXPECT_EQ(host.log.answered[0].status, Status::full);
}

TEST(Driver, AnswersCarryValues) {
  Host host;
  host.nic.answer = [](const Descriptor& call) {
    return MockAnswer{Status::ok, call.opcode == Opcode::get_epoch ? 12U : 4U};
  };
  EXPECT_TRUE(host.run([&] {
    std::uint64_t value = 0;
    EXPECT_EQ(host.driver.get_epoch({Mailbox{1}}, value), Status::ok);
    EXPECT_EQ(value, 12U);
    EXPECT_EQ(host.driver.rewind({Mailbox{1}}, 1, value), Status::ok);
    EXPECT_EQ(value, 4U);
  }));
}

TEST(Driver, ABufferWithinOnePageNamesThePage) {
  Host host;
  EXPECT_TRUE(host.run([&] {
    const VirtualAddress buffer = host.space.allocate(4096, 4096);
    const VirtualAddress inside{buffer.value() + 1000};
    EXPECT_EQ(host.driver.post_buffer({Mailbox{1}}, inside, 3096, host.driver.allocate_completion()), Status::ok);
    const Descriptor& descriptor = host.nic.executed.at(0);
    EXPECT_TRUE(descriptor.single_page);
    EXPECT_EQ(descriptor.page_list, host.space.translate(buffer));
    EXPECT_EQ(descriptor.local, inside);
    EXPECT_EQ(descriptor.length, 3096U);
  }));
}

TEST(Driver, ALargerBufferNamesAListOfItsPages) {
  Host host;
  EXPECT_TRUE(host.run([&] {
    const VirtualAddress buffer = host.space.allocate(10 * 4096, 4096);
    const VirtualAddress inside{buffer.value() + 4095};
    EXPECT_EQ(host.driver.post_buffer({Mailbox{1}}, inside, 2 + 4096, host.driver.allocate_completion()), Status::ok);
    EXPECT_EQ(host.driver.put({NodeId{6}, Pid{4}}, Mailbox{2}, 17, inside, 2, 55, host.driver.allocate_completion()),
              Status::ok);
    std::vector<PhysicalAddress> pages;
    host.space.pages(inside, 2 + 4096, pages);
    ASSERT_EQ(pages.size(), 3U);
    EXPECT_FALSE(host.nic.executed.at(0).single_page);
    EXPECT_EQ(page_list_in_memory(host, host.nic.executed.at(0), 3), pages);
    pages.resize(2);
    const Descriptor& put = host.nic.executed.at(1);
    EXPECT_EQ(page_list_in_memory(host, put, 2), pages);
    EXPECT_EQ(put.destination_node, NodeId{6});
    EXPECT_EQ(put.destination_pid, Pid{4});
    EXPECT_EQ(put.offset, 17U);
    EXPECT_EQ(put.key, 55U);
    EXPECT_EQ(put.length, 2U);
  }));
}

TEST(Driver, PostsAndPutsDoNotWait) {
  Host host;
  EXPECT_TRUE(host.run([&] {
    const VirtualAddress buffer = host.space.allocate(64, 64);
    host.driver.post_buffer({Mailbox{1}}, buffer, 64, host.driver.allocate_completion());
    host.driver.put({NodeId{1}, Pid{0}}, Mailbox{1}, 0, buffer, 64, 0, host.driver.allocate_completion());
    host.driver.put({NodeId{1}, Pid{0}}, Mailbox{1}, 0, VirtualAddress{}, 0, 0, host.driver.allocate_completion());
    EXPECT_EQ(Host::now(), kIssue * 3);
    EXPECT_TRUE(host.log.answered.empty());
    // The barrier's wait is for the post only.
    host.driver.wait_calls_executed();
    EXPECT_EQ(Host::now(), kIssue + kAnswer + kMwait);
    ASSERT_EQ(host.log.answered.size(), 1U);
    EXPECT_EQ(host.log.answered[0].opcode, Opcode::post_buffer);
    EXPECT_EQ(host.log.answered[0].status, Status::ok);
    const Time before = Host::now();
    host.driver.wait_calls_executed();
    EXPECT_EQ(Host::now(), before);
  }));
  ASSERT_EQ(host.log.issued.size(), 3U);
  EXPECT_EQ(host.log.issued[1].opcode, Opcode::put);
  EXPECT_EQ(host.log.issued[1].at, kIssue);  // when the call begins, not when the descriptor goes
  EXPECT_EQ(host.log.ranks, std::set<std::uint32_t>{9});
}

TEST(Driver, WaitReturnsTheWordAndWhenItWasSeen) {
  Host host;
  EXPECT_TRUE(host.run([&] {
    const VirtualAddress buffer = host.space.allocate(64, 64);
    const CompletionPointer completion = host.driver.allocate_completion();
    host.driver.post_buffer({Mailbox{1}}, buffer, 64, completion);
    host.nic.complete_at(Time::from_us(5), completion, buffer.value(), 48);
    EXPECT_FALSE(host.driver.test(completion));
    const WaitAnswer answer = host.driver.wait(completion, WaitHow::mwait);
    EXPECT_EQ(answer.status, Status::ok);
    EXPECT_EQ(answer.first, buffer.value());
    EXPECT_EQ(answer.second, 48U);
    EXPECT_EQ(answer.seen, Time::from_us(5) + kMwait);
    EXPECT_TRUE(host.driver.test(completion));
    // Again: at once, and the same.
    EXPECT_EQ(host.driver.wait(completion, WaitHow::mwait).second, 48U);
    EXPECT_EQ(Host::now(), Time::from_us(5) + kMwait);
  }));
}

TEST(Driver, WaitByPollingSeesTheWordAtAPoll) {
  Host host;
  EXPECT_TRUE(host.run([&] {
    const CompletionPointer completion = host.driver.allocate_completion();
    host.driver.put({NodeId{1}, Pid{0}}, Mailbox{1}, 0, VirtualAddress{}, 0, 0, completion);
    host.nic.complete_at(Time::from_ns(995), completion, 1, 0);
    const WaitAnswer answer = host.driver.wait(completion, WaitHow::poll);
    EXPECT_EQ(static_cast<Outcome>(answer.first), Outcome::ok);
    EXPECT_EQ(answer.seen, Time::from_ns(2 + 50 * 20));
  }));
  EXPECT_GE(host.core.stats().polls.value(), 50U);
}

TEST(Driver, WaitByInterruptArmsOnce) {
  Host host;
  EXPECT_TRUE(host.run([&] {
    const CompletionPointer completion = host.driver.allocate_completion();
    host.driver.put({NodeId{1}, Pid{0}}, Mailbox{1}, 0, VirtualAddress{}, 0, 0, completion);
    host.nic.complete_at(Time::from_us(3), completion, 1, 64);
    const WaitAnswer answer = host.driver.wait(completion, WaitHow::interrupt);
    EXPECT_EQ(answer.second, 64U);
    EXPECT_EQ(answer.seen, Time::from_us(3) + Time::from_ns(1500));
  }));
  EXPECT_EQ(host.nic.arms, 1U);
  EXPECT_EQ(host.core.stats().interrupts.value(), 1U);
}

TEST(Driver, ALateRefusalEndsAWaitThatHasBegun) {
  Host host;
  host.nic.answer = [](const Descriptor&) { return MockAnswer{Status::no_window, 0}; };
  EXPECT_TRUE(host.run([&] {
    const VirtualAddress buffer = host.space.allocate(64, 64);
    const CompletionPointer completion = host.driver.allocate_completion();
    EXPECT_EQ(host.driver.post_buffer({Mailbox{1}}, buffer, 64, completion), Status::ok);
    const WaitAnswer answer = host.driver.wait(completion, WaitHow::mwait);
    EXPECT_EQ(answer.status, Status::no_window);
    EXPECT_EQ(answer.seen, kIssue + kAnswer + kMwait);
    EXPECT_TRUE(host.driver.test(completion));
    EXPECT_EQ(host.driver.wait(completion, WaitHow::poll).status, Status::no_window);
    host.driver.free_completion(completion);
  }));
  ASSERT_EQ(host.log.answered.size(), 1U);
  EXPECT_EQ(host.log.answered[0].status, Status::no_window);
  EXPECT_EQ(host.log.answered[0].at, kIssue + kAnswer + kMwait);
}

TEST(Driver, ALateRefusalIsNoticedAtTheNextCall) {
  Host host;
  host.nic.answer = [](const Descriptor& call) {
    return MockAnswer{call.opcode == Opcode::post_buffer ? Status::full : Status::ok, 0};
  };
  EXPECT_TRUE(host.run([&] {
    const VirtualAddress buffer = host.space.allocate(64, 64);
    const CompletionPointer completion = host.driver.allocate_completion();
    host.driver.post_buffer({Mailbox{1}}, buffer, 64, completion);
    host.core.compute(Time::from_us(10));
    EXPECT_TRUE(host.log.answered.empty());
    host.driver.put({NodeId{1}, Pid{0}}, Mailbox{1}, 0, buffer, 64, 0, host.driver.allocate_completion());
    ASSERT_EQ(host.log.answered.size(), 1U);
    EXPECT_EQ(host.log.answered[0].status, Status::full);
    EXPECT_EQ(host.log.answered[0].completion, completion.address);
  }));
}

TEST(Driver, CloseWindowReturnsWhatHasNotCompleted) {
  Host host;
  EXPECT_TRUE(host.run([&] {
    const VirtualAddress buffer = host.space.allocate(3 * 4096, 4096);
    std::vector<CompletionPointer> words;
    for (int i = 0; i < 4; ++i) {
      words.push_back(host.driver.allocate_completion());
      const Mailbox mailbox{i == 3 ? 2U : 1U};
      host.driver.post_buffer({mailbox}, buffer, 3 * 4096, words.back());
    }
    host.nic.complete_at(Time::from_ns(700), words[0], buffer.value(), 64);
    host.core.compute(Time::from_us(1));
    EXPECT_EQ(host.driver.close_window({Mailbox{1}}), Status::ok);
    const Time closed = Host::now();
    EXPECT_EQ(host.driver.wait(words[0], WaitHow::mwait).status, Status::ok);
    EXPECT_EQ(host.driver.wait(words[1], WaitHow::mwait).status, Status::closed);
    EXPECT_EQ(host.driver.wait(words[2], WaitHow::interrupt).status, Status::closed);
    EXPECT_TRUE(host.driver.test(words[2]));
    EXPECT_EQ(Host::now(), closed);
    // The other window's buffer is still out.
    EXPECT_FALSE(host.driver.test(words[3]));
    // A returned buffer's word can be posted again, and means the new posting then.
    host.driver.post_buffer({Mailbox{2}}, buffer, 64, words[1]);
    EXPECT_FALSE(host.driver.test(words[1]));
    host.nic.complete_at(Host::now() + Time::from_us(2), words[1], buffer.value(), 1);
    EXPECT_EQ(host.driver.wait(words[1], WaitHow::mwait).status, Status::ok);
  }));
}

TEST(Driver, ACloseThatFailsReturnsNothing) {
  Host host;
  host.nic.answer = [](const Descriptor& call) {
    return MockAnswer{call.opcode == Opcode::close_window ? Status::no_window : Status::ok, 0};
  };
  EXPECT_TRUE(host.run([&] {
    const CompletionPointer word = host.driver.allocate_completion();
    host.driver.post_buffer({Mailbox{1}}, host.space.allocate(64, 64), 64, word);
    EXPECT_EQ(host.driver.close_window({Mailbox{1}}), Status::no_window);
    EXPECT_FALSE(host.driver.test(word));
  }));
}

TEST(Driver, OneTimeBufferIsOneDescriptor) {
  Host host;
  EXPECT_TRUE(host.run([&] {
    const VirtualAddress buffer = host.space.allocate(64, 64);
    EXPECT_EQ(host.driver.post_one_time_buffer(Mailbox{4}, 32, ThresholdType::bytes, 8, buffer, 64,
                                               host.driver.allocate_completion()),
              Status::ok);
  }));
  ASSERT_EQ(host.nic.executed.size(), 1U);
  EXPECT_EQ(host.nic.executed[0].opcode, Opcode::post_one_time_buffer);
  EXPECT_EQ(host.nic.executed[0].threshold, 32U);
  EXPECT_EQ(host.nic.executed[0].key, 8U);
}

TEST(Driver, GetBufPtrsReadsWhatTheNicWrote) {
  Host host;
  host.nic.answer = [&](const Descriptor& call) {
    if (call.threshold > 16) return MockAnswer{Status::history, 0};
    for (std::uint64_t i = 0; i < call.threshold; ++i) {
      const PhysicalAddress entry{call.completion.value() + 24 * i};
      host.nic.write_word(entry, 1000 + i, 64 * i);
      const std::uint64_t epoch = 9 - i;
      host.memory.write(PhysicalAddress{entry.value() + 16}, &epoch, sizeof epoch);
    }
    return MockAnswer{Status::ok, call.threshold};
  };
  EXPECT_TRUE(host.run([&] {
    std::vector<CompletedBufferInfo> buffers;
    EXPECT_EQ(host.driver.get_buf_ptrs({Mailbox{1}}, 3, buffers), Status::ok);
    ASSERT_EQ(buffers.size(), 3U);
    for (std::uint64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(buffers[i].head, VirtualAddress{1000 + i});
      EXPECT_EQ(buffers[i].length, 64 * i);
      EXPECT_EQ(buffers[i].epoch, Epoch{9 - i});
    }
    EXPECT_EQ(host.driver.get_buf_ptrs({Mailbox{1}}, 16, buffers), Status::ok);
    EXPECT_EQ(buffers.size(), 16U);
    EXPECT_EQ(host.driver.get_buf_ptrs({Mailbox{1}}, std::uint64_t{1} << 60U, buffers), Status::history);
    EXPECT_TRUE(buffers.empty());
  }));
}

TEST(Driver, GetNamesItsMemoryAndWaitsForItsWord) {
  Host host;
  EXPECT_TRUE(host.run([&] {
    const CompletionPointer word = host.driver.allocate_completion();
    const VirtualAddress buffer = host.space.allocate(3 * 4096, 4096);
    EXPECT_EQ(host.driver.get({NodeId{6}, Pid{2}}, Mailbox{1}, 12, 3 * 4096, buffer, 9, word), Status::ok);
    EXPECT_FALSE(host.driver.test(word));
    const Descriptor& call = host.nic.executed.back();
    EXPECT_EQ(call.opcode, Opcode::get);
    EXPECT_EQ(call.destination_node, NodeId{6});
    EXPECT_EQ(call.destination_pid, Pid{2});
    EXPECT_EQ(call.offset, 12U);
    EXPECT_EQ(call.length, 3U * 4096);
    EXPECT_EQ(call.local, buffer);
    EXPECT_EQ(call.key, 9U);
    host.nic.complete_at(Host::now() + Time::from_us(1), word, 1, 3 * 4096);
    EXPECT_EQ(host.driver.wait(word, WaitHow::mwait).second, 3U * 4096);
    EXPECT_EQ(host.driver.get({NodeId{6}, Pid{2}}, Mailbox{1}, 0, ~std::uint64_t{0}, buffer, 0, word),
              Status::bad_argument);
  }));
}

TEST(Driver, BadArgumentsAreAnsweredWithoutTheNic) {
  Host host;
  EXPECT_TRUE(host.run([&] {
    const VirtualAddress buffer = host.space.allocate(64, 64);
    const CompletionPointer word = host.driver.allocate_completion();
    Window window;
    EXPECT_EQ(host.driver.init_window(Mailbox{1}, 1, ThresholdType::bytes, Placement::steered, 0, 0x80, window),
              Status::bad_argument);
    EXPECT_EQ(host.driver.post_buffer({Mailbox{1}}, buffer, 0, word), Status::bad_argument);
    EXPECT_EQ(host.driver.wait(word, WaitHow::mwait).status, Status::bad_argument);
    EXPECT_EQ(host.driver.post_buffer({Mailbox{1}}, buffer, 64, CompletionPointer{}), Status::bad_argument);
    EXPECT_EQ(host.driver.post_buffer({Mailbox{1}}, buffer, 64, {PhysicalAddress{word.address.value() + 8}}),
              Status::bad_argument);
    EXPECT_EQ(host.driver.put({NodeId{1}, Pid{0}}, Mailbox{1}, 0, buffer, ~std::uint64_t{0}, 0, word),
              Status::bad_argument);
    EXPECT_EQ(host.driver.wait({PhysicalAddress{1}}, WaitHow::mwait).status, Status::bad_argument);
    EXPECT_FALSE(host.driver.test(CompletionPointer{}));
    // A word that a posted buffer waits on cannot be posted a second time.
    EXPECT_EQ(host.driver.post_buffer({Mailbox{1}}, buffer, 64, word), Status::ok);
    EXPECT_EQ(host.driver.post_buffer({Mailbox{1}}, buffer, 64, word), Status::bad_argument);
    host.driver.wait_calls_executed();
    EXPECT_EQ(host.driver.post_buffer({Mailbox{1}}, buffer, 64, word), Status::bad_argument);
  }));
  EXPECT_EQ(host.nic.executed.size(), 1U);
}

TEST(Driver, WordsAndListsAreRecycled) {
  Host host;
  std::set<std::uint64_t> words;
  std::set<std::uint64_t> lists;
  std::set<std::uint64_t> responses;
  EXPECT_TRUE(host.run([&] {
    const VirtualAddress buffer = host.space.allocate(3 * 4096, 4096);
    for (int i = 0; i < 2000; ++i) {
      const bool is_post = i % 2 == 0;
      const CompletionPointer word = host.driver.allocate_completion();
      EXPECT_EQ(host.core.load64(word.address), 0U);
      if (is_post) {
        host.driver.post_buffer({Mailbox{1}}, buffer, 3 * 4096, word);
      } else {
        host.driver.put({NodeId{1}, Pid{0}}, Mailbox{1}, 0, buffer, 3 * 4096, 0, word);
      }
      words.insert(word.address.value());
      lists.insert(host.nic.executed.back().page_list.value());
      responses.insert(host.nic.executed.back().response.value());
      host.nic.complete_at(Host::now() + Time::from_us(1), word, 1, 1);
      if (i % 4 < 2) host.driver.wait(word, WaitHow::mwait);
      host.core.compute(Time::from_us(2));
      host.driver.free_completion(word);
    }
  }));
  EXPECT_LE(words.size(), 3U);
  EXPECT_LE(lists.size(), 2U);
  EXPECT_LE(responses.size(), 4U);
}

TEST(Driver, AWordThatIsStillPostedIsNotRecycled) {
  Host host;
  EXPECT_TRUE(host.run([&] {
    const CompletionPointer word = host.driver.allocate_completion();
    host.driver.post_buffer({Mailbox{1}}, host.space.allocate(64, 64), 64, word);
    host.driver.wait_calls_executed();
    host.driver.free_completion(word);
    for (int i = 0; i < 100; ++i) EXPECT_NE(host.driver.allocate_completion().address, word.address);
  }));
}

TEST(Driver, AFinishedRunLearnsWhatABlockedRankWaitsFor) {
  Host host;
  CompletionPointer word{};
  EXPECT_FALSE(host.run([&] {
    word = host.driver.allocate_completion();
    host.driver.put({NodeId{1}, Pid{0}}, Mailbox{1}, 0, VirtualAddress{}, 0, 0, word);
    host.driver.wait(word, WaitHow::mwait);
  }));
  CompletionPointer waited{};
  EXPECT_TRUE(host.driver.waiting_for(waited));
  EXPECT_EQ(waited.address, word.address);
}

}  // namespace
}  // namespace rvma
