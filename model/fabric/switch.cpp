#include "fabric/switch.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace rvma {
namespace {

/// The switch belongs to no clock of its own: every picosecond is an edge.
constexpr Frequency kExactTime = Frequency::mhz(1'000'000);
constexpr std::uint32_t kNoPort = std::numeric_limits<std::uint32_t>::max();

struct Waiting {
  PacketPtr packet;
  Time ready;  ///< earliest first bit at the output
};

/// FIFO whose storage is kept.
class WaitingQueue {
 public:
  bool empty() const { return head_ == items_.size(); }
  const Waiting& front() const { return items_[head_]; }
  void push(Waiting item) {
    if (head_ > 0 && head_ == items_.size()) {
      items_.clear();
      head_ = 0;
    } else if (head_ >= kCompactAt && 2 * head_ >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    items_.push_back(std::move(item));
  }
  Waiting pop() { return std::move(items_[head_++]); }

 private:
  static constexpr std::size_t kCompactAt = 64;
  std::vector<Waiting> items_;
  std::size_t head_ = 0;
};

}  // namespace

struct Switch::Input : PacketSinkIf {
  Input(Switch& owner, std::uint32_t number) : owner_switch(owner), port(number) {}
  void deliver(PacketPtr packet, Time at) override { owner_switch.accept(port, std::move(packet), at); }

  Switch& owner_switch;
  std::uint32_t port;
  LinkCreditIf* upstream = nullptr;
};

struct Switch::Output {
  Output(Switch& owner, std::uint32_t number, std::uint32_t ports)
      : queues(ports),
        last_winner(ports - 1),
        wakeup(owner, ("output" + std::to_string(number)).c_str(), [this, &owner] { owner.arbitrate(*this); }) {}

  /// Earliest time at which some packet is ready; never without one.
  Time earliest_ready() const {
    Time earliest = Time::max();
    for (const WaitingQueue& queue : queues) {
      if (!queue.empty()) earliest = std::min(earliest, queue.front().ready);
    }
    return earliest;
  }
  /// The next input after the last winner, round, whose first packet is ready at `time`.
  std::uint32_t next_winner(Time time) const {
    const auto ports = static_cast<std::uint32_t>(queues.size());
    std::uint32_t port = last_winner;
    for (std::uint32_t i = 0; i < ports; ++i) {
      port = port + 1 == ports ? 0 : port + 1;
      if (!queues[port].empty() && queues[port].front().ready <= time) return port;
    }
    return kNoPort;
  }

  LinkIf* link = nullptr;
  std::vector<WaitingQueue> queues;  ///< the virtual queue of this output at each input
  std::uint32_t last_winner;
  std::uint64_t queued = 0;
  bool starved = false;  ///< waits for on_credit
  Wakeup wakeup;
};

Switch::Switch(const sc_core::sc_module_name& name, SimContext& context, const SwitchConfig& config,
               std::uint32_t ports, const std::string& stats_path)
    : Component(name, context, kExactTime), latency_(config.latency) {
  for (std::uint32_t port = 0; port < ports; ++port) {
    inputs_.push_back(std::make_unique<Input>(*this, port));
    outputs_.push_back(std::make_unique<Output>(*this, port, ports));
  }
  context.stats().add(stats_path, stats_);
}

Switch::~Switch() = default;

PacketSinkIf& Switch::input(std::uint32_t port) { return *inputs_.at(port); }

void Switch::connect(std::uint32_t port, LinkCreditIf& upstream, LinkIf& output) {
  inputs_.at(port)->upstream = &upstream;
  Output& out = *outputs_.at(port);
  out.link = &output;
  // Not arbitrated on the spot: the credit comes from within somebody else's call.
  output.on_credit([this, &out] {
    out.starved = false;
    out.wakeup.at(now());
  });
}

void Switch::set_route(NodeId destination, std::uint32_t port) {
  RVMA_ASSERT(port < ports(), "route to a port that the switch does not have");
  while (!routes_.contains(destination)) routes_.push_back(kNoPort);
  routes_[destination] = port;
}

void Switch::accept(std::uint32_t port, PacketPtr packet, Time at) {
  const NodeId destination = packet->transport.destination;
  const std::uint32_t route = routes_.contains(destination) ? routes_[destination] : kNoPort;
  if (route == kNoPort) {
    ++stats_.unroutable;
    inputs_[port]->upstream->return_credit(packet->wire_bytes, at);
    return;
  }
  Output& output = *outputs_[route];
  const Time ready = at + latency_;
  output.queues[port].push(Waiting{std::move(packet), ready});
  stats_.queued.observe(++output.queued);
  if (!output.starved) output.wakeup.at(std::max(ready, output.link->earliest_start(0, now())));
}

void Switch::arbitrate(Output& output) {
  // A packet that is not announced yet is ready at now + latency at the earliest: decisions before that are final.
  // Decisions are taken at least for now itself, so that a latency of 0 makes progress too.
  const Time horizon = std::max(now() + latency_, now() + Time::from_ps(1));
  while (output.queued > 0 && !output.starved) {
    // 1. The output decides when it is free and a packet is ready.
    const Time decision = std::max(output.earliest_ready(), output.link->earliest_start(0, now()));
    if (decision >= horizon) {
      output.wakeup.at(decision);
      return;
    }
    // 2. Round robin among the inputs that are ready then.
    const std::uint32_t winner = output.next_winner(decision);
    RVMA_ASSERT(winner != kNoPort, "an output decided without a packet");
    // 3. Without credit for it the decision is made again when credit comes.
    if (output.link->earliest_start(output.queues[winner].front().packet->wire_bytes, decision).is_never()) {
      output.starved = true;
      return;
    }
    forward(output, winner, decision);
  }
}

void Switch::forward(Output& output, std::uint32_t port, Time decision) {
  Waiting waiting = output.queues[port].pop();
  --output.queued;
  output.last_winner = port;
  const std::uint32_t bytes = waiting.packet->wire_bytes;
  ++stats_.packets;
  stats_.wire_bytes += bytes;
  const Time start = output.link->send(std::move(waiting.packet), decision);
  stats_.waited_ns += start - waiting.ready;
  const Time last_bit_left = output.link->earliest_start(0, start);
  inputs_[port]->upstream->return_credit(bytes, last_bit_left);
}

}  // namespace rvma
