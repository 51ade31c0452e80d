#include "rtl/verilated/compare_outputs.hpp"

namespace rvma {
namespace {

class Comparer {
 public:
  void equal(const char* what, std::uint64_t design, std::uint64_t reference) {
    if (design == reference) return;
    result_.differences.push_back(std::string{what} + " is " + std::to_string(design) + ", reference " +
                                  std::to_string(reference));
  }
  /// Compares `valid`; true if the outputs that go with it are to be compared as well.
  bool both(const char* what, bool design, bool reference) {
    equal(what, design ? 1 : 0, reference ? 1 : 0);
    found_ = result_.differences.size();
    return design && reference;
  }
  void group_ends() {
    if (result_.differences.size() == found_) ++result_.matched;
  }
  OutputComparison take() { return std::move(result_); }

 private:
  OutputComparison result_;
  std::size_t found_ = 0;  ///< differences before the group
};

void compare_fault(Comparer& comparer, const char* valid, const char* place, const TableFault& design,
                   const TableFault& reference) {
  if (!comparer.both(valid, design.valid, reference.valid)) return;
  comparer.equal(place, design.place, reference.place);
  comparer.group_ends();
}

}  // namespace

OutputComparison compare_outputs(const TableOutputs& design, const TableOutputs& reference) {
  Comparer comparer;
  comparer.equal("command_ready", design.command_ready ? 1 : 0, reference.command_ready ? 1 : 0);
  if (comparer.both("lookup_valid", design.lookup_valid, reference.lookup_valid)) {
    comparer.equal("lookup_hit", design.lookup.hit ? 1 : 0, reference.lookup.hit ? 1 : 0);
    comparer.equal("lookup_slot", design.lookup.slot.value(), reference.lookup.slot.value());
    comparer.equal("lookup_sweeping", design.lookup.sweeping ? 1 : 0, reference.lookup.sweeping ? 1 : 0);
    comparer.group_ends();
  }
  if (comparer.both("answer_valid", design.answer_valid, reference.answer_valid)) {
    const TableAnswer& a = design.answer;
    const TableAnswer& b = reference.answer;
    comparer.equal("answer_status", static_cast<std::uint64_t>(a.status), static_cast<std::uint64_t>(b.status));
    comparer.equal("answer_slot", a.slot.value(), b.slot.value());
    comparer.equal("answer_used", static_cast<std::uint64_t>(a.used.count()),
                   static_cast<std::uint64_t>(b.used.count()));
    comparer.equal("answer_kicks", a.kicks, b.kicks);
    comparer.equal("answer_in_stash", a.in_stash ? 1 : 0, b.in_stash ? 1 : 0);
    comparer.group_ends();
  }
  compare_fault(comparer, "lookup_fault_valid", "lookup_fault_place", design.lookup_fault, reference.lookup_fault);
  compare_fault(comparer, "command_fault_valid", "command_fault_place", design.command_fault, reference.command_fault);
  return comparer.take();
}

}  // namespace rvma
