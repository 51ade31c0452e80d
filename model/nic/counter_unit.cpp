#include "nic/counter_unit.hpp"

#include <algorithm>
#include <utility>

namespace rvma {

CounterUnit::CounterUnit(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, NodeId node,
                         WindowStore& windows, const ObserverList& observers)
    : Component(name, context, config.clock),
      delivery("delivery"),
      completions("completions"),
      node_(node),
      windows_(windows),
      observers_(observers),
      latency_(config.counters.latency),
      forwarding_(config.counters.forwarding),
      taken_(config.counters.queue.get()),
      writer_latency_(config.completion.latency),
      update_(*this, "update", [this] { run(); }) {
  context.stats().add(path(), stats_);
  context.stats().add_level(path(), "queue", stats_.queue, [this]() -> std::uint64_t { return queue_.size(); });
  // A bind that retires a buffer with nothing left to wait for. The unit decides on it in a cycle of its own, after the
  // packet's decision has been told to everybody.
  windows_.on_completion_due([this] {
    if (flush_wanted_) return;
    flush_wanted_ = true;
    flush_due_ = occupy(now());
    arm();
  });
}

Cycles CounterUnit::occupy(Time at, Cycles earliest) {
  const Cycles arrival = clock().edge_at_or_after(at);
  const Cycles free = std::max(arrival, next_free_);
  const Cycles taken = std::max(free, earliest);
  next_free_ = taken + Cycles{1};
  const Time taken_time = clock().time_of(taken);
  // Whoever stalls at the pipeline's head keeps it from everybody: it is as busy as if it worked.
  stats_.update.occupy(clock().time_of(next_free_) - clock().time_of(free), 1);
  if (taken > free) {
    ++stats_.stalls;
    stats_.stall_ns += taken_time - clock().time_of(free);
  }
  if (taken > arrival) stats_.waited_ns += taken_time - clock().time_of(arrival);
  taken_[stats_.updates.value() % taken_.size()] = taken;
  ++stats_.updates;
  return taken + latency_;
}

Cycles CounterUnit::occupy_counter(BufferId buffer, Time at) {
  if (buffer.index() >= written_back_.size()) written_back_.resize(buffer.index() + 1);
  Cycles& written_back = written_back_[buffer.index()];
  written_back = occupy(at, written_back);
  return written_back;
}

Time CounterUnit::room_at() const {
  if (stats_.updates.value() < taken_.size()) return Time::zero();
  return clock().time_of(taken_[stats_.updates.value() % taken_.size()]);
}

void CounterUnit::count(PlacedPacket packet, Time at) {
  packet.payload.reset();
  const Cycles due = forwarding_ ? occupy(at) : occupy_counter(packet.buffer, at);
  if (!windows_.ends_message(packet)) {
    windows_.count(packet);
    return;
  }
  queue_.push({std::move(packet), due});
  stats_.queue.observe(queue_.size());
  arm();
}

Time CounterUnit::flush_completions(Time at) {
  const Cycles due = flush_wanted_ ? flush_due_ : clock().edge_at_or_after(at) + latency_;
  flush_wanted_ = false;
  hand_over({}, due);
  if (writer_next_free_ == Cycles{}) return at;
  return std::max(at, clock().time_of(writer_next_free_ - Cycles{1} + writer_latency_));
}

void CounterUnit::arm() {
  Time next = Time::max();
  if (!queue_.empty()) next = clock().time_of(queue_.front().due);
  if (flush_wanted_) next = std::min(next, clock().time_of(flush_due_));
  if (!next.is_never()) update_.at(next);
}

void CounterUnit::run() {
  const Cycles cycle = current_cycle();
  if (flush_wanted_ && flush_due_ <= cycle) {
    flush_wanted_ = false;
    hand_over({}, cycle);
  }
  while (!queue_.empty() && queue_.front().due <= cycle) {
    Update update = queue_.pop();
    end_message(update.packet, update.due);
  }
  arm();
}

void CounterUnit::end_message(PlacedPacket& packet, Cycles cycle) {
  const Time at = clock().time_of(cycle);
  packet.left[static_cast<std::size_t>(Stage::count)] = at;
  // 1. What a call or a misfit made due comes before what this packet makes due.
  if (flush_wanted_) {
    flush_wanted_ = false;
    hand_over({}, cycle);
  }
  // 2. Count; the message is whole, unless it was cut off meanwhile. One of a single packet learns it only here.
  if (!windows_.count(packet)) {
    if (!packet.has_binding) delivery->refuse(packet.message, Outcome::stale, at);
    hand_over({}, cycle);
    return;
  }
  ++stats_.messages;
  observers_.tell([&](NicObserver& observer) { observer.message_counted(node_, packet.message, packet.buffer, at); });
  // 3. Its outcome may be told to the sender from now on.
  delivery->end(packet.message, at);
  // 4. Epochs that it completed.
  hand_over(packet.left, cycle);
}

void CounterUnit::hand_over(const StageTimes& left, Cycles cycle) {
  windows_.take_completions(due_completions_);
  for (Completion& completion : due_completions_) {
    completion.left = left;
    ++stats_.completions;
    writer_next_free_ = std::max(cycle, writer_next_free_) + Cycles{1};
    completions->complete(completion, cycle);
  }
  due_completions_.clear();
}

}  // namespace rvma
