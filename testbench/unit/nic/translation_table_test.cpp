// The cuckoo table, cycle by cycle: latency, exact cycles of commands, moves that hide nothing, load, faults.
#include "nic/translation_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "table_load.hpp"

namespace rvma {
namespace {

TableShape small_shape() {
  TableShape shape;
  shape.rows = 16;
  shape.stash = 4;
  shape.seed = 7;
  return shape;
}

/// A clocked table; keeps the outputs of the last cycle.
struct Clocked {
  explicit Clocked(const TableShape& shape) : table(shape) {}
  const TableOutputs& idle() { return out = table.step({}); }
  const TableOutputs& lookup(TableKey key) {
    TableInputs in;
    in.lookup_valid = true;
    in.lookup_key = key;
    return out = table.step(in);
  }
  const TableOutputs& command(const TableCommand& command) {
    TableInputs in;
    in.command_valid = true;
    in.command = command;
    return out = table.step(in);
  }
  void reset() {
    while (!idle().command_ready) {
    }
  }
  /// Gives the command, and returns the answer with the cycle count seen at the port.
  std::pair<TableAnswer, int> run(const TableCommand& given) {
    while (!command(given).command_ready) {
    }
    for (int cycles = 1;; ++cycles) {
      if (idle().answer_valid) return {out.answer, cycles};
    }
  }

