#include "reference.hpp"

#include <algorithm>
#include <cstddef>

namespace rvma::check {

Reference::Reference(const Scenario& scenario, const std::vector<MessageSpec>& messages)
    : scenario_(&scenario),
      specs_(&messages),
      senders_(messages),
      messages_(messages.size()),
      packets_(messages.size()) {
  for (std::size_t i = 0; i < scenario.buffers.size(); ++i) {
    sizes_.at(i) = scenario.buffers[i];
    bucket_.push_back(static_cast<int>(i));
  }
}

Observed Reference::apply(const Action& action) {
  switch (action.act) {
    case Act::arrive:
    case Act::again:
    case Act::resend:
      return arrive(action.message, action.packet);
    case Act::land:
      return land(action.message, action.packet);
    case Act::hear:
      senders_.hear(action.message, known_ended(action.message));
      return {};
    case Act::inc_epoch:
      return inc_epoch();
    case Act::rewind:
      return rewind(action.packet);
    case Act::finish_rewind:
      return finish_rewind();
    case Act::close:
      return close();
    case Act::new_generation: {
      // Nothing happens at the receiver before the first packet of the new generation arrives.
      std::vector<bool> unbegun;
      for (const auto& packets : packets_) {
        unbegun.push_back(std::count(packets.begin(), packets.end(), Where::not_here) == kMostPackets);
      }
      senders_.start_generation(action.message, unbegun);
      return {};
    }
    case Act::silence:
      cut_off_sender(action.message);
      Observed seen;
      settle(seen);
      return seen;
  }
  return {};
}

// ------------------------------------------------------------------------------------------------------------- packets

Observed Reference::arrive(unsigned message, unsigned packet) {
  const Arrival header = senders_.arrival(message, packet);
  Observed seen;
  seen.fate = Fate::ignored;
  // Section 6: older generation: dropped. A newer one cuts off what the older one has bound.
  std::uint32_t& heard = heard_generation_.at(header.sender);
  if (header.generation < heard) return seen;
  if (header.generation > heard) {
    if (heard != 0) cut_off_sender(header.sender);
    heard = header.generation;
    closed_below_.at(header.sender) = 0;
    settle(seen);
  }
  // A duplicate is acknowledged and otherwise ignored.
  Where& where = packets_[message][packet];
  if (where != Where::not_here) return seen;
  where = Where::disposed;  // unless it is placed below
  // Packets that name a closed id change nothing.
  std::uint32_t& closed_below = closed_below_.at(header.sender);
  closed_below = std::max(closed_below, header.oldest_open);
  if (header.id < closed_below) return seen;
  Message& whole = messages_[message];
  switch (whole.state) {
    case MessageState::unseen:
      bind(message, packet, seen);
      break;
    case MessageState::bound:
      seen.fate = Fate::placed;
      break;
    case MessageState::refused:
    case MessageState::cut_off:
      seen.fate = Fate::discarded;
      break;
    case MessageState::done:
      break;
  }
  if (seen.fate == Fate::placed) {
    where = Where::on_the_way;
    seen.buffer = whole.buffer;
    seen.offset = whole.place + packet * kMtu;
  }
  return seen;
}

void Reference::bind(unsigned message, unsigned packet, Observed& seen) {
  (void)packet;
  const MessageSpec& spec = (*specs_)[message];
  Message& whole = messages_[message];
  int buffer = kNowhere;
  std::uint64_t place = 0;
  bool retires_active = false;
  const Reason refusal = find_place(message, buffer, place, retires_active);
  if (retires_active) {
    retire(active());
    settle(seen);
  }
  if (refusal != Reason::none) {
    whole.state = MessageState::refused;
    whole.refusal = refusal;
    seen.fate = Fate::refused;
    seen.reason = refusal;
    return;
  }
  seen.fate = Fate::placed;
  whole.state = MessageState::bound;
  whole.buffer = buffer;
  whole.place = place;
  Buffer& into = buffers_.at(static_cast<std::size_t>(buffer));
  into.reserved += scenario_->counts_ops ? 1 : spec.length;
  into.tail += spec.length;
  if (into.reserved >= scenario_->threshold) retire(buffer);
}

/// Section 4: the first reason that applies. Section 3: placement and bounds.
Reason Reference::find_place(unsigned message, int& buffer, std::uint64_t& place, bool& retires_active) const {
  const MessageSpec& spec = (*specs_)[message];
  if (!spec.mailbox_exists) return Reason::no_mailbox;
  if (state_ == State::closing || state_ == State::closed) return Reason::closed;
  if (scenario_->is_one_time && active() == kNowhere) return Reason::closed;
  if (scenario_->key != 0 && spec.key != scenario_->key) return Reason::bad_key;
  if (active() == kNowhere) return Reason::no_buffer;
  buffer = active();
  const std::uint64_t size = sizes_.at(static_cast<std::size_t>(buffer));
  bool would_retire = false;
  if (!scenario_->is_managed) {
    place = spec.offset;
    const bool wraps = spec.offset + spec.length < spec.offset;
    if (wraps || spec.offset + spec.length > size) return Reason::bounds;
  } else {
    place = buffers_.at(static_cast<std::size_t>(buffer)).tail;
    if (place + spec.length > size) {
      // Longer than what is left.
      if (place == 0) return Reason::bounds;
      if (after_active() != kNowhere) {
        if (spec.length > sizes_.at(static_cast<std::size_t>(after_active()))) return Reason::bounds;
        buffer = after_active();
        place = 0;
        would_retire = true;
      } else {
        if (spec.length > size) return Reason::bounds;
        retires_active = true;
        return scenario_->is_one_time ? Reason::closed : Reason::no_buffer;
      }
    }
  }
  if (state_ == State::rewinding) return Reason::busy;
  if (spec.packets() > 1 && binding_entries() == scenario_->binding_entries) return Reason::busy;
  retires_active = would_retire;
  return Reason::none;
}

Observed Reference::land(unsigned message, unsigned packet) {
  Observed seen;
  packets_[message][packet] = Where::disposed;
  const MessageSpec& spec = (*specs_)[message];
  Message& whole = messages_[message];
  if (whole.state == MessageState::bound) {
    whole.delivered += spec.packet_bytes(packet);
    buffers_.at(static_cast<std::size_t>(whole.buffer)).delivered += spec.packet_bytes(packet);
    bool is_whole = true;
    for (unsigned k = 0; k < spec.packets(); ++k) is_whole = is_whole && packets_[message][k] == Where::disposed;
    if (is_whole) whole.state = MessageState::done;
  }
  settle(seen);
  return seen;
}

// --------------------------------------------------------------------------------------------------------------- calls

Observed Reference::inc_epoch() {
  Observed seen;
  if (state_ != State::open) {
    seen.call = CallStatus::closed;
  } else if (active() == kNowhere) {
    seen.call = CallStatus::no_buffer;
  } else {
    seen.call = CallStatus::ok;
    retire(active());
    settle(seen);
  }
  return seen;
}

Observed Reference::rewind(std::uint64_t n) {
  Observed seen;
  if (state_ != State::open) {
    seen.call = CallStatus::closed;
    return seen;
  }
  if (n > history_.size()) {
    seen.call = CallStatus::history;
    return seen;
  }
  seen.call = CallStatus::pending;
  // The n last completed, the retired uncompleted ones, the active one: in front, in this order, empty.
  std::vector<int> front;
  for (std::size_t i = history_.size() - n; i < history_.size(); ++i) front.push_back(history_[i].buffer);
  history_.resize(history_.size() - n);
  bucket_.insert(bucket_.begin(), front.begin(), front.end());
  const int last = [&] {
    for (const int buffer : bucket_) {
      const bool has_completed = std::find(front.begin(), front.end(), buffer) != front.end();
      if (!has_completed && !buffers_.at(static_cast<std::size_t>(buffer)).is_retired) return buffer;
    }
    return kNowhere;
  }();
  for (const int buffer : bucket_) {
    buffers_.at(static_cast<std::size_t>(buffer)) = Buffer{};
    if (buffer == last) break;
  }
  completed_ -= n;
  next_epoch_ = completed_;
  for (Message& message : messages_) {
    if (message.state == MessageState::bound) message.state = MessageState::cut_off;
  }
  state_ = State::rewinding;
  return seen;
}

Observed Reference::finish_rewind() {
  Observed seen;
  // What is in the bucket has not completed: its words are zero.
  for (const int buffer : bucket_) word_.at(static_cast<std::size_t>(buffer)) = 0;
  state_ = State::open;
  seen.call = CallStatus::ok;
  seen.call_value = completed_;
  return seen;
}

Observed Reference::close() {
  Observed seen;
  if (state_ != State::open) {
    seen.call = CallStatus::closed;
    return seen;
  }
  seen.call = CallStatus::pending;
  state_ = State::closing;
  std::vector<int> retired;
  for (const int buffer : bucket_) {
    (buffers_.at(static_cast<std::size_t>(buffer)).is_retired ? retired : seen.returned).push_back(buffer);
  }
  bucket_ = retired;
  settle(seen);
  return seen;
}

void Reference::cut_off_sender(unsigned sender) {
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const MessageSpec& spec = (*specs_)[i];
    Message& message = messages_[i];
    // A message of one packet is never unfinished for want of a packet: it is let in.
    if (spec.sender != sender || message.state != MessageState::bound || spec.packets() == 1) continue;
    message.state = MessageState::cut_off;
    Buffer& buffer = buffers_.at(static_cast<std::size_t>(message.buffer));
    buffer.reserved -= scenario_->counts_ops ? 1 : spec.length;
    buffer.delivered -= message.delivered;
    if (scenario_->is_managed && message.buffer == active()) retire(message.buffer);
    if (buffer.is_retired) buffer.is_broken = true;
  }
}

