#include "nic/context_cache.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "nic/table_unit.hpp"

namespace rvma {
namespace {

constexpr Pid kPid{2};
constexpr Cycles kReadCycles{100};

/// Takes commands in order, each answered a cycle later; knows what it holds. All of it is stash.
class FakeTable : public Component, public TableCommandIf {
 public:
  explicit FakeTable(SimContext& context)
      : Component("table", context, Frequency::mhz(1000)), step_(*this, "step", [this] { answer(); }) {}
  void command(const TableCommand& what, Cycles at, std::function<void(const TableAnswer&)> done) override {
    waiting_.push_back({what, std::move(done)});
    step_.at(clock().time_of(at + Cycles{1}));
  }
  std::map<std::uint64_t, SlotId> holds;  ///< by mailbox
  std::size_t most = ~std::size_t{0};
  std::vector<std::string> log;

 private:
  void answer() {
    const auto [what, done] = std::move(waiting_.front());
    waiting_.pop_front();
    TableAnswer said;
    if (what.operation == TableOperation::insert) {
      log.push_back("+" + std::to_string(what.mailbox.value()));
      if (holds.size() >= most) {
        said.status = TableStatus::full;
      } else {
        RVMA_ASSERT(holds.emplace(what.mailbox.value(), what.slot).second, "inserted twice");
        said.in_stash = true;
      }
    } else {
      log.push_back("-" + std::to_string(what.mailbox.value()));
      RVMA_ASSERT(holds.erase(what.mailbox.value()) == 1, "erased what is not there");
    }
    if (!waiting_.empty()) step_.at(clock().time_of(current_cycle() + Cycles{1}));
    done(said);
  }
  std::deque<std::pair<TableCommand, std::function<void(const TableAnswer&)>>> waiting_;
  Wakeup step_;
};

/// Answers each read after a fixed time; counts writes.
class FakeDma : public Component, public DmaIf {
 public:
  explicit FakeDma(SimContext& context)
      : Component("dma", context, Frequency::mhz(1000)), step_(*this, "step", [this] { answer(); }) {}
  void write(DmaWrite write, DmaClient& /*client*/, Time /*at*/) override {
    written.push_back(write.to.segments.at(0).address);
  }
  Time write_room_at() override { return now(); }
  void on_write_room(std::function<void()> /*room*/) override {}
  void read(DmaRead read, DmaClient& client, Time at) override {
    reads.push_back(read.from.segments.at(0).address);
    waiting_.push_back({at + clock().time_of(kReadCycles), read.tag, &client});
    step_.at(waiting_.front().at);
  }
  std::vector<PhysicalAddress> reads;
  std::vector<PhysicalAddress> written;

