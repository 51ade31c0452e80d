#include "nic/command_unit.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "host/interfaces.hpp"
#include "transmit_mocks.hpp"

namespace rvma {
namespace {

using test::cycle;
using test::MemoryDma;
using test::ns;
using test::run_until;
using test::Script;

constexpr std::uint64_t kResponse = 0x1000;
constexpr std::uint64_t kConsumed = 0x2000;
constexpr std::uint64_t kWord = 0x3000;
constexpr std::uint64_t kRing = 0x10000;

/// Answers at once, or when told.
class FakeCalls : public sc_core::sc_object, public WindowCallsIf {
 public:
  struct Call {
    std::uint64_t mailbox;
    Pid pid;
    Cycles at;
    Time now;
  };
  void execute(const Descriptor& call, Pid pid, Cycles at, std::function<void(const CallAnswer&)> done) override {
    calls.push_back({call.mailbox.value(), pid, at, SimContext::now()});
    if (at_once) {
      done({Status::ok, 7});
    } else {
      pending.push_back(std::move(done));
    }
  }
  bool at_once = true;
  std::vector<Call> calls;
  std::vector<std::function<void(const CallAnswer&)>> pending;
};

class FakeTransmit : public sc_core::sc_object, public TransmitIf {
 public:
  bool submit(const PutRequest& put, Cycles at) override {
    if (puts.size() >= room) return false;
    puts.push_back({put, at});
    return true;
  }
  void on_room(std::function<void()> callback) override { room_ = std::move(callback); }
  void give_room(std::size_t more) {
    room += more;
    room_();
  }
  std::size_t room = 1'000'000;
  std::vector<std::pair<PutRequest, Cycles>> puts;

 private:
  std::function<void()> room_;
};

Descriptor put(std::uint32_t n) {
  Descriptor descriptor;
  descriptor.opcode = Opcode::put;
  descriptor.mailbox = Mailbox{n};
  return descriptor;
}

Descriptor call(std::uint32_t n) {
  Descriptor descriptor;
  descriptor.opcode = Opcode::get_epoch;
  descriptor.mailbox = Mailbox{n};
  descriptor.response = PhysicalAddress{kResponse + std::uint64_t{16} * n};
  return descriptor;
}

struct Bench {
  explicit Bench(CommandMode mode = CommandMode::inline_, std::uint32_t depth = 1024) {
    config.command.mode = mode;
    config.command.depth = depth;
    command = std::make_unique<CommandUnit>("command", context, config, payloads, arm);
    command->dma(dma);
    command->window_calls(calls);
    command->transmit(transmit);
    command->set_ring(Pid{0}, PhysicalAddress{kRing}, depth, PhysicalAddress{kConsumed});
  }
  void write(Time when, const Descriptor& descriptor, Pid pid = Pid{0}) { write(when, encode(descriptor), pid); }
  void write(Time when, const DescriptorBytes& bytes, Pid pid = Pid{0}) {
    script.at(when, [=] { command->mmio_write(pid, kInlineOffset, bytes.data(), kDescriptorBytes, when); });
  }
  void ring(Time when, std::uint64_t tail) {
    script.at(when, [=] {
      std::array<std::uint8_t, 8> bytes{};
      for (std::size_t i = 0; i < 8; ++i) bytes.at(i) = static_cast<std::uint8_t>(tail >> (8 * i));
      command->mmio_write(Pid{0}, kDoorbellOffset, bytes.data(), 8, when);
    });
  }
  void store(std::uint64_t slot, const Descriptor& descriptor) {
    const DescriptorBytes bytes = encode(descriptor);
    std::copy(bytes.begin(), bytes.end(),
              dma.memory.begin() + static_cast<std::ptrdiff_t>(kRing + kDescriptorBytes * slot));
  }