  TranslationTable table;
  TableOutputs out;
};

// ------------------------------------------------------------------------------------------------ shape and hash

TEST(TableShape, CyclesOfFillAndReset) {
  TableShape shape;  // 512 rows: 9 bits, ten of them in two words
  EXPECT_EQ(shape.row_bits(), 9U);
  EXPECT_EQ(shape.fill_cycles(), 22U + 2 * 256U);
  EXPECT_EQ(shape.reset_cycles(), 534U);
  shape.rows = 8192;  // 13 bits: three words
  EXPECT_EQ(shape.fill_cycles(), 22U + 3 * 256U);
  EXPECT_EQ(shape.reset_cycles(), 8192U);
  EXPECT_EQ(shape.capacity(), 65536U);
}

TEST(TabulationHash, RowsAreInRangeAndDependOnSeedBankAndEveryKeyBit) {
  for (const std::uint32_t rows : {4U, 64U, 128U, 512U, 1U << 20U}) {
    SCOPED_TRACE(rows);
    TableShape shape;
    shape.banks = 8;
    shape.rows = rows;
    TabulationHash hash{shape};
    const TableKey base = key_of(0x1234'5678'9abc'def0ULL, 77);
    const TabulationHash::Rows first = hash.rows_of(base);
    for (std::uint32_t row : first) EXPECT_LT(row, rows);
    EXPECT_GT((std::set<std::uint32_t>{first.begin(), first.end()}.size()), 1U);
    for (unsigned bit = 0; bit < 80; ++bit) {
      TableKey other = base;
      if (bit < 64) {
        other.mailbox = Mailbox{base.mailbox.value() ^ (std::uint64_t{1} << bit)};
      } else {
        other.pid = Pid{static_cast<std::uint16_t>(base.pid.value() ^ (1U << (bit - 64)))};
      }
      EXPECT_NE(hash.rows_of(other), first) << "key bit " << bit;
    }
    hash.load(shape.seed + 1);
    EXPECT_NE(hash.rows_of(base), first);
    hash.load(shape.seed);
    EXPECT_EQ(hash.rows_of(base), first);
  }
}

TEST(TabulationHash, IsNotLinear) {
  const TabulationHash hash{TableShape{}};
  // For a hash linear over GF(2), h(a) ^ h(b) ^ h(c) ^ h(a ^ b ^ c) is 0 always; bits in different bytes, so that
  // tabulation alone would give 0 as well.
  int zero = 0;
  for (unsigned i = 0; i < 7; ++i) {
    const std::uint64_t a = std::uint64_t{1} << (8 * i);
    const std::uint64_t b = std::uint64_t{1} << (8 * i + 9);
    const TabulationHash::Rows h0 = hash.rows_of(key_of(0));
    const TabulationHash::Rows ha = hash.rows_of(key_of(a));
    const TabulationHash::Rows hb = hash.rows_of(key_of(b));
    const TabulationHash::Rows hab = hash.rows_of(key_of(a | b));
    for (unsigned bank = 0; bank < 4; ++bank) zero += (h0[bank] ^ ha[bank] ^ hb[bank] ^ hab[bank]) == 0 ? 1 : 0;
  }
  EXPECT_LE(zero, 2) << "of 28";
}

// -------------------------------------------------------------------------------------------------------- timing

TEST(TranslationTable, ResetSweepsForExactlyItsCycles) {
  const TableShape shape = small_shape();
  Clocked table{shape};
  const int cycles = static_cast<int>(shape.reset_cycles());
  for (int cycle = 0; cycle < cycles + 8; ++cycle) {
    table.lookup(key_of(1));
    EXPECT_EQ(table.out.command_ready, cycle >= cycles) << cycle;
    EXPECT_EQ(table.out.lookup_valid, cycle >= 2) << cycle;
    if (!table.out.lookup_valid) continue;
    EXPECT_FALSE(table.out.lookup.hit);
    EXPECT_EQ(table.out.lookup.sweeping, cycle - 2 < cycles) << cycle;
  }
}

TEST(TranslationTable, LookupLatencyOnBothSides) {
  for (std::uint32_t latency = 1; latency <= 3; ++latency) {
    SCOPED_TRACE(latency);
    TableShape shape = small_shape();
    shape.latency = latency;
    Clocked table{shape};
    table.reset();
    EXPECT_EQ(table.run(command_of(TableOperation::insert, key_of(5), 42)).first.status, TableStatus::ok);
    EXPECT_FALSE(table.lookup(key_of(5)).lookup_valid);
    for (std::uint32_t cycle = 1; cycle < latency; ++cycle) EXPECT_FALSE(table.idle().lookup_valid) << cycle;
    ASSERT_TRUE(table.idle().lookup_valid);
    EXPECT_TRUE(table.out.lookup.hit);
    EXPECT_EQ(table.out.lookup.slot, SlotId{42});
    EXPECT_FALSE(table.idle().lookup_valid);
  }
}

TEST(TranslationTable, CyclesOfCommands) {
  const TableShape shape = small_shape();
  Clocked table{shape};
  table.reset();
  const auto expect = [&table](const TableCommand& command, TableStatus status, int cycles) {
    const auto [answer, seen] = table.run(command);
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(seen, cycles);
    EXPECT_EQ(answer.used, Cycles{cycles});
    return answer;
  };
  const TableKey key = key_of(0xabc);
  expect(command_of(TableOperation::find, key), TableStatus::not_found, 4);
  expect(command_of(TableOperation::erase, key), TableStatus::not_found, 4);
  expect(command_of(TableOperation::update, key, 3), TableStatus::not_found, 4);
  expect(command_of(TableOperation::insert, key, 3), TableStatus::ok, 5);
  expect(command_of(TableOperation::insert, key, 4), TableStatus::exists, 4);
  EXPECT_EQ(expect(command_of(TableOperation::find, key), TableStatus::ok, 4).slot, SlotId{3});
  expect(command_of(TableOperation::update, key, 9), TableStatus::ok, 5);
  EXPECT_EQ(expect(command_of(TableOperation::find, key), TableStatus::ok, 4).slot, SlotId{9});
  expect(seed_command(99), TableStatus::busy, 1);
  expect(command_of(TableOperation::erase, key), TableStatus::ok, 5);
  expect(seed_command(99), TableStatus::ok, 1 + static_cast<int>(shape.fill_cycles()));
  expect(command_of(TableOperation::flush), TableStatus::ok, 17);
  expect(command_of(static_cast<TableOperation>(7)), TableStatus::bad, 1);
}

TEST(TranslationTable, AnswerCycleTakesTheNextCommand) {
  Clocked table{small_shape()};
  table.reset();
  EXPECT_TRUE(table.command(command_of(TableOperation::find, key_of(1))).command_ready);
  for (int cycle = 1; cycle < 4; ++cycle) {
    table.command(command_of(TableOperation::find, key_of(2)));
    EXPECT_FALSE(table.out.command_ready) << cycle;
    EXPECT_FALSE(table.out.answer_valid) << cycle;
  }
  table.command(command_of(TableOperation::find, key_of(2)));
  EXPECT_TRUE(table.out.command_ready);
  EXPECT_TRUE(table.out.answer_valid);
}

TEST(TranslationTable, InsertedKeyIsSeenFromTheAnswerOn) {
  Driver driver{small_shape()};
  TranslationTable& table = driver.table;
  const std::int64_t begin = table.cycle().count();
  table.start(command_of(TableOperation::insert, key_of(1), 8));
  for (std::int64_t offset = 0; offset <= 6; ++offset) {
    table.advance_to(Cycles{begin + offset});
    EXPECT_EQ(table.lookup(key_of(1)).hit, offset >= 5) << offset;
  }
}

TEST(TranslationTable, FlushSeenByLookupsFromTheNextCycleOn) {
  Clocked table{small_shape()};
  table.reset();
  table.run(command_of(TableOperation::insert, key_of(1), 8));
  TableInputs in;
  in.lookup_valid = true;
  in.lookup_key = key_of(1);
  for (int cycle = 0; cycle < 24; ++cycle) {
    in.command_valid = cycle == 0;
    in.command = command_of(TableOperation::flush);
    const TableOutputs out = table.table.step(in);
    EXPECT_EQ(out.answer_valid, cycle == 17) << cycle;
    if (cycle < 2) continue;
    ASSERT_TRUE(out.lookup_valid);
    EXPECT_EQ(out.lookup.hit, cycle - 2 == 0) << cycle;
    EXPECT_EQ(out.lookup.sweeping, cycle - 2 >= 1 && cycle - 2 <= 16) << cycle;
  }
}

// ----------------------------------------------------------------------------------------------------- behaviour

TEST(TranslationTable, RefusedCommandsChangeNothing) {
  Driver driver{small_shape()};
  EXPECT_EQ(driver.insert(key_of(1), 8).status, TableStatus::ok);
  const TranslationTable before = driver.table;
  EXPECT_EQ(driver.insert(key_of(1), 9).status, TableStatus::exists);
  EXPECT_EQ(driver.erase(key_of(2)).status, TableStatus::not_found);
  EXPECT_EQ(driver.run(command_of(TableOperation::update, key_of(1, 2), 9)).answer.status, TableStatus::not_found);
  EXPECT_TRUE(driver.table.same_contents(before));
  EXPECT_EQ(driver.look(key_of(1)).slot, SlotId{8});
  EXPECT_EQ(driver.table.entries(), 1U);
}

TEST(TranslationTable, FullChangesNothingAndLosesNothing) {
  Driver driver{small_shape()};
  std::vector<TableKey> live;
  int refused = 0;
  for (std::uint64_t i = 0; refused < 20; ++i) {
    const TableKey key = key_of(i * 4096);
    const TranslationTable before = driver.table;
    const TableAnswer answer = driver.insert(key, static_cast<std::uint16_t>(i));
    if (answer.status == TableStatus::ok) {
      live.push_back(key);
      continue;
    }
    ASSERT_EQ(answer.status, TableStatus::full);
    EXPECT_TRUE(driver.table.same_contents(before));
    ++refused;
  }
  EXPECT_EQ(driver.table.stash_used(), 4U);
  EXPECT_EQ(driver.table.entries(), live.size());
  for (const TableKey& key : live) EXPECT_TRUE(driver.look(key).hit);
  // Each one can be erased, those of the stash too.
  for (const TableKey& key : live) EXPECT_EQ(driver.erase(key).status, TableStatus::ok);
  EXPECT_EQ(driver.table.stash_used(), 0U);
  EXPECT_TRUE(driver.table.same_contents(Driver{small_shape()}.table));
}

TEST(TranslationTable, WithoutKicksAndStashTheFirstFullRowsRefuse) {
  TableShape shape = small_shape();
  shape.max_kicks = 0;
  shape.stash = 0;
  Driver driver{shape};
  for (std::uint64_t i = 0;; ++i) {
    const TranslationTable::Started started = driver.run(command_of(TableOperation::insert, key_of(i)));
    if (started.answer.status == TableStatus::full) {
      EXPECT_EQ(started.answer.used, Cycles{4});
      break;
    }
    ASSERT_EQ(started.answer.used, Cycles{5});
    ASSERT_LT(i, shape.capacity());
  }
}

TEST(TranslationTable, CyclesOfInsertionsWithKicks) {
  Driver driver{small_shape()};
  std::map<std::uint32_t, int> by_kicks;
  int with_retries = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    driver.run(command_of(TableOperation::flush));
    ASSERT_EQ(driver.run(seed_command(seed)).answer.status, TableStatus::ok);
    for (std::uint64_t i = 0; i < 124; ++i) {
      const std::uint32_t stash_before = driver.table.stash_used();
      const TranslationTable::Started started = driver.run(command_of(TableOperation::insert, key_of(i)));
      if (started.answer.status != TableStatus::ok || driver.table.stash_used() != stash_before) continue;
      const std::int64_t least = 5 + 5 * std::int64_t{started.answer.kicks};
      EXPECT_GE(started.answer.used.count(), least);
      EXPECT_LE(started.answer.kicks, 32U);
      ++by_kicks[started.answer.kicks];
      if (started.answer.used.count() != least) ++with_retries;
      // A place that is on the path can be met again only after two kicks.
      if (started.answer.kicks < 2) {
        EXPECT_EQ(started.answer.used.count(), least);
      }
    }
  }
  EXPECT_GT(by_kicks[1], 50);
  EXPECT_GT(by_kicks[2], 20);
  EXPECT_GT(with_retries, 0);
}

TEST(TranslationTable, PathsThatCannotGoOnEndInTheStash) {
  // Two banks of four rows and one slot: from one bank there is one candidate only, so walks soon meet themselves.
  TableShape shape;
  shape.banks = 2;
  shape.rows = 4;
  shape.slots = 1;
  shape.stash = 2;
  shape.max_kicks = 32;
  int dead_ends = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    shape.seed = seed;
    Driver driver{shape};
    std::vector<TableKey> live;
    for (std::uint64_t i = 0; i < 12; ++i) {
      const TranslationTable::Started started = driver.run(command_of(TableOperation::insert, key_of(i)));
      // A walk visits distinct places, and there are eight.
      EXPECT_LE(started.answer.used.count(), 5 + 8 * 4 + 2 * 8);
      if (started.answer.status == TableStatus::full) ++dead_ends;
      if (started.answer.status == TableStatus::ok) live.push_back(key_of(i));
    }
    for (const TableKey& key : live) EXPECT_TRUE(driver.look(key).hit);
  }
  EXPECT_GT(dead_ends, 50);
}

TEST(TranslationTable, EntryOnTheMoveIsFoundInEveryCycle) {
  std::uint64_t moves = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TableShape shape = small_shape();
    shape.seed = seed;
    Driver driver{shape};
    TranslationTable& table = driver.table;
    std::map<std::uint64_t, std::uint16_t> live;
    Random random{seed};
    for (int i = 0; i < 400; ++i) {
      if (live.size() > 122) {
        const auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random.below(live.size())));
        ASSERT_EQ(driver.erase(key_of(victim->first)).status, TableStatus::ok);
        live.erase(victim);
      }
      const std::uint64_t mailbox = random.next();
      const auto slot = static_cast<std::uint16_t>(i);
      const TranslationTable::Started started = table.start(command_of(TableOperation::insert, key_of(mailbox), slot));
      moves += started.answer.kicks;
      bool seen = false;
      while (table.cycle() < started.answer_cycle) {
        // Every live key, looked up in this very cycle; a lookup leaves a table without faults as it is.
        for (const auto& [other, value] : live) {
          const LookupResult result = table.lookup(key_of(other));
          ASSERT_TRUE(result.hit) << "cycle " << table.cycle().count();
          ASSERT_EQ(result.slot, SlotId{value});
        }
        const bool hit = table.lookup(key_of(mailbox)).hit;
        ASSERT_FALSE(seen && !hit) << "new, then old";
        seen = hit;
        driver.pass(1);
      }
      ASSERT_EQ(table.lookup(key_of(mailbox)).hit, started.answer.status == TableStatus::ok);
      if (started.answer.status == TableStatus::ok) live[mailbox] = slot;
    }
  }
  EXPECT_GT(moves, 500U);
}

