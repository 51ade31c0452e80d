#include "fabric/routing.hpp"

#include <algorithm>
#include <limits>

namespace rvma {
namespace {

/// Draws of a detour whose first link is up, or that is one at all, before the packet goes straight.
constexpr int kDraws = 16;

}  // namespace

void Router::drop_those_down(const OutputView& outputs) {
  const auto is_up = [&](Port port) { return outputs.is_up(port); };
  if (std::all_of(candidates_.begin(), candidates_.end(), is_up)) return;
  if (std::none_of(candidates_.begin(), candidates_.end(), is_up)) return;
  candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(), [&](Port port) { return !is_up(port); }),
                    candidates_.end());
}

Port Router::pick(bool by_load, const OutputView& outputs, Random& random) {
  if (candidates_.size() == 1) return candidates_.front();
  drop_those_down(outputs);
  if (by_load) {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Port port = candidates_[i];
      const std::uint64_t load = outputs.load_bytes(port);
      if (load > least) continue;
      if (load < least) kept = 0;
      least = load;
      candidates_[kept++] = port;
    }
    candidates_.resize(kept);
  }
  if (candidates_.size() == 1) return candidates_.front();
  return candidates_[static_cast<std::size_t>(random.below(candidates_.size()))];
}

SwitchId Router::target_of(const Packet& packet) const {
  const SwitchId home = shape_.attachment(packet.transport.destination).at;
  if (packet.route.detour == RouteState::kNoDetour || shape_.detours() != shape_.switches()) return home;
  return SwitchId{packet.route.detour};
}

void Router::choose_detour(SwitchId at, SwitchId target, RouteState& route, const OutputView& outputs, Random& random) {
  const std::uint32_t choices = shape_.detours();
  if (choices == 0) return;
  // 1. Draw one whose first link is up.
  std::uint32_t detour = RouteState::kNoDetour;
  Port first = kNoPort;
  for (int draw = 0; draw < kDraws && first == kNoPort; ++draw) {
    detour = static_cast<std::uint32_t>(random.below(choices));
    if (!shape_.is_detour(detour, at, target)) continue;
    candidates_.clear();
    shape_.towards_detour(at, detour, candidates_);
    const Port port = pick(false, outputs, random);
    if (outputs.is_up(port)) first = port;
  }
  if (first == kNoPort) return;
  if (routing_ == Routing::valiant) {
    route.detour = detour;
    return;
  }
  // 2. UGAL: queue times hops is what a way costs. The shortest is taken unless the other is cheaper.
  candidates_.clear();
  shape_.after_detour(at, target, candidates_);
  const Port straight = pick(false, outputs, random);
  const std::uint64_t straight_cost = outputs.load_bytes(straight) * shape_.distance(at, target);
  const std::uint64_t detour_cost = outputs.load_bytes(first) * shape_.distance_over(at, detour, target);
  if (detour_cost < straight_cost || !outputs.is_up(straight)) route.detour = detour;
}

Router::Hop Router::route(SwitchId at, bool enters, Packet& packet, const OutputView& outputs, Random& random) {
  const NodeId destination = packet.transport.destination;
  if (destination.value() >= shape_.nodes()) return Hop{};
  // 1. Arrived.
  const Shape::Attachment home = shape_.attachment(destination);
  if (home.at == at) return Hop{home.port, 0, false};
  // 2. Detours are chosen where the packet enters, and end where it has been there.
  RouteState& route = packet.route;
  if (enters && takes_detours()) choose_detour(at, home.at, route, outputs, random);
  if (route.detour != RouteState::kNoDetour && shape_.at_detour(at, route.detour)) {
    route.detour = RouteState::kNoDetour;
  }
  // 3. The output.
  Hop hop;
  if (routing_ == Routing::static_) {
    hop.port = shape_.static_output(at, home.at, packet.transport.source, destination);
  } else {
    candidates_.clear();
    if (!takes_detours()) {
      shape_.minimal(at, home.at, candidates_);
    } else if (route.detour != RouteState::kNoDetour) {
      shape_.towards_detour(at, route.detour, candidates_);
    } else {
      shape_.after_detour(at, home.at, candidates_);
    }
    hop.port = pick(routing_ != Routing::spray, outputs, random);
  }
  // 4. Its channel.
  if (has_channels_) {
    hop.channel = shape_.channel(routing_, at, hop.port, target_of(packet), route);
    hop.may_escape = shape_.has_escape(routing_);
  }
  return hop;
}

Router::Hop Router::escape(SwitchId at, const Packet& packet) const {
  const Shape::Escape way = shape_.escape(at, shape_.attachment(packet.transport.destination).at);
  return Hop{way.port, way.channel, false};
}

void Router::take(SwitchId at, const Hop& hop, RouteState& route) const {
  route.channel = static_cast<std::uint8_t>(hop.channel);
  if (!shape_.end(at, hop.port).is_switch()) return;
  ++route.hops;
  if (shape_.is_global(at, hop.port)) ++route.global_hops;
}

}  // namespace rvma
