/// \file
/// Shared by the tests of the translation table: a driver by events, key patterns, and the load targets.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "nic/translation_table.hpp"

namespace rvma {

inline TableKey key_of(std::uint64_t mailbox, std::uint16_t pid = 1) { return {Pid{pid}, Mailbox{mailbox}}; }

inline TableCommand command_of(TableOperation operation, TableKey key = {}, std::uint16_t slot = 0) {
  TableCommand command;
  command.operation = operation;
  command.pid = key.pid;
  command.mailbox = key.mailbox;
  command.slot = SlotId{slot};
  return command;
}

inline TableCommand seed_command(std::uint64_t seed) {
  TableCommand command;
  command.operation = TableOperation::load_seed;
  command.seed = seed;
  return command;
}

/// A table by events, one command after another.
struct Driver {
  explicit Driver(const TableShape& shape) : table(shape) { table.advance_to(table.ready_cycle()); }
  TranslationTable::Started run(const TableCommand& command) {
    while (!table.command_ready()) table.advance_to(table.ready_cycle());
    const TranslationTable::Started started = table.start(command);
    table.advance_to(started.answer_cycle);
    return started;
  }
  TableAnswer insert(TableKey key, std::uint16_t slot = 0) {
    return run(command_of(TableOperation::insert, key, slot)).answer;
  }
  TableAnswer erase(TableKey key) { return run(command_of(TableOperation::erase, key)).answer; }
  LookupResult look(TableKey key) {
    const LookupResult result = table.lookup(key);
    pass(1);
    return result;
  }
  void pass(std::int64_t cycles) { table.advance_to(Cycles{table.cycle().count() + cycles}); }

  TranslationTable table;
};

enum class Pattern { random, sequential, pages, few_bits, two_values_a_byte };
inline constexpr Pattern kPatterns[] = {Pattern::random, Pattern::sequential, Pattern::pages, Pattern::few_bits,
                                        Pattern::two_values_a_byte};

inline TableKey pattern_key(Pattern pattern, std::uint64_t i, Random& random) {
  std::uint64_t mailbox = 0;
  switch (pattern) {
    case Pattern::random:
      return {Pid{static_cast<std::uint16_t>(random.below(65536))}, Mailbox{random.next()}};
    case Pattern::sequential:
      return key_of(0x10'0000 + i);
    case Pattern::pages:
      return key_of(0x7f00'0000'0000ULL + i * 4096);
    case Pattern::few_bits:
      // Bit b of i in byte b / 2: neighbours differ in few bits, far apart.
      for (unsigned b = 0; b < 16; ++b) mailbox |= ((i >> b) & 1U) << (b * 7 % 64);
      return key_of(mailbox);
    case Pattern::two_values_a_byte:
      for (unsigned b = 0; b < 8; ++b) mailbox |= ((i >> b) & 1U) * (0x5aULL << (8 * b));
      return key_of(mailbox, static_cast<std::uint16_t>(i >> 8U));
  }
  return {};
}

inline void expect_load(std::uint32_t rows) {
  for (const Pattern pattern : kPatterns) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE("pattern " + std::to_string(static_cast<int>(pattern)) + ", seed " + std::to_string(seed));
      TableShape shape;
      shape.rows = rows;
      shape.seed = seed;
      Driver driver{shape};
      Random random{seed, "keys"};
      const std::uint32_t target = shape.capacity() / 100 * 95 + shape.capacity() % 100 * 95 / 100 + 1;
      for (std::uint32_t i = 0; i < target; ++i) {
        ASSERT_EQ(driver.insert(pattern_key(pattern, i, random)).status, TableStatus::ok)
            << "after " << i << " of " << shape.capacity();
      }
    }
  }
}

inline void expect_churn(std::uint32_t rows, std::uint64_t seeds, std::uint32_t rounds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TableShape shape;
    shape.rows = rows;
    shape.seed = seed;
    Driver driver{shape};
    Random random{seed, "churn"};
    std::vector<TableKey> live;
    const auto add = [&] {
      live.push_back(key_of(random.next()));
      return driver.insert(live.back()).status;
    };
    while (live.size() < shape.capacity() / 10 * 9) ASSERT_EQ(add(), TableStatus::ok);
    for (std::uint32_t i = 0; i < rounds * shape.capacity(); ++i) {
      std::swap(live[random.below(live.size())], live.back());
      ASSERT_EQ(driver.erase(live.back()).status, TableStatus::ok);
      live.pop_back();
      ASSERT_EQ(add(), TableStatus::ok) << "after " << i << " replacements";
    }
    for (const TableKey& key : live) ASSERT_TRUE(driver.look(key).hit);
  }
}

}  // namespace rvma
