/// \file
/// Puts a clocked core - Verilog under Verilator, or a C++ model of it - into the event-driven model: nothing here is
/// of any particular core, so another unit's Verilog goes in the same way (docs/how-to/add-rtl.md).
#pragma once

#include <functional>
#include <systemc>
#include <utility>

#include "base/component.hpp"
#include "base/error.hpp"

namespace rvma {

/// One clock, and ports as two plain structs.
template <class Inputs, class Outputs>
class ClockedCore {
 public:
  virtual ~ClockedCore() = default;
  /// The edge, at `edge`, that ends the present cycle; `inputs` are that cycle's.
  virtual void clock(const Inputs& inputs, Time edge) = 0;
  /// Outputs of the present cycle. They must not depend on its inputs: an event-driven environment may still change
  /// those.
  virtual const Outputs& outputs() const = 0;
};

/// Clocks a core only while something is in it, and never before all inputs of a cycle are known. Cycle n of the
/// component's clock begins at edge n and is the core's cycle n, or is left out where the core has nothing to do.
template <class Inputs, class Outputs>
class CoreAdapter : public Component {
 public:
  /// What the environment knows; called with non-decreasing cycles.
  struct Ports {
    /// First cycle >= `cycle` that has inputs; Cycles::max() if none is known.
    std::function<Cycles(Cycles cycle)> next_input;
    /// Sets the inputs of `cycle`, which ends.
    std::function<void(Cycles cycle, Inputs& inputs)> drive;
    /// Takes the outputs of `cycle`, which begins.
    std::function<void(Cycles cycle, const Outputs& outputs)> sample;
    /// Whether an edge at the end of `cycle` could change anything although it has no inputs.
    std::function<bool(Cycles cycle)> active;
  };

  /// The core has just been reset: its present cycle is cycle 0.
  CoreAdapter(const sc_core::sc_module_name& name, SimContext& context, Frequency clock,
              ClockedCore<Inputs, Outputs>& core, Ports ports)
      : Component(name, context, clock), core_(core), ports_(std::move(ports)) {}

  /// The core's present cycle; its inputs are still open.
  Cycles cycle() const { return cycle_; }
  /// Lets all cycles before `cycle` pass. Their inputs must be known, so `cycle` is at most current_cycle().
  void clock_to(Cycles cycle) {
    RVMA_ASSERT(cycle <= current_cycle(), "an RTL core is clocked ahead of its inputs");
    while (cycle_ < cycle) {
      if (!ports_.active(cycle_)) {
        const Cycles input = ports_.next_input(cycle_);
        if (input > cycle_) {
          cycle_ = input < cycle ? input : cycle;
          continue;
        }
      }
      Inputs inputs{};
      ports_.drive(cycle_, inputs);
      ++cycle_;
      ++clocked_;
      core_.clock(inputs, clock().time_of(cycle_));
      ports_.sample(cycle_, core_.outputs());
    }
  }
  /// Edges so far.
  std::uint64_t clocked() const { return clocked_; }

 private:
  ClockedCore<Inputs, Outputs>& core_;
  Ports ports_;
  Cycles cycle_;
  std::uint64_t clocked_ = 0;
};

}  // namespace rvma