 private:
  struct Waiting {
    Time at;
    std::uint64_t tag;
    DmaClient* client;
  };
  void answer() {
    while (!waiting_.empty() && waiting_.front().at <= now()) {
      const Waiting next = waiting_.front();
      waiting_.pop_front();
      next.client->dma_read_done(next.tag);
    }
    if (!waiting_.empty()) step_.at(waiting_.front().at);
  }
  std::deque<Waiting> waiting_;
  Wakeup step_;
};

NicConfig small_config(std::uint32_t on_chip, std::uint32_t misses = 4) {
  NicConfig config;
  config.mtu = Bytes{64};
  config.windows.on_chip = on_chip;
  config.windows.misses = misses;
  return config;
}

enum class TableKind { fake, real };

struct Bench {
  explicit Bench(const NicConfig& made, TableKind kind = TableKind::fake)
      : config(made), store(config), cache("contexts", context, config, store) {
    if (kind == TableKind::real) {
      cuckoo = std::make_unique<ModelTableUnit>("cuckoo", context, Frequency::mhz(1000), config.table);
      cache.table(cuckoo->commands);
    } else {
      cache.table(table);
    }
    cache.dma(dma);
  }
  /// Opens a window of 2 ops with a buffer, and lets it settle.
  WindowId open(std::uint64_t mailbox, std::uint8_t flags = 0) {
    Descriptor call;
    call.opcode = Opcode::init_window;
    call.mailbox = Mailbox{mailbox};
    call.threshold = 2;
    call.threshold_type = ThresholdType::ops;
    call.window_flags = flags;
    const WindowId window = store.allocate_window(call, kPid).window;
    cache.install(window, kPid, Mailbox{mailbox}, [this, window](TableStatus said) {
      statuses.push_back(said);
      if (said != TableStatus::ok) return;
      store.open_window(window);
      Descriptor post;
      post.opcode = Opcode::post_buffer;
      post.length = 4096;
      EXPECT_EQ(store.post_buffer(window, post).status, Status::ok);
    });
    run(20);
    return window;
  }
  /// Binds a message of one packet, which is not counted yet: the context has to stay.
  BindAnswer bind(std::uint64_t mailbox, WindowId window) {
    DataHeader header;
    header.destination_pid = kPid;
    header.mailbox = Mailbox{mailbox};
    header.message = MessageId{next_message_++};
    header.message_length = 64;
    header.payload_length = 64;
    return store.bind(NodeId{1}, header, WindowLookup{true, window, false});
  }
  void fetch(std::uint64_t mailbox) {
    const bool taken =
        cache.fetch(kPid, Mailbox{mailbox}, [this, mailbox](ContextIf::Fetched outcome, WindowId window) {
          told.push_back({mailbox, outcome, window, cache.current_cycle()});
        });
    if (!taken) refused.push_back(mailbox);
  }
  void run(std::int64_t cycles) { sc_core::sc_start(SimContext::to_sc(cache.clock().time_of(Cycles{cycles}))); }
  /// The table holds exactly what is resident, and slots lead back to their windows.
  void check_table() {
    for (const auto& [mailbox, slot] : table.holds) {
      const WindowLookup found = cache.resolve({true, slot, false});
      EXPECT_TRUE(found.hit);
      EXPECT_EQ(store.key_of(found.window).mailbox, Mailbox{mailbox});
      EXPECT_TRUE(cache.is_resident(found.window));
    }
  }

  struct Told {
    std::uint64_t mailbox;
    ContextIf::Fetched outcome;
    WindowId window;
    Cycles at;
  };
  SimContext context{1};
  NicConfig config;
  WindowStore store;
  FakeTable table{context};
  std::unique_ptr<ModelTableUnit> cuckoo;  ///< in its place
  FakeDma dma{context};
  ContextCache cache;
  std::vector<Told> told;
  std::vector<std::uint64_t> refused;
  std::vector<TableStatus> statuses;  ///< of installations

