#include "checker.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "rtl/verilated/compare_outputs.hpp"

namespace rvma::cosim {

namespace {

/// Cycles without lookup and command after which nothing is on its way: late writes to copy A, clearing, lookups.
constexpr std::uint32_t kSettled = 8;

}  // namespace

TableOutputs LockStep::step(const TableInputs& inputs) {
  const TableOutputs design = design_.step(inputs);
  const TableOutputs reference = reference_.step(inputs);
  compare(design, reference);
  count(inputs, reference);
  return reference;
}

void LockStep::compare(const TableOutputs& design, const TableOutputs& reference) {
  const OutputComparison compared = compare_outputs(design, reference);
  matched_ += compared.matched;
  for (const std::string& difference : compared.differences) fail(difference);
}

void LockStep::count(const TableInputs& inputs, const TableOutputs& outputs) {
  ++seen_.cycles;
  const bool accepted = inputs.command_valid && outputs.command_ready;
  seen_.lookups += inputs.lookup_valid ? 1 : 0;
  seen_.commands += accepted ? 1 : 0;
  seen_.refused += inputs.command_valid && !accepted ? 1 : 0;
  seen_.hits += outputs.lookup_valid && outputs.lookup.hit ? 1 : 0;
  seen_.sweeping += outputs.lookup_valid && outputs.lookup.sweeping ? 1 : 0;
  if (outputs.answer_valid) {
    const std::size_t status = static_cast<std::size_t>(outputs.answer.status);
    if (status < seen_.statuses.size()) ++seen_.statuses[status];
    if (running_ == TableOperation::insert) {
      const std::uint64_t used = static_cast<std::uint64_t>(outputs.answer.used.count());
      seen_.longest = std::max(seen_.longest, used);
      seen_.moves += outputs.answer.status == TableStatus::ok && used > 5 ? 1 : 0;
    }
  }
  if (accepted) running_ = inputs.command.operation;
  for (const TableFault* fault : {&outputs.lookup_fault, &outputs.command_fault}) {
    if (!fault->valid) continue;
    ++(fault == &outputs.lookup_fault ? seen_.lookup_faults : seen_.command_faults);
    seen_.stash_faults += fault->place >= shape().capacity() ? 1 : 0;
  }
  const bool busy = inputs.lookup_valid || accepted || !outputs.command_ready;
  quiet_cycles_ = busy ? 0 : quiet_cycles_ + 1;
}

void LockStep::reset() {
  design_.reset();
  reference_.reset();
  ++seen_.resets;
  quiet_cycles_ = 0;
}

void LockStep::settle() {
  // A table that never gets ready is an error already: the handshakes are compared.
  const std::uint64_t most = seen_.cycles + 2ULL * shape().reset_cycles() + 100'000;
  while (quiet_cycles_ < kSettled && seen_.cycles < most) step({});
  if (quiet_cycles_ < kSettled) fail("does not come to rest");
}

void LockStep::corrupt(TableCopy copy, std::uint32_t place, std::uint32_t bit) {
  RVMA_ASSERT(quiet_cycles_ >= kSettled, "cosim: corrupted while something is on its way");
  design_.corrupt(copy, place, bit);
  reference_.corrupt(copy, place, bit);
}

void LockStep::compare_contents() {
  RVMA_ASSERT(quiet_cycles_ >= kSettled, "cosim: contents compared while something is on its way");
  for (const TableCopy copy : {TableCopy::a, TableCopy::b}) {
    for (std::uint32_t place = 0; place < shape().capacity() + shape().stash; ++place) {
      ++seen_.words;
      if (design_.stored(copy, place) == reference_.stored(copy, place)) continue;
      fail("word at place " + std::to_string(place) + " of copy " + (copy == TableCopy::a ? "A" : "B") + " differs");
    }
  }
}

void LockStep::fail(const std::string& what) {
  if (errors_.size() < kMostErrors) errors_.push_back("cycle " + std::to_string(seen_.cycles) + ": " + what);
}

}  // namespace rvma::cosim
