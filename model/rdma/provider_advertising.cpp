// Buffers that are advertised: the receiver tells the one rank that uses a window of each buffer as it is posted, so
// that a put needs no exchange.
//
// A buffer is advertised if the first message that it can get also fills it (a threshold of one operation, or of bytes
// that the message has), because then the sender knows without asking what the next message's buffer is. Sender and
// receiver need not meet as long as that holds. Where something else is to happen to the window (inc_epoch,
// close_window, a message of another rank, one that does not fill its buffer), the receiver first revokes what it has
// advertised, and hears how many of the buffers were used; what is to happen waits until all of those have come.
//
// In truth it is the sender that binds such a message, when it takes the buffer; here the receiver's window store is
// told of it at that time, by a call from node to node. Nothing can see that: whatever would have to look at the
// window's state waits for the revocation.
#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "driver/exclusive_mailbox.hpp"
#include "nic/tell_bound.hpp"
#include "rdma/provider.hpp"
#include "rdma/provider_state.hpp"

namespace rvma {

// --------------------------------------------------------------------------------------------------------- receiver

/// A window has been opened: who sends to it may be known beforehand.
void Provider::may_advertise(const Descriptor& call, WindowId window) {
  constexpr std::uint8_t kShared = kWindowReadable | kWindowCatchAll;
  if (p_.rdma.exchange.get() != RdmaExchange::advertised || (call.window_flags & kShared) != 0) return;
  if (call.threshold_type == ThresholdType::ops && call.threshold != 1) return;
  Advertising advertising;
  advertising.window = window;
  advertising.mailbox = call.mailbox;
  advertising.least = call.threshold_type == ThresholdType::ops ? 0 : call.threshold;
  advertising.is_managed = call.placement == Placement::managed;
  advertising.key = call.key;
  advertising.era = ++last_era_;
  if (const auto sender = exclusive_sender(call.mailbox); sender && sender->value() < p_.ranks) {
    advertising.rank = sender->value();
    advertising.has_rank = true;
  }
  advertising_.insert_or_assign(window, std::move(advertising));
}

Provider::Advertising* Provider::advertising_of(WindowId window) {
  const auto found = advertising_.find(window);
  return found == advertising_.end() ? nullptr : &found->second;
}

/// Tells the sender of every buffer that it does not know of.
void Provider::advertise(Process& process, Advertising& advertising) {
  if (!advertising.has_rank || advertising.is_shared || advertising.is_revoking) return;
  while (advertising.told < advertising.unbound.size()) {
    const BufferId buffer = advertising.unbound[advertising.told++];
    const std::uint32_t ticket = ++last_ticket_;
    advertising.tickets.push_back(ticket);
    ControlMessage message;
    message.kind = ControlKind::advertisement;
    message.ticket = ticket;
    message.key = keys_[buffer.index()];
    message.message = advertising.key;
    message.mailbox = advertising.mailbox.value();
    message.offset = windows_.buffer(buffer).head.value();
    message.length = windows_.buffer(buffer).size;
    message.sequence = advertising.sent++;
    message.least = advertising.least;
    message.era = advertising.era;
    message.is_managed = advertising.is_managed;
    tell_of(process, advertising, message);
  }
}

/// Slots of the message layer stay where they are, under the same key, and its credits say when they are free again: of
/// these its sender is told once, as MPI libraries do it.
void Provider::tell_of(Process& process, Advertising& advertising, ControlMessage message) {
  const bool is_known = exclusive_sender(advertising.mailbox) && message.key == advertising.last_region &&
                        message.offset == advertising.last_head && message.length == advertising.last_size;
  advertising.last_region = message.key;
  advertising.last_head = message.offset;
  advertising.last_size = message.length;
  if (!is_known) {
    ++stats_.advertisements;
    say(process, advertising.rank, message);
    return;
  }
  ++stats_.renewals;
  message.rank = process.rank;
  Provider& sender = *p_.directory->providers.at(node_of(advertising.rank).index());
  sender.take_advertisement(sender.process_of(pid_of(advertising.rank)), message);
}

/// A message asks for an address although buffers are advertised. True: it has its answer, or will get one later.
bool Provider::asks_in_vain(Process& process, const ControlMessage& request, WindowId window) {
  Advertising* const advertising = advertising_of(window);
  if (advertising == nullptr) return false;
  const auto again = [this, &process, request] { bind(process, request); };
  if (advertising->is_revoking) {
    advertising->deferred.push_back(again);
    return true;
  }
  const bool is_senders = advertising->has_rank && advertising->rank == request.rank;
  const bool fills = request.length > 0 && request.length >= advertising->least &&
                     (advertising->key == 0 || advertising->key == request.key);
  if (advertising->tickets.empty()) {
    // 1. Nothing is advertised: this message may be the first of the one sender, or end that there is only one.
    if (!fills || (advertising->has_rank && !is_senders)) advertising->is_shared = true;
    if (!advertising->is_shared && !advertising->has_rank && !advertising->unbound.empty()) {
      advertising->has_rank = true;
      advertising->rank = request.rank;
    }
    return false;
  }
  if (is_senders && fills && !request.does_not_suit) {
    // 2. It has crossed an advertisement.
    ControlMessage answer;
    answer.kind = ControlKind::use_advertised;
    answer.request = request.request;
    answer.message = request.message;
    say(process, request.rank, answer);
    return true;
  }
  // 3. The window is not what it seemed.
  advertising->is_shared = true;
  advertising->deferred.push_back(again);
  revoke(process, window);
  return true;
}

/// A call that changes which buffer is active. True: it is carried out when no sender relies on it.
bool Provider::waits_for_revocation(Process& process, const Descriptor& call, WindowId window) {
  if (call.opcode != Opcode::inc_epoch && call.opcode != Opcode::close_window) return false;
  Advertising* const advertising = advertising_of(window);
  if (advertising == nullptr || (advertising->tickets.empty() && !advertising->is_revoking)) return false;
  advertising->deferred.push_back([this, &process, call, window] { call_window(process, call, window); });
  if (!advertising->is_revoking) revoke(process, window);
  return true;
}

void Provider::revoke(Process& process, WindowId window) {
  Advertising& advertising = *advertising_of(window);
  advertising.is_revoking = true;
  advertising.is_answered = false;
  ++stats_.revocations;
  Reminder reminder;
  reminder.pid = process.pid;
  reminder.window = window;
  reminder.era = advertising.era;
  remind_later(reminder);
  ask_back(process, advertising, 0);
}

/// `times`: it has been said before. What is said again must not wait for what was lost on its queue pair.
void Provider::ask_back(Process& process, const Advertising& advertising, std::uint32_t times) {
  ControlMessage message;
  message.kind = ControlKind::revoke;
  message.mailbox = advertising.mailbox.value();
  message.era = advertising.era;
  message.sequence = times;
  if (times == 0) {
    say(process, advertising.rank, message);
  } else {
    send(process, advertising.rank, message, true);
  }
}

/// The window that a revocation, its answer or an advertisement is about; none if its era is over.
Provider::Advertising* Provider::advertising_of(const Process& process, const ControlMessage& message) {
  const WindowStore::WindowAnswer found = windows_.find_window(process.pid, Mailbox{message.mailbox});
  Advertising* const advertising = found.status == Status::ok ? advertising_of(found.window) : nullptr;
  return advertising != nullptr && advertising->era == message.era ? advertising : nullptr;
}

/// The sender says how many buffers it has used.
void Provider::revoked(Process& process, const ControlMessage& answer) {
  Advertising* const advertising = advertising_of(process, answer);
  if (advertising == nullptr || !advertising->is_revoking) return;
  advertising->is_answered = true;
  advertising->used = answer.length;
  end_revocation(process, advertising->window);
}

/// The sender cannot be asked: nothing more is waited for. On hardware the regions would get other keys, so that it
/// cannot write any more; here its software is told, by a call from node to node.
void Provider::take_back(Process& process, WindowId window) {
  Advertising& advertising = *advertising_of(window);
  Provider& sender = *p_.directory->providers.at(node_of(advertising.rank).index());
  ControlMessage told;
  told.rank = process.rank;
  told.mailbox = advertising.mailbox.value();
  told.era = advertising.era;
  give_up_advertised(sender.process_of(pid_of(advertising.rank)), told);
  advertising.is_answered = true;
  advertising.used = advertising.heard;
  end_revocation(process, window);
}

/// The sender does not know of a buffer, and can use none of those behind it.
void Provider::lose_advertisement(Process& process, const ControlMessage& message) {
  Advertising* const advertising = advertising_of(process, message);
  if (advertising == nullptr) return;
  advertising->is_shared = true;
  if (!advertising->is_revoking) revoke(process, advertising->window);
}

void Provider::end_revocation(Process& process, WindowId window) {
  Advertising& advertising = *advertising_of(window);
  if (!advertising.is_revoking || !advertising.is_answered || advertising.heard < advertising.used) return;
  advertising.is_revoking = false;
  advertising.era = ++last_era_;
  advertising.heard = 0;
  advertising.told = 0;
  advertising.sent = 0;
  for (const std::uint32_t ticket : advertising.tickets) tickets_.erase(ticket);
  advertising.tickets.clear();
  forget_reminders();
  // What waited may close the window.
  for (const auto& call : std::exchange(advertising.deferred, {})) call();
  if (Advertising* const left = advertising_of(window)) advertise(process, *left);
}

/// The sender, at another node, has taken the buffer of `ticket` for a message.
void Provider::bind_advertised(Pid pid, std::uint32_t ticket, std::uint32_t source, const DataHeader& header) {
  Process& process = process_of(pid);
  const WindowStore::WindowAnswer found = windows_.locate(pid, header.mailbox);
  Advertising* const advertising = found.status == Status::ok ? advertising_of(found.window) : nullptr;
  RVMA_ASSERT(advertising != nullptr && !advertising->unbound.empty(), "a window stays while buffers are advertised");
  const MessageRef message{node_of(source), kNoIncarnation, header.source_pid.value(), header.message};
  tickets_[ticket] = found.window;
  const BindAnswer bound = windows_.bind(node_of(source), header, {true, found.window, false});
  RVMA_ASSERT(bound.outcome == Outcome::pending && bound.place.buffer == advertising->unbound.front(),
              "an advertised buffer is the next one and has room");
  has_bound(found.window);
  tell_bound(observers_, p_.node, message, header.message_length, bound, now());
  auto inbound = std::make_unique<Inbound>();
  inbound->pid = process.pid;
  inbound->rank = source;
  inbound->message = message;
  inbound->header = header;
  inbound->bound = bound;
  inbound_.emplace(ticket, std::move(inbound));
}

/// The active buffer is the next one.
void Provider::has_bound(WindowId window) {
  Advertising* const advertising = advertising_of(window);
  if (advertising == nullptr || advertising->unbound.empty()) return;
  advertising->unbound.pop_front();
  if (advertising->told > 0) --advertising->told;
}

/// A message into an advertised buffer is complete, as far as the software knows.
void Provider::heard_of(Process& process, std::uint32_t ticket) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return;
  const WindowId window = found->second;
  tickets_.erase(found);
  Advertising* const advertising = advertising_of(window);
  if (advertising == nullptr) return;
  const auto place = std::find(advertising->tickets.begin(), advertising->tickets.end(), ticket);
  if (place == advertising->tickets.end()) return;
  advertising->tickets.erase(place);
  ++advertising->heard;
  end_revocation(process, window);
}

