#include "host/core.hpp"

#include <gtest/gtest.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstring>
#include <string>
#include <vector>

#include "host/memory.hpp"
#include "host_fixture.hpp"

namespace rvma {
namespace {

using test::at;

constexpr Time ns(std::int64_t n) { return Time::from_ns(n); }
constexpr PhysicalAddress kWord{4096 + 32};

/// Takes MMIO writes at once.
struct MmioSink : sc_core::sc_module {
  tlm_utils::simple_target_socket<MmioSink> socket{"socket"};
  struct Write {
    Time when;
    std::uint64_t address;
    std::vector<std::uint8_t> data;
  };
  std::vector<Write> writes;

  explicit MmioSink(const sc_core::sc_module_name& name) : sc_module(name) {
    socket.register_b_transport(this, &MmioSink::b_transport);
  }
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    EXPECT_TRUE(payload.is_write());
    EXPECT_EQ(delay, sc_core::SC_ZERO_TIME);
    writes.push_back({SimContext::now(),
                      payload.get_address(),
                      {payload.get_data_ptr(), payload.get_data_ptr() + payload.get_data_length()}});
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }
};

struct CoreTest : testing::Test {
  SimContext context{1};
  HostConfig config;
  test::TransactionPool pool;
  Memory memory{"memory", context, config};
  MmioSink sink{"sink"};
  Core core{"core", context, config.core, Pid{2}, memory};
  Time seen;

