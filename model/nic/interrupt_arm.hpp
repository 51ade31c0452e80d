/// \file
/// The words whose next completion interrupts their owner's core; one set an RNIC, shared by the command unit (arms),
/// the completion writer and transmit (which take a word when they complete it and then write the interrupt).
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>

#include "base/ids.hpp"

namespace rvma {

class InterruptArm {
 public:
  /// One interrupt is wanted when `word` completes. Arming twice is arming once.
  void arm(PhysicalAddress word) { armed_.insert(word.value()); }
  /// True, once, if `word` was armed: the caller writes the interrupt.
  bool take(PhysicalAddress word) { return !armed_.empty() && armed_.erase(word.value()) != 0; }
  bool armed(PhysicalAddress word) const { return armed_.count(word.value()) != 0; }
  std::size_t size() const { return armed_.size(); }

 private:
  boost::unordered_flat_set<std::uint64_t> armed_;
};

}  // namespace rvma