/// Its sender has given it up, and does not count it among those that it has used.
void Provider::will_not_hear_of(std::uint32_t ticket) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return;
  Advertising* const advertising = advertising_of(found->second);
  tickets_.erase(found);
  if (advertising == nullptr) return;
  const auto place = std::find(advertising->tickets.begin(), advertising->tickets.end(), ticket);
  if (place != advertising->tickets.end()) advertising->tickets.erase(place);
}

// ----------------------------------------------------------------------------------------------------------- sender

void Provider::take_advertisement(Process& process, const ControlMessage& message) {
  Advertised& known = process.advertised[{message.rank, message.mailbox}];
  // It was revoked before it came.
  if (message.era <= known.revoked_era) return;
  if (known.era != message.era) {
    known.era = message.era;
    known.used = 0;
    known.failed = 0;
    known.buffers.clear();
  }
  // Messages of an untracked NIC may overtake one another.
  const auto later = std::find_if(known.buffers.begin(), known.buffers.end(),
                                  [&](const ControlMessage& other) { return other.sequence > message.sequence; });
  known.buffers.insert(later, message);
}

/// Returns how many buffers of the era have been used, or may have been.
std::uint64_t Provider::give_up_advertised(Process& process, const ControlMessage& revocation) {
  Advertised& known = process.advertised[{revocation.rank, revocation.mailbox}];
  known.revoked_era = std::max(known.revoked_era, revocation.era);
  known.buffers.clear();
  // Of a write that failed its receiver never hears.
  return known.era == revocation.era ? known.used - known.failed : 0;
}

