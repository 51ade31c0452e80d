#include "fabric/switch.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace rvma {
namespace {

/// The switch belongs to no clock of its own: every picosecond is an edge.
constexpr Frequency kExactTime = Frequency::mhz(1'000'000);

constexpr std::uint64_t queue_key(Port input, std::uint32_t channel) { return std::uint64_t{input} << 32U | channel; }
constexpr std::uint32_t channel_of(std::uint64_t key) { return static_cast<std::uint32_t>(key); }

}  // namespace

Switch::Switch(const sc_core::sc_module_name& name, SimContext& context, const SwitchConfig& config, Router& router,
               SwitchId id, SwitchStats& stats)
    : Component(name, context, kExactTime),
      router_(router),
      id_(id),
      latency_(config.latency),
      buffer_bytes_(config.buffer->count()),
      cuts_through_(config.forwarding.get() == Forwarding::cut_through),
      oldest_first_(config.arbitration.get() == Arbitration::oldest_first),
      drops_(config.flow_control.get() == FlowControl::drop),
      outputs_(router.shape().ports(id)),
      random_(mix64(context.seed()) ^ mix64(~std::uint64_t{id.value()})),
      stats_(stats),
      wakeup_(*this, "arbitration", [this] { work(); }) {
  for (Port port = 0; port < ports(); ++port) {
    Input& input = inputs_.emplace_back(*this, port);
    input.is_from_node = router.shape().end(id, port).is_node();
    if (drops_) input.tail = std::make_unique<Tail>();
  }
}

Switch::~Switch() = default;

PacketSinkIf& Switch::input(Port port) { return inputs_.at(port); }

void Switch::connect(Port port, Link& upstream, Link& output) {
  inputs_.at(port).upstream = &upstream;
  outputs_.at(port).link = &output;
  // Not arbitrated on the spot: the credit comes from within somebody else's call.
  output.on_credit([this, port] { decide_at(port, std::max(now(), outputs_[port].link->free_at())); });
}

std::uint64_t Switch::load_bytes(Port port) const {
  const Output& output = outputs_[port];
  return output.queued_bytes + output.link->outstanding_bytes();
}

void Switch::accept(Input& input, PacketPtr packet, Time at) {
  // 1. Where it goes.
  Waiting waiting;
  waiting.input = input.port;
  waiting.input_channel = packet->route.channel;
  routed_at_ = packet->route.header_arrives;
  waiting.hop = router_.route(id_, input.is_from_node, *packet, *this, random_);
  if (waiting.hop.port == kNoPort) {
    ++stats_.unroutable;
    input.upstream->return_credit(waiting.input_channel, packet->wire_bytes, at);
    return;
  }
  // 2. Into the queue of that output.
  const Time header_arrives = packet->route.header_arrives;
  waiting.ready = (cuts_through_ ? header_arrives : at) + latency_;
  waiting.packet = std::move(packet);
  const Port port = waiting.hop.port;
  const Time ready = waiting.ready;
  const std::uint32_t slot = take_slot(std::move(waiting));
  if (drops_) input.tail->arrivals.push_back({header_arrives, slot});
  enqueue(port, slot);
  // 3. The output decides when it is ready, and free.
  decide_at(port, std::max(ready, outputs_[port].link->free_at()));
}

void Switch::decide_at(Port port, Time when) {
  Output& output = outputs_[port];
  if (output.queued == 0 || when >= output.due) return;
  output.due = when;
  due_.push_back({when, port});
  std::push_heap(due_.begin(), due_.end());
  wakeup_.at(when);
}

void Switch::work() {
  while (!due_.empty() && due_.front().at <= now()) {
    std::pop_heap(due_.begin(), due_.end());
    const Due due = due_.back();
    due_.pop_back();
    Output& output = outputs_[due.output];
    if (output.due != due.at) continue;
    output.due = Time::max();
    arbitrate(due.output);
  }
  while (!due_.empty() && outputs_[due_.front().output].due != due_.front().at) {
    std::pop_heap(due_.begin(), due_.end());
    due_.pop_back();
  }
  if (!due_.empty()) wakeup_.at(due_.front().at);
}

