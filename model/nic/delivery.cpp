#include "nic/delivery.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace rvma {
namespace {

std::size_t words_for(std::uint32_t window) {
  std::size_t words = 1;
  while (64 * words < window) words *= 2;
  return words;
}

}  // namespace

WindowBitmap::WindowBitmap(std::uint32_t window) : words_(words_for(window)) {}

std::uint64_t WindowBitmap::bits_from(std::uint32_t number) const {
  const std::uint32_t shift = number & 63U;
  const std::uint64_t low = word(number) >> shift;
  return shift == 0 ? low : low | word(number + 64) << (64 - shift);
}

bool RefusalBudget::take(Time at) {
  while (!told_.empty() && told_.front() + kSpan <= at) told_.pop();
  if (told_.size() >= most_) return false;
  told_.push(at);
  return true;
}

ReceiveContext::ReceiveContext(std::uint32_t incarnation, std::uint32_t generation, const ReceiveLimits& limits)
    : incarnation_(incarnation),
      generation_(generation),
      window_(limits.window),
      most_messages_(limits.messages),
      seen_(limits.window),
      disposed_(limits.window),
      budget_(limits.refusals_told) {}

ReceiveContext::Answer ReceiveContext::admit(std::uint32_t sequence, MessageId message, std::uint16_t open_span) {
  using Verdict = DeliveryIf::Verdict;
  Answer answer;
  // 1. Duplicates, and numbers that no honest sender can have in flight.
  const std::int32_t ahead = serial_distance(sequence, base_);
  if (ahead < 0 || (static_cast<std::uint32_t>(ahead) < window_ && seen_.test(sequence))) {
    answer.admission.verdict = Verdict::duplicate;
    return answer;
  }
  const std::uint32_t oldest = serial_later(message.value() - open_span, messages_.base());
  if (static_cast<std::uint32_t>(ahead) >= window_ ||
      serial_distance(message.value(), oldest) >= static_cast<std::int32_t>(most_messages_)) {
    answer.admission.verdict = Verdict::stale;
    return answer;
  }
  // 2. A number that was not seen before.
  seen_.set(sequence);
  answer.in_order = sequence == next_expected_;
  next_expected_ = serial_later(next_expected_, sequence + 1);
  // 3. Its message: ids that the sender has closed are forgotten, new ones start as unseen.
  advance_oldest(oldest);
  if (serial_distance(message.value(), oldest) < 0) {
    answer.admission.verdict = Verdict::closed;
    return answer;
  }
  while (!messages_.contains(message.value())) messages_.push_back({});
  const Message& entry = messages_[message.value()];
  answer.admission.verdict = entry.state == MessageState::done ? Verdict::closed : Verdict::fresh;
  answer.admission.state = entry.state;
  answer.admission.binding = entry.binding;
  return answer;
}

bool ReceiveContext::is_first(std::uint32_t sequence, MessageId message) const {
  const std::int32_t ahead = serial_distance(sequence, base_);
  if (ahead < 0 || static_cast<std::uint32_t>(ahead) >= window_ || seen_.test(sequence)) return false;
  if (serial_distance(message.value(), messages_.base()) < 0) return false;
  return !messages_.contains(message.value()) || messages_[message.value()].state == MessageState::unseen;
}

std::optional<std::uint32_t> ReceiveContext::binding_of(std::uint32_t sequence, MessageId message) const {
  const std::int32_t ahead = serial_distance(sequence, base_);
  if (ahead < 0 || static_cast<std::uint32_t>(ahead) >= window_ || seen_.test(sequence)) return std::nullopt;
  if (!messages_.contains(message.value()) || messages_[message.value()].state != MessageState::bound) {
    return std::nullopt;
  }
  return messages_[message.value()].binding;
}

void ReceiveContext::advance_oldest(std::uint32_t oldest) {
  while (messages_.base() != oldest && !messages_.empty()) {
    const Message& passed = messages_.front();
    if (passed.state == MessageState::bound) {
      abandoned_.push_back({MessageId{messages_.base()}, passed.binding});
      --bound_;
    }
    messages_.pop_front();
  }
  if (messages_.base() != oldest) messages_.restart(oldest);
  ok_prefix_ = serial_later(ok_prefix_, oldest);
  outcomes_end_ = serial_later(outcomes_end_, oldest);
}

ReceiveContext::Message* ReceiveContext::find(MessageId message) {
  return messages_.contains(message.value()) ? &messages_[message.value()] : nullptr;
}

void ReceiveContext::bind(MessageId message, std::uint32_t binding) {
  Message* entry = find(message);
  if (entry == nullptr || entry->state != MessageState::unseen) return;
  entry->state = MessageState::bound;
  ++bound_;
  entry->binding = binding;
}

