/// \file
/// Looks at memory at the exact times at which completions become visible; exists only where results or checks need it.
#pragma once

#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/component.hpp"

namespace rvma {

class SettleClock : public Component {
 public:
  SettleClock(const sc_core::sc_module_name& name, SimContext& context)
      : Component(name, context, Frequency::mhz(1000)), wakeup_(*this, "settle", [this] { settle(); }) {}

  void on_settle(std::function<void(Time)> settle) { settlers_.push_back(std::move(settle)); }
  void wake_at(Time when) {
    times_.push(when);
    wakeup_.at(when);
  }

 private:
  void settle() {
    const Time time = now();
    for (const auto& settler : settlers_) settler(time);
    while (!times_.empty() && times_.top() <= time) times_.pop();
    if (!times_.empty()) wakeup_.at(times_.top());
  }

  struct Later {
    bool operator()(Time a, Time b) const { return b < a; }
  };
  std::vector<std::function<void(Time)>> settlers_;
  std::priority_queue<Time, std::vector<Time>, Later> times_;
  Wakeup wakeup_;
};

}  // namespace rvma
