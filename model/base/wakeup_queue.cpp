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

/// Fetches the state of the unit that runs next; what it does is fetch the rest.
void WakeupQueue::prefetch(const Wakeup& wakeup) {
  constexpr std::ptrdiff_t kLine = 64;
  constexpr std::ptrdiff_t kMost = 12 * kLine;
  // A wake-up is mostly the last member of its unit, behind what it works on.
  const char* const begin = reinterpret_cast<const char*>(&wakeup.owner_) + sizeof(Component) - kLine;
  const char* const own = reinterpret_cast<const char*>(&wakeup + 1);
  const std::ptrdiff_t bytes = own > begin && own - begin < kMost ? own - begin : kMost;
  for (std::ptrdiff_t at = 0; at < bytes; at += kLine) __builtin_prefetch(begin + at);
}

void WakeupQueue::run() {
  is_running_ = true;
  notified_for_ = Time::max();
  const Time now = SimContext::now();
  while (!heap_.empty() && heap_.front().when <= now) {
    Wakeup* const wakeup = pop();
    // With thousands of nodes each unit that runs lies in memory that no cache holds: the next ones are fetched
    // while this one works. Its start is where its state is looked at first.
    if (!heap_.empty()) prefetch(*heap_.front().wakeup);
    if (heap_.size() > 2) {
      __builtin_prefetch(heap_[1].wakeup);
      __builtin_prefetch(heap_[2].wakeup);
    }
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
