// Connections, what ranks say to each other, and the sender's side of a put.
#include <utility>

#include "base/error.hpp"
#include "rdma/provider.hpp"
#include "rdma/provider_state.hpp"

namespace rvma {
namespace {

constexpr std::uint64_t kIdStep = 16;  ///< numbers of work requests are multiples of it

}  // namespace

// ----------------------------------------------------------------------------------------------------- connections

std::uint32_t Provider::queue_pair_of(const Process& process, std::uint32_t rank) const {
  return process.pid.value() * p_.ranks + rank;
}

Provider::Connection& Provider::connection(Process& process, std::uint32_t rank) {
  std::unique_ptr<Connection>& place = process.connections[rank];
  if (!place) place = std::make_unique<Connection>();
  return *place;
}

void Provider::create_queue_pair(Process& process, Connection& to, std::uint32_t rank) {
  if (std::exchange(to.has_queue_pair, true)) return;
  ++stats_.connections;
  process.debt += p_.rdma.software.connect.get();
  Descriptor create;
  create.opcode = Opcode::rdma_create_queue_pair;
  create.key = queue_pair_of(process, rank);
  const std::uint32_t there = pid_of(rank).value() * p_.ranks + process.rank;
  create.mailbox = Mailbox{std::uint64_t{node_of(rank).value()} << 32U | there};
  post(process, create);
}

/// Says it as soon as there is a connection.
void Provider::say(Process& process, std::uint32_t rank, const ControlMessage& message) {
  Connection& to = connection(process, rank);
  if (to.is_ready) {
    send(process, rank, message, false);
    return;
  }
  to.waiting.push_back(message);
  if (!std::exchange(to.is_asked, true)) connect(process, rank);
}

void Provider::connect(Process& process, std::uint32_t rank) {
  create_queue_pair(process, connection(process, rank), rank);
  ControlMessage request;
  request.kind = ControlKind::connect_request;
  send(process, rank, request, true);
}

void Provider::send(Process& process, std::uint32_t rank, ControlMessage message, bool by_management) {
  message.rank = process.rank;
  Request request;
  request.message = pinned_.allocate(kControlBytes);
  request.rank = rank;
  request.said = message;
  if (!by_management) {
    request.place = next_place(process, rank);
    const bool asks = message.kind == ControlKind::put_request || message.kind == ControlKind::get_request;
    // While it waited for the connection, the put may have ended, and its number be another's.
    if (asks && process.puts[message.request].message == message.message) {
      process.puts[message.request].place = request.place;
    }
  }
  const ControlBytes bytes = encode(message);
  memory_.write(request.message, bytes.data(), bytes.size());
  Descriptor work;
  work.opcode = Opcode::rdma_send;
  work.local = VirtualAddress{request.message.value()};
  work.single_page = true;
  work.page_list = PhysicalAddress{request.message.value() - request.message.value() % page_bytes_};
  work.length = kControlBytes;
  const std::uint32_t from = by_management ? management_queue_pair(process.pid) : queue_pair_of(process, rank);
  work.offset = std::uint64_t{from} << 32U;
  work.destination_node = node_of(rank);
  work.destination_pid = pid_of(rank);
  work.completion = PhysicalAddress{new_request(process, request) * kIdStep};
  ++stats_.control_messages;
  stats_.control_bytes += kControlBytes;
  post(process, work);
}

std::uint64_t Provider::next_place(Process& process, std::uint32_t rank) {
  Connection& to = connection(process, rank);
  to.open_places.insert(++to.last_place);
  return to.last_place;
}

void Provider::connected(Process& process, std::uint32_t rank) {
  Connection& to = connection(process, rank);
  if (std::exchange(to.is_ready, true)) return;
  for (const ControlMessage& message : std::exchange(to.waiting, {})) send(process, rank, message, false);
}

void Provider::received(Process& process, std::uint32_t buffer) {
  ControlBytes bytes{};
  memory_.read(process.receives[buffer], bytes.data(), bytes.size());
  post(process, receive_of(process, buffer));
  take(process, decode_control(bytes));
}

void Provider::take(Process& process, const ControlMessage& message) {
  switch (message.kind) {
    case ControlKind::connect_request: {
      create_queue_pair(process, connection(process, message.rank), message.rank);
      ControlMessage reply;
      reply.kind = ControlKind::connect_reply;
      send(process, message.rank, reply, true);
      return;
    }
    case ControlKind::connect_reply: {
      const bool is_news = !connection(process, message.rank).is_ready;
      ControlMessage ready;
      ready.kind = ControlKind::connect_ready;
      if (is_news) send(process, message.rank, ready, false);
      connected(process, message.rank);
      return;
    }
    case ControlKind::connect_ready:
      connected(process, message.rank);
      return;
    case ControlKind::put_request:
      ++process.owed[{message.rank, message.message}];
      bind(process, message);
      return;
    case ControlKind::put_grant:
      granted(process, message);
      return;
    case ControlKind::get_request:
      ++process.owed[{message.rank, message.message}];
      let_read(process, message);
      return;
    case ControlKind::get_grant:
      read(process, message);
      return;
    case ControlKind::refusal:
      refused(process, message);
      return;
    case ControlKind::written:
      complete(message.ticket);
      return;
    case ControlKind::advertisement:
      take_advertisement(process, message);
      return;
    case ControlKind::use_advertised:
      use_advertised(process, message);
      return;
    case ControlKind::revoke:
      give_back(process, message);
      return;
    case ControlKind::revoked:
      revoked(process, message);
      return;
    case ControlKind::reminder:
      reminded(process, message);
      return;
    case ControlKind::forgotten:
      forgotten(process, message);
      return;
    case ControlKind::given_up:
      cut_off(process, message);
      return;
  }
}

// ---------------------------------------------------------------------------------------------------------- sender

void Provider::start(Process& process, const Descriptor& descriptor) {
  std::uint32_t number = 0;
  if (process.free_puts.empty()) {
    number = static_cast<std::uint32_t>(process.puts.size());
    process.puts.emplace_back();
  } else {
    number = process.free_puts.back();
    process.free_puts.pop_back();
  }
  Put& put = process.puts[number];
  put = Put{};
  put.open = true;
  put.descriptor = descriptor;
  put.rank = descriptor.destination_node.value() * p_.ranks_per_node + descriptor.destination_pid.value();
  if (descriptor.opcode == Opcode::get) open_for_answer(process, number);
  ask(process, number);
}

/// The put goes out as a message: it writes to a buffer that was advertised, or asks the receiver's software where to.
void Provider::ask(Process& process, std::uint32_t number) {
  Put& put = process.puts[number];
  if (!std::exchange(put.has_message, true)) {
    ++put.tries;
    put.message = ++process.messages;
    const MessageRef message{p_.node, kNoIncarnation, process.pid.value(), MessageId{put.message}};
    observers_.tell([&](NicObserver& observer) {
      observer.message_opened(p_.node, put.descriptor.completion, put.descriptor.destination_node, message, now());
    });
  }
  bool does_not_suit = false;
  if (write_to_advertised(process, number, does_not_suit)) return;
  put.asked = now();
  put.place = 0;
  put.is_waiting = true;
  ++stats_.requests;
  ControlMessage request;
  request.kind = put.descriptor.opcode == Opcode::get ? ControlKind::get_request : ControlKind::put_request;
  request.request = number;
  request.key = put.descriptor.key;
  request.message = put.message;
  request.does_not_suit = does_not_suit;
  request.mailbox = put.descriptor.mailbox.value();
  request.offset = put.descriptor.offset;
  request.length = put.descriptor.length;
  say(process, put.rank, request);
  Reminder reminder;
  reminder.pid = process.pid;
  reminder.put = number;
  reminder.message = put.message;
  reminder.asked = put.asked;
  remind_later(reminder);
}

/// The put that an answer is for, which waits for it no more. None: it has ended, and its number may be another's.
Provider::Put* Provider::take_answer(Process& process, const ControlMessage& answer) {
  Put& put = process.puts[answer.request];
  if (!put.open || !put.is_waiting || put.message != answer.message) return nullptr;
  put.is_waiting = false;
  stats_.exchange_ns += now() - put.asked;
  forget_reminders();
  return &put;
}

void Provider::granted(Process& process, const ControlMessage& grant) {
  Put* const put = take_answer(process, grant);
  if (put == nullptr) return;
  put->ticket = grant.ticket;
  put->era = 0;
  write_to(process, grant.request, VirtualAddress{grant.mailbox}, grant.key);
}

void Provider::write_to(Process& process, std::uint32_t number, VirtualAddress address, std::uint32_t key) {
  const Put& put = process.puts[number];
  ++stats_.writes;
  const bool tells = p_.completion == RdmaCompletion::write_imm || p_.completion == RdmaCompletion::write_imm_tracked;
  Descriptor work = put.descriptor;
  work.opcode = tells ? Opcode::rdma_write_immediate : Opcode::rdma_write;
  work.mailbox = Mailbox{address.value()};
  work.key = key;
  work.offset = std::uint64_t{queue_pair_of(process, put.rank)} << 32U | put.ticket;
  const std::uint64_t place = next_place(process, put.rank);
  work.completion =
      PhysicalAddress{new_request(process, {Request::Kind::write, number, {}, put.rank, {}, place}) * kIdStep};
  post(process, work);
}

void Provider::refused(Process& process, const ControlMessage& refusal) {
  Put* const put = take_answer(process, refusal);
  if (put == nullptr) return;
  put->has_message = false;
  if (!is_retried(refusal.outcome) || put->tries > p_.nic.reliability.rnr_tries) {
    if (refusal.outcome == Outcome::ok) {
      end(process, refusal.request, Outcome::ok);
    } else {
      give_up(process, refusal.request, refusal.outcome);
    }
    return;
  }
  ask_later(process, refusal.request);
}

void Provider::ask_later(const Process& process, std::uint32_t number) {
  retries_.push({now() + p_.nic.reliability.rnr_delay.get(), process.pid, number});
  if (retries_.size() == 1) retry_.at(retries_.front().due);
}

void Provider::retry_due() {
  while (!retries_.empty() && retries_.front().due <= now()) {
    const Retry retry = retries_.pop();
    Item item;
    item.kind = ItemKind::retry;
    item.number = retry.put;
    add_item(process_of(retry.pid), item);
  }
  if (!retries_.empty()) retry_.at(retries_.front().due);
}

void Provider::written(Process& process, std::uint32_t number, Outcome outcome) {
  const Put put = process.puts[number];
  if (outcome == Outcome::ok && p_.completion == RdmaCompletion::ack_then_send) {
    ++stats_.notices;
    ControlMessage notice;
    notice.kind = ControlKind::written;
    notice.ticket = put.ticket;
    say(process, put.rank, notice);
  }
  if (outcome != Outcome::ok && put.era != 0) {
    Advertised& known = process.advertised[{put.rank, put.descriptor.mailbox.value()}];
    if (known.era == put.era) ++known.failed;
  }
  end(process, number, outcome);
}

void Provider::end(Process& process, std::uint32_t number, Outcome outcome) {
  Put& put = process.puts[number];
  put.open = false;
  process.free_puts.push_back(number);
  if (outcome == Outcome::timeout) tell_given_up(process, put);
  const Descriptor& descriptor = put.descriptor;
  observers_.tell(
      [&](NicObserver& observer) { observer.put_ended(p_.node, descriptor.completion, outcome, put.tries, now()); });
  write_words(descriptor.completion, static_cast<std::uint64_t>(outcome),
              outcome == Outcome::ok ? descriptor.length : 0);
}

}  // namespace rvma
