#include "rdma/work_unit.hpp"

#include <utility>

#include "base/error.hpp"

namespace rvma {
namespace {

RdmaOperation operation_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::rdma_write:
      return RdmaOperation::write;
    case Opcode::rdma_write_immediate:
      return RdmaOperation::write_immediate;
    case Opcode::rdma_send:
      return RdmaOperation::send;
    default:
      return RdmaOperation::read;
  }
}

std::uint32_t queue_pair_of(const PutRequest& request) {
  return static_cast<std::uint32_t>(request.descriptor.offset >> 32U);
}

}  // namespace

WorkUnit::WorkUnit(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& nic,
                   const RdmaConfig& rdma, RdmaState& state, StateCache& queue_pairs,
                   CompletionQueueWriter& completions)
    : Component(name, context, nic.clock),
      transmit("transmit"),
      read_timeout_(nic.get.timeout),
      most_answers_(rdma.reads),
      state_(state),
      queue_pairs_(queue_pairs),
      completions_(completions),
      time_out_(*this, "time_out", [this] { look_at_time_outs(); }),
      resume_(*this, "resume", [this] { hand_on(); }) {
  context.stats().add(path(), stats_);
}

void WorkUnit::end_of_elaboration() {
  transmit->on_room([this] { hand_on(); });
  state_.on_read_answered([this] { answered(); });
}

bool WorkUnit::submit(const PutRequest& request, Cycles /*at*/) {
  if (held_ + ready_.size() >= kMostHeld) {
    starved_ = true;
    return false;
  }
  const std::uint32_t number = queue_pair_of(request);
  if (!state_.has_queue_pair(number)) {
    ++stats_.malformed;
    return true;
  }
  PutRequest prepared = request;
  prepare(prepared);
  if (queue_pairs_.find(number)) {
    ready_.push(prepared);
    hand_on();
    return true;
  }
  stats_.held.observe(++held_);
  queue_pairs_.fetch(number, [this, prepared] {
    --held_;
    ready_.push(prepared);
    // After all that waited for the same context: hand_on() lets new requests in, which would pass them.
    resume_.at(now());
  });
  return true;
}

/// From a queue pair's request to a message.
void WorkUnit::prepare(PutRequest& request) {
  Descriptor& descriptor = request.descriptor;
  const std::uint32_t number = queue_pair_of(request);
  const RdmaState::Route route = state_.route_of(number, descriptor);
  request.purpose = Purpose::rdma;
  request.rdma.operation = operation_of(descriptor.opcode);
  request.rdma.queue_pair = route.queue_pair;
  request.rdma.immediate = static_cast<std::uint32_t>(descriptor.offset);
  descriptor.destination_node = route.peer;
  descriptor.offset = 0;
  switch (request.rdma.operation) {
    case RdmaOperation::read:
      ++stats_.reads;
      request.ask = {descriptor.length, Mailbox{descriptor.local.value()},
                     static_cast<std::uint32_t>(descriptor.page_list.value())};
      request.rdma.immediate = state_.open_read(request.pid, descriptor.completion.value());
      descriptor.length = 0;
      descriptor.single_page = true;
      return;
    case RdmaOperation::send:
      ++stats_.sends;
      break;
    default:
      ++stats_.writes;
      break;
  }
}

bool WorkUnit::answer(NodeId asker, const DataHeader& request, const Descriptor& answer) {
  if (serving_ >= most_answers_) return false;
  stats_.serving.observe(++serving_);
  ++stats_.answers;
  PutRequest put;
  put.descriptor = answer;
  put.descriptor.destination_node = asker;
  put.purpose = Purpose::rdma;
  put.doorbell = now();
  put.rdma = {RdmaOperation::read_answer, state_.route_of(request.rdma.queue_pair, put.descriptor).queue_pair,
              request.rdma.immediate};
  ready_.push(put);
  hand_on();
  return true;
}

void WorkUnit::hand_on() {
  while (!ready_.empty() && transmit->submit(ready_.front(), current_cycle())) ready_.pop();
  if (held_ + ready_.size() >= kMostHeld || !std::exchange(starved_, false)) return;
  for (const auto& room : room_) room();
}

void WorkUnit::ended(const PutRequest& request, Outcome outcome, std::uint32_t /*tries*/, Time at) {
  switch (request.rdma.operation) {
    case RdmaOperation::read_answer:
      --serving_;
      return;
    case RdmaOperation::read: {
      if (outcome == Outcome::ok) {
        // The answer may have overtaken the acknowledgement.
        if (!state_.is_reading(request.rdma.immediate)) return;
        due_.push({at + read_timeout_, request.rdma.immediate});
        if (due_.size() == 1) time_out_.at(due_.front().at);
        return;
      }
      Pid pid;
      std::uint64_t id = 0;
      if (state_.end_read(request.rdma.immediate, pid, id)) complete(pid, CqeKind::read, id, outcome, at);
      return;
    }
    default:
      complete(request.pid, CqeKind::sent, request.descriptor.completion.value(), outcome, at);
  }
}

void WorkUnit::complete(Pid pid, CqeKind kind, std::uint64_t id, Outcome outcome, Time at) {
  ++(outcome == Outcome::ok ? stats_.ended_ok : stats_.ended_otherwise);
  if (id == 0) return;
  completions_.push({pid, {kind, outcome, 0, id}}, at);
}

void WorkUnit::answered() {
  ++stats_.ended_ok;
  if (state_.open_reads() > 0) return;
  // Nobody waits: a timer that is left would be the run's last event.
  while (!due_.empty()) due_.pop();
  time_out_.cancel();
}

void WorkUnit::look_at_time_outs() {
  while (!due_.empty() && due_.front().at <= now()) {
    Pid pid;
    std::uint64_t id = 0;
    if (!state_.end_read(due_.pop().read, pid, id)) continue;
    ++stats_.reads_timed_out;
    complete(pid, CqeKind::read, id, Outcome::timeout, now());
  }
  if (!due_.empty()) time_out_.at(due_.front().at);
}

}  // namespace rvma
