/// \file
/// How many packets a sender may have on their way to one receiver before the network tells it to hold back: Swift
/// (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020), as
/// plain C++ with no SystemC in it and in integers only. Delay is what it listens to: a round trip beyond the target
/// shrinks the window in proportion, a shorter one lets it grow by a packet a round trip. Below one packet the sender
/// paces.
///
/// Among what differs from the paper: the window doubles in a round trip until its first decrease; a time-out leaves a
/// packet at most; the target is the peer's own shortest round trip plus `target`, since our packets
/// carry no count of hops; and one delay is used for fabric and receiver together, since a full receiver and a full
/// switch ask for the same.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>

#include "base/units.hpp"

namespace rvma {

enum class CongestionControl : std::uint8_t { swift, none };
BOOST_DESCRIBE_ENUM(CongestionControl, swift, none)

struct CongestionLimits {
  CongestionControl control = CongestionControl::none;
  Time target = Time::from_us(5);     ///< queueing that is allowed
  std::uint32_t initial_window = 64;  ///< packets
  std::uint32_t most_window = 1024;   ///< packets
};

class CongestionWindow {
 public:
  /// The window is kept in parts of a packet.
  static constexpr std::uint64_t kPacket = std::uint64_t{1} << 16U;
  /// A time-out without congestion leaves so many packets at least.
  static constexpr std::uint64_t kLeastWithoutCongestion = kPacket * 16;
  static constexpr std::uint64_t kLeast = kPacket / 64;

  /// `limits` outlives the window.
  explicit CongestionWindow(const CongestionLimits& limits);

  /// Whether another packet may go at `at`, with `in_flight` packets on their way.
  bool room(std::uint32_t in_flight, Time at) const;
  /// When a paced sender with nothing in flight may send; "never" if it does not pace.
  Time paced_until() const { return paces() ? next_send_ : Time::max(); }
  void sent(Time at);

  /// `packets` were acknowledged, the latest of them `round_trip` after it was sent; `shortest`: the least of all round
  /// trips so far.
  void acknowledged(std::uint32_t packets, Time round_trip, Time shortest, Time at);
  /// A loss means congestion if round trips were beyond the target when last heard of: what a fabric loses by chance is
  /// no reason to send less.
  void lost(Time at);
  /// The same; without any round trip to go by, congestion is assumed.
  void timed_out();

  /// In parts of a packet, see kPacket.
  std::uint64_t window() const { return window_; }
  std::uint64_t decreases() const { return decreases_; }

 private:
  bool paces() const { return limits_->control == CongestionControl::swift && window_ < kPacket; }
  bool may_decrease(Time at) const { return at - decreased_at_ >= round_trip_; }
  void decrease(std::uint64_t numerator, std::uint64_t denominator, Time at);

  const CongestionLimits* limits_;
  std::uint64_t window_;
  Time round_trip_;  ///< smoothed
  Time decreased_at_;
  Time next_send_;
  bool is_congested_ = true;  ///< the last round trip was beyond the target, or there was none
  std::uint64_t decreases_ = 0;
};

}  // namespace rvma
