/// \file
/// Which keys of the configuration make a unit "bigger", so that a report can say what a run would gain by it.
#pragma once

#include <array>
#include <boost/describe.hpp>
#include <cstdint>

namespace rvma {

/// What a key does to the most that a unit can do in a time: its bound.
enum class Effect : std::uint8_t {
  proportional,   ///< twice the value, twice the bound
  inverse,        ///< half the value (a time), twice the bound
  powers_of_two,  ///< proportional, and only powers of two are valid
  steps,          ///< each 1 more doubles the bound
  width,          ///< proportional for as long as the work fills it: bytes a cycle
  capacity        ///< places for entries: once each entry has one, the unit has nothing left to do
};
BOOST_DESCRIBE_ENUM(Effect, proportional, inverse, powers_of_two, steps, width, capacity)

struct Widening {
  const char* key = nullptr;  ///< full path; null: none
  Effect effect = Effect::proportional;
};

/// Those of one unit, the first to be tried first.
using Widenings = std::array<Widening, 2>;
inline constexpr Widenings kNotWidened{};
/// A unit that does so much in a cycle of the NIC, and no more.
inline constexpr Widenings kWidenedByNicClock{{{"nic.clock", Effect::proportional}}};
/// A unit that moves so many bytes in a cycle of the NIC.
inline constexpr Widenings kWidenedByDatapath{{{"nic.clock", Effect::proportional}, {"nic.datapath", Effect::width}}};

}  // namespace rvma