// -------------------------------------------------------------------------------------------------------------- bucket

int Reference::active() const {
  if (state_ == State::closing || state_ == State::closed) return kNowhere;
  for (const int buffer : bucket_) {
    if (!buffers_.at(static_cast<std::size_t>(buffer)).is_retired) return buffer;
  }
  return kNowhere;
}

int Reference::after_active() const {
  const auto found = std::find(bucket_.begin(), bucket_.end(), active());
  return found == bucket_.end() || found + 1 == bucket_.end() ? kNowhere : *(found + 1);
}

void Reference::retire(int buffer) {
  Buffer& retired = buffers_.at(static_cast<std::size_t>(buffer));
  retired.is_retired = true;
  retired.epoch = next_epoch_++;
}

/// Completes what can complete, in epoch order; ends a close that has nothing left to wait for.
void Reference::settle(Observed& seen) {
  while (!bucket_.empty()) {
    const int first = bucket_.front();
    const Buffer& buffer = buffers_.at(static_cast<std::size_t>(first));
    if (!buffer.is_retired || is_waited_for(first)) break;
    if (buffer.is_broken && state_ != State::closing) break;
    if (!buffer.is_broken) {
      const Epoch3 epoch{buffer.epoch, first, buffer.delivered};
      seen.completions.push_back(epoch);
      history_.push_back(epoch);
      word_.at(static_cast<std::size_t>(first)) = 1 + buffer.delivered;
    }
    ++completed_;
    bucket_.erase(bucket_.begin());
    if (scenario_->is_one_time && state_ == State::open) state_ = State::closed;
  }
  if (state_ == State::closing && !is_anything_unfinished()) {
    state_ = State::closed;
    seen.call = CallStatus::ok;
  }
}