  CoreTest() {
    core.mmio.bind(sink.socket);
    memory.on_interrupt([this](Pid pid) {
      EXPECT_EQ(pid, Pid{2});
      core.interrupt();
    });
  }
  void post(std::uint64_t address, std::uint64_t value, Time visible) {
    std::vector<std::uint8_t> data(8);
    std::memcpy(data.data(), &value, 8);
    auto& item = pool.make(tlm::TLM_WRITE_COMMAND, address, data);
    memory.post(item.payload, visible);
    item.payload.release();
  }
  void post_interrupt(Time visible) { post(interrupt_address(Pid{2}).value(), 1, visible); }
  static void no_arm() { FAIL() << "only interrupts are armed"; }
  /// One wait from 100 ns on; `seen` is the time at which the core knows.
  void run_wait(WaitHow how, const std::function<void()>& arm = no_arm) {
    core.run([this, how, arm] {
      core.compute(ns(100));
      seen = core.wait_nonzero(kWord, how, arm);
      EXPECT_EQ(seen, SimContext::now());
    });
    sc_core::sc_start();
  }
};

TEST_F(CoreTest, MwaitKnowsExactlyAWakeUpAfterVisibility) {
  at(ns(200), [&] { post(kWord.value(), 5, ns(450)); });
  at(ns(599), [&] { EXPECT_FALSE(core.finished()); });
  at(ns(600), [&] { EXPECT_TRUE(core.finished()); });
  run_wait(WaitHow::mwait);
  EXPECT_EQ(seen, ns(450 + 150));
  EXPECT_EQ(core.stats().wakeups.value(), 1U);
  EXPECT_EQ(core.stats().asleep_ns.value(), ns(350));
  EXPECT_EQ(core.stats().burned_ns.value(), ns(150));
  EXPECT_EQ(core.stats().polls.value(), 0U);
  // Start, compute, the monitor, and one resumption.
  EXPECT_EQ(context.activations(), 4U);
}

TEST_F(CoreTest, MwaitReturnsAtOnceIfTheWordIsWritten) {
  at(ns(1), [&] { post(kWord.value(), 5, ns(100)); });  // visible just as the wait begins
  run_wait(WaitHow::mwait);
  EXPECT_EQ(seen, ns(100));
  EXPECT_EQ(core.stats().wakeups.value(), 0U);
  EXPECT_EQ(core.stats().burned_ns.value(), Time::zero());
}

TEST_F(CoreTest, MwaitSleepsForAWordThatWasPostedBeforeTheWaitBegan) {
  at(ns(1), [&] { post(kWord.value(), 5, ns(101)); });
  run_wait(WaitHow::mwait);
  EXPECT_EQ(seen, ns(251));
}

TEST_F(CoreTest, MwaitSleepsOnAfterAWriteThatLeavesTheWordZero) {
  at(ns(1), [&] { post(kWord.value(), 0, ns(200)); });
  at(ns(2), [&] { post(kWord.value(), 9, ns(700)); });
  run_wait(WaitHow::mwait);
  EXPECT_EQ(seen, ns(850));
  EXPECT_EQ(core.stats().wakeups.value(), 2U);
  EXPECT_EQ(core.stats().asleep_ns.value(), ns(100 + 350));
  EXPECT_EQ(core.stats().burned_ns.value(), ns(300));
}

TEST_F(CoreTest, MwaitDoesNotMissAWordWrittenDuringASpuriousWakeUp) {
  at(ns(1), [&] { post(kWord.value(), 0, ns(200)); });
  at(ns(2), [&] { post(kWord.value(), 9, ns(300)); });  // 350 ns is when the core looks again
  run_wait(WaitHow::mwait);
  EXPECT_EQ(seen, ns(350));
}

TEST_F(CoreTest, PollKnowsAtTheFirstInstantFromVisibilityOn) {
  at(ns(200), [&] { post(kWord.value(), 5, ns(441)); });  // polls at 100, 120, ... 440, 460
  at(ns(459), [&] { EXPECT_FALSE(core.finished()); });
  run_wait(WaitHow::poll);
  EXPECT_EQ(seen, ns(460));
  EXPECT_EQ(core.stats().polls.value(), 19U);
  EXPECT_EQ(core.stats().burned_ns.value(), ns(360));
  EXPECT_EQ(core.stats().asleep_ns.value(), Time::zero());
  // No event for a poll: start, compute, the monitor, one resumption.
  EXPECT_EQ(context.activations(), 4U);
}

TEST_F(CoreTest, PollSeesAWordThatBecomesVisibleAtItsInstant) {
  at(ns(200), [&] { post(kWord.value(), 5, ns(440)); });
  run_wait(WaitHow::poll);
  EXPECT_EQ(seen, ns(440));
  EXPECT_EQ(core.stats().polls.value(), 18U);
}

TEST_F(CoreTest, PollOfAWrittenWordIsOneLoad) {
  at(ns(1), [&] { post(kWord.value(), 5, ns(60)); });
  run_wait(WaitHow::poll);
  EXPECT_EQ(seen, ns(100));
  EXPECT_EQ(core.stats().polls.value(), 1U);
  EXPECT_EQ(core.stats().burned_ns.value(), Time::zero());
}

TEST_F(CoreTest, PollKeepsItsGridAfterAWriteThatLeavesTheWordZero) {
  at(ns(1), [&] { post(kWord.value(), 0, ns(205)); });
  at(ns(2), [&] { post(kWord.value(), 9, ns(333)); });
  run_wait(WaitHow::poll);
  EXPECT_EQ(seen, ns(340));
  EXPECT_EQ(core.stats().polls.value(), 13U);
  EXPECT_EQ(core.stats().burned_ns.value(), ns(240));
}

TEST_F(CoreTest, InterruptKnowsItsLatencyAfterTheArrival) {
  int armed = 0;
  at(ns(200), [&] {
    post(kWord.value(), 5, ns(400));
    post_interrupt(ns(410));
  });
  at(ns(1909), [&] { EXPECT_FALSE(core.finished()); });
  run_wait(WaitHow::interrupt, [&] { ++armed; });
  EXPECT_EQ(seen, ns(410 + 1500));
  EXPECT_EQ(armed, 1);
  EXPECT_EQ(core.stats().interrupts.value(), 1U);
  EXPECT_EQ(core.stats().asleep_ns.value(), ns(310));
  EXPECT_EQ(core.stats().burned_ns.value(), ns(1500));
}

TEST_F(CoreTest, InterruptReReadsTheWordAfterArming) {
  at(ns(1), [&] { post(kWord.value(), 5, ns(130)); });
  run_wait(WaitHow::interrupt, [&] { core.compute(ns(30)); });
  EXPECT_EQ(seen, ns(130));
  EXPECT_EQ(core.stats().interrupts.value(), 0U);
  EXPECT_EQ(core.stats().burned_ns.value(), Time::zero());
}

TEST_F(CoreTest, InterruptIsNotArmedForAWrittenWord) {
  at(ns(1), [&] { post(kWord.value(), 5, ns(50)); });
  run_wait(WaitHow::interrupt);
  EXPECT_EQ(seen, ns(100));
}

TEST_F(CoreTest, AnInterruptForSomethingElseIsPaidForAndTheWaitGoesOn) {
  int armed = 0;
  at(ns(200), [&] {
    post_interrupt(ns(300));
    post_interrupt(ns(400));  // while the first one is being handled
    post(kWord.value(), 5, ns(4000));
    post_interrupt(ns(4001));
  });
  run_wait(WaitHow::interrupt, [&] { ++armed; });
  EXPECT_EQ(seen, ns(5501));
  EXPECT_EQ(armed, 1);
  EXPECT_EQ(core.stats().interrupts.value(), 3U);
  EXPECT_EQ(core.stats().burned_ns.value(), ns(3000));
  EXPECT_EQ(core.stats().asleep_ns.value(), ns(200 + 4001 - 1800));
}

TEST_F(CoreTest, AnInterruptBeforeTheWaitChangesNothing) {
  at(ns(1), [&] {
    post_interrupt(ns(50));
    post(kWord.value(), 5, ns(400));
    post_interrupt(ns(400));
  });
  run_wait(WaitHow::interrupt, [] {});
  EXPECT_EQ(seen, ns(1900));
  EXPECT_EQ(core.stats().interrupts.value(), 2U);
}

TEST_F(CoreTest, CostsInCyclesAreOfTheCoreClock) {
  CoreConfig cycles;
  cycles.clock = Frequency::mhz(500);
  cycles.mwait_wakeup = Delay{Cycles{7}};
  cycles.issue = Delay{Cycles{3}};
  Core slow{"slow", context, cycles, Pid{0}, memory};
  MmioSink other{"other"};
  slow.mmio.bind(other.socket);
  Time knows;
  slow.run([&] {
    slow.spend_issue();
    EXPECT_EQ(SimContext::now(), ns(6));
    knows = slow.wait_nonzero(kWord, WaitHow::mwait, no_arm);
  });
  at(ns(50), [&] { post(kWord.value(), 1, ns(60)); });
  sc_core::sc_start();
  EXPECT_EQ(knows, ns(74));
  EXPECT_EQ(slow.stats().calls.value(), 1U);
  EXPECT_EQ(slow.stats().issue_ns.value(), ns(6));
}

TEST_F(CoreTest, WaitChangeReturnsWhenTheWordIsNoLongerOld) {
  const std::uint64_t old = 5;
  memory.write(kWord, &old, 8);
  at(ns(10), [&] { post(kWord.value(), 5, ns(20)); });
  at(ns(300), [&] { post(kWord.value(), 6, ns(310)); });
  Time knows;
  core.run([&] {
    core.wait_change(kWord, 5);
    knows = SimContext::now();
  });
  sc_core::sc_start();
  EXPECT_EQ(knows, ns(460));
}

TEST_F(CoreTest, MmioWritesTakeNoCoreTime) {
  core.run([&] {
    core.compute(ns(10));
    const std::uint64_t value = 0x0807060504030201;
    core.mmio_write(4096 * 2, &value, 8);
    core.mmio_write(4096 * 2 + 64, &value, 4);
    EXPECT_EQ(SimContext::now(), ns(10));
  });
  sc_core::sc_start();
  ASSERT_EQ(sink.writes.size(), 2U);
  EXPECT_EQ(sink.writes[0].when, ns(10));
  EXPECT_EQ(sink.writes[0].address, 8192U);
  EXPECT_EQ(sink.writes[0].data, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(sink.writes[1].data.size(), 4U);
  EXPECT_EQ(core.stats().mmio_writes.value(), 2U);
}

TEST_F(CoreTest, IdleTimeCostsNothing) {
  std::uint64_t before = 0;
  std::uint64_t shorter = 0;
  std::uint64_t longer = 0;
  core.run([&] {
    before = context.activations();
    core.compute(Time::from_us(1));
    shorter = context.activations() - before;
    before = context.activations();
    core.compute(Time::from_us(1'000'000));
    longer = context.activations() - before;
    core.compute(Time::zero());
  });
  sc_core::sc_start();
  EXPECT_TRUE(core.finished());
  EXPECT_EQ(shorter, 1U);
  EXPECT_EQ(longer, 1U);
  EXPECT_EQ(core.stats().compute_ns.value(), Time::from_us(1'000'001));
}

TEST_F(CoreTest, AWaitThatCannotEndEndsTheRunAndSaysSo) {
  run_wait(WaitHow::poll);
  EXPECT_FALSE(core.finished());
  EXPECT_TRUE(core.waiting());
  EXPECT_EQ(SimContext::now(), ns(100));
}

TEST_F(CoreTest, BlockOnWaitsForAnEventFromOutside) {
  sc_core::sc_event barrier;
  core.run([&] {
    core.block_on(barrier);
    seen = SimContext::now();
  });
  at(ns(70), [&] {
    EXPECT_TRUE(core.waiting());
    barrier.notify(sc_core::SC_ZERO_TIME);
  });
  sc_core::sc_start();
  EXPECT_EQ(seen, ns(70));
  EXPECT_FALSE(core.waiting());
  EXPECT_EQ(core.stats().burned_ns.value() + core.stats().asleep_ns.value(), Time::zero());
}

}  // namespace
}  // namespace rvma
