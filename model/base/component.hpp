/// \file
/// What every hardware unit is built on: a simulation context (no globals), a clocked SystemC module, and a wake-up
/// that costs nothing while it is not armed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <systemc>

#include "base/clock.hpp"
#include "base/stats.hpp"
#include "base/units.hpp"

namespace rvma {

/// Shared by all units of one simulation. Owns nothing of the model; outlives it.
class SimContext {
 public:
  /// Checks SystemC's time resolution (1 ps); a wrong one is an assertion failure.
  explicit SimContext(std::uint64_t seed);
  SimContext(const SimContext&) = delete;
  SimContext& operator=(const SimContext&) = delete;
  ~SimContext() = default;

  std::uint64_t seed() const { return seed_; }
  StatsRegistry& stats() { return stats_; }
  const StatsRegistry& stats() const { return stats_; }

  /// All process activations so far, methods and threads alike.
  std::uint64_t activations() const { return activations_; }
  void count_activation() { ++activations_; }
  /// Timed and delta notifications asked of the kernel.
  std::uint64_t notifications() const { return notifications_; }
  void count_notification() { ++notifications_; }

  static Time now() {
    // The kernel keeps the current time in one place for the whole simulation; asking for it is a call each time.
    static const sc_core::sc_time& current = sc_core::sc_time_stamp();
    return Time::from_ps(static_cast<std::int64_t>(current.value()));
  }
  static sc_core::sc_time to_sc(Time time) {
    return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(time.ps()));
  }

 private:
  std::uint64_t seed_;
  StatsRegistry stats_;
  std::uint64_t activations_ = 0;
  std::uint64_t notifications_ = 0;
};

/// A hardware unit: a SystemC module in one clock domain.
class Component : public sc_core::sc_module {
 public:
  Component(const sc_core::sc_module_name& name, SimContext& context, Frequency clock)
      : sc_module(name), context_(context), clock_(clock) {}

  SimContext& context() { return context_; }
  const ClockDomain& clock() const { return clock_; }
  Time now() const { return SimContext::now(); }
  /// The first edge at or after now.
  Cycles current_cycle() const { return clock_.edge_at_or_after(now()); }
  /// SystemC's hierarchical name: the unit's path in the statistics.
  std::string path() const { return name(); }

 private:
  SimContext& context_;
  ClockDomain clock_;
};

/// One re-armable method process. Arming for a time keeps the earliest one asked for; the body runs once and must arm
/// again for what is left. An unarmed wake-up costs nothing.
class Wakeup {
 public:
  Wakeup(Component& owner, const char* name, std::function<void()> body);
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;
  ~Wakeup() = default;

  /// Runs the body at `when` (not before now), or earlier if it is armed for earlier.
  void at(Time when);
  bool armed() const { return !armed_for_.is_never(); }
  Time armed_for() const { return armed_for_; }
  void cancel();

 private:
  SimContext& context_;
  sc_core::sc_event event_;
  std::function<void()> body_;
  Time armed_for_ = Time::max();
};

}  // namespace rvma