 private:
  std::uint32_t next_message_ = 0;
};

TEST(ContextCache, WindowsBeyondTheSlotsSendTheLeastRecentlyUsedAway) {
  Bench bench(small_config(2));
  const WindowId a = bench.open(10);
  const WindowId b = bench.open(11);
  EXPECT_FALSE(bench.cache.has_spilled());
  bench.cache.used(a, false);
  const WindowId c = bench.open(12);
  EXPECT_TRUE(bench.cache.has_spilled());
  EXPECT_TRUE(bench.cache.is_resident(a));
  EXPECT_FALSE(bench.cache.is_resident(b)) << "used less recently than a";
  EXPECT_TRUE(bench.cache.is_resident(c));
  EXPECT_EQ(bench.dma.written.size(), 1U) << "the context went to host memory";
  EXPECT_EQ(bench.table.holds.size(), 2U);
  bench.check_table();
}

TEST(ContextCache, AFetchTakesTwoReadsAndTheTablesCommands) {
  Bench bench(small_config(1));
  bench.open(10);
  const WindowId b = bench.open(11);
  ASSERT_TRUE(bench.cache.is_resident(b));
  const Cycles from = bench.cache.current_cycle();
  bench.fetch(10);
  bench.run(2 * kReadCycles.count() + 1);
  EXPECT_TRUE(bench.told.empty());
  bench.run(10);
  ASSERT_EQ(bench.told.size(), 1U);
  EXPECT_EQ(bench.told[0].outcome, ContextIf::Fetched::found);
  // Bucket, context; then the erasure of the other's entry and the insertion of this one's.
  EXPECT_EQ(bench.told[0].at - from, Cycles{2 * kReadCycles.count() + 2});
  EXPECT_EQ(bench.dma.reads.size(), 2U);
  EXPECT_EQ(bench.table.log, (std::vector<std::string>{"+10", "-10", "+11", "-11", "+10"}));
  bench.check_table();
}

TEST(ContextCache, ThoseWhoWaitForOneContextShareItsFetchAndGoOnInOrder) {
  Bench bench(small_config(1));
  bench.open(10);
  bench.open(11);
  for (int i = 0; i < 3; ++i) bench.fetch(10);
  bench.run(300);
  ASSERT_EQ(bench.told.size(), 3U);
  EXPECT_EQ(bench.cache.stats().searches.value(), 1U);
  EXPECT_EQ(bench.cache.stats().misses.value(), 3U);
  // Each of the three holds a pin: the context stays until the last has gone on.
  const WindowId late = bench.open(20);
  for (int i = 0; i < 3; ++i) {
    bench.run(3000);
    EXPECT_FALSE(bench.cache.is_resident(late));
    bench.cache.unpin(bench.told[0].window);
  }
  bench.run(3000);
  EXPECT_TRUE(bench.cache.is_resident(late));
}

TEST(ContextCache, AContextThatHasNotChangedIsNotWrittenBack) {
  Bench bench(small_config(1));
  bench.open(10);
  const WindowId b = bench.open(11);
  const auto come = [&bench](std::uint64_t mailbox) {
    bench.fetch(mailbox);
    bench.run(300);
    bench.cache.unpin(bench.told.back().window);
    return bench.dma.written.size();
  };
  EXPECT_EQ(come(10), 2U) << "both are new";
  EXPECT_EQ(come(11), 2U);
  EXPECT_EQ(come(10), 2U);
  EXPECT_EQ(come(11), 2U);
  bench.cache.changed(b);
  EXPECT_EQ(come(10), 3U);
  EXPECT_EQ(bench.cache.stats().evictions.value(), 6U);
  EXPECT_EQ(bench.cache.stats().write_backs.value(), 3U);
}

TEST(ContextCache, PinsGoWithTheirWindow) {
  Bench bench(small_config(2));
  const WindowId a = bench.open(10);
  ASSERT_TRUE(bench.cache.pin(a));
  bench.open(11);
  bench.open(12);
  EXPECT_TRUE(bench.cache.is_resident(a)) << "11 had to go";
  bool is_gone = false;
  bench.cache.remove(a, kPid, Mailbox{10}, [&is_gone] { is_gone = true; });
  bench.run(20);
  EXPECT_TRUE(is_gone);
  EXPECT_FALSE(bench.cache.pin(a));
  bench.cache.unpin(a);
  bench.run(3000);
  bench.check_table();
}

TEST(ContextCache, AMailboxThatNobodyHasCostsOneRead) {
  Bench bench(small_config(1));
  bench.open(10);
  bench.open(11);
  bench.fetch(99);
  bench.run(kReadCycles.count() - 1);
  EXPECT_TRUE(bench.told.empty());
  bench.run(2);
  ASSERT_EQ(bench.told.size(), 1U);
  EXPECT_EQ(bench.told[0].outcome, ContextIf::Fetched::unknown);
  EXPECT_EQ(bench.dma.reads.size(), 1U);
  EXPECT_EQ(bench.cache.stats().unknown.value(), 1U);
}

TEST(ContextCache, BeyondTheMissesItSaysNo) {
  Bench bench(small_config(1, 2));
  for (std::uint64_t mailbox = 10; mailbox < 15; ++mailbox) bench.open(mailbox);
  bench.fetch(10);
  bench.fetch(11);
  EXPECT_TRUE(bench.refused.empty());
  bench.fetch(12);
  EXPECT_EQ(bench.refused, (std::vector<std::uint64_t>{12}));
  bench.fetch(11);
  EXPECT_EQ(bench.refused.size(), 1U) << "one under way is joined";
  bench.run(1000);
  EXPECT_EQ(bench.told.size(), 3U);
  bench.fetch(12);
  EXPECT_EQ(bench.refused.size(), 1U);
}

TEST(ContextCache, ContextsInUseStay) {
  Bench bench(small_config(2));
  const WindowId bound = bench.open(10);
  EXPECT_EQ(bench.bind(10, bound).outcome, Outcome::pending);
  const WindowId catch_all = bench.open(11, kWindowCatchAll);
  const WindowId third = bench.open(12);
  bench.run(5000);
  EXPECT_FALSE(bench.cache.is_resident(third));
  EXPECT_TRUE(bench.cache.is_resident(bound)) << "a message is bound";
  EXPECT_TRUE(bench.cache.is_resident(catch_all));
}

TEST(ContextCache, ACallWaitsUntilThereIsRoom) {
  Bench bench(small_config(1));
  const WindowId a = bench.open(10);
  const WindowId b = bench.open(11);
  const BindAnswer bound = bench.bind(11, b);
  ASSERT_EQ(bound.outcome, Outcome::pending);
  bool called = false;
  bench.cache.acquire(a, kPid, Mailbox{10}, [&](bool is_here) { called = is_here; });
  bench.run(5000);
  EXPECT_FALSE(called) << "b's message is under way";
  PlacedPacket packet;
  packet.buffer = bound.place.buffer;
  packet.payload_length = 64;
  ASSERT_TRUE(bench.store.count(packet));
  bench.run(5000);
  EXPECT_TRUE(called);
  EXPECT_TRUE(bench.cache.is_resident(a));
  EXPECT_FALSE(bench.cache.is_resident(b));
}

TEST(ContextCache, WhenTheTableIsFullAnotherEntryMakesRoom) {
  Bench bench(small_config(8));
  bench.table.most = 2;
  bench.open(10);
  bench.open(11);
  const WindowId third = bench.open(12);
  EXPECT_TRUE(bench.cache.is_resident(third));
  // And one more leaves, so that the next one does not find the table full again.
  EXPECT_EQ(bench.table.log, (std::vector<std::string>{"+10", "+11", "+12", "-10", "+12", "-11"}));
  EXPECT_EQ(bench.dma.written.size(), 2U);
  bench.check_table();
}

/// A table of 2 x `rows` places and `stash`, far fewer than there are slots.
NicConfig crowded_config(std::uint32_t stash, std::uint32_t rows = 8) {
  NicConfig config = small_config(1000);
  config.table.banks = 2;
  config.table.rows = rows;
  config.table.slots = 1;
  config.table.stash = stash;
  config.table.max_kicks = 4;
  return config;
}

class CrowdedTable : public testing::TestWithParam<std::uint32_t> {};

TEST_P(CrowdedTable, RefusesNobody) {
  const NicConfig config = crowded_config(GetParam());
  const std::uint32_t places = 16 + GetParam();
  Bench bench(config, TableKind::real);
  bench.run(2000);
  std::vector<WindowId> windows;
  for (std::uint64_t mailbox = 0; mailbox < 100; ++mailbox) {
    windows.push_back(bench.open(mailbox));
    bench.run(500);
    ASSERT_TRUE(bench.cache.is_resident(windows.back())) << mailbox;
    ASSERT_EQ(bench.statuses.size(), mailbox + 1);
    ASSERT_EQ(bench.statuses.back(), TableStatus::ok);
  }
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t mailbox = 0; mailbox < 100; ++mailbox) {
      bench.fetch(mailbox);
      bench.run(1000);
      ASSERT_EQ(bench.told.size(), 1U);
      ASSERT_EQ(bench.told[0].outcome, ContextIf::Fetched::found) << mailbox;
      ASSERT_TRUE(bench.cache.is_resident(windows[mailbox]));
      bench.cache.unpin(windows[mailbox]);
      bench.told.clear();
    }
  }
  EXPECT_GT(bench.cuckoo->stats().full.value(), 100U) << "or it was never crowded";
  EXPECT_LE(bench.cuckoo->table().entries(), places);
  EXPECT_GT(bench.cuckoo->table().entries(), places / 2) << "what was sent away was in the way, not all there was";
  EXPECT_EQ(bench.cache.stats().refused.value(), 0U);
  std::uint32_t resident = 0;
  for (const WindowId window : windows) resident += bench.cache.is_resident(window) ? 1 : 0;
  EXPECT_EQ(resident, bench.cuckoo->table().entries());
}

