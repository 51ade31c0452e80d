// Answers that stay away: whose sender's NIC has given up, or that were never given.
//
// Whoever waits for an answer longer than nic.reliability.idle asks what has become of it: a reminder. That ends in one
// of three ways. The reminder does not arrive: its own end says so. The other side owes the answer still, because its
// program computes, or because the request waits for something else: nothing is said, and a further reminder follows.
// Or it owes nothing, since the answer has been on its way and the NIC is done with it: it says so (forgotten), and as
// the answer is not here, it has been lost. Reminders and what answers them travel on the management queue pairs: a NIC
// that tracks order signals nothing behind a message that was lost.
//
// News of completion has no answer; where it was lost it is told again by the same timer.
#include <utility>

#include "rdma/provider.hpp"
#include "rdma/provider_state.hpp"

namespace rvma {

/// A message of this software has ended; `rank`: of its receiver.
void Provider::said(Process& process, std::uint32_t rank, const ControlMessage& message, Outcome outcome) {
  switch (message.kind) {
    case ControlKind::put_grant:
    case ControlKind::get_grant:
    case ControlKind::refusal:
    case ControlKind::use_advertised: {
      const auto owed = process.owed.find({rank, message.message});
      if (owed != process.owed.end() && --owed->second == 0) process.owed.erase(owed);
      return;
    }
    default:
      if (outcome != Outcome::ok) unheard(process, rank, message);
  }
}

/// Nobody has heard it, as far as is known.
void Provider::unheard(Process& process, std::uint32_t rank, const ControlMessage& message) {
  switch (message.kind) {
    case ControlKind::connect_request: {
      Connection& to = connection(process, rank);
      if (to.is_ready) return;
      // The next message tries again.
      to.is_asked = false;
      for (const ControlMessage& waiting : std::exchange(to.waiting, {})) {
        said(process, rank, waiting, Outcome::timeout);
      }
      return;
    }
    case ControlKind::put_request:
    case ControlKind::get_request:
    case ControlKind::reminder:
      forgotten(process, message);
      return;
    case ControlKind::advertisement:
      lose_advertisement(process, message);
      return;
    case ControlKind::written:
    case ControlKind::given_up:
      tell_again(process, rank, message);
      return;
    case ControlKind::revoke:
      if (Advertising* const advertising = advertising_of(process, message)) {
        if (advertising->is_revoking) take_back(process, advertising->window);
      }
      return;
    default:
      return;
  }
}

/// The put has ended timeout. What its receiver has bound to it, which may be waited for there, has no other end: the
/// answer may have been lost, or what was written. None of that comes any more once this is heard.
void Provider::tell_given_up(Process& process, const Put& put) {
  const bool is_bound = put.place != 0 || put.era != 0;
  if (put.descriptor.opcode != Opcode::put || !is_bound) return;
  ControlMessage news;
  news.kind = ControlKind::given_up;
  news.message = put.message;
  send(process, put.rank, news, true);
}

/// The put has ended: its receiver has to know. Sooner or later it is past help.
void Provider::tell_again(const Process& process, std::uint32_t rank, const ControlMessage& news) {
  if (news.sequence == p_.nic.reliability.max_tries) return;
  Reminder reminder;
  reminder.pid = process.pid;
  reminder.rank = rank;
  reminder.news = news;
  ++reminder.news.sequence;
  remind_later(reminder);
}

/// To an answer that will not come: its put or get ends.
void Provider::forgotten(Process& process, const ControlMessage& answer) {
  if (take_answer(process, answer) != nullptr) give_up(process, answer.request, Outcome::timeout);
}

void Provider::remind_later(Reminder reminder) {
  reminder.due = now() + p_.nic.reliability.idle.get();
  reminders_.push(reminder);
  if (reminders_.size() == 1) reminder_.at(reminder.due);
}

/// Whether the answer is still waited for.
bool Provider::is_wanted(const Reminder& reminder) {
  if (reminder.is_news()) return true;
  if (reminder.put == kNoPut) {
    const Advertising* const advertising = advertising_of(reminder.window);
    return advertising != nullptr && advertising->is_revoking && advertising->era == reminder.era;
  }
  const Put& put = process_of(reminder.pid).puts[reminder.put];
  return put.open && put.is_waiting && put.message == reminder.message && put.asked == reminder.asked;
}

/// Whether its request, or one before it on its queue pair, waits still or is asked for again. The peer need not have
/// heard of it then, and would take a reminder for one of a request that it has answered.
bool Provider::is_under_way(Process& process, const Put& put) {
  const std::set<std::uint64_t>& open = connection(process, put.rank).open_places;
  return put.place != 0 && !open.empty() && *open.begin() <= put.place;
}

void Provider::forget_reminders() {
  while (!reminders_.empty() && !is_wanted(reminders_.front())) reminders_.pop();
  // A timer that is left would be the run's last event.
  if (reminders_.empty()) reminder_.cancel();
}

void Provider::reminder_due() {
  while (!reminders_.empty() && reminders_.front().due <= now()) {
    Item item;
    item.kind = ItemKind::reminder;
    item.reminder = reminders_.pop();
    if (is_wanted(item.reminder)) add_item(process_of(item.reminder.pid), item);
  }
  forget_reminders();
  if (!reminders_.empty()) reminder_.at(reminders_.front().due);
}

void Provider::remind(Process& process, Reminder reminder) {
  if (!is_wanted(reminder)) return;
  if (reminder.is_news()) {
    send(process, reminder.rank, reminder.news, true);
    return;
  }
  const bool is_puts = reminder.put != kNoPut;
  if (!is_puts && reminder.times == p_.nic.reliability.max_tries) {
    // The sender has said what it has used, but news of it was lost.
    take_back(process, reminder.window);
    return;
  }
  if (is_puts && is_under_way(process, process.puts[reminder.put])) {
    remind_later(reminder);
    return;
  }
  ++reminder.times;
  ++stats_.reminders;
  const std::uint32_t rank = is_puts ? process.puts[reminder.put].rank : advertising_of(reminder.window)->rank;
  if (!connection(process, rank).is_ready) {
    connect(process, rank);
  } else if (is_puts) {
    ControlMessage message;
    message.kind = ControlKind::reminder;
    message.request = reminder.put;
    message.message = reminder.message;
    send(process, rank, message, true);
  } else {
    ask_back(process, *advertising_of(reminder.window), reminder.times);
  }
  remind_later(reminder);
}

void Provider::reminded(Process& process, const ControlMessage& reminder) {
  if (process.owed.contains({reminder.rank, reminder.message})) {
    // The answer may wait for a connection whose set-up was lost.
    const Connection& to = connection(process, reminder.rank);
    if (to.is_asked && !to.is_ready) connect(process, reminder.rank);
    return;
  }
  ControlMessage answer;
  answer.kind = ControlKind::forgotten;
  answer.request = reminder.request;
  answer.message = reminder.message;
  send(process, reminder.rank, answer, true);
}

}  // namespace rvma
