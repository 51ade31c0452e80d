#include "base/component.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/wakeup_queue.hpp"

namespace rvma {
SimContext::SimContext(std::uint64_t seed) : seed_(seed) {
  RVMA_ASSERT(sc_core::sc_get_time_resolution() == sc_core::sc_time(1, sc_core::SC_PS),
              "SystemC's time resolution is " + sc_core::sc_get_time_resolution().to_string() +
                  ", but the model counts whole picoseconds: it must be 1 ps");
  detail::set_assertion_context(&WakeupQueue::position);
  wakeups_ = std::make_unique<WakeupQueue>(*this);
}

SimContext::~SimContext() = default;

Wakeup::Wakeup(Component& owner, const char* name, std::function<void()> body)
    : owner_(owner), name_(name), body_(std::move(body)) {}

Wakeup::~Wakeup() { owner_.context().wakeups().forget(*this); }

void Wakeup::at(Time when) {
  // The earliest time asked for wins; the body sees to the rest when it runs.
  if (when >= armed_for_) return;
  const Time now = SimContext::now();
  RVMA_ASSERT(when >= now, "a wake-up for " + to_string(when) + " was asked for at " + to_string(now));
  armed_for_ = when;
  owner_.context().count_notification();
  owner_.context().wakeups().request(*this, when);
}

void Wakeup::cancel() {
  if (!armed()) return;
  armed_for_ = Time::max();
  owner_.context().wakeups().withdraw(*this);
}

}  // namespace rvma