void Provider::give_back(Process& process, const ControlMessage& revocation) {
  ControlMessage answer;
  answer.kind = ControlKind::revoked;
  answer.mailbox = revocation.mailbox;
  answer.era = revocation.era;
  answer.length = give_up_advertised(process, revocation);
  answer.sequence = revocation.sequence;
  if (revocation.sequence == 0) {
    say(process, revocation.rank, answer);
  } else {
    send(process, revocation.rank, answer, true);
  }
}

/// The request crossed an advertisement.
void Provider::use_advertised(Process& process, const ControlMessage& answer) {
  if (take_answer(process, answer) == nullptr) return;
  bool does_not_suit = false;
  if (write_to_advertised(process, answer.request, does_not_suit)) return;
  if (does_not_suit) {
    ask(process, answer.request);
  } else {
    // All that were advertised are used; their messages are on the way.
    ask_later(process, answer.request);
  }
}

/// Writes to the next advertised buffer, if it suits. `does_not_suit`: there is one, and it does not.
bool Provider::write_to_advertised(Process& process, std::uint32_t number, bool& does_not_suit) {
  Put& put = process.puts[number];
  const Descriptor& call = put.descriptor;
  if (call.opcode != Opcode::put) return false;
  const auto found = process.advertised.find({put.rank, call.mailbox.value()});
  if (found == process.advertised.end()) return false;
  // The receiver waits in vain for what was written to one of them: it has to take them all back.
  does_not_suit = found->second.failed > 0;
  if (does_not_suit || found->second.buffers.empty()) return false;
  Advertised& known = found->second;
  const ControlMessage buffer = known.buffers.front();
  // The buffers before it are still on their way.
  if (buffer.sequence != known.used) return false;
  const std::uint64_t offset = buffer.is_managed ? 0 : call.offset;
  does_not_suit = call.length == 0 || call.length < buffer.least || call.length > buffer.length ||
                  offset > buffer.length - call.length || (buffer.message != 0 && buffer.message != call.key);
  if (does_not_suit) return false;
  known.buffers.pop_front();
  ++known.used;
  ++stats_.advertised_writes;
  DataHeader header;
  header.destination_pid = call.destination_pid;
  header.source_pid = process.pid;
  header.mailbox = call.mailbox;
  header.key = call.key;
  header.message = MessageId{put.message};
  header.message_length = call.length;
  header.offset = call.offset;
  header.payload_length = static_cast<std::uint16_t>(std::min<std::uint64_t>(call.length, kPieceBytes));
  p_.directory->providers.at(call.destination_node.index())
      ->bind_advertised(call.destination_pid, buffer.ticket, process.rank, header);
  put.ticket = buffer.ticket;
  put.era = buffer.era;
  write_to(process, number, VirtualAddress{buffer.offset + offset}, buffer.key);
  return true;
}

}  // namespace rvma
