#include "fabric/faults.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace rvma {
namespace {

/// The stage belongs to no clock: every picosecond is an edge.
constexpr Frequency kExactTime = Frequency::mhz(1'000'000);

}  // namespace

FaultStage::FaultStage(const sc_core::sc_module_name& name, SimContext& context, const FaultsConfig& config,
                       PacketSinkIf& next, const std::string& stats_path, PacketPool& packets, FabricLosses& losses)
    : Component(name, context, kExactTime),
      next_(next),
      packets_(packets),
      losses_(losses),
      drop_ppb_(config.drop->ppb()),
      corrupt_ppb_(config.corrupt->ppb()),
      duplicate_ppb_(config.duplicate->ppb()),
      reverse_(config.reverse),
      reverse_hold_(config.reverse_hold),
      jitter_ps_(static_cast<std::uint64_t>(config.jitter->ps())),
      random_(context.seed(), stats_path),
      wakeup_(*this, "wakeup", [this] { work(); }) {
  context.stats().add(stats_path, stats_);
}

bool FaultStage::wanted(const FaultsConfig& config) {
  const bool loses = config.drop->ppb() > 0 || config.corrupt->ppb() > 0 || config.duplicate->ppb() > 0;
  return loses || config.jitter.get() != Time::zero() || config.reverse.get() > 1;
}

void FaultStage::deliver(PacketPtr packet, Time at) {
  ++stats_.packets;
  // 1. Batches whose time is up before this packet arrives go without it.
  expire(at);
  // 2. Lost: its place in the receiver's buffer is free again.
  if (drop_ppb_ > 0 && random_.chance(drop_ppb_)) {
    ++stats_.dropped;
    losses_.lose(*packet);
    RVMA_ASSERT(upstream_ != nullptr, "a fault stage without the link that feeds it");
    upstream_->return_credit(packet->wire_bytes, at);
    arm();
    return;
  }
  // 3. Damaged.
  if (corrupt_ppb_ > 0 && random_.chance(corrupt_ppb_)) {
    ++stats_.corrupted;
    packet->corrupted = true;
  }
  // 4. Doubled.
  if (duplicate_ppb_ > 0 && random_.chance(duplicate_ppb_)) {
    ++stats_.duplicated;
    losses_.copy(*packet);
    PacketPtr copy = packets_.acquire();
    packet->copy_to(*copy);
    copy->wire_bytes = 0;
    pass(std::move(packet), at);
    pass(std::move(copy), at);
  } else {
    pass(std::move(packet), at);
  }
  arm();
}

/// Holds the packet, or lets it go on.
void FaultStage::pass(PacketPtr packet, Time at) {
  if (reverse_ > 1) {
    hold(std::move(packet), at);
  } else {
    depart(std::move(packet), at, at);
  }
}

std::uint64_t FaultStage::flow_of(const Packet& packet) {
  const TransportHeader& transport = packet.transport;
  const std::uint64_t type = transport.type == PacketType::data ? 0 : 1;
  return type << 63U | std::uint64_t{transport.source.value()} << 31U | transport.destination.value();
}

void FaultStage::hold(PacketPtr packet, Time at) {
  const std::uint64_t key = flow_of(*packet);
  Flow& flow = flows_[key];
  if (flow.held.empty()) deadlines_.push_back(Deadline{at + reverse_hold_, key, ++flow.batch});
  flow.held.push_back(Held{std::move(packet), at});
  if (flow.held.size() == reverse_) release_batch(flow, at);
}

void FaultStage::expire(Time time) {
  while (!deadlines_.empty() && deadlines_.front().when <= time) {
    const Deadline deadline = deadlines_.front();
    deadlines_.pop_front();
    Flow& flow = flows_[deadline.flow];
    if (flow.batch != deadline.batch || flow.held.empty()) continue;
    ++stats_.let_go;
    release_batch(flow, deadline.when);
  }
}

void FaultStage::release_batch(Flow& flow, Time at) {
  if (flow.held.size() > 1) stats_.reversed += flow.held.size();
  while (!flow.held.empty()) {
    Held last = std::move(flow.held.back());
    flow.held.pop_back();
    depart(std::move(last.packet), last.arrived, at);
  }
}

void FaultStage::depart(PacketPtr packet, Time arrived, Time released) {
  const std::uint64_t jitter_ps = jitter_ps_ == 0 ? 0 : random_.below(jitter_ps_ + 1);
  const Time when = released + Time::from_ps(static_cast<std::int64_t>(jitter_ps));
  stats_.delay_ns += when - arrived;
  departures_.push_back(Departure{when, releases_++, std::move(packet)});
  std::push_heap(departures_.begin(), departures_.end(), Later{});
}

void FaultStage::work() {
  expire(now());
  while (!departures_.empty() && departures_.front().when <= now()) {
    std::pop_heap(departures_.begin(), departures_.end(), Later{});
    Departure departure = std::move(departures_.back());
    departures_.pop_back();
    next_.deliver(std::move(departure.packet), departure.when);
  }
  arm();
}

void FaultStage::arm() {
  while (!deadlines_.empty()) {
    const Flow& flow = flows_[deadlines_.front().flow];
    if (flow.batch == deadlines_.front().batch && !flow.held.empty()) break;
    deadlines_.pop_front();
  }
  if (!deadlines_.empty()) wakeup_.at(deadlines_.front().when);
  if (!departures_.empty()) wakeup_.at(departures_.front().when);
}

}  // namespace rvma
