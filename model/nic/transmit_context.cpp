#include "nic/transmit_context.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace rvma {

// ----------------------------------------------------------------------------------------------------------- times

void RetransmitTimes::sample(Time round_trip) {
  const bool first = least_round_trip_.is_never();
  least_round_trip_ = std::min(least_round_trip_, round_trip);
  if (first) {
    smoothed_ = round_trip;
    deviation_ = Time::from_ps(round_trip.ps() / 2);
    return;
  }
  // RFC 6298: weights 1/4 and 1/8.
  const std::int64_t off = round_trip.ps() - smoothed_.ps();
  deviation_ = Time::from_ps(deviation_.ps() + ((off < 0 ? -off : off) - deviation_.ps()) / 4);
  smoothed_ = Time::from_ps(smoothed_.ps() + off / 8);
}

void RetransmitTimes::resent_rightly() {
  if (++resent_rightly_ < kForget) return;
  resent_rightly_ = 0;
  reorder_window_ = std::max(first_reorder_window_, Time::from_ps(reorder_window_.ps() / 2));
}

void RetransmitTimes::resent_in_vain() {
  resent_rightly_ = 0;
  // Beyond the time-out the evidence would never come first.
  reorder_window_ = std::min(reorder_window_ * 2, std::max(time_out(), reorder_window_));
}

Time RetransmitTimes::time_out() const {
  return std::clamp(smoothed_ + deviation_ * 4, least_rto_, least_rto_ * kMostRaise);
}

// --------------------------------------------------------------------------------------------------------- sending

MessageId TransmitContext::open(std::uint32_t put) {
  RVMA_ASSERT(message_room(), "a message was opened beyond the limit");
  Message message;
  message.put = put;
  message.first_sequence = next_sequence();
  messages_.push_back(message);
  return MessageId{messages_.end() - 1};
}

std::uint32_t TransmitContext::take_sequence(MessageId message, bool last) {
  RVMA_ASSERT(packet_room(), "a packet was numbered beyond the window");
  Message& entry = messages_[message.value()];
  ++entry.packets;
  entry.complete = last;
  ++in_flight_;
  Flight flight;
  flight.message = message.value();
  flights_.push_back(flight);
  return next_sequence() - 1;
}

void TransmitContext::sent(std::uint32_t sequence, Time at) {
  if (!flights_.contains(sequence)) return;  // a probe, or acknowledged while it waited for the link
  Flight& flight = flights_[sequence];
  if (flight.acknowledged || flight.waits) return;
  if (outstanding_ == 0 || flight.sendings > 0) timer_from_ = at;
  if (flight.sent_at.is_never()) ++outstanding_;
  flight.sent_at = at;
  congestion_.sent(at);
  if (flight.sendings < std::numeric_limits<std::uint8_t>::max()) ++flight.sendings;
}

std::uint16_t TransmitContext::open_span(MessageId message) const {
  const std::int32_t span = serial_distance(message.value(), messages_.base());
  return static_cast<std::uint16_t>(std::max(span, 0));
}

std::uint32_t TransmitContext::first_unacknowledged(MessageId message) const {
  const std::int32_t passed = serial_distance(flights_.base(), messages_[message.value()].first_sequence);
  return static_cast<std::uint32_t>(std::max(passed, 0));
}

void TransmitContext::abandon(MessageId message) {
  if (!messages_.contains(message.value())) return;
  messages_[message.value()].ended = true;
  pop_ended();
}

void TransmitContext::queue_resend(std::uint32_t sequence) {
  Flight& flight = flights_[sequence];
  flight.waits = true;
  flight.sent_at = Time::max();
  --outstanding_;
  --in_flight_;
  Resend resend;
  resend.sequence = sequence;
  resend.message = MessageId{flight.message};
  resends_.push(resend);
}

bool TransmitContext::next_resend(Resend& resend) {
  while (!resends_.empty()) {
    resend = resends_.front();
    const std::uint32_t id = resend.message.value();
    const bool open = messages_.contains(id) && !messages_[id].ended;
    const bool waits = flights_.contains(resend.sequence) && flights_[resend.sequence].waits;
    // Else it was acknowledged meanwhile, or the outcome has come.
    if (resend.is_probe ? open : waits) {
      if (open) {
        resend.put = messages_[id].put;
        resend.packet_index = resend.sequence - messages_[id].first_sequence;
      }
      return true;
    }
    resends_.pop();
  }
  return false;
}