TEST(TranslationTable, NoFalseHit) {
  Driver driver{small_shape()};
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(driver.insert(key_of(i << 8U)).status, TableStatus::ok);
  for (std::uint64_t i = 0; i < 100; ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) EXPECT_FALSE(driver.look(key_of((i << 8U) | (1U << bit))).hit);
    for (unsigned bit = 16; bit < 64; ++bit) {
      EXPECT_FALSE(driver.look(key_of((i << 8U) ^ (std::uint64_t{1} << bit))).hit);
    }
    for (unsigned bit = 0; bit < 16; ++bit) {
      EXPECT_FALSE(driver.look(key_of(i << 8U, static_cast<std::uint16_t>(1U ^ (1U << bit)))).hit);
    }
  }
}

TEST(TranslationTable, LoadedSeedActsLikeTheShapesOwn) {
  TableShape shape = small_shape();
  Driver loaded{shape};
  ASSERT_EQ(loaded.run(seed_command(1234)).answer.status, TableStatus::ok);
  shape.seed = 1234;
  Driver own{shape};
  Driver other{small_shape()};
  for (std::uint64_t i = 0; i < 100; ++i) {
    loaded.insert(key_of(i));
    own.insert(key_of(i));
    other.insert(key_of(i));
  }
  EXPECT_TRUE(loaded.table.same_contents(own.table));
  EXPECT_FALSE(loaded.table.same_contents(other.table));
}