bool Reference::is_waited_for(int buffer) const {
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].buffer != buffer) continue;
    if (messages_[i].state == MessageState::bound || has_on_the_way(static_cast<unsigned>(i))) return true;
  }
  return false;
}

bool Reference::is_anything_unfinished() const { return bound() > 0 || anything_on_the_way(); }

unsigned Reference::bound() const {
  return static_cast<unsigned>(std::count_if(
      messages_.begin(), messages_.end(), [](const Message& message) { return message.state == MessageState::bound; }));
}

bool Reference::has_on_the_way(unsigned message) const {
  const auto& packets = packets_[message];
  return std::find(packets.begin(), packets.end(), Where::on_the_way) != packets.end();
}

bool Reference::anything_on_the_way() const {
  for (unsigned i = 0; i < messages_.size(); ++i) {
    if (has_on_the_way(i)) return true;
  }
  return false;
}

unsigned Reference::binding_entries() const {
  unsigned entries = 0;
  for (unsigned i = 0; i < messages_.size(); ++i) {
    if ((*specs_)[i].packets() == 1) continue;
    if (messages_[i].state == MessageState::bound || has_on_the_way(i)) ++entries;
  }
  return entries;
}

// ----------------------------------------------------------------------------------------------------------- what
// shows

std::uint32_t Reference::known_ended(unsigned sender) const {
  std::uint32_t ended = 0;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const auto message = static_cast<unsigned>(i);
    if ((*specs_)[i].sender != sender || !senders_.is_current(message)) continue;
    const Message& whole = messages_[i];
    const bool has_ended = whole.state != MessageState::unseen && whole.state != MessageState::bound;
    if (!has_ended || has_on_the_way(message) || senders_.number_of(message).id != ended) break;
    ++ended;
  }
  return ended;
}

