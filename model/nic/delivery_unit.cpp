#include "nic/delivery_unit.hpp"

#include <algorithm>
#include <utility>

#include "fabric/wire.hpp"

namespace rvma {

DeliveryUnit::DeliveryUnit(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config,
                           NodeId node, std::uint32_t boot_number, PacketPool& packets)
    : Component(name, context, config.clock),
      egress("egress"),
      bindings("bindings"),
      reliability_(config.reliability),
      nack_(config.nack),
      node_(node),
      boot_number_(boot_number),
      packets_(packets),
      wake_(*this, "wake", [this] { wake(); }),
      silence_(*this, "silence", [this] { look_for_silence(); }) {
  context.stats().add(path(), stats_);
}

void DeliveryUnit::use_cache(SpilledCache& contexts) {
  cache_ = &contexts;
  contexts.set_rest([this](std::uint32_t number) { return by_number_[number]->context.rest_bytes(); });
}

bool DeliveryUnit::has_context(const Packet& packet) {
  const Source* source = cache_ == nullptr ? nullptr : find(packet.transport.source);
  return source == nullptr || cache_->lookup(source->number);
}

void DeliveryUnit::fetch_context(const Packet& packet, std::function<void()> done) {
  cache_->fetch(find(packet.transport.source)->number, SpilledCache::Wait::to_decide, std::move(done));
}

DeliveryUnit::Source* DeliveryUnit::find(NodeId node) {
  if (latest_ != nullptr && latest_->node == node) return latest_;
  const auto found = sources_.find(node);
  if (found == sources_.end()) return nullptr;
  latest_ = found->second.get();
  return latest_;
}

DeliveryUnit::Source* DeliveryUnit::find(const MessageRef& message) {
  Source* source = find(message.source);
  const bool current = source != nullptr && source->context.incarnation() == message.source_incarnation &&
                       source->context.generation() == message.generation;
  return current ? source : nullptr;
}

DeliveryUnit::Source* DeliveryUnit::context_of(const TransportHeader& header) {
  const auto make = [&] {
    return ReceiveContext{header.source_incarnation, header.generation,
                          ReceiveLimits{reliability_.window, reliability_.messages, reliability_.refusals_told}};
  };
  Source* source = find(header.source);
  if (source == nullptr) {
    if (cache_ != nullptr && cache_->is_full()) {
      ++stats_.no_room;
      return nullptr;
    }
    latest_ = (sources_[header.source] = std::make_unique<Source>(header.source, make())).get();
    stats_.contexts.observe(sources_.size());
    latest_->number = numbers_.take();
    if (by_number_.size() < numbers_.made()) by_number_.resize(numbers_.made());
    by_number_[latest_->number] = latest_;
    if (cache_ != nullptr) cache_->add(latest_->number);
    return latest_;
  }
  const ReceiveContext& context = source->context;
  const bool older = header.source_incarnation != context.incarnation()
                         ? header.source_incarnation < context.incarnation()
                         : header.generation < context.generation();
  if (older) return nullptr;
  // A newer incarnation or generation replaces the context; what the older one has bound is never going to be whole.
  if (header.source_incarnation != context.incarnation() || header.generation != context.generation()) {
    bound_.clear();
    source->context.cut_off_all(bound_, now());
    cut_off(*source, bound_);
    unwatch_if_idle(*source);
    const std::uint32_t number = source->number;
    *source = Source{header.source, make()};
    source->number = number;
  }
  // The first packet's decision follows its admission at once: a context that is still there now is there to stay.
  source->tentative = false;
  return source;
}

DeliveryIf::Admission DeliveryUnit::admit(const Packet& packet) {
  const TransportHeader& header = packet.transport;
  Admission admission;
  admission.verdict = Verdict::stale;
  // 1. For another incarnation of this NIC, or from an older one of the source.
  const bool misaddressed = !is_addressed(header);
  Source* source = misaddressed ? nullptr : context_of(header);
  if (misaddressed) tell_incarnation(header);
  if (source == nullptr) {
    ++stats_.stale;
    return admission;
  }
  // 2. The context decides.
  if (cache_ != nullptr) cache_->changed(source->number);
  source->heard_at = now();
  const ReceiveContext::Answer answer =
      source->context.admit(header.sequence, packet.data.message, packet.data.open_span);
  admission = answer.admission;
  bound_.clear();
  source->context.take_abandoned(bound_);
  if (!bound_.empty()) {
    cut_off(*source, bound_);
    unwatch_if_idle(*source);
  }
  if (!answer.in_order) ++stats_.out_of_order;
  switch (admission.verdict) {
    case Verdict::fresh:
      ++stats_.fresh;
      break;
    case Verdict::stale:
      ++stats_.stale;
      break;
    case Verdict::duplicate:
      ++stats_.duplicate;
      want_acknowledgement(*source, now() + reliability_.ack_delay);
      break;
    case Verdict::closed:
      // Nobody handles it any further: it is disposed of here.
      ++stats_.closed;
      source->tentative = false;
      source->context.dispose(header.sequence, now());
      want_acknowledgement(*source, now() + reliability_.ack_delay);
      break;
  }
  return admission;
}

bool DeliveryUnit::is_first(const Packet& packet) {
  const TransportHeader& header = packet.transport;
  if (!is_addressed(header)) return false;
  const Source* source = find(header.source);
  if (source == nullptr) return true;
  const ReceiveContext& context = source->context;
  if (header.source_incarnation != context.incarnation()) return header.source_incarnation > context.incarnation();
  if (header.generation != context.generation()) return header.generation > context.generation();
  return context.is_first(header.sequence, packet.data.message);
}

std::optional<std::uint32_t> DeliveryUnit::binding_of(const Packet& packet) {
  const TransportHeader& header = packet.transport;
  const Source* source = find(header.source);
  if (source == nullptr || header.source_incarnation != source->context.incarnation() ||
      header.generation != source->context.generation()) {
    return std::nullopt;
  }
  return source->context.binding_of(header.sequence, packet.data.message);
}

void DeliveryUnit::bind(const MessageRef& message, std::uint32_t binding) {
  Source* source = find(message);
  if (source == nullptr) return;
  source->tentative = false;
  source->context.bind(message.message, binding);
  watch(*source);
}

void DeliveryUnit::count_bound(Source& source) {
  bound_messages_ += source.context.bound();
  bound_messages_ -= source.bound;
  source.bound = source.context.bound();
  stats_.bound.observe(bound_messages_);
}

void DeliveryUnit::watch(Source& source) {
  count_bound(source);
  if (!source.watched.is_never()) return;
  ++watched_;
  source.watched = now() + reliability_.idle;
  idle_.push({source.watched, source.node});
  silence_.at(idle_.top().at);
}

void DeliveryUnit::unwatch_if_idle(Source& source) {
  count_bound(source);
  if (source.watched.is_never() || source.context.has_bound()) return;
  source.watched = Time::max();
  if (--watched_ > 0) return;
  // A timer that nobody needs would be the run's last event.
  idle_ = {};
  silence_.cancel();
}

void DeliveryUnit::look_for_silence() {
  while (!idle_.empty() && idle_.top().at <= now()) {
    const Due due = idle_.top();
    idle_.pop();
    Source* source = find(due.source);
    if (source == nullptr || source->watched != due.at) continue;
    const Time patience_ends = source->heard_at + reliability_.idle;
    if (patience_ends > now()) {
      source->watched = patience_ends;
      idle_.push({patience_ends, source->node});
      continue;
    }
    ++stats_.silences;
    bound_.clear();
    source->context.cut_off_all(bound_, now());
    cut_off(*source, bound_);
    unwatch_if_idle(*source);
    want_acknowledgement(*source, now() + reliability_.ack_delay);
  }
  if (!idle_.empty()) silence_.at(idle_.top().at);
}

void DeliveryUnit::cut_off(const Source& source, const std::vector<ReceiveContext::Bound>& bound) {
  for (const ReceiveContext::Bound& message : bound) {
    ++stats_.cut_off;
    const MessageRef ref{source.node, source.context.incarnation(), source.context.generation(), message.message};
    if (bindings.size() > 0) bindings->cut_off(ref, message.binding, now());
  }
}

bool DeliveryUnit::is_addressed(const TransportHeader& header) const {
  return header.destination_incarnation == boot_number_ || (header.destination_incarnation == 0 && boot_number_ == 1);
}

/// A packet for an earlier incarnation of this NIC, or for any: its sender does not know yet. One answer in an
/// ack_delay is enough, since whoever is not answered sends again.
void DeliveryUnit::tell_incarnation(const TransportHeader& header) {
  if (now() < next_incarnation_told_) return;
  next_incarnation_told_ = now() + reliability_.ack_delay;
  ++stats_.incarnations_told;
  PacketPtr packet = make_acknowledgement(header.source, header.source_incarnation, header.generation);
  const auto age_us = static_cast<std::uint64_t>((now() - powered_on_).ps() / Time::from_us(1).ps()) + 1;
  packet->ack.age_us = static_cast<std::uint32_t>(std::min<std::uint64_t>(age_us, ~std::uint32_t{0}));
  packet->wire_bytes = wire_bytes_of(*packet);
  egress->send_acknowledgement(std::move(packet), now());
}

void DeliveryUnit::refuse_unidentified(const MessageRef& message, Time at) {
  const Source* source = find(message);
  // Whoever knows mailbox and key sends again, as after a loss.
  if (!nack_ && source != nullptr && source->tentative) {
    ++stats_.refused;
    forget(message.source);
    return;
  }
  refuse(message, Outcome::busy, at);
}

void DeliveryUnit::refuse(const MessageRef& message, Outcome reason, Time at) {
  ++stats_.refused;
  Source* source = find(message);
  if (source == nullptr) return;
  const bool told = nack_ || is_retried(reason);
  // With nack off a stranger whose first packet is refused learns nothing, not even that somebody is here.
  if (source->tentative && !told) {
    forget(message.source);
    return;
  }
  source->tentative = false;
  source->context.refuse(message.message, reason, told, at);
  if (told) want_acknowledgement(*source, at + reliability_.ack_delay);
}

void DeliveryUnit::dispose(const MessageRef& message, std::uint32_t sequence, Time at) {
  Source* source = find(message);
  if (source == nullptr) return;
  source->tentative = false;
  source->context.dispose(sequence, at);
  ++source->untold;
  const bool enough = source->untold >= reliability_.ack_every;
  want_acknowledgement(*source, enough ? at : at + reliability_.ack_delay);
}

void DeliveryUnit::end(const MessageRef& message, Time at) {
  Source* source = find(message);
  if (source == nullptr) return;
  source->tentative = false;
  source->context.end(message.message, at);
  unwatch_if_idle(*source);
  want_acknowledgement(*source, at + reliability_.ack_delay);
}

void DeliveryUnit::withdraw(NodeId node, MessageId message, Time at) {
  Source* source = find(node);
  if (source == nullptr) return;
  ++stats_.cut_off;
  source->context.withdraw(message, nack_, at);
  unwatch_if_idle(*source);
  if (nack_) want_acknowledgement(*source, at + reliability_.ack_delay);
}

void DeliveryUnit::want_acknowledgement(Source& source, Time at) {
  if (at >= source.due) return;
  source.due = at;
  due_.push({at, source.node});
  wake_.at(std::max(at, now()));
}

void DeliveryUnit::wake() {
  while (!due_.empty()) {
    const Due next = due_.top();
    Source* source = find(next.source);
    const bool wanted = source != nullptr && source->due == next.at;
    if (wanted && next.at > now()) {
      wake_.at(next.at);
      return;
    }
    due_.pop();
    if (wanted) acknowledge(*source);
  }
}

void DeliveryUnit::forget(NodeId node) {
  const std::uint32_t number = find(node)->number;
  if (cache_ != nullptr) cache_->remove(number);
  numbers_.give_back(number);
  latest_ = nullptr;
  sources_.erase(node);
}

PacketPtr DeliveryUnit::make_acknowledgement(NodeId node, std::uint32_t incarnation, std::uint32_t generation) {
  PacketPtr packet = packets_.acquire();
  packet->transport.type = PacketType::acknowledgement;
  packet->transport.source = node_;
  packet->transport.destination = node;
  packet->transport.source_incarnation = boot_number_;
  packet->transport.destination_incarnation = incarnation;
  packet->transport.generation = generation;
  return packet;
}

void DeliveryUnit::acknowledge(Source& source) {
  if (cache_ == nullptr || cache_->lookup(source.number)) {
    send_acknowledgement(source);
    return;
  }
  // Whatever else there is to tell goes into the same one.
  source.due = Time::zero();
  cache_->fetch(source.number, SpilledCache::Wait::other, [this, node = source.node] {
    Source* waiting = find(node);
    if (waiting != nullptr && waiting->due == Time::zero()) send_acknowledgement(*waiting);
  });
}

void DeliveryUnit::send_acknowledgement(Source& source) {
  ++stats_.acknowledgements;
  source.due = Time::max();
  if (cache_ != nullptr) cache_->changed(source.number);
  PacketPtr packet = make_acknowledgement(source.node, source.context.incarnation(), source.context.generation());
  const ReceiveContext::LeftOut left_out = source.context.fill(packet->ack, now());
  source.untold = left_out.packets;
  packet->wire_bytes = wire_bytes_of(*packet);
  egress->send_acknowledgement(std::move(packet), now());
  // What could not be told yet goes into the next one.
  if (!left_out.not_yet.is_never()) want_acknowledgement(source, left_out.not_yet + reliability_.ack_delay);
  if (!left_out.held_back.is_never()) {
    ++stats_.refusals_held_back;
    want_acknowledgement(source, left_out.held_back);
  }
}

}  // namespace rvma
