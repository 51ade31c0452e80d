/// \file
/// The two vocabularies of answers: Status for a host call, Outcome for a put (or get) on the network.
#pragma once

#include <boost/describe/enum.hpp>
#include <cstdint>

namespace rvma {

/// Answer of a host call. 0 is never written, so that a zero word means "not answered yet".
enum class Status : std::uint8_t {
  ok = 1,
  exists,
  full,
  no_window,
  no_buffer,
  closed,
  history,
  bad_argument,
  unsupported
};
BOOST_DESCRIBE_ENUM(Status, ok, exists, full, no_window, no_buffer, closed, history, bad_argument, unsupported)

/// How a message ended. The numbers are the 4-bit codes that acknowledgements carry; 0 means "not ended, or not told".
enum class Outcome : std::uint8_t {
  pending = 0,
  ok = 1,
  no_mailbox = 2,
  closed = 3,
  bad_key = 4,
  stale = 5,
  no_buffer = 6,
  bounds = 7,
  busy = 8,
  timeout = 9,     ///< at the sender only: outcome unknown
  unfinished = 10  ///< in results only: the run ended first
};
BOOST_DESCRIBE_ENUM(Outcome, pending, ok, no_mailbox, closed, bad_key, stale, no_buffer, bounds, busy, timeout,
                    unfinished)

/// Retried by the sending NIC before the put ends.
constexpr bool is_retried(Outcome outcome) { return outcome == Outcome::no_buffer || outcome == Outcome::busy; }

enum class ThresholdType : std::uint8_t { bytes, ops };
BOOST_DESCRIBE_ENUM(ThresholdType, bytes, ops)

enum class Placement : std::uint8_t { steered, managed };
BOOST_DESCRIBE_ENUM(Placement, steered, managed)

}  // namespace rvma
