// The table as a unit: annotated lookups, commands by events, and what both cost the kernel.
#include "nic/table_unit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/component.hpp"
#include "base/random.hpp"

namespace rvma {
namespace {

constexpr std::int64_t kResetCycles = 534;

/// Runs bodies at cycles of the unit's clock.
class Script : public Component {
 public:
  Script(const sc_core::sc_module_name& name, SimContext& context, Frequency clock)
      : Component(name, context, clock), wakeup_(*this, "wakeup", [this] { run(); }) {}
  void at(Cycles cycle, std::function<void()> body) {
    bodies_.emplace(cycle.count(), std::move(body));
    wakeup_.at(clock().time_of(cycle));
  }

 private:
  void run() {
    while (!bodies_.empty() && clock().time_of(Cycles{bodies_.begin()->first}) <= now()) {
      const std::function<void()> body = bodies_.begin()->second;
      bodies_.erase(bodies_.begin());
      body();
    }
    if (!bodies_.empty()) wakeup_.at(clock().time_of(Cycles{bodies_.begin()->first}));
  }
  std::multimap<std::int64_t, std::function<void()>> bodies_;
  Wakeup wakeup_;
};

struct Bench {
  explicit Bench(Frequency frequency = Frequency::mhz(1000), const TableConfig& table = {})
      : config(table),
        clock(frequency),
        unit(sc_core::sc_gen_unique_name("table"), context, frequency, config),
        script(sc_core::sc_gen_unique_name("script"), context, frequency) {}
  void run() { sc_core::sc_start(); }
  void lookup(std::uint64_t mailbox, std::int64_t at) { unit.lookups->lookup(Pid{1}, Mailbox{mailbox}, Cycles{at}); }
  static TableCommand make(TableOperation operation, std::uint64_t mailbox = 0, std::uint16_t slot = 0) {
    TableCommand command;
    command.operation = operation;
    command.pid = Pid{1};
    command.mailbox = Mailbox{mailbox};
    command.slot = SlotId{slot};
    return command;
  }
  /// Gives a command and keeps its answer with the cycle in which it came.
  void command(const TableCommand& given, std::int64_t at) {
    unit.commands->command(given, Cycles{at}, [this](const TableAnswer& answer) {
      EXPECT_EQ(clock.time_of(unit.current_cycle()), SimContext::now()) << "answers come at clock edges";
      answers.emplace_back(unit.current_cycle().count(), answer);
    });
  }