void Switch::note_head(Queue& queue) const {
  const Waiting& head = waiting_[queue.head];
  queue.ready = head.ready;
  queue.head_bytes = head.packet->wire_bytes;
  queue.may_escape = head.hop.may_escape;
}

Time Switch::find_turns(Output& output) {
  const Time free = std::max(output.link->free_at(), now());
  turns_.clear();
  credit_at_.assign(output.link->buffer().channels, CreditAt{});
  Time earliest = Time::max();
  for (const Queue& queue : output.queues) {
    Time turn = std::max(queue.ready, free);
    if (!queue.may_escape) {
      CreditAt& credit = credit_at_[channel_of(queue.key)];
      if (credit.bytes != queue.head_bytes) {
        credit = {queue.head_bytes, output.link->credit_at(channel_of(queue.key), queue.head_bytes)};
      }
      turn = std::max(turn, credit.at);
    }
    turns_.push_back(turn);
    earliest = std::min(earliest, turn);
  }
  return earliest;
}

std::size_t Switch::winner(const Output& output, Time decision) const {
  std::size_t best = output.queues.size();
  if (oldest_first_) {
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      if (turns_[i] > decision) continue;
      if (best == output.queues.size() || waiting_[output.queues[i].head].packet->route.entered <
                                              waiting_[output.queues[best].head].packet->route.entered) {
        best = i;
      }
    }
    return best;
  }
  // The first behind the last winner, or else the first of all.
  for (std::size_t i = turns_.size(); i-- > 0;) {
    if (turns_[i] > decision) continue;
    if (output.queues[i].key > output.last_winner || best == output.queues.size() ||
        output.queues[best].key <= output.last_winner) {
      best = i;
    }
  }
  return best;
}

void Switch::arbitrate(Port port) {
  Output& output = outputs_[port];
  // A packet that is not announced yet is ready at now + latency at the earliest: decisions before that are final.
  // Decisions are taken at least for now itself, so that a latency of 0 makes progress too.
  const Time horizon = std::max(now() + latency_, now() + Time::from_ps(1));
  while (output.queued > 0) {
    if (drops_ && discard_lost(port)) continue;
    // 1. The output decides when it is free and a packet is ready that has credit.
    const Time decision = find_turns(output);
    if (decision.is_never()) return;  // the link tells when credit comes
    if (decision >= horizon) {
      decide_at(port, decision);
      return;
    }
    // 2. One of those whose turn it is then.
    const std::size_t chosen = winner(output, decision);
    RVMA_ASSERT(chosen < output.queues.size(), "an output decided without a packet");
    // 3. An adaptive packet without credit does not wait for it, lest it wait for itself in a ring.
    const Queue& queue = output.queues[chosen];
    if (queue.may_escape && output.link->credit_at(channel_of(queue.key), queue.head_bytes) > decision) {
      move_to_escape(port, chosen);
      continue;
    }
    forward(port, chosen, decision);
  }
}

void Switch::forward(Port port, std::size_t queue, Time decision) {
  Output& output = outputs_[port];
  output.last_winner = output.queues[queue].key;
  Waiting waiting = release_slot(dequeue(port, queue));
  --queued_;
  const std::uint32_t bytes = waiting.packet->wire_bytes;
  ++stats_.packets;
  stats_.wire_bytes += bytes;
  router_.take(id_, waiting.hop, waiting.packet->route);
  const Time start = output.link->forward(std::move(waiting.packet), decision);
  stats_.waited_ns += start - waiting.ready;
  const Time last_bit_left = output.link->free_at();
  Input& input = inputs_[waiting.input];
  if (drops_) {
    input.tail->departures.push_back({last_bit_left, bytes});
    std::push_heap(input.tail->departures.begin(), input.tail->departures.end(),
                   [](const Tail::Departure& a, const Tail::Departure& b) { return b.at < a.at; });
  } else {
    input.upstream->return_credit(waiting.input_channel, bytes, last_bit_left);
  }
}

