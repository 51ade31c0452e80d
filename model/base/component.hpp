/// \file
/// What every hardware unit is built on: a simulation context (no globals), a clocked SystemC module, and a wake-up
/// that costs nothing while it is not armed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <systemc>

#include "base/clock.hpp"
#include "base/stats.hpp"
#include "base/units.hpp"

namespace rvma {

class WakeupQueue;

/// Shared by all units of one simulation. Owns nothing of the model; outlives it.
class SimContext {
 public:
  /// Checks SystemC's time resolution (1 ps); a wrong one is an assertion failure.
  explicit SimContext(std::uint64_t seed);
  SimContext(const SimContext&) = delete;
  SimContext& operator=(const SimContext&) = delete;
  ~SimContext();

  std::uint64_t seed() const { return seed_; }
  StatsRegistry& stats() { return stats_; }
  const StatsRegistry& stats() const { return stats_; }

  /// All process activations so far, methods and threads alike.
  std::uint64_t activations() const { return activations_; }
  void count_activation() { ++activations_; }
  WakeupQueue& wakeups() { return *wakeups_; }
  /// Times asked for by wake-ups.
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
  std::unique_ptr<WakeupQueue> wakeups_;
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

/// Makes the end of thousands of modules cheap. SystemC finds a module that goes by a search from the front of its
/// registry and puts the last one in its place: once the first has gone, modules that go backwards are each found
/// at the front. In the order of construction it takes minutes for thousands of nodes, backwards alone seconds.
class ModuleAnchor : public sc_core::sc_module {
 public:
  /// Before all other modules.
  ModuleAnchor() : sc_module(sc_core::sc_module_name("anchor")) {}
};

/// Empties a vector of modules from its end.
template <class Modules>
void destroy_backwards(Modules& modules) {
  while (!modules.empty()) modules.pop_back();
}

/// One re-armable process of a unit. Arming for a time keeps the earliest one asked for; the body runs once and must
/// arm again for what is left. An unarmed wake-up costs nothing. Bodies that run at the same time run in the order in
/// which they were armed; one armed for the present time by another body runs after all that were armed before it.
///
/// All wake-ups of a simulation share one kernel process and one kernel event (WakeupQueue): a SystemC process with its
/// event, their names and their places in the kernel's tables take 1.2 KB, and a thousand nodes have 18,000 of them.
class Wakeup {
 public:
  /// `name` appears in messages about broken invariants; a literal.
  Wakeup(Component& owner, const char* name, std::function<void()> body);
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;
  ~Wakeup();

  /// Runs the body at `when` (not before now), or earlier if it is armed for earlier.
  void at(Time when);
  bool armed() const { return !armed_for_.is_never(); }
  Time armed_for() const { return armed_for_; }
  void cancel();

 private:
  friend class WakeupQueue;
  std::string path() const { return owner_.path() + "." + name_; }

  Component& owner_;
  const char* name_;
  std::function<void()> body_;
  Time armed_for_ = Time::max();
  std::uint64_t request_ = 0;  ///< the entry of the queue that counts; 0: none
  std::uint32_t entries_ = 0;  ///< of the queue, superseded ones included
};

}  // namespace rvma