  SimContext context{1};
  TableConfig config;
  ClockDomain clock;
  ModelTableUnit unit;
  Script script;
  std::vector<std::pair<std::int64_t, TableAnswer>> answers;
};

TEST(TableUnit, CommandsWaitForTheResetSweepAndForEachOther) {
  Bench bench;
  bench.command(Bench::make(TableOperation::insert, 1, 10), 0);
  bench.command(Bench::make(TableOperation::insert, 1, 11), 0);
  bench.command(Bench::make(TableOperation::find, 1), 0);
  bench.command(Bench::make(TableOperation::erase, 1), 1000);
  bench.run();
  ASSERT_EQ(bench.answers.size(), 4U);
  const auto expect = [&bench](std::size_t i, std::int64_t cycle, TableStatus status, std::int64_t used) {
    EXPECT_EQ(bench.answers[i].first, cycle) << i;
    EXPECT_EQ(bench.answers[i].second.status, status) << i;
    EXPECT_EQ(bench.answers[i].second.used, Cycles{used}) << i;
  };
  expect(0, kResetCycles + 5, TableStatus::ok, 5);
  expect(1, kResetCycles + 9, TableStatus::exists, 4);
  expect(2, kResetCycles + 13, TableStatus::ok, 4);
  expect(3, 1005, TableStatus::ok, 5);
  EXPECT_EQ(bench.answers[2].second.slot, SlotId{10});
  EXPECT_EQ(bench.unit.stats().inserts.value(), 1U);
  EXPECT_EQ(bench.unit.stats().deletes.value(), 1U);
  EXPECT_EQ(bench.unit.stats().command_cycles.value(), 18U);
  EXPECT_EQ(bench.unit.stats().entries.value(), 1U);
}

TEST(TableUnit, LookupSeesTheEdgesBeforeItsCycle) {
  // The insertion accepted in cycle 1000 writes in 1004: seen by lookups from 1005 on, though each is presented ahead
  // and taken late.
  Bench bench;
  std::vector<bool> hits;
  bench.script.at(Cycles{990}, [&] {
    for (std::int64_t at = 1000; at < 1010; ++at) bench.lookup(1, at);
  });
  bench.script.at(Cycles{995}, [&] { bench.command(Bench::make(TableOperation::insert, 1, 10), 1000); });
  bench.script.at(Cycles{1020}, [&] { bench.command(Bench::make(TableOperation::erase, 1), 1020); });
  bench.script.at(Cycles{1040}, [&] {
    for (int i = 0; i < 10; ++i) hits.push_back(bench.unit.lookups->take().hit);
  });
  bench.run();
  EXPECT_EQ(hits, (std::vector<bool>{false, false, false, false, false, true, true, true, true, true}));
  EXPECT_EQ(bench.unit.stats().lookups.value(), 10U);
  EXPECT_EQ(bench.unit.stats().hits.value(), 5U);
  EXPECT_EQ(bench.unit.stats().misses.value(), 5U);
  EXPECT_EQ(bench.unit.stats().lookup_port.work(), 10U);
  EXPECT_EQ(bench.unit.stats().lookup_port.busy(), Time::from_ns(10));
}

TEST(TableUnit, UpdatesActAtTheirCycleWhileALookupRunsInEveryCycle) {
  // Accepted in cycle n, written in n + 4, answered in n + 5: lookups up to n + 4 see what was, from n + 5 on what is.
  Bench bench;
  constexpr std::int64_t kFirst = 1000;
  constexpr std::int64_t kLast = 1060;
  bench.command(Bench::make(TableOperation::insert, 1, 10), 1000);
  bench.command(Bench::make(TableOperation::update, 1, 20), 1020);
  bench.command(Bench::make(TableOperation::erase, 1), 1040);
  bench.script.at(Cycles{990}, [&] {
    for (std::int64_t at = kFirst; at <= kLast; ++at) bench.lookup(1, at);
  });
  std::vector<int> seen;  // slot; -1: none
  bench.script.at(Cycles{1100}, [&] {
    for (std::int64_t at = kFirst; at <= kLast; ++at) {
      const LookupResult result = bench.unit.lookups->take();
      seen.push_back(result.hit ? result.slot.value() : -1);
    }
  });
  bench.run();
  for (std::int64_t at = kFirst; at <= kLast; ++at) {
    const int expected = at < 1005 || at >= 1045 ? -1 : at < 1025 ? 10 : 20;
    EXPECT_EQ(seen[static_cast<std::size_t>(at - kFirst)], expected) << "cycle " << at;
  }
  ASSERT_EQ(bench.answers.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bench.answers[i].first, 1005 + 20 * static_cast<std::int64_t>(i)) << "lookups do not delay commands";
  }
  EXPECT_EQ(bench.unit.stats().command_port.busy(), Time::from_ns(15));
  EXPECT_EQ(bench.unit.stats().command_port.work(), 3U);
}

/// A table at 90 % in which entries are erased and others inserted without a pause, which moves those that stay. One of
/// them is looked up in every cycle meanwhile.
struct MovingTable {
  static constexpr std::uint64_t kStay = 95;
  static constexpr std::uint64_t kGo = 20;
  static constexpr std::int64_t kFrom = 2000;
  static constexpr std::int64_t kCycles = 600;
  static TableConfig small() {
    TableConfig config;
    config.rows = 16;
    return config;
  }
  explicit MovingTable(std::uint64_t watched) : bench(Frequency::mhz(1000), small()) {
    for (std::uint64_t key = 0; key < kStay + kGo; ++key) {
      bench.command(Bench::make(TableOperation::insert, key, static_cast<std::uint16_t>(key)), 0);
    }
    bench.script.at(Cycles{kFrom - 1}, [this, watched] {
      EXPECT_EQ(bench.answers.size(), kStay + kGo) << "the table is filled by then";
      kicks = bench.unit.stats().kicks.value();
      for (std::uint64_t i = 0; i < kGo; ++i) {
        bench.command(Bench::make(TableOperation::erase, kStay + i), kFrom);
        bench.command(Bench::make(TableOperation::insert, 1000 + i, 7), kFrom);
      }
      for (std::int64_t i = 0; i < kCycles; ++i) bench.lookup(watched, kFrom + i);
    });
    bench.script.at(Cycles{kFrom + kCycles + 2}, [this, watched] {
      EXPECT_EQ(bench.answers.size(), kStay + 3 * kGo) << "the moves happened while lookups ran";
      kicks = bench.unit.stats().kicks.value() - kicks;
      for (std::int64_t i = 0; i < kCycles; ++i) {
        const LookupResult result = bench.unit.lookups->take();
        found += result.hit && result.slot.value() == watched ? 1 : 0;
      }
    });
  }
  Bench bench;
  std::uint64_t kicks = 0;
  std::int64_t found = 0;
};

TEST(TableUnit, EntriesOnTheMoveAreFoundInEveryCycle) {
  std::vector<std::unique_ptr<MovingTable>> tables;  // all the same, each watched at another entry
  for (std::uint64_t key = 0; key < MovingTable::kStay; ++key) tables.push_back(std::make_unique<MovingTable>(key));
  sc_core::sc_start();
  for (std::uint64_t key = 0; key < MovingTable::kStay; ++key) {
    EXPECT_EQ(tables[key]->found, MovingTable::kCycles) << "mailbox " << key;
  }
  EXPECT_GT(tables[0]->kicks, 5U);
}

TEST(TableUnit, LookupsMissWithSweepingUntilTheSweepEnds) {
  Bench bench;
  std::vector<bool> sweeping;
  bench.lookup(1, kResetCycles - 1);
  bench.lookup(1, kResetCycles);
  bench.script.at(Cycles{kResetCycles + 2}, [&] {
    for (int i = 0; i < 2; ++i) sweeping.push_back(bench.unit.lookups->take().sweeping);
  });
  bench.run();
  EXPECT_EQ(sweeping, (std::vector<bool>{true, false}));
  EXPECT_EQ(bench.unit.stats().sweeping.value(), 1U);
}

TEST(TableUnit, AnswerIsThereAtItsLatencyAndNotBefore) {
  Bench bench;
  EXPECT_EQ(bench.unit.lookups->latency(), Cycles{2});
  bench.script.at(Cycles{600}, [&] { bench.lookup(1, 600); });
  bench.script.at(Cycles{602}, [&] { EXPECT_FALSE(bench.unit.lookups->take().hit); });
  bench.script.at(Cycles{603}, [&] { bench.lookup(1, 603); });
  bench.script.at(Cycles{604}, [&] {
    EXPECT_DEATH({ bench.unit.lookups->take(); }, "answer taken before its cycle");
    EXPECT_DEATH({ bench.lookup(1, 603); }, "more than one lookup in a cycle");
  });
  bench.run();
}

TEST(TableUnit, LookupsCostNoActivationAndACommandTwo) {
  Bench bench;
  std::uint64_t before = 0;
  constexpr int kLookups = 1000;
  bench.script.at(Cycles{1000}, [&] {
    before = bench.context.activations();
    for (int i = 0; i < kLookups; ++i) bench.lookup(static_cast<std::uint64_t>(i), 1000 + i);
  });
  bench.script.at(Cycles{3000}, [&] {
    for (int i = 0; i < kLookups; ++i) bench.unit.lookups->take();
    EXPECT_EQ(bench.context.activations() - before, 1U) << "of this script";
    before = bench.context.activations();
    for (int i = 0; i < 100; ++i)
      bench.command(Bench::make(TableOperation::insert, static_cast<std::uint64_t>(i)), 3000);
  });
  bench.run();
  EXPECT_EQ(bench.answers.size(), 100U);
  EXPECT_EQ(bench.context.activations() - before, 200U) << "the answer, and telling it";
}

TEST(TableUnit, CommandGivenByAnAnswerFollowsThoseThatWait) {
  Bench bench;
  std::vector<int> order;
  bench.script.at(Cycles{600}, [&] {
    bench.unit.commands->command(Bench::make(TableOperation::insert, 1), Cycles{600}, [&](const TableAnswer&) {
      order.push_back(1);
      bench.unit.commands->command(Bench::make(TableOperation::erase, 1), bench.unit.current_cycle(),
                                   [&](const TableAnswer& answer) {
                                     order.push_back(3);
                                     EXPECT_EQ(answer.status, TableStatus::ok);
                                     EXPECT_EQ(bench.unit.current_cycle(), Cycles{600 + 5 + 4 + 5});
                                   });
    });
    bench.unit.commands->command(Bench::make(TableOperation::find, 1), Cycles{600}, [&](const TableAnswer& answer) {
      order.push_back(2);
      EXPECT_EQ(answer.status, TableStatus::ok);
    });
  });
  bench.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(TableUnit, FaultIsCountedOnceAndDelaysACommandByACycle) {
  Bench bench;
  bench.command(Bench::make(TableOperation::insert, 1, 7), 0);
  bench.script.at(Cycles{1000}, [&] {
    const std::uint32_t places = bench.unit.table().shape().capacity();
    for (std::uint32_t place = 0; place < places; ++place) bench.unit.table().corrupt(TableCopy::a, place, 97);
    bench.lookup(1, 1000);
  });
  // Reported in 1002, its place is cleared in 1003.
  bench.script.at(Cycles{1003}, [&] {
    EXPECT_FALSE(bench.unit.lookups->take().hit);
    bench.command(Bench::make(TableOperation::find, 2), 1003);
  });
  bench.run();
  ASSERT_EQ(bench.answers.size(), 2U);
  EXPECT_EQ(bench.answers[1].first, 1003 + 1 + 4);
  EXPECT_EQ(bench.unit.stats().faults.value(), 1U);
}

TEST(TableUnit, AgreesWithTheClockedTableAtAnUnevenFrequency) {
  const std::uint64_t seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Bench bench{Frequency::from_uhz(322'265'625'000'000)};
  TranslationTable clocked{TableShape::from(bench.config)};
  Random random{seed};
  constexpr std::int64_t kCycles = 20'000;

  // 1. One traffic for both: lookups of a cycle, and commands one by one, each from a given cycle on.
  std::map<std::int64_t, std::uint64_t> lookups;
  std::vector<std::pair<std::int64_t, TableCommand>> commands;
  for (std::int64_t cycle = 0; cycle < kCycles; ++cycle) {
    if (random.below(2) == 0) lookups[cycle] = random.below(200);
    if (random.below(8) == 0) {
      commands.emplace_back(cycle, Bench::make(static_cast<TableOperation>(random.below(4)), random.below(200),
                                               static_cast<std::uint16_t>(random.below(65536))));
    }
  }
  // 2. The clocked one's outputs.
  std::vector<LookupResult> expected_lookups;
  std::vector<std::pair<std::int64_t, TableAnswer>> expected_answers;
  std::size_t next = 0;
  for (std::int64_t cycle = 0; cycle < kCycles + 10'000; ++cycle) {
    TableInputs in;
    const auto found = lookups.find(cycle);
    in.lookup_valid = found != lookups.end();
    if (in.lookup_valid) in.lookup_key = {Pid{1}, Mailbox{found->second}};
    in.command_valid = next < commands.size() && commands[next].first <= cycle;
    if (in.command_valid) in.command = commands[next].second;
    const TableOutputs out = clocked.step(in);
    if (in.command_valid && out.command_ready) ++next;
    if (out.lookup_valid) expected_lookups.push_back(out.lookup);
    if (out.answer_valid) expected_answers.emplace_back(cycle, out.answer);
  }
  ASSERT_EQ(next, commands.size());

  // 3. The unit: lookups presented up to 5 cycles ahead and taken up to 9 cycles late, commands given 3 cycles ahead.
  std::vector<LookupResult> got;
  for (const auto& [cycle, mailbox] : lookups) {
    const std::int64_t ahead = std::max<std::int64_t>(0, cycle - 5);
    bench.script.at(Cycles{ahead}, [&bench, at = cycle, key = mailbox] { bench.lookup(key, at); });
    bench.script.at(Cycles{(cycle + 2) / 10 * 10 + 10}, [&] { got.push_back(bench.unit.lookups->take()); });
  }
  for (const auto& [cycle, command] : commands) {
    bench.script.at(Cycles{std::max<std::int64_t>(0, cycle - 3)},
                    [&bench, at = cycle, given = command] { bench.command(given, at); });
  }
  bench.run();
  ASSERT_EQ(got.size(), expected_lookups.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].hit, expected_lookups[i].hit) << i;
    ASSERT_EQ(got[i].slot, expected_lookups[i].slot) << i;
    ASSERT_EQ(got[i].sweeping, expected_lookups[i].sweeping) << i;
  }
  ASSERT_EQ(bench.answers.size(), expected_answers.size());
  for (std::size_t i = 0; i < bench.answers.size(); ++i) {
    ASSERT_EQ(bench.answers[i].first, expected_answers[i].first) << i;
    ASSERT_EQ(bench.answers[i].second.status, expected_answers[i].second.status) << i;
    ASSERT_EQ(bench.answers[i].second.slot, expected_answers[i].second.slot) << i;
    ASSERT_EQ(bench.answers[i].second.used, expected_answers[i].second.used) << i;
  }
  EXPECT_GT(bench.unit.stats().hits.value(), 1000U);
}

}  // namespace
}  // namespace rvma
