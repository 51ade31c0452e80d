#include "nic/decision_gate.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nic/store_caches.hpp"
#include "receive_mocks.hpp"

namespace rvma::test {
namespace {

/// Keeps reads until the test answers them.
class HeldDma : public sc_core::sc_object, public DmaIf {
 public:
  void write(DmaWrite /*write*/, DmaClient& /*client*/, Time /*at*/) override {}
  Time write_room_at() override { return Time::zero(); }
  void on_write_room(std::function<void()> /*room*/) override {}
  void read(DmaRead read, DmaClient& client, Time /*at*/) override { reads.emplace_back(read.tag, &client); }
  void answer() {
    const auto [tag, client] = reads.front();
    reads.pop_front();
    client->dma_read_done(tag);
  }
  std::deque<std::pair<std::uint64_t, DmaClient*>> reads;
};

/// Bindings by message, and sources whose context is away until the test says otherwise.
struct FakeSources : ReceiveContextsIf {
  bool has_context(const Packet& /*packet*/) override { return here; }
  void fetch_context(const Packet& /*packet*/, std::function<void()> done) override {
    waiting.push_back(std::move(done));
  }
  std::optional<std::uint32_t> binding_of(const Packet& packet) override {
    const auto found = bindings.find(packet.data.message.value());
    if (found == bindings.end()) return std::nullopt;
    return found->second;
  }
  bool here = true;
  std::vector<std::function<void()>> waiting;
  std::map<std::uint32_t, std::uint32_t> bindings;
};

SpillConfig cache_config(std::uint32_t on_chip, std::uint32_t misses) {
  SpillConfig config{1, 1000, {"", "", ""}};
  config.on_chip = on_chip;
  config.misses = misses;
  config.policy = *ValueText<ReplacementName>::parse("fifo");
  return config;
}

/// As StoreCaches, without a context cache.
struct Book : StoreListener {
  Book(SpilledCache& d, SpilledCache& c) : descriptors(d), counters(c) {}
  void descriptor_added(BufferId buffer, bool is_active) override {
    descriptors.add(buffer.value(), is_active ? SpilledCache::Birth::on_chip : SpilledCache::Birth::if_it_fits);
  }
  void descriptor_removed(BufferId buffer) override { descriptors.remove(buffer.value()); }
  void buffer_is_next(BufferId /*buffer*/) override {}
  void counter_added(BufferId buffer) override { counters.add(buffer.value()); }
  void counter_changed(BufferId buffer) override { counters.changed(buffer.value()); }
  void counter_ends(BufferId /*buffer*/) override {}
  void counter_removed(BufferId buffer) override { counters.remove(buffer.value()); }
  void window_changed(WindowId /*window*/) override {}
  SpilledCache& descriptors;
  SpilledCache& counters;
};

struct Bench {
  explicit Bench(std::uint32_t descriptors_on_chip = 1, std::uint32_t counters_on_chip = 8, std::uint32_t misses = 4)
      : store(small()),
        descriptors(context, "descriptors", cache_config(descriptors_on_chip, misses), 64),
        counters(context, "counters", cache_config(counters_on_chip, misses), 64),
        book(descriptors, counters),
        gate(store, [this] { ++woken; }) {
    descriptors.connect(dma);
    counters.connect(dma);
    store.on_changes(&book);
    gate.surround({&delivery, &sources, nullptr, &descriptors, &counters});
  }
  static NicConfig small() {
    NicConfig config;
    config.mtu = Bytes{64};
    return config;
  }
  WindowId open(std::uint64_t mailbox, std::uint64_t buffers = 1, Placement placement = Placement::steered,
                std::uint64_t size = 64) {
    const WindowId window = open_window(store, mailbox, size, 0, placement);
    windows[mailbox] = window;
    for (std::uint64_t i = 0; i < buffers; ++i) post(store, window, 0x1000, size, 0x10000, true);
    return window;
  }
  /// A message of one packet; true: it may be decided, and is.
  bool arrive(std::uint32_t message, std::uint64_t mailbox, std::uint16_t length = 64) {
    PendingDecision next;
    next.packet = data_packet(packets, PacketSpec{message, message, mailbox, 0, length, 0, 0, length});
    next.lookup = {true, windows.at(mailbox), false};
    return pass(next);
  }
  bool pass(PendingDecision& next) {
    if (!gate.pass(next)) return false;
    const MessageId message = next.packet->data.message;
    passed += std::to_string(message.value()) + (next.is_busy ? "busy " : " ");
    if (!next.is_busy) {
      const BindAnswer bound = store.bind(NodeId{1}, next.packet->data, next.lookup);
      EXPECT_EQ(bound.outcome, Outcome::pending) << message.value();
      if (bound.place.has_binding) sources.bindings[message.value()] = bound.place.binding;
    }
    delivery.bind({NodeId{1}, 1, 1, message}, 0);
    gate.decided(next);
    return true;
  }
  /// All packets that are ready try again, as often as there are any.
  void drain() {
    while (gate.has_ready()) {
      PendingDecision next = gate.take_ready();
      pass(next);
    }
  }
  std::string take_passed() { return std::exchange(passed, {}); }