void Switch::move_to_escape(Port port, std::size_t queue) {
  ++stats_.escaped;
  const std::uint32_t slot = dequeue(port, queue);
  Waiting& waiting = waiting_[slot];
  waiting.hop = router_.escape(id_, *waiting.packet);
  enqueue(waiting.hop.port, slot);
  if (waiting.hop.port != port) {
    decide_at(waiting.hop.port, std::max({waiting.ready, now(), outputs_[waiting.hop.port].link->free_at()}));
  }
}

void Switch::admit(Input& input) {
  const auto later = [](const Tail::Departure& a, const Tail::Departure& b) { return b.at < a.at; };
  Tail& tail = *input.tail;
  while (!tail.arrivals.empty() && tail.arrivals.front().at <= now()) {
    const Tail::Arrival arrival = tail.arrivals.front();
    tail.arrivals.pop_front();
    while (!tail.departures.empty() && tail.departures.front().at <= arrival.at) {
      tail.occupied_bytes -= tail.departures.front().bytes;
      std::pop_heap(tail.departures.begin(), tail.departures.end(), later);
      tail.departures.pop_back();
    }
    Waiting& waiting = waiting_[arrival.waiting];
    waiting.is_lost = tail.occupied_bytes + waiting.packet->wire_bytes > buffer_bytes_;
    if (waiting.is_lost) {
      input.upstream->count_full(*waiting.packet);
    } else {
      tail.occupied_bytes += waiting.packet->wire_bytes;
    }
  }
}

bool Switch::discard_lost(Port port) {
  Output& output = outputs_[port];
  for (std::size_t i = 0; i < output.queues.size(); ++i) {
    const std::uint32_t head = output.queues[i].head;
    admit(inputs_[waiting_[head].input]);
    if (!waiting_[head].is_lost) continue;
    release_slot(dequeue(port, i));
    --queued_;
    return true;
  }
  return false;
}

std::uint32_t Switch::take_slot(Waiting waiting) {
  recent_queued_.observe(++queued_);
  if (free_slot_ == kNone) {
    waiting_.push_back(std::move(waiting));
    return static_cast<std::uint32_t>(waiting_.size() - 1);
  }
  const std::uint32_t slot = free_slot_;
  free_slot_ = waiting_[slot].next;
  waiting_[slot] = std::move(waiting);
  return slot;
}

Switch::Waiting Switch::release_slot(std::uint32_t slot) {
  Waiting waiting = std::move(waiting_[slot]);
  waiting_[slot].next = free_slot_;
  free_slot_ = slot;
  return waiting;
}

void Switch::enqueue(Port port, std::uint32_t slot) {
  Output& output = outputs_[port];
  Waiting& waiting = waiting_[slot];
  waiting.next = kNone;
  const std::uint64_t key = queue_key(waiting.input, waiting.hop.channel);
  const auto place = std::lower_bound(output.queues.begin(), output.queues.end(), key,
                                      [](const Queue& queue, std::uint64_t wanted) { return queue.key < wanted; });
  if (place != output.queues.end() && place->key == key) {
    waiting_[place->tail].next = slot;
    place->tail = slot;
  } else {
    note_head(*output.queues.insert(place, Queue{key, slot, slot, Time::zero(), 0, false}));
  }
  output.queued_bytes += waiting.packet->wire_bytes;
  stats_.queued.observe(++output.queued);
}

std::uint32_t Switch::dequeue(Port port, std::size_t queue) {
  Output& output = outputs_[port];
  Queue& from = output.queues[queue];
  const std::uint32_t slot = from.head;
  output.queued_bytes -= waiting_[slot].packet->wire_bytes;
  --output.queued;
  if (from.head == from.tail) {
    output.queues.erase(output.queues.begin() + static_cast<std::ptrdiff_t>(queue));
  } else {
    from.head = waiting_[slot].next;
    note_head(from);
  }
  return slot;
}

}  // namespace rvma