Snapshot Reference::snapshot() const {
  Snapshot seen;
  seen.window_exists = state_ == State::open || state_ == State::rewinding;
  seen.is_rewind_drained = may_finish_rewind();
  if (seen.window_exists) {
    seen.completed = completed_;
    seen.history.assign(history_.rbegin(), history_.rend());
  }
  seen.word = word_;
  for (unsigned sender = 0; sender < kSenders; ++sender) {
    if (heard_generation_.at(sender) == 0) continue;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const Senders::Number number = senders_.number_of(static_cast<unsigned>(i));
      if ((*specs_)[i].sender != sender || number.generation != heard_generation_.at(sender)) continue;
      for (unsigned k = 0; k < (*specs_)[i].packets(); ++k) {
        seen.disposed.at(sender).at(number.first_sequence + k) = packets_[i][k] == Where::disposed;
      }
      Reason told = Reason::none;
      if (messages_[i].state == MessageState::done) told = Reason::ok;
      if (messages_[i].state == MessageState::refused) told = messages_[i].refusal;
      // When a cut-off is told while packets are on their way, nobody says.
      if (messages_[i].state == MessageState::cut_off) told = Reason::stale;
      if (number.id < closed_below_.at(sender) || has_on_the_way(static_cast<unsigned>(i))) told = Reason::none;
      seen.outcomes.at(sender).at(number.id) = told;
    }
  }
  return seen;
}

void Reference::pack(std::string& out) const {
  const auto put = [&out](std::uint64_t value) {
    out.push_back(static_cast<char>(value));
    out.push_back(static_cast<char>(value >> 8U));
  };
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const Message& message = messages_[i];
    put(static_cast<unsigned>(message.state) | static_cast<unsigned>(message.refusal) << 4U);
    put(static_cast<unsigned>(packets_[i][0]) | static_cast<unsigned>(packets_[i][1]) << 2U |
        static_cast<unsigned>(packets_[i][2]) << 4U);
    put(static_cast<unsigned>(message.buffer + 1));
    // Where a message lies and what it delivered matter no longer once it has ended.
    const bool matters = message.state == MessageState::bound;
    put(matters ? message.place : 0);
  }
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const Buffer& buffer = buffers_.at(i);
    put(buffer.reserved);
    put(buffer.tail);
    put(buffer.delivered);
    put((buffer.is_retired ? 1U : 0U) | (buffer.is_broken ? 2U : 0U) | static_cast<unsigned>(buffer.epoch) << 2U);
    put(word_.at(i));
  }
  for (const int buffer : bucket_) put(static_cast<unsigned>(buffer));
  put(0xff);
  for (const Epoch3& epoch : history_) {
    put(static_cast<unsigned>(epoch.buffer));
    put(epoch.length);
  }
  put(0xff);
  put(next_epoch_);
  put(completed_);
  put(static_cast<unsigned>(state_));
  for (unsigned sender = 0; sender < kSenders; ++sender) {
    put(closed_below_.at(sender));
    put(heard_generation_.at(sender));
  }
  senders_.pack(out);
}

}  // namespace rvma::check
