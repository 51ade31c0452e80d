/// \file
/// Which entry of a cache on the NIC goes when room is needed: policies, each in a file of its own and registered by
/// one line in replacement.cpp. Plain C++, no time in it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/value_text.hpp"

namespace rvma {

/// Knows places 0.. of a cache by what happened to them. Memory grows with the greatest place that was ever filled.
class ReplacementPolicy {
 public:
  using Place = std::uint32_t;
  static constexpr Place kNone = ~Place{0};

  virtual ~ReplacementPolicy() = default;
  /// A free place has been filled.
  virtual void filled(Place place) = 0;
  /// What a filled place holds has been used.
  virtual void used(Place place) = 0;
  /// A filled place is free again.
  virtual void freed(Place place) = 0;
  /// Of the filled places that `may_go` the one to replace; none: kNone. The caller says freed() and filled().
  virtual Place victim(const std::function<bool(Place)>& may_go) = 0;
};

/// Name of a registered policy, as a configuration key holds it.
class ReplacementName {
 public:
  ReplacementName() = default;  ///< lru
  std::uint32_t index() const { return index_; }
  friend bool operator==(ReplacementName a, ReplacementName b) { return a.index_ == b.index_; }
  friend bool operator!=(ReplacementName a, ReplacementName b) { return !(a == b); }

 private:
  friend struct ValueText<ReplacementName>;
  std::uint32_t index_ = 0;  ///< in the order of registration
};

/// Names of all policies, in the order of registration; the first is the default.
const std::vector<std::string>& replacement_names();
/// `random`: for policies that draw lots.
std::unique_ptr<ReplacementPolicy> make_replacement(ReplacementName name, const Random& random);

template <>
struct ValueText<ReplacementName> : detail::ScalarText<ReplacementName, ValueText<ReplacementName>> {
  static std::string type_name();
  static ValueResult<ReplacementName> parse(std::string_view text);
  static std::string print(ReplacementName value);
};

}  // namespace rvma
