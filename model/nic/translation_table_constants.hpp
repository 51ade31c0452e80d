/// \file
/// Numbers that the translation table's C++ and Verilog share. `rtl/rvma_table_constants.vh` is made from this file
/// (target `rtl_constants`); a test holds the two together.
#pragma once

#include <array>
#include <cstdint>

#include "nic/interfaces.hpp"

namespace rvma::table_constants {

// -- Entry word, from bit 0 on: mailbox, pid, value, valid, parity.
inline constexpr unsigned kMailboxBits = 64;
inline constexpr unsigned kPidBits = 16;
inline constexpr unsigned kKeyBits = kMailboxBits + kPidBits;
inline constexpr unsigned kValueBits = 16;
inline constexpr unsigned kValidBit = kKeyBits + kValueBits;
inline constexpr unsigned kParityBit = kValidBit + 1;

// -- Hash.
inline constexpr unsigned kLanes = 5;
inline constexpr unsigned kLaneBits = 16;
inline constexpr unsigned kRounds = 3;
inline constexpr std::array<unsigned, kLanes> kLaneRotations{0, 1, 5, 8, 11};
inline constexpr unsigned kKeyBytes = kKeyBits / 8;
inline constexpr unsigned kByteValues = 256;

// -- Filling of the hash memories, in words of 64 bits.
inline constexpr unsigned kWarmUpWords = 1152 / 64;
inline constexpr unsigned kRoundKeyWords = (kRounds * kKeyBits + 63) / 64;

// -- Walk of an insertion.
inline constexpr std::uint32_t kWalkStart = 0x9e37'79b9U;
inline constexpr unsigned kWalkRotation = 7;
inline constexpr std::array<unsigned, 3> kWalkShifts{13, 17, 5};  ///< xorshift32: left, right, left

// -- Codes at the ports.
inline constexpr unsigned kOperationBits = 3;
inline constexpr unsigned kStatusBits = 3;
inline constexpr unsigned code(TableOperation operation) { return static_cast<unsigned>(operation); }
inline constexpr unsigned code(TableStatus status) { return static_cast<unsigned>(status); }

}  // namespace rvma::table_constants