// ------------------------------------------------------------------------------------------------- clocked = events

/// Random traffic at both, cycle by cycle at one and by events at the other, and a map beside them that says what a
/// lookup may answer: the old state up to a command's acceptance, the new one from its answer, either in between.
void compare_modes(std::uint64_t seed, std::uint32_t latency, bool with_faults) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", latency " + std::to_string(latency));
  TableShape shape = small_shape();
  shape.latency = latency;
  shape.seed = seed;
  TranslationTable clocked{shape};
  TranslationTable events{shape};
  Random random{seed, "table"};

  using Contents = std::map<std::pair<std::uint64_t, std::uint16_t>, std::uint16_t>;
  Contents before;
  Contents after;
  std::optional<TranslationTable::Started> running;
  struct Expected {
    LookupResult events;
    bool may_miss = false;
    bool may_hit = false;
  };
  std::map<std::int64_t, Expected> expected;
  std::map<std::int64_t, std::uint32_t> faults_a;
  std::map<std::int64_t, std::uint32_t> faults_b;
  std::uint64_t hits = 0;
  std::uint64_t reports = 0;
  std::uint64_t taken = 0;

  for (std::int64_t cycle = 0; cycle < 40'000; ++cycle) {
    TableInputs in;
    const auto random_key = [&random] { return key_of(random.below(150) << 3U, static_cast<std::uint16_t>(1)); };
    in.lookup_valid = random.below(3) != 0;
    in.lookup_key = random_key();
    in.command_valid = random.below(4) == 0;
    in.command = command_of(static_cast<TableOperation>(random.below(4)), random_key(),
                            static_cast<std::uint16_t>(random.below(65536)));
    if (random.below(3) == 0) in.command.operation = TableOperation::insert;
    if (random.below(2000) == 0) in.command.operation = TableOperation::flush;
    if (random.below(500) == 0) in.command = seed_command(random.next());
    const bool inject = with_faults && !running && cycle > 2000 && random.below(100) == 0;
    const auto place = static_cast<std::uint32_t>(random.below(shape.capacity() + shape.stash));
    const auto bit = static_cast<std::uint32_t>(random.below(98));
    const auto copy = static_cast<TableCopy>(random.below(2));

    // 1. By events: nothing is touched in a cycle without inputs.
    const bool touch = in.lookup_valid || in.command_valid || inject;
    if (touch) {
      events.advance_to(Cycles{cycle});
      if (running && running->answer_cycle <= Cycles{cycle}) {
        before = after;
        running.reset();
      }
    }
    if (inject && !running && events.ready_cycle() == Cycles{cycle}) {
      events.corrupt(copy, place, bit);
      clocked.corrupt(copy, place, bit);
    }
    if (in.lookup_valid) {
      const LookupResult result = events.lookup(in.lookup_key);
      const auto id = std::make_pair(in.lookup_key.mailbox.value(), in.lookup_key.pid.value());
      Expected& entry = expected[cycle + latency];
      entry.events = result;
      if (!with_faults && !result.sweeping) {
        const bool in_old = before.count(id) != 0;
        const bool in_new = after.count(id) != 0;
        ASSERT_TRUE(result.hit ? in_old || in_new : !in_old || !in_new) << "cycle " << cycle;
        if (result.hit) {
          ASSERT_TRUE((in_old && result.slot == SlotId{before[id]}) || (in_new && result.slot == SlotId{after[id]}));
        }
      }
      hits += result.hit ? 1 : 0;
    }
    bool ready = false;
    if (in.command_valid) {
      ready = events.command_ready();
      if (ready) {
        ++taken;
        running = events.start(in.command);
        const auto id = std::make_pair(in.command.mailbox.value(), in.command.pid.value());
        const bool ok = running->answer.status == TableStatus::ok;
        if (!with_faults) {
          if (in.command.operation == TableOperation::insert) {
            ASSERT_EQ(running->answer.status == TableStatus::exists, before.count(id) != 0);
          } else if (in.command.operation != TableOperation::flush &&
                     in.command.operation != TableOperation::load_seed) {
            ASSERT_EQ(ok, before.count(id) != 0);
          } else {
            ASSERT_EQ(ok, in.command.operation == TableOperation::flush || before.empty());
          }
        }
        switch (in.command.operation) {
          case TableOperation::insert:
          case TableOperation::update:
            if (ok) after[id] = in.command.slot.value();
            break;
          case TableOperation::erase:
            if (ok) after.erase(id);
            break;
          case TableOperation::flush:
            after.clear();
            break;
          default:
            break;
        }
      }
    }
    for (const TranslationTable::FaultReport& report : events.take_faults()) {
      (report.copy == TableCopy::a ? faults_a : faults_b)[report.cycle.count()] = report.place;
    }

    // 2. Clocked.
    const Cycles answer_cycle = running ? running->answer_cycle : Cycles{-1};
    const TableOutputs out = clocked.step(in);
    if (in.command_valid) {
      ASSERT_EQ(out.command_ready, ready) << "cycle " << cycle;
    }
    const auto due = expected.find(cycle);
    ASSERT_EQ(out.lookup_valid, due != expected.end()) << "cycle " << cycle;
    if (due != expected.end()) {
      ASSERT_EQ(out.lookup.hit, due->second.events.hit) << "cycle " << cycle;
      ASSERT_EQ(out.lookup.slot, due->second.events.slot) << "cycle " << cycle;
      ASSERT_EQ(out.lookup.sweeping, due->second.events.sweeping) << "cycle " << cycle;
      expected.erase(due);
    }
    if (out.answer_valid && running && answer_cycle == Cycles{cycle}) {
      ASSERT_EQ(out.answer.status, running->answer.status);
      ASSERT_EQ(out.answer.slot, running->answer.slot);
      ASSERT_EQ(out.answer.used, running->answer.used);
    }
    if (running && answer_cycle == Cycles{cycle}) {
      ASSERT_TRUE(out.answer_valid);
    }
    // Reports of the clocked table come first: the other's are known only when it is next touched.
    if (out.lookup_fault.valid) faults_a[-1 - cycle] = out.lookup_fault.place;
    if (out.command_fault.valid) faults_b[-1 - cycle] = out.command_fault.place;
  }
  events.advance_to(clocked.cycle());
  for (const TranslationTable::FaultReport& report : events.take_faults()) {
    (report.copy == TableCopy::a ? faults_a : faults_b)[report.cycle.count()] = report.place;
  }
  clocked.step({});
  for (auto* faults : {&faults_a, &faults_b}) {
    for (const auto& [cycle, place] : *faults) {
      if (cycle >= 40'000) continue;
      ASSERT_EQ(faults->count(-1 - cycle), 1U) << "reported by one only, cycle " << cycle;
      ASSERT_EQ(faults->at(-1 - cycle), place);
      ++reports;
    }
  }
  EXPECT_TRUE(clocked.same_contents(events));
  EXPECT_GT(hits, 2000U);
  EXPECT_GT(taken, 1000U);
  if (with_faults) {
    EXPECT_GT(reports, 20U);
  }
}