void TransmitContext::pop_resend() {
  const Resend resend = resends_.pop();
  if (resend.is_probe) return;
  flights_[resend.sequence].waits = false;
  ++in_flight_;
}

// --------------------------------------------------------------------------------------------------------- answers

bool TransmitContext::acknowledge(const AckHeader& ack, Time at, std::vector<Ended>& ended) {
  // 1. Claims about what was never sent come from a broken or hostile peer.
  if (serial_distance(ack.cumulative, next_sequence()) > 0) return false;
  if (serial_distance(ack.outcomes_from.value(), messages_.end()) > 0) return false;
  // 2. Packets.
  const std::uint32_t in_flight_before = in_flight_;
  const std::uint32_t base_before = flights_.base();
  newest_was_sent_once_ = false;
  while (serial_distance(ack.cumulative, flights_.base()) > 0) {
    acknowledge_packet(flights_.front(), at);
    flights_.pop_front();
  }
  for (std::size_t word = 0; word < ack.selective.size(); ++word) {
    for (std::uint64_t bits = ack.selective[word]; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::uint32_t>(__builtin_ctzll(bits));
      const std::uint32_t sequence = ack.cumulative + static_cast<std::uint32_t>(64 * word) + bit;
      if (flights_.contains(sequence)) acknowledge_packet(flights_[sequence], at);
    }
  }
  // The latest sending tells the round trip; that of earlier ones includes what was lost on the way back.
  if (newest_was_sent_once_) {
    times_.sample(at - newest_acknowledged_);
    const std::uint32_t acknowledged = in_flight_before - in_flight_;
    congestion_.acknowledged(acknowledged, at - newest_acknowledged_, times_.least_round_trip(), at);
  }
  if (flights_.base() != base_before || in_flight_ != in_flight_before) {
    timer_from_ = at;
    back_off_ = 0;
    note_acknowledged(at);
    const std::uint64_t lost_before = counts_.lost_by_evidence;
    find_lost();
    if (counts_.lost_by_evidence != lost_before) congestion_.lost(at);
  }
  // 3. Messages below outcomes_from ended ok; the list says how the others did.
  for (std::uint32_t id = messages_.base(); serial_distance(ack.outcomes_from.value(), id) > 0; ++id) {
    end(id, Outcome::ok, ended);
  }
  std::uint32_t id = ack.outcomes_from.value();
  for (const Outcome outcome : ack.outcomes) {
    if (outcome != Outcome::pending) end(id, outcome, ended);
    ++id;
  }
  // 4. The oldest open id passes those that have ended, in order.
  pop_ended();
  return true;
}

void TransmitContext::acknowledge_packet(Flight& flight, Time at) {
  if (flight.acknowledged) return;
  flight.acknowledged = true;
  if (flight.waits) {
    // It is on the list to be sent again.
    flight.waits = false;
    ++counts_.in_vain;
    times_.resent_in_vain();
    return;
  }
  --in_flight_;
  if (flight.sent_at.is_never()) return;
  --outstanding_;
  if (flight.sendings > 1 && times_.is_too_soon(at - flight.sent_at)) {
    // This answers an earlier sending: the last one cannot have arrived yet.
    ++counts_.in_vain;
    times_.taken_for_too_soon(at - flight.sent_at);
    times_.resent_in_vain();
    return;
  }
  if (flight.sendings > 1) times_.resent_rightly();
  if (flight.sent_at < newest_acknowledged_) return;
  newest_acknowledged_ = flight.sent_at;
  newest_was_sent_once_ = flight.sendings == 1;
}

void TransmitContext::find_lost() {
  for (std::uint32_t sequence = flights_.base(); sequence != flights_.end(); ++sequence) {
    const Flight& flight = flights_[sequence];
    if (!flight.outstanding()) {
      if (flight.sendings == 0) return;  // nor is anything behind it on the link
      continue;
    }
    if (flight.sent_at + times_.reorder_window() < newest_acknowledged_) {
      ++counts_.lost_by_evidence;
      queue_resend(sequence);
    } else if (flight.sendings == 1) {
      return;  // what was sent once went in this order
    }
  }
}

void TransmitContext::end(std::uint32_t id, Outcome outcome, std::vector<Ended>& ended) {
  if (!messages_.contains(id) || messages_[id].ended) return;
  messages_[id].ended = true;
  ended.push_back({messages_[id].put, MessageId{id}, outcome});
}

void TransmitContext::pop_ended() {
  while (!messages_.empty() && messages_.front().ended) messages_.pop_front();
  acknowledged_ = serial_later(acknowledged_, messages_.base());
}