INSTANTIATE_TEST_SUITE_P(ContextCache, CrowdedTable, testing::Values(0U, 1U, 4U));

TEST(ContextCache, WhoMayNotLeaveTheStashStays) {
  Bench bench(crowded_config(1), TableKind::real);
  bench.run(2000);
  std::uint64_t next = 0;
  while (bench.cuckoo->table().stash_used() == 0) {
    bench.open(next++);
    bench.run(500);
  }
  const std::uint64_t mailbox = bench.cuckoo->table().stored(TableCopy::a, bench.cuckoo->table().shape().capacity())[0];
  const WindowId stashed = bench.store.locate(kPid, Mailbox{mailbox}).window;
  ASSERT_TRUE(bench.cache.pin(stashed));
  for (int i = 0; i < 100; ++i) {
    const WindowId window = bench.open(next++);
    bench.run(500);
    ASSERT_TRUE(bench.cache.is_resident(window));
    ASSERT_TRUE(bench.cache.is_resident(stashed));
  }
  EXPECT_GT(bench.cuckoo->stats().full.value(), 20U);
}

class HeldPlaces : public testing::TestWithParam<bool> {};

TEST_P(HeldPlaces, AreWaitedFor) {
  Bench bench(crowded_config(1, 4), TableKind::real);
  bench.run(2000);
  std::vector<WindowId> held;
  WindowId last;
  for (std::uint64_t mailbox = 0; bench.statuses.size() == mailbox; ++mailbox) {
    if (mailbox > 0) {
      ASSERT_EQ(bench.statuses.back(), TableStatus::ok);
      ASSERT_TRUE(bench.cache.pin(last));
      held.push_back(last);
    }
    last = bench.open(mailbox);
    bench.run(3000);
  }
  EXPECT_GE(held.size(), 3U) << "two places of its own, and the stash";
  EXPECT_FALSE(bench.cache.is_resident(last));
  EXPECT_EQ(bench.cache.stats().evictions.value(), 0U) << "nobody leaves in vain";
  if (GetParam()) {
    for (const WindowId window : held) bench.cache.unpin(window);
    bench.run(3000);
    EXPECT_TRUE(bench.cache.is_resident(last));
  } else {
    bench.run(202'000'000);
    EXPECT_EQ(bench.statuses.back(), TableStatus::full);
    EXPECT_FALSE(bench.cache.is_resident(last));
  }
}

