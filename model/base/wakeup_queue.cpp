#include "base/wakeup_queue.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace rvma {

const Wakeup* WakeupQueue::running_ = nullptr;

std::string WakeupQueue::position() {
  std::string text = to_string(SimContext::now());
  if (running_ != nullptr) return text + ", in " + running_->path();
  const sc_core::sc_process_handle process = sc_core::sc_get_current_process_handle();
  if (process.valid()) text += std::string{", in "} + process.name();
  return text;
}

WakeupQueue::WakeupQueue(SimContext& context) : context_(context) {
  sc_core::sc_spawn_options options;
  options.spawn_method();
  options.dont_initialize();
  options.set_sensitivity(&event_);
  sc_core::sc_spawn([this] { run(); }, sc_core::sc_gen_unique_name("wakeups"), &options);
}

void WakeupQueue::request(Wakeup& wakeup, Time when) {
  wakeup.request_ = ++last_request_;
  ++wakeup.entries_;
  heap_.push_back({when, wakeup.request_, &wakeup});
  std::push_heap(heap_.begin(), heap_.end());
  if (!is_running_ && when < notified_for_) notify();
}

void WakeupQueue::withdraw(Wakeup& wakeup) {
  const bool was_first = !heap_.empty() && heap_.front().wakeup == &wakeup;
  wakeup.request_ = 0;
  if (was_first && !is_running_) notify();
}

void WakeupQueue::forget(Wakeup& wakeup) {
  if (wakeup.entries_ == 0) return;
  wakeup.request_ = 0;
  heap_.erase(std::remove_if(heap_.begin(), heap_.end(), [&](const Entry& entry) { return entry.wakeup == &wakeup; }),
              heap_.end());
  std::make_heap(heap_.begin(), heap_.end());
  if (!is_running_) notify();
}

Wakeup* WakeupQueue::pop() {
  const Entry entry = heap_.front();
  std::pop_heap(heap_.begin(), heap_.end());
  heap_.pop_back();
  --entry.wakeup->entries_;
  return is_void(entry) ? nullptr : entry.wakeup;
}

void WakeupQueue::run() {
  is_running_ = true;
  notified_for_ = Time::max();
  const Time now = SimContext::now();
  while (!heap_.empty() && heap_.front().when <= now) {
    Wakeup* const wakeup = pop();
    if (wakeup == nullptr) continue;
    wakeup->request_ = 0;
    wakeup->armed_for_ = Time::max();
    context_.count_activation();
    running_ = wakeup;
    wakeup->body_();
  }
  running_ = nullptr;
  is_running_ = false;
  notify();
}

void WakeupQueue::notify() {
  while (!heap_.empty() && is_void(heap_.front())) pop();
  const Time first = heap_.empty() ? Time::max() : heap_.front().when;
  if (first == notified_for_) return;
  if (notified_for_ < first) event_.cancel();  // an earlier notification would win
  notified_for_ = first;
  if (!first.is_never()) event_.notify(SimContext::to_sc(first - SimContext::now()));
}

}  // namespace rvma