  SimContext context{1};
  NicConfig config;
  PayloadPool payloads{4096};
  InterruptArm arm;
  Script script{"script", context};
  MemoryDma dma{"dma", context, script};
  FakeCalls calls;
  FakeTransmit transmit;
  std::unique_ptr<CommandUnit> command;
};

TEST(CommandUnit, ExecutesAfterItsLatencyFromTheEdgeOfArrival) {
  Bench bench;
  bench.write(Time::from_ps(100'300), call(1));  // taken at edge 101
  run_until(cycle(105) - Time::from_ps(1));
  EXPECT_TRUE(bench.calls.calls.empty());
  run_until(cycle(106));
  ASSERT_EQ(bench.calls.calls.size(), 1U);
  EXPECT_EQ(bench.calls.calls[0].at, Cycles{105});
  EXPECT_EQ(bench.calls.calls[0].now, cycle(105));
  const MemoryDma::WordWrite* answer = bench.dma.word_at(kResponse + 16);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->first, static_cast<std::uint64_t>(Status::ok));
  EXPECT_EQ(answer->second, 7U);
  EXPECT_FALSE(answer->relaxed);
  EXPECT_EQ(answer->at, cycle(105));
}

TEST(CommandUnit, APutCarriesItsTimesAndCostsOneActivation) {
  Bench bench;
  bench.write(Time::from_ps(100'300), put(1));
  run_until(Time::from_us(1));
  ASSERT_EQ(bench.transmit.puts.size(), 1U);
  EXPECT_EQ(bench.transmit.puts[0].second, Cycles{105});
  EXPECT_EQ(bench.transmit.puts[0].first.doorbell, Time::from_ps(100'300));
  EXPECT_EQ(bench.transmit.puts[0].first.pid, Pid{0});
  EXPECT_EQ(bench.context.activations(), 2U);  // the script's and this one
}

TEST(CommandUnit, OneDescriptorACycleManyInOneActivation) {
  Bench bench;
  for (std::uint32_t n = 0; n < 10; ++n) bench.write(cycle(100), put(n));
  run_until(Time::from_us(1));
  ASSERT_EQ(bench.transmit.puts.size(), 10U);
  for (std::uint32_t n = 0; n < 10; ++n) {
    EXPECT_EQ(bench.transmit.puts[n].first.descriptor.mailbox, Mailbox{n});
    EXPECT_EQ(bench.transmit.puts[n].second, Cycles{104 + n});
  }
  EXPECT_EQ(bench.context.activations(), 2U);
}

TEST(CommandUnit, ACommandWaitsForTheAnswerOfTheCallBefore) {
  Bench bench;
  bench.calls.at_once = false;
  bench.write(cycle(100), call(1));
  bench.write(cycle(100), call(2));
  bench.write(cycle(100), put(3));
  bench.write(cycle(100), put(4), Pid{1});  // another process does not wait
  run_until(cycle(200));
  EXPECT_EQ(bench.calls.calls.size(), 1U);
  ASSERT_EQ(bench.transmit.puts.size(), 1U);
  EXPECT_EQ(bench.transmit.puts[0].first.pid, Pid{1});
  bench.script.at(cycle(300), [&] { bench.calls.pending.at(0)({Status::no_window, 0}); });
  run_until(cycle(350));
  ASSERT_EQ(bench.calls.calls.size(), 2U);
  EXPECT_EQ(bench.calls.calls[1].at, Cycles{300});
  EXPECT_EQ(bench.dma.word_at(kResponse + 16)->first, static_cast<std::uint64_t>(Status::no_window));
  EXPECT_EQ(bench.dma.word_at(kResponse + 16)->at, cycle(300));
  EXPECT_EQ(bench.transmit.puts.size(), 1U);
  bench.script.at(cycle(400), [&] { bench.calls.pending.at(1)({}); });
  run_until(cycle(450));
  EXPECT_EQ(bench.transmit.puts.size(), 2U);
}

TEST(CommandUnit, ProcessesTakeTurns) {
  Bench bench;
  for (std::uint32_t n = 0; n < 3; ++n) bench.write(cycle(100), put(n), Pid{0});
  for (std::uint32_t n = 0; n < 3; ++n) bench.write(cycle(100), call(n), Pid{1});
  for (std::uint32_t n = 0; n < 3; ++n) bench.write(cycle(100), call(n), Pid{2});
  run_until(Time::from_us(1));
  ASSERT_EQ(bench.transmit.puts.size(), 3U);
  ASSERT_EQ(bench.calls.calls.size(), 6U);
  for (std::size_t n = 0; n < 3; ++n) {
    EXPECT_EQ(bench.calls.calls[2 * n].pid, Pid{1});
    EXPECT_EQ(bench.calls.calls[2 * n + 1].pid, Pid{2});
  }
  // One a cycle over all, and calls at their own cycle.
  EXPECT_EQ(bench.command->stats().execute.busy(), ns(9));
  for (const auto& made : bench.calls.calls) EXPECT_EQ(cycle(made.at.count()), made.now);
}

TEST(CommandUnit, APutWithoutRoomHoldsItsProcessUntilThereIsRoom) {
  Bench bench;
  bench.transmit.room = 1;
  bench.write(cycle(100), put(0));
  bench.write(cycle(100), put(1));
  bench.write(cycle(100), call(2));
  bench.write(cycle(100), call(3), Pid{1});
  run_until(cycle(500));
  EXPECT_EQ(bench.transmit.puts.size(), 1U);
  ASSERT_EQ(bench.calls.calls.size(), 1U);
  EXPECT_EQ(bench.calls.calls[0].pid, Pid{1});
  const std::uint64_t before = bench.context.activations();
  run_until(Time::from_us(100));
  EXPECT_EQ(bench.context.activations(), before);
  bench.script.at(Time::from_us(101), [&] { bench.transmit.give_room(5); });
  run_until(Time::from_us(102));
  EXPECT_EQ(bench.transmit.puts.size(), 2U);
  EXPECT_EQ(bench.calls.calls.size(), 2U);
}

TEST(CommandUnit, TellsHowManyItHasConsumedEveryQuarter) {
  Bench bench{CommandMode::inline_, 16};
  for (std::uint32_t n = 0; n < 11; ++n) bench.write(cycle(100 + std::int64_t{n}), put(n));
  run_until(Time::from_us(1));
  ASSERT_EQ(bench.dma.words_at(kConsumed), 2U);
  EXPECT_EQ(bench.dma.word_at(kConsumed)->first, 8U);
}

TEST(CommandUnit, RingIsFetchedInOrderSeveralReadsAtATime) {
  Bench bench{CommandMode::ring, 32};
  for (std::uint32_t n = 0; n < 20; ++n) bench.store(n, put(n));
  bench.dma.slow_read = 1;
  bench.ring(cycle(100), 20);
  run_until(Time::from_us(5));
  ASSERT_EQ(bench.dma.reads.size(), 3U);  // 8, 8, 4
  for (const auto& read : bench.dma.reads) EXPECT_EQ(read.at, cycle(100));
  EXPECT_EQ(bench.dma.reads[2].from.total_bytes(), 4 * kDescriptorBytes);
  ASSERT_EQ(bench.transmit.puts.size(), 20U);
  for (std::uint32_t n = 0; n < 20; ++n) {
    EXPECT_EQ(bench.transmit.puts[n].first.descriptor.mailbox, Mailbox{n});
    EXPECT_EQ(bench.transmit.puts[n].first.doorbell, cycle(100));
    EXPECT_EQ(bench.transmit.puts[n].second, Cycles{1604 + n});  // the slowest read decides
  }
}

TEST(CommandUnit, RingWrapsAndADoorbellAnnouncesItsOwnDescriptors) {
  Bench bench{CommandMode::ring, 8};
  for (std::uint32_t n = 0; n < 6; ++n) bench.store(n, put(n));
  bench.ring(cycle(100), 4);
  bench.ring(cycle(150), 6);
  run_until(Time::from_us(2));
  ASSERT_EQ(bench.transmit.puts.size(), 6U);
  EXPECT_EQ(bench.transmit.puts[3].first.doorbell, cycle(100));
  EXPECT_EQ(bench.transmit.puts[4].first.doorbell, cycle(150));
  for (std::uint32_t n = 6; n < 12; ++n) bench.store(n % 8, put(n));
  bench.ring(Time::from_us(3), 12);
  run_until(Time::from_us(5));
  ASSERT_EQ(bench.transmit.puts.size(), 12U);
  for (std::uint32_t n = 0; n < 12; ++n) EXPECT_EQ(bench.transmit.puts[n].first.descriptor.mailbox, Mailbox{n});
}

TEST(CommandUnit, ImpossibleTailsAreIgnored) {
  Bench bench{CommandMode::ring, 8};
  bench.ring(cycle(100), 9);
  bench.ring(cycle(101), ~std::uint64_t{0});
  bench.ring(cycle(102), 0);
  run_until(Time::from_us(2));
  EXPECT_TRUE(bench.dma.reads.empty());
  EXPECT_EQ(bench.command->stats().bad_writes.value(), 3U);
}

TEST(CommandUnit, WritesToNowhereAreCountedAndIgnored) {
  Bench bench;
  std::array<std::uint8_t, 128> bytes{};
  EXPECT_FALSE(bench.command->mmio_write(Pid{0}, 0, bytes.data(), 8, Time::zero()));  // inline mode: no doorbell
  EXPECT_FALSE(bench.command->mmio_write(Pid{0}, 64, bytes.data(), 63, Time::zero()));
  EXPECT_FALSE(bench.command->mmio_write(Pid{0}, 65, bytes.data(), 64, Time::zero()));
  EXPECT_FALSE(bench.command->mmio_write(Pid{65535}, 4095, bytes.data(), 1, Time::zero()));
  EXPECT_EQ(bench.command->stats().bad_writes.value(), 4U);
}

TEST(CommandUnit, PayloadBehindADescriptorGoesWithItsPut) {
  Bench bench;
  bench.config.command.inline_payload = Bytes{100};
  const auto write = [&](std::int64_t at, const Descriptor& descriptor, std::size_t bytes) {
    const DescriptorBytes head = encode(descriptor);
    std::vector<std::uint8_t> all(head.begin(), head.end());
    for (std::size_t i = 0; i < bytes; ++i) all.push_back(static_cast<std::uint8_t>(i + 1));
    bench.script.at(cycle(at), [&bench, all, at] {
      bench.command->mmio_write(Pid{0}, kInlineOffset, all.data(), static_cast<std::uint32_t>(all.size()), cycle(at));
    });
  };
  Descriptor with_payload = put(1);
  with_payload.payload_follows = true;
  with_payload.length = 100;
  write(100, with_payload, 100);
  write(101, put(2), 0);
  // More or less than it says, more than the NIC takes, or none announced.
  write(110, with_payload, 99);
  write(111, with_payload, 0);
  write(112, put(3), 8);
  with_payload.length = 101;
  write(113, with_payload, 101);
  run_until(Time::from_us(1));
  ASSERT_EQ(bench.transmit.puts.size(), 2U);
  const PutRequest& first = bench.transmit.puts[0].first;
  ASSERT_TRUE(first.payload);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(first.payload->data()[i], i + 1);
  EXPECT_EQ(bench.transmit.puts[0].second, Cycles{104});
  EXPECT_FALSE(bench.transmit.puts[1].first.payload);
  EXPECT_EQ(bench.command->stats().inline_payloads.value(), 3U);
  EXPECT_EQ(bench.command->stats().malformed.value(), 3U);
  EXPECT_EQ(bench.command->stats().bad_writes.value(), 1U);
  bench.transmit.puts.clear();
  EXPECT_EQ(bench.payloads.in_use(), 0U);
}

TEST(CommandUnit, ARingHasNoPayloadBehindItsDescriptors) {
  Bench bench{CommandMode::ring, 16};
  Descriptor with_payload = put(1);
  with_payload.payload_follows = true;
  with_payload.length = 8;
  bench.store(0, with_payload);
  bench.ring(cycle(100), 1);
  run_until(Time::from_us(2));
  EXPECT_TRUE(bench.transmit.puts.empty());
  EXPECT_EQ(bench.command->stats().malformed.value(), 1U);
}

TEST(CommandUnit, AQueueThatOverrunsDropsWhatItCannotHold) {
  Bench bench{CommandMode::inline_, 4};
  for (std::uint32_t n = 0; n < 6; ++n) bench.write(cycle(100), put(n));
  run_until(Time::from_us(1));
  EXPECT_EQ(bench.transmit.puts.size(), 4U);
  EXPECT_EQ(bench.command->stats().bad_writes.value(), 2U);
}

TEST(CommandUnit, MalformedDescriptorsAreAnsweredWhereThatIsPossible) {
  Bench bench;
  DescriptorBytes bytes = encode(call(1));
  bytes[2] = 9;  // no threshold type
  bench.write(cycle(100), bytes);
  bytes[0] = 200;  // no opcode: who knows what the rest means
  bench.write(cycle(101), bytes);
  bench.write(cycle(102), call(2));
  run_until(Time::from_us(1));
  EXPECT_EQ(bench.command->stats().malformed.value(), 2U);
  EXPECT_EQ(bench.dma.words.size(), 2U);
  EXPECT_EQ(bench.dma.word_at(kResponse + 16)->first, static_cast<std::uint64_t>(Status::bad_argument));
  EXPECT_EQ(bench.dma.word_at(kResponse + 32)->first, static_cast<std::uint64_t>(Status::ok));
}

TEST(CommandUnit, AnyBytesDoNoHarm) {
  const std::uint64_t seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random{seed};
  Bench bench;
  for (std::int64_t i = 0; i < 5000; ++i) {
    DescriptorBytes bytes{};
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
    bytes[0] = static_cast<std::uint8_t>(random.below(13));
    if (bytes[0] == 11) bytes[0] = 0;  // arm_interrupt reads its word, which has to be somewhere
    if (random.below(2) == 0) bytes[1] &= 0x87;
    bytes[2] &= 1;
    bytes[3] &= 1;
    bench.write(cycle(100 + 5 * i), bytes, Pid{static_cast<std::uint16_t>(random.below(3))});
  }
  run_until(Time::from_us(100));
  const CommandStats& stats = bench.command->stats();
  EXPECT_EQ(stats.inline_descriptors.value(), 5000U);
  EXPECT_EQ(stats.malformed.value() + stats.puts.value() + stats.calls.value(), 5000U);
  EXPECT_GT(stats.malformed.value(), 1000U);
}

Descriptor arm(std::uint64_t word) {
  Descriptor descriptor;
  descriptor.opcode = Opcode::arm_interrupt;
  descriptor.completion = PhysicalAddress{word};
  return descriptor;
}

TEST(CommandUnit, AnArmedWordThatIsWrittenInterruptsAtOnceAndOnce) {
  Bench bench;
  bench.dma.store64(kWord, 1);
  bench.write(cycle(100), arm(kWord));
  run_until(Time::from_us(3));
  EXPECT_EQ(bench.dma.words_at(interrupt_address(Pid{0}).value()), 1U);
  EXPECT_FALSE(bench.arm.armed(PhysicalAddress{kWord}));
}

TEST(CommandUnit, AnArmedWordThatIsNotWrittenStaysArmed) {
  Bench bench;
  bench.write(cycle(100), arm(kWord));
  run_until(Time::from_us(3));
  EXPECT_EQ(bench.dma.words_at(interrupt_address(Pid{0}).value()), 0U);
  EXPECT_TRUE(bench.arm.armed(PhysicalAddress{kWord}));
  ASSERT_EQ(bench.dma.reads.size(), 1U);
  // The look follows a write in the posted channel, which changes nothing.
  ASSERT_EQ(bench.dma.words_at(kConsumed), 1U);
  EXPECT_EQ(bench.dma.word_at(kConsumed)->first, 1U);
}

TEST(CommandUnit, ACompletionBetweenArmingAndLookInterruptsOnlyOnce) {
  Bench bench;
  bench.write(cycle(100), arm(kWord));
  bench.script.at(cycle(300), [&] {
    bench.dma.store64(kWord, 1);
    EXPECT_TRUE(bench.arm.take(PhysicalAddress{kWord}));  // the completion writer interrupts
  });
  run_until(Time::from_us(3));
  EXPECT_EQ(bench.dma.words_at(interrupt_address(Pid{0}).value()), 0U);
}

}  // namespace
}  // namespace rvma