INSTANTIATE_TEST_SUITE_P(ContextCache, HeldPlaces, testing::Values(true, false));

TEST(ContextCache, WhoFindsNoRoomForLongIsToldSo) {
  Bench bench(small_config(1));
  const WindowId busy = bench.open(10);
  EXPECT_EQ(bench.bind(10, busy).outcome, Outcome::pending);  // and is never counted
  const WindowId other = bench.open(11);
  // It waits for longer than any bound message can hold a context: twice nic.reliability.idle, 100 ms.
  bench.run(199'000'000);
  EXPECT_EQ(bench.statuses.size(), 1U);
  bench.run(2'000'000);
  ASSERT_EQ(bench.statuses.size(), 2U);
  EXPECT_EQ(bench.statuses[1], TableStatus::full);
  EXPECT_TRUE(bench.cache.is_resident(busy));
  EXPECT_FALSE(bench.cache.is_resident(other));
}

TEST(ContextCache, CatchAllsLeaveOneSlotToOthers) {
  Bench bench(small_config(2));
  const WindowId catch_all = bench.open(10, kWindowCatchAll);
  Descriptor call;
  call.opcode = Opcode::init_window;
  call.mailbox = Mailbox{20};
  call.threshold = 1;
  call.window_flags = kWindowCatchAll;
  EXPECT_EQ(bench.store.allocate_window(call, Pid{1}).status, Status::full);
  bench.open(11);
  const WindowId other = bench.open(12);
  EXPECT_TRUE(bench.cache.is_resident(catch_all));
  EXPECT_TRUE(bench.cache.is_resident(other));
}

