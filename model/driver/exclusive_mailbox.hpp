/// \file
/// Mailboxes that say who sends to them: a convention of software for addresses that one rank alone uses. NICs know
/// nothing of it; software that has to prepare for a sender (the RDMA baseline's) may.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.hpp"

namespace rvma {

/// Upper 16 bits of an exclusive mailbox; below them 20 bits for the sender's rank, 28 for a number.
inline constexpr std::uint64_t kExclusiveMailboxes = 0x4d50'0000'0000'0000ULL;
inline constexpr unsigned kExclusiveNumberBits = 28;
inline constexpr unsigned kExclusiveRankBits = 20;

constexpr Mailbox exclusive_mailbox(RankId sender, std::uint64_t number) {
  return Mailbox{kExclusiveMailboxes | std::uint64_t{sender.value()} << kExclusiveNumberBits |
                 (number & ((1ULL << kExclusiveNumberBits) - 1))};
}
/// The only rank that sends to the mailbox, if it says so.
constexpr std::optional<RankId> exclusive_sender(Mailbox mailbox) {
  constexpr unsigned kBits = kExclusiveNumberBits + kExclusiveRankBits;
  if (mailbox.value() >> kBits != kExclusiveMailboxes >> kBits) return std::nullopt;
  return RankId{static_cast<std::uint32_t>(mailbox.value() >> kExclusiveNumberBits & ((1U << kExclusiveRankBits) - 1))};
}

}  // namespace rvma