void ReceiveContext::refuse(MessageId message, Outcome reason, bool told, Time at) {
  Message* entry = find(message);
  if (entry == nullptr || entry->state != MessageState::unseen) return;
  entry->state = MessageState::refused;
  if (!told) return;
  entry->outcome = reason;
  entry->told_from = at;
  outcomes_end_ = serial_later(outcomes_end_, message.value() + 1);
}

void ReceiveContext::end(MessageId message, Time at) {
  Message* entry = find(message);
  if (entry == nullptr || entry->state == MessageState::refused || entry->state == MessageState::done) return;
  if (entry->state == MessageState::bound) --bound_;
  entry->state = MessageState::done;
  entry->outcome = Outcome::ok;
  entry->told_from = at;
  outcomes_end_ = serial_later(outcomes_end_, message.value() + 1);
}

void ReceiveContext::withdraw(MessageId message, bool told, Time at) {
  Message* entry = find(message);
  if (entry == nullptr || entry->state != MessageState::bound) return;
  --bound_;
  entry->state = MessageState::unseen;
  refuse(message, Outcome::stale, told, at);
}

void ReceiveContext::take_abandoned(std::vector<Bound>& abandoned) {
  abandoned.insert(abandoned.end(), abandoned_.begin(), abandoned_.end());
  abandoned_.clear();
}

void ReceiveContext::cut_off_all(std::vector<Bound>& bound, Time at) {
  for (std::uint32_t id = messages_.base(); bound_ > 0 && id != messages_.end(); ++id) {
    Message& entry = messages_[id];
    if (entry.state != MessageState::bound) continue;
    bound.push_back({MessageId{id}, entry.binding});
    withdraw(MessageId{id}, true, at);
  }
}

void ReceiveContext::dispose(std::uint32_t sequence, Time at) {
  const std::uint32_t ahead = sequence - base_;
  if (serial_distance(sequence, base_) < 0 || ahead >= window_ || !seen_.test(sequence)) return;
  disposals_.push_back({sequence, at});
}

void ReceiveContext::settle(Time at, LeftOut& left_out) {
  std::size_t kept = 0;
  for (const Disposal disposal : disposals_) {
    if (disposal.at <= at) {
      // A number that has passed the base was disposed of twice; its bit belongs to another number by now.
      if (serial_distance(disposal.sequence, base_) >= 0) disposed_.set(disposal.sequence);
      continue;
    }
    left_out.not_yet = std::min(left_out.not_yet, disposal.at);
    disposals_[kept++] = disposal;
  }
  disposals_.resize(kept);
  left_out.packets = static_cast<std::uint32_t>(kept);
  while (disposed_.test(base_)) {
    disposed_.clear(base_);
    seen_.clear(base_);
    ++base_;
  }
}

ReceiveContext::LeftOut ReceiveContext::fill(AckHeader& ack, Time at) {
  LeftOut left_out;
  // 1. Packets.
  settle(at, left_out);
  ack.cumulative = base_;
  ack.selective.clear();
  for (std::uint32_t from = base_; serial_distance(next_expected_, from) > 0; from += 64) {
    ack.selective.push_back(disposed_.bits_from(from));
  }
  while (!ack.selective.empty() && ack.selective.back() == 0) ack.selective.pop_back();
  // 2. Messages: all that ended ok from the oldest open one on need no entry.
  while (messages_.contains(ok_prefix_) && messages_[ok_prefix_].state == MessageState::done &&
         messages_[ok_prefix_].told_from <= at) {
    ++ok_prefix_;
  }
  ack.outcomes_from = MessageId{ok_prefix_};
  ack.outcomes.clear();
  // 3. The others one by one; a refusal is told for the first time only if the budget allows it.
  for (std::uint32_t id = ok_prefix_; serial_distance(outcomes_end_, id) > 0; ++id) {
    Message& entry = messages_[id];
    Outcome outcome = entry.outcome;
    if (outcome != Outcome::pending && entry.told_from > at) {
      left_out.not_yet = std::min(left_out.not_yet, entry.told_from);
      outcome = Outcome::pending;
    } else if (entry.state == MessageState::refused && outcome != Outcome::pending && !entry.told) {
      entry.told = left_out.held_back.is_never() && budget_.take(at);
      if (!entry.told) {
        left_out.held_back = budget_.free_at();
        outcome = Outcome::pending;
      }
    }
    ack.outcomes.push_back(outcome);
  }
  while (!ack.outcomes.empty() && ack.outcomes.back() == Outcome::pending) ack.outcomes.pop_back();
  return left_out;
}

std::uint32_t ReceiveContext::rest_bytes() const {
  const std::uint32_t seen = next_expected_ - base_;
  return static_cast<std::uint32_t>(most_rest_bytes(seen, messages_.size()));
}

std::size_t ReceiveContext::state_bytes() const {
  return sizeof(*this) + seen_.size() / 8 + disposed_.size() / 8 + messages_.storage_bytes() +
         disposals_.capacity() * sizeof(Disposal) + abandoned_.capacity() * sizeof(Bound) + budget_.storage_bytes();
}

}  // namespace rvma
