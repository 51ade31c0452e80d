/// \file
/// Checkers run a design beside its reference and count where they agree. A run that matched nothing is a failure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "clocked_table.hpp"

namespace rvma::cosim {

class Checker {
 public:
  virtual ~Checker() = default;
  /// One cycle of both; returns the reference's outputs.
  virtual TableOutputs step(const TableInputs& inputs) = 0;
  /// What differed, with the cycle; ends at kMostErrors.
  virtual const std::vector<std::string>& errors() const = 0;
  /// Valid outputs that agreed.
  virtual std::uint64_t matched() const = 0;
  bool passed() const { return errors().empty() && matched() > 0; }

  static constexpr std::size_t kMostErrors = 20;
};

/// What a run has met; tests ask for it, so that a run that met nothing does not pass.
struct Seen {
  std::uint64_t cycles = 0;
  std::uint64_t lookups = 0;
  std::uint64_t hits = 0;
  std::uint64_t sweeping = 0;
  std::uint64_t commands = 0;
  std::uint64_t refused = 0;  ///< cycles in which a command waited
  std::array<std::uint64_t, 6> statuses{};
  std::uint64_t longest = 0;  ///< cycles of an insertion
  std::uint64_t moves = 0;    ///< insertions that took more cycles than one without kicks
  std::uint64_t lookup_faults = 0;
  std::uint64_t command_faults = 0;
  std::uint64_t stash_faults = 0;
  std::uint64_t resets = 0;
  std::uint64_t words = 0;  ///< stored words compared

  std::uint64_t status(TableStatus of) const { return statuses[static_cast<std::size_t>(of)]; }
  std::uint64_t operations() const { return lookups + commands; }
};

/// Compares every output whose valid is set, and every handshake, in every cycle.
class LockStep final : public Checker {
 public:
  /// Both are of one shape, in their first cycle after reset, and outlive the checker.
  LockStep(ClockedTable& design, ClockedTable& reference) : design_(design), reference_(reference) {}

  TableOutputs step(const TableInputs& inputs) override;
  const std::vector<std::string>& errors() const override { return errors_; }
  std::uint64_t matched() const override { return matched_; }

  void reset();
  /// Lets idle cycles pass until nothing is on its way in either table.
  void settle();
  /// Flips a bit in both; needs settled tables.
  void corrupt(TableCopy copy, std::uint32_t place, std::uint32_t bit);
  /// A word of the reference; needs settled tables.
  TableWord stored(TableCopy copy, std::uint32_t place) const { return reference_.stored(copy, place); }
  /// Compares all stored words; needs settled tables.
  void compare_contents();

  const Seen& seen() const { return seen_; }
  const TableShape& shape() const { return reference_.shape(); }

 private:
  void compare(const TableOutputs& design, const TableOutputs& reference);
  void count(const TableInputs& inputs, const TableOutputs& outputs);
  void fail(const std::string& what);

  ClockedTable& design_;
  ClockedTable& reference_;
  std::vector<std::string> errors_;
  std::uint64_t matched_ = 0;
  Seen seen_;
  TableOperation running_ = TableOperation::find;
  std::uint32_t quiet_cycles_ = 0;
};

}  // namespace rvma::cosim
