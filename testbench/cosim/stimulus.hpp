/// \file
/// Constrained-random stimulus for a lock-step checker: phases drawn from a seed, repeatable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/random.hpp"
#include "checker.hpp"

namespace rvma::cosim {

enum class KeyPattern : std::uint8_t { random, sequential, pages, few_bits, same_bytes };
inline constexpr std::array<KeyPattern, 5> kKeyPatterns{KeyPattern::random, KeyPattern::sequential, KeyPattern::pages,
                                                        KeyPattern::few_bits, KeyPattern::same_bytes};
std::string_view name_of(KeyPattern pattern);
std::optional<KeyPattern> key_pattern(std::string_view name);

/// Key number `index` of a pattern; `salt` makes random ones differ from run to run.
TableKey key_at(KeyPattern pattern, std::uint64_t index, std::uint64_t salt);

class Stimulus {
 public:
  Stimulus(LockStep& checker, KeyPattern pattern, std::uint64_t seed);

  /// Runs phases until `operations` lookups and commands were given, or something differs.
  void run(std::uint64_t operations);

  // The phases; each leaves the tables as they are.
  /// Inserts until `full`, a lookup in every cycle.
  void fill(std::uint64_t commands);
  /// Replaces entries at 90 % of the places.
  void churn(std::uint64_t commands);
  /// All operations on a few keys, which are looked up in every cycle.
  void storm(std::uint64_t commands);
  /// All operations, lookups and commands at random rates.
  void mixed(std::uint64_t commands);
  /// Flips bits in the memories, now and then, under mixed traffic.
  void faults(std::uint64_t commands);
  /// Erases most of what is there.
  void drain();
  /// Loads seeds, with the table empty and not; flushes.
  void reseed();
  /// Resets in the middle of commands.
  void reset();

  // No phase of run(): takes some twelve cycles an entry.
  /// Loses `entries` to faults, one after another, and loads a seed: refused, as the count of entries is not lowered by
  /// faults. The only way to a count beyond the table's places. Needs protection; the table is flushed before.
  void lose(std::uint64_t entries);

 private:
  /// What may be given in a cycle.
  struct Traffic {
    std::uint32_t lookups = 1024;   ///< of 1024 cycles
    std::uint32_t commands = 1024;  ///< of 1024 cycles in which none is waiting
    std::uint32_t focus = 512;      ///< of 1024 lookups: the key of the command in hand
    std::uint32_t absent = 128;     ///< of 1024 lookups: any key, of the rest one that is live
  };
  using NextCommand = TableCommand (Stimulus::*)();

  void give(std::uint64_t commands, const Traffic& traffic, NextCommand next);
  void cycle(const Traffic& traffic, NextCommand next);
  /// Gives the command after those that run and wait, with a lookup in every cycle to its answer.
  void run_command(const TableCommand& command);
  void finish_commands();
  void settle();
  void compare_contents();
  void on_answer(const TableAnswer& answer);
  Traffic any_traffic();

  TableCommand any_command();
  TableCommand next_insert();
  TableCommand next_replacement();
  TableCommand next_erase();
  TableCommand next_of_few();
  TableCommand on_key(TableOperation operation, std::uint64_t index);
  std::uint64_t live_key();
  std::uint64_t any_key();
  void add(std::uint64_t index);
  void remove(std::uint64_t index);

  bool failed() const { return !checker_.errors().empty(); }
  bool chance(std::uint32_t of_1024) { return random_.below(1024) < of_1024; }

  LockStep& checker_;
  KeyPattern pattern_;
  Random random_;
  std::uint64_t salt_;
  std::uint64_t universe_;  ///< keys are numbered below it
  std::uint64_t capacity_;

  // Keys that are in the table, as far as its answers tell.
  std::vector<std::uint64_t> live_;
  std::unordered_map<std::uint64_t, std::size_t> position_;

  std::optional<TableCommand> waiting_;
  std::uint64_t waiting_index_ = 0;
  std::optional<TableCommand> running_;
  std::uint64_t running_index_ = 0;
  std::uint64_t next_fresh_ = 0;
  std::uint64_t full_answers_ = 0;
};

}  // namespace rvma::cosim