TEST(TranslationTable, ClockedAndEventDrivenAgree) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (std::uint32_t latency = 1; latency <= 3; ++latency) {
      compare_modes(seed, latency, false);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(TranslationTable, ClockedAndEventDrivenAgreeUnderFaults) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (std::uint32_t latency = 1; latency <= 3; ++latency) {
      compare_modes(seed, latency, true);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(TranslationTable, IdleCyclesCostNothing) {
  Driver driver{small_shape()};
  driver.insert(key_of(1), 5);
  driver.table.advance_to(Cycles{std::int64_t{1} << 60});
  EXPECT_EQ(driver.table.lookup(key_of(1)).slot, SlotId{5});
}

// --------------------------------------------------------------------------------------------------------- faults

/// The place at which the only entry of a table stands.
std::uint32_t place_of(const TranslationTable& table, TableKey key) {
  for (std::uint32_t place = 0; place < table.shape().capacity() + table.shape().stash; ++place) {
    TranslationTable copy = table;
    copy.corrupt(TableCopy::a, place, 97);
    if (!copy.lookup(key).hit) return place;
  }
  ADD_FAILURE() << "not in the table";
  return 0;
}

TEST(TableFaults, BadEntryNeverHitsWhicheverBitFlips) {
  Driver fresh{small_shape()};
  fresh.insert(key_of(0xf0f0), 0x1234);
  const std::uint32_t place = place_of(fresh.table, key_of(0xf0f0));
  for (std::uint32_t bit = 0; bit < 98; ++bit) {
    SCOPED_TRACE(bit);
    TranslationTable table = fresh.table;
    table.corrupt(TableCopy::a, place, bit);
    EXPECT_FALSE(table.lookup(key_of(0xf0f0)).hit);
    if (bit < 64) {
      EXPECT_FALSE(table.lookup(key_of(0xf0f0 ^ (std::uint64_t{1} << bit))).hit);
    }
  }
}

TEST(TableFaults, FoundByLookupReportedOnceThenCleared) {
  Clocked table{small_shape()};
  table.reset();
  table.run(command_of(TableOperation::insert, key_of(1), 5));
  const std::uint32_t place = place_of(table.table, key_of(1));
  table.table.corrupt(TableCopy::a, place, 3);
  int reports = 0;
  for (int cycle = 0; cycle < 20; ++cycle) {
    table.lookup(key_of(1));
    // Latency 2: reported in cycle 2, cleared in 3, when no command is taken.
    EXPECT_EQ(table.out.lookup_fault.valid, cycle == 2) << cycle;
    EXPECT_EQ(table.out.command_ready, cycle != 3) << cycle;
    if (table.out.lookup_fault.valid) {
      EXPECT_EQ(table.out.lookup_fault.place, place);
      ++reports;
    }
    EXPECT_FALSE(table.out.lookup_valid && table.out.lookup.hit);
  }
  EXPECT_EQ(reports, 1);
  // Copy B has lost it too: both say the same.
  EXPECT_EQ(table.run(command_of(TableOperation::find, key_of(1))).first.status, TableStatus::not_found);
  EXPECT_EQ(table.run(command_of(TableOperation::insert, key_of(1), 6)).first.status, TableStatus::ok);
}

TEST(TableFaults, WhatIsWrittenOverTheBadEntryIsNotCleared) {
  // The update writes in its cycle 4, whenever the lookup on its way read the bad word of copy A.
  for (std::uint32_t latency = 1; latency <= 3; ++latency) {
    for (int offset = 0; offset <= 5; ++offset) {
      SCOPED_TRACE("latency " + std::to_string(latency) + ", lookup in cycle " + std::to_string(offset));
      TableShape shape = small_shape();
      shape.latency = latency;
      Clocked table{shape};
      table.reset();
      table.run(command_of(TableOperation::insert, key_of(1), 5));
      table.table.corrupt(TableCopy::a, place_of(table.table, key_of(1)), 3);
      int reports = 0;
      for (int cycle = 0; cycle < 15; ++cycle) {
        TableInputs in;
        in.lookup_valid = cycle == offset;
        in.lookup_key = key_of(1);
        in.command_valid = cycle == 0;
        in.command = command_of(TableOperation::update, key_of(1), 6);
        const TableOutputs out = table.table.step(in);
        reports += out.lookup_fault.valid ? 1 : 0;
        EXPECT_EQ(out.command_ready, cycle == 0 || cycle >= 5) << cycle;
      }
      EXPECT_EQ(reports, offset <= 4 ? 1 : 0);
      EXPECT_EQ(table.table.lookup(key_of(1)).slot, SlotId{6});
    }
  }
}

TEST(TableFaults, FoundByCommandReportedOnceThenCleared) {
  Clocked table{small_shape()};
  table.reset();
  table.run(command_of(TableOperation::insert, key_of(1), 5));
  const std::uint32_t place = place_of(table.table, key_of(1));
  table.table.corrupt(TableCopy::b, place, 96);
  ASSERT_TRUE(table.command(command_of(TableOperation::find, key_of(1))).command_ready);
  for (int cycle = 1; cycle < 12; ++cycle) {
    table.idle();
    EXPECT_EQ(table.out.command_fault.valid, cycle == 4) << cycle;
    EXPECT_EQ(table.out.answer_valid, cycle == 4) << cycle;
    EXPECT_EQ(table.out.command_ready, cycle > 4) << cycle;
    if (table.out.answer_valid) {
      EXPECT_EQ(table.out.answer.status, TableStatus::not_found);
    }
    if (table.out.command_fault.valid) {
      EXPECT_EQ(table.out.command_fault.place, place);
    }
  }
  table.lookup(key_of(1));
  table.idle();
  ASSERT_TRUE(table.idle().lookup_valid);
  EXPECT_FALSE(table.out.lookup.hit);
}

TEST(TableFaults, BadEntryCountsAsEmptyPlaceAndIsNeverMoved) {
  // Fill until the first insertion that kicks would move, then break one entry at every place in turn.
  Driver full{small_shape()};
  std::vector<TableKey> live;
  for (std::uint64_t i = 0; live.size() < 126; ++i) {
    if (full.insert(key_of(i), static_cast<std::uint16_t>(i)).status == TableStatus::ok) live.push_back(key_of(i));
  }
  int overwritten = 0;
  for (std::uint32_t place = 0; place < full.table.shape().capacity(); ++place) {
    SCOPED_TRACE(place);
    Driver driver = full;
    driver.table.corrupt(TableCopy::b, place, 0);
    const TableKey key = key_of(0x1'0000 + place);
    const TranslationTable::Started started = driver.run(command_of(TableOperation::insert, key, 0xffff));
    const auto faults = driver.table.take_faults();
    ASSERT_LE(faults.size(), 1U);
    if (faults.empty() || started.answer.status != TableStatus::ok) continue;
    // It was the end of the path: written over, so nothing is left to clear, and all others are where they belong.
    EXPECT_EQ(faults[0].place, place);
    EXPECT_TRUE(driver.table.command_ready());
    ++overwritten;
    EXPECT_TRUE(driver.look(key).hit);
    int lost = 0;
    for (const TableKey& other : live) lost += driver.look(other).hit ? 0 : 1;
    EXPECT_LE(lost, 1);
  }
  EXPECT_GT(overwritten, 20);
}

TEST(TableFaults, SeedCanBeLoadedOnlyAfterAFlush) {
  Driver driver{small_shape()};
  driver.insert(key_of(1));
  driver.table.corrupt(TableCopy::a, place_of(driver.table, key_of(1)), 5);
  driver.look(key_of(1));
  driver.pass(10);
  EXPECT_EQ(driver.table.take_faults().size(), 1U);
  EXPECT_EQ(driver.run(seed_command(3)).answer.status, TableStatus::busy);
  EXPECT_EQ(driver.run(command_of(TableOperation::flush)).answer.status, TableStatus::ok);
  EXPECT_EQ(driver.run(seed_command(3)).answer.status, TableStatus::ok);
}

TEST(TableFaults, WithoutProtectionAFlippedBitGoesUnnoticed) {
  TableShape shape = small_shape();
  shape.protection = EntryProtection::none;
  Driver driver{shape};
  driver.insert(key_of(1), 4);
  for (std::uint32_t place = 0; place < shape.capacity(); ++place) driver.table.corrupt(TableCopy::a, place, 80);
  EXPECT_EQ(driver.look(key_of(1)).slot, SlotId{5});
  driver.pass(10);
  EXPECT_TRUE(driver.table.take_faults().empty());
}

// ----------------------------------------------------------------------------------------------------------- load

TEST(TableLoad, Reaches95PercentOf4K) { expect_load(512); }
TEST(TableLoad, ChurnAt90PercentOf4KIsNeverRefused) { expect_churn(512, 5, 10); }

}  // namespace
}  // namespace rvma