TEST(ContextCache, CatchAllsLeaveOnePlaceOfTheTableToOthers) {
  Bench bench(crowded_config(1, 4));  // 9 places
  for (std::uint16_t pid = 0; pid < 9; ++pid) {
    Descriptor call;
    call.opcode = Opcode::init_window;
    call.mailbox = Mailbox{20};
    call.threshold = 1;
    call.window_flags = kWindowCatchAll;
    EXPECT_EQ(bench.store.allocate_window(call, Pid{pid}).status, pid < 8 ? Status::ok : Status::full) << pid;
  }
}

TEST(ContextCache, WithoutSpillingAFullNicSaysFull) {
  NicConfig config = small_config(2);
  config.windows.spill = false;
  Bench bench(config);
  bench.open(10);
  bench.open(11);
  Descriptor call;
  call.opcode = Opcode::init_window;
  call.mailbox = Mailbox{12};
  call.threshold = 1;
  EXPECT_EQ(bench.store.allocate_window(call, kPid).status, Status::full);
}

class EachPolicy : public testing::TestWithParam<std::string> {};

TEST_P(EachPolicy, KeepsTableAndSlotsTogether) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  NicConfig config = small_config(5);
  config.windows.policy = *ValueText<ReplacementName>::parse(GetParam());
  Bench bench(config);
  Random random(kSeed);
  std::map<std::uint64_t, WindowId> windows;
  for (int step = 0; step < 400; ++step) {
    const std::uint64_t mailbox = 100 + random.below(20);
    if (windows.count(mailbox) == 0) {
      windows[mailbox] = bench.open(mailbox);
      ASSERT_TRUE(bench.cache.is_resident(windows[mailbox]));
    } else if (bench.cache.is_resident(windows[mailbox])) {
      bench.cache.used(windows[mailbox], false);
    } else {
      bench.fetch(mailbox);
      bench.run(1 + static_cast<std::int64_t>(random.below(400)));
    }
    for (const Bench::Told& told : bench.told) {
      if (told.outcome == ContextIf::Fetched::found) bench.cache.unpin(told.window);
    }
    bench.told.clear();
    if (step % 20 == 0) {
      bench.run(1000);
      for (const Bench::Told& told : bench.told) {
        if (told.outcome == ContextIf::Fetched::found) bench.cache.unpin(told.window);
      }
      bench.told.clear();
      ASSERT_EQ(bench.table.holds.size(), std::min<std::size_t>(windows.size(), 5));
      bench.check_table();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ContextCache, EachPolicy, testing::ValuesIn(replacement_names()),
                         [](const auto& policy) { return policy.param; });

}  // namespace
}  // namespace rvma
