#include "nic/congestion.hpp"

#include <algorithm>

#include "base/int128.hpp"

namespace rvma {
namespace {

// Swift's constants: multiplicative decrease 0.8 of the excess, at most by half.
constexpr std::uint64_t kBetaPercent = 80;
/// Flows of less than a packet allow so many targets more, so that many of them can share a queue (Swift's flow
/// scaling, 1 / sqrt(window)).
constexpr std::int64_t kMostScaling = 4;

std::uint64_t square_root(std::uint64_t value) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 31U; bit != 0; bit >>= 1U) {
    if ((root | bit) * (root | bit) <= value) root |= bit;
  }
  return root;
}

}  // namespace

CongestionWindow::CongestionWindow(const CongestionLimits& limits)
    : limits_(&limits), window_(kPacket * std::min(limits.initial_window, limits.most_window)) {}

bool CongestionWindow::room(std::uint32_t in_flight, Time at) const {
  if (limits_->control == CongestionControl::none) return true;
  if (paces()) return in_flight == 0 && at >= next_send_;
  return in_flight < window_ / kPacket;
}

void CongestionWindow::sent(Time at) {
  if (!paces()) return;
  // A window of 1/n packet is a packet every n round trips.
  const auto pause = static_cast<std::int64_t>(static_cast<std::uint64_t>(round_trip_.ps()) * kPacket / window_);
  next_send_ = at + Time::from_ps(pause);
}

void CongestionWindow::acknowledged(std::uint32_t packets, Time round_trip, Time shortest, Time at) {
  if (limits_->control == CongestionControl::none) return;
  round_trip_ =
      round_trip_ == Time::zero() ? round_trip : Time::from_ps(round_trip_.ps() + (round_trip - round_trip_).ps() / 8);
  // 1. The target, wider for small windows: target x min(4, 1 / sqrt(window)).
  const std::uint64_t root = std::max<std::uint64_t>(1, square_root(window_ * kPacket));  // sqrt(window) in kPacket
  const auto scaled = static_cast<std::int64_t>(static_cast<std::uint64_t>(limits_->target.ps()) * kPacket / root);
  const Time scaling = Time::from_ps(std::min(scaled, limits_->target.ps() * kMostScaling));
  const Time target = shortest + limits_->target + scaling;
  // 2. Below it: a packet more for each window of packets (below one packet: a sixteenth for each packet). Until the
  // first decrease a packet for each packet, which doubles the window in a round trip.
  is_congested_ = round_trip >= target;
  if (!is_congested_) {
    const std::uint64_t most = kPacket * limits_->most_window;
    std::uint64_t step = window_ >= kPacket ? kPacket * kPacket / window_ : kPacket / 16;
    if (decreases_ == 0) step = kPacket;
    window_ = std::min(most, window_ + packets * step);
    return;
  }
  // 3. Beyond it: less, in proportion, once a round trip.
  if (!may_decrease(at)) return;
  const auto excess = static_cast<std::uint64_t>((round_trip - target).ps());
  const auto whole = static_cast<std::uint64_t>(round_trip.ps());
  const std::uint64_t cut = std::min(excess * kBetaPercent / 100, whole / 2);
  decrease(whole - cut, whole, at);
}

void CongestionWindow::lost(Time at) {
  if (limits_->control == CongestionControl::none || !is_congested_ || !may_decrease(at)) return;
  decrease(1, 2, at);
}

void CongestionWindow::timed_out() {
  if (limits_->control == CongestionControl::none) return;
  if (!is_congested_) {
    window_ = std::max(window_ / 2, std::min(window_, kLeastWithoutCongestion));
    return;
  }
  ++decreases_;
  window_ = std::max(kLeast, std::min(window_ / 2, kPacket));
}

void CongestionWindow::decrease(std::uint64_t numerator, std::uint64_t denominator, Time at) {
  ++decreases_;
  decreased_at_ = at;
  window_ = std::max(kLeast, static_cast<std::uint64_t>(detail::uint128{window_} * numerator / denominator));
}

}  // namespace rvma