void TransmitContext::note_acknowledged(Time at) {
  for (; messages_.contains(acknowledged_); ++acknowledged_) {
    Message& entry = messages_[acknowledged_];
    if (entry.ended) continue;
    const std::uint32_t end_sequence = entry.first_sequence + entry.packets;
    if (!entry.complete || serial_distance(flights_.base(), end_sequence) < 0) break;
    entry.ask_at = at + times_.time_out();
  }
}

TransmitContext::Counts TransmitContext::take_counts() {
  Counts counts = std::exchange(counts_, Counts{});
  const std::uint64_t decreases = decreases_before_ + congestion_.decreases();
  counts.decreases = decreases - std::exchange(decreases_told_, decreases);
  return counts;
}

// ------------------------------------------------------------------------------------------------------------ time

Time TransmitContext::time_out() const { return times_.time_out() * TransmitLimits::back_off(back_off_); }

Time TransmitContext::deadline() const {
  Time earliest = outstanding_ > 0 ? timer_from_ + time_out() : Time::max();
  if (paced_ && in_flight_ == 0) earliest = std::min(earliest, congestion_.paced_until());
  for (std::uint32_t id = messages_.base(); id != acknowledged_; ++id) {
    if (!messages_[id].ended) earliest = std::min(earliest, messages_[id].ask_at);
  }
  return earliest;
}

TransmitContext::Patience TransmitContext::time_out_lost(Time at) {
  // What was sent next to an overdue packet shared its fate.
  const Time overdue = at - times_.time_out() + times_.reorder_window();
  Time oldest = Time::max();
  for (std::uint32_t sequence = flights_.base(); sequence != flights_.end(); ++sequence) {
    if (flights_[sequence].outstanding()) oldest = std::min(oldest, flights_[sequence].sent_at);
  }
  if (oldest + times_.time_out() > at) {
    // It was sent after the last progress.
    timer_from_ = oldest;
    return Patience::has;
  }
  if (back_off_ + 1 >= limits_.max_tries) {
    ++counts_.timed_out;
    return Patience::ended;
  }
  for (std::uint32_t sequence = flights_.base(); sequence != flights_.end(); ++sequence) {
    if (!flights_[sequence].outstanding() || flights_[sequence].sent_at > overdue) continue;
    ++counts_.timed_out;
    queue_resend(sequence);
  }
  congestion_.timed_out();
  ++back_off_;
  timer_from_ = at;
  return Patience::has;
}

TransmitContext::Patience TransmitContext::check(Time at, std::vector<Ended>& ended) {
  // 1. Packets whose answer is overdue are lost.
  paced_ = false;
  if (outstanding_ > 0 && timer_from_ + time_out() <= at && time_out_lost(at) == Patience::ended) {
    return Patience::ended;
  }
  // 2. Outcomes that were not told although all packets have arrived: the answer may be lost, so the last packet asks.
  for (std::uint32_t id = messages_.base(); id != acknowledged_; ++id) {
    Message& entry = messages_[id];
    if (entry.ended || entry.ask_at > at) continue;
    if (entry.probes + 1U >= limits_.max_tries) {
      end(id, Outcome::timeout, ended);
      continue;
    }
    ++entry.probes;
    ++counts_.probes;
    entry.ask_at = at + times_.time_out() * TransmitLimits::back_off(entry.probes);
    Resend probe;
    probe.sequence = entry.first_sequence + entry.packets - 1;
    probe.message = MessageId{id};
    probe.is_probe = true;
    resends_.push(probe);
  }
  pop_ended();
  return Patience::has;
}

void TransmitContext::send_all_again() {
  for (std::uint32_t sequence = flights_.base(); sequence != flights_.end(); ++sequence) {
    if (flights_[sequence].outstanding()) queue_resend(sequence);
  }
}

void TransmitContext::give_up(std::vector<Ended>& ended) {
  for (std::uint32_t id = messages_.base(); id != messages_.end(); ++id) end(id, Outcome::timeout, ended);
  messages_.restart(0);
  flights_.restart(0);
  while (!resends_.empty()) resends_.pop();
  acknowledged_ = 0;
  in_flight_ = 0;
  outstanding_ = 0;
  back_off_ = 0;
  newest_acknowledged_ = Time::zero();
  paced_ = false;
  // The peer, or the way to it, is not what it was.
  times_ = RetransmitTimes{limits_.rto, limits_.reorder_window};
  decreases_before_ += congestion_.decreases();
  congestion_ = CongestionWindow{limits_.congestion};
  ++generation_;
}

}  // namespace rvma
