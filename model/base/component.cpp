#include "base/component.hpp"

#include <utility>

#include "base/error.hpp"

namespace rvma {
namespace {

std::string simulation_position() {
  std::string text = to_string(SimContext::now());
  const sc_core::sc_process_handle process = sc_core::sc_get_current_process_handle();
  if (process.valid()) text += std::string{", in "} + process.name();
  return text;
}

}  // namespace

SimContext::SimContext(std::uint64_t seed) : seed_(seed) {
  RVMA_ASSERT(sc_core::sc_get_time_resolution() == sc_core::sc_time(1, sc_core::SC_PS),
              "SystemC's time resolution is " + sc_core::sc_get_time_resolution().to_string() +
                  ", but the model counts whole picoseconds: it must be 1 ps");
  detail::set_assertion_context(&simulation_position);
}

Wakeup::Wakeup(Component& owner, const char* name, std::function<void()> body)
    : context_(owner.context()), body_(std::move(body)) {
  sc_core::sc_spawn_options options;
  options.spawn_method();
  options.dont_initialize();
  options.set_sensitivity(&event_);
  sc_core::sc_spawn(
      [this] {
        context_.count_activation();
        armed_for_ = Time::max();
        body_();
      },
      name, &options);
}

void Wakeup::at(Time when) {
  // The earliest time asked for wins; the body sees to the rest when it runs.
  if (when >= armed_for_) return;
  const Time now = SimContext::now();
  RVMA_ASSERT(when >= now, "a wake-up for " + to_string(when) + " was asked for at " + to_string(now));
  armed_for_ = when;
  context_.count_notification();
  // An earlier notification of an event replaces a later pending one; no cancel is needed.
  event_.notify(SimContext::to_sc(when - now));
}

void Wakeup::cancel() {
  if (!armed()) return;
  event_.cancel();
  armed_for_ = Time::max();
}

}  // namespace rvma