  SimContext context{1};
  PacketPool packets;
  WindowStore store;
  HeldDma dma;
  SpilledCache descriptors;
  SpilledCache counters;
  Book book;
  FakeDelivery delivery;
  FakeSources sources;
  DecisionGate gate;
  std::map<std::uint64_t, WindowId> windows;
  std::string passed;
  int woken = 0;
};

TEST(DecisionGate, LetsPassWhatIsHere) {
  Bench bench(2);
  bench.open(1);
  bench.open(2);
  EXPECT_TRUE(bench.arrive(0, 1));
  EXPECT_TRUE(bench.arrive(1, 2));
  EXPECT_EQ(bench.gate.held(), 0U);
  EXPECT_EQ(bench.descriptors.stats().hits.value(), 2U);
}

TEST(DecisionGate, OthersOvertakeAPacketWhoseDescriptorIsAway) {
  Bench bench(1);
  bench.open(1);
  bench.open(2);  // sends the first one's away
  EXPECT_FALSE(bench.arrive(0, 1));
  EXPECT_TRUE(bench.arrive(1, 2));
  EXPECT_EQ(bench.gate.held(), 1U);
  bench.dma.answer();
  EXPECT_EQ(bench.woken, 1);
  bench.drain();
  EXPECT_EQ(bench.take_passed(), "1 0 ");
  EXPECT_EQ(bench.gate.held(), 0U);
}

TEST(DecisionGate, FirstPacketsOfAWindowStandInLine) {
  Bench bench(1);
  const WindowId window = bench.open(1, 3);
  bench.open(2);
  EXPECT_FALSE(bench.arrive(0, 1));
  EXPECT_FALSE(bench.arrive(1, 1));
  EXPECT_FALSE(bench.arrive(2, 1));
  EXPECT_EQ(bench.dma.reads.size(), 1U) << "the first one's read";
  bench.dma.answer();
  bench.drain();
  EXPECT_EQ(bench.take_passed(), "0 ") << "it has retired its buffer, and the next one's descriptor is away";
  EXPECT_FALSE(bench.arrive(3, 1)) << "behind the others";
  bench.dma.answer();
  bench.drain();
  EXPECT_EQ(bench.take_passed(), "1 ");
  post(bench.store, window, 0x1000, 64, 0x10000, true);
  bench.dma.answer();
  bench.drain();
  bench.dma.answer();
  bench.drain();
  EXPECT_EQ(bench.take_passed(), "2 3 ");
  EXPECT_EQ(bench.gate.held(), 0U);
}

TEST(DecisionGate, ASmallManagedMessageDoesNotOvertakeOneThatNeedsTheNextBuffer) {
  Bench bench(1);
  bench.open(1, 2, Placement::managed, 64);
  ASSERT_TRUE(bench.arrive(0, 1, 40));
  EXPECT_FALSE(bench.arrive(1, 1, 40)) << "it needs the size of the next buffer, which is away";
  EXPECT_FALSE(bench.arrive(2, 1, 10)) << "it would fit behind the first";
  bench.dma.answer();
  bench.drain();
  while (!bench.dma.reads.empty()) {
    bench.dma.answer();
    bench.drain();
  }
  EXPECT_EQ(bench.take_passed(), "0 1 2 ");
}

TEST(DecisionGate, WhatAPacketHasWaitedForItHasGot) {
  // Two descriptors and two counters for one decision, with one place for each kind.
  Bench bench(1, 1);
  bench.open(1, 2, Placement::managed, 64);
  bench.open(2, 1, Placement::managed, 64);
  ASSERT_FALSE(bench.arrive(0, 1, 40));
  bench.dma.answer();
  bench.drain();
  ASSERT_FALSE(bench.arrive(1, 2, 40));
  bench.dma.answer();
  bench.drain();
  EXPECT_EQ(bench.take_passed(), "0 1 ");
  EXPECT_FALSE(bench.arrive(2, 1, 40));
  for (int i = 0; i < 10 && !bench.dma.reads.empty(); ++i) {
    bench.dma.answer();
    bench.drain();
  }
  EXPECT_EQ(bench.take_passed(), "2 ");
}

TEST(DecisionGate, BeyondTheMissesANewMessageIsBusy) {
  Bench bench(1, 8, 1);
  bench.open(1);
  bench.open(2);
  bench.open(3);
  EXPECT_FALSE(bench.arrive(0, 1));
  EXPECT_TRUE(bench.arrive(1, 2));
  EXPECT_EQ(bench.take_passed(), "1busy ");
  EXPECT_FALSE(bench.arrive(2, 1)) << "in line behind the first, which is being seen to";
  EXPECT_EQ(bench.descriptors.stats().refused.value(), 1U);
}

TEST(DecisionGate, ALaterPacketWaitsForItsOwnBufferAndIsNeverBusy) {
  Bench bench(1, 8, 1);
  bench.open(1, 1, Placement::steered, 128);
  PendingDecision first;
  first.packet = data_packet(bench.packets, PacketSpec{0, 0, 1, 0, 128, 0, 0, 64});
  first.lookup = {true, bench.windows.at(1), false};
  ASSERT_TRUE(bench.pass(first));
  bench.open(2);
  bench.open(3);
  EXPECT_FALSE(bench.arrive(1, 2)) << "takes the only read";
  bench.take_passed();
  PendingDecision second;
  second.packet = data_packet(bench.packets, PacketSpec{5, 0, 1, 0, 128, 0, 1, 64});
  second.lookup = {true, bench.windows.at(1), false};
  EXPECT_FALSE(bench.gate.pass(second));
  EXPECT_EQ(bench.gate.held(), 2U);
  bench.dma.answer();
  bench.drain();
  EXPECT_EQ(bench.take_passed(), "1 ");
  bench.dma.answer();
  ASSERT_TRUE(bench.gate.has_ready());
  PendingDecision again = bench.gate.take_ready();
  EXPECT_TRUE(bench.gate.pass(again));
  EXPECT_FALSE(again.is_busy);
}

TEST(DecisionGate, ASourceComesFirst) {
  Bench bench(1);
  bench.open(1);
  bench.open(2);
  bench.sources.here = false;
  EXPECT_FALSE(bench.arrive(0, 1));
  EXPECT_EQ(bench.dma.reads.size(), 0U);
  EXPECT_EQ(bench.sources.waiting.size(), 1U);
  bench.sources.waiting[0]();
  bench.drain();
  EXPECT_EQ(bench.dma.reads.size(), 1U) << "then the descriptor";
  bench.dma.answer();
  bench.drain();
  EXPECT_EQ(bench.take_passed(), "0 ") << "its source's context is not waited for again";
}

}  // namespace
}  // namespace rvma::test
