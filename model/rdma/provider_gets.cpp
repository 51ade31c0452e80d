// Gets: an exchange of addresses, then a read; the asker's software keeps a window for the answer, as the RNIC does.
#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "nic/tell_bound.hpp"
#include "rdma/provider.hpp"
#include "rdma/provider_state.hpp"

namespace rvma {
namespace {

constexpr std::uint64_t kIdStep = 16;
/// Answers are numbered apart from the messages that their target sends itself.
constexpr std::uint32_t kAnswerGeneration = 0x1'0000;

}  // namespace

void Provider::open_for_answer(Process& process, std::uint32_t number) {
  Put& get = process.puts[number];
  Descriptor window = get.descriptor;
  window.opcode = Opcode::post_one_time_buffer;
  window.window_flags = kWindowAnswer;
  window.threshold = 1;
  window.threshold_type = ThresholdType::ops;
  window.key = static_cast<std::uint32_t>(random_.next()) | 1U;
  WindowStore::WindowAnswer allocated;
  do {
    window.mailbox = Mailbox{random_.next()};
    allocated = windows_.allocate_window(window, process.pid);
  } while (allocated.status == Status::exists);
  const WindowStore::PostAnswer posted = windows_.post_buffer(allocated.window, window);
  RVMA_ASSERT(allocated.status == Status::ok && posted.status == Status::ok, "software has room for every get");
  windows_.open_window(allocated.window);
  get.window = allocated.window;
  get.answer_mailbox = window.mailbox;
  get.answer_key = window.key;
  gets_[allocated.window] = {process.pid, number};
  observers_.tell([&](NicObserver& observer) {
    observer.get_opened(p_.node, process.pid, allocated.window, posted.buffer, window, now());
  });
  if (get.descriptor.length == 0) return;
  get.region = ++last_key_;
  ++stats_.regions;
  process.debt += p_.rdma.software.registration.get();
  Descriptor region = get.descriptor;
  region.opcode = Opcode::rdma_register;
  region.key = get.region;
  region.completion = PhysicalAddress{};
  post(process, region);
}

/// At the target: may the active buffer be read?
void Provider::let_read(Process& process, const ControlMessage& request) {
  DataHeader header;
  header.destination_pid = process.pid;
  header.source_pid = pid_of(request.rank);
  header.mailbox = Mailbox{request.mailbox};
  header.key = request.key;
  header.offset = request.offset;
  header.is_get = true;
  header.ask.length = request.length;
  const MessageRef message{node_of(request.rank), kNoIncarnation, header.source_pid.value(),
                           MessageId{request.message}};
  const WindowStore::WindowAnswer found = windows_.locate(process.pid, header.mailbox);
  const ReadAnswer answer = windows_.read(header, {found.status == Status::ok, found.window, false});
  ControlMessage reply;
  reply.request = request.request;
  reply.message = request.message;
  if (answer.outcome != Outcome::pending) {
    ++stats_.refusals;
    observers_.tell([&](NicObserver& observer) { observer.message_refused(p_.node, message, answer.outcome, now()); });
    reply.kind = ControlKind::refusal;
    reply.outcome = answer.outcome;
  } else {
    ++stats_.grants;
    observers_.tell([&](NicObserver& observer) { observer.get_accepted(p_.node, message, answer.buffer, now()); });
    reply.kind = ControlKind::get_grant;
    reply.mailbox = windows_.buffer(answer.buffer).head.value() + request.offset;
    reply.key = keys_[answer.buffer.index()];
  }
  say(process, request.rank, reply);
}

/// At the asker: the address is known.
void Provider::read(Process& process, const ControlMessage& grant) {
  Put* const waiting = take_answer(process, grant);
  if (waiting == nullptr) return;
  Put& get = *waiting;
  ++stats_.reads;
  // 1. The answer is bound to the get's window, as a message of the target's.
  auto inbound = std::make_unique<Inbound>();
  DataHeader& header = inbound->header;
  header.destination_pid = process.pid;
  header.mailbox = get.answer_mailbox;
  header.key = get.answer_key;
  header.message = MessageId{++process.messages};
  header.message_length = get.descriptor.length;
  header.payload_length = static_cast<std::uint16_t>(std::min<std::uint64_t>(header.message_length, kPieceBytes));
  const NodeId target = node_of(get.rank);
  inbound->pid = process.pid;
  inbound->rank = get.rank;
  inbound->message = {target, kNoIncarnation, kAnswerGeneration | process.pid.value(), header.message};
  observers_.tell([&](NicObserver& observer) {
    observer.answer_opened(target, p_.node, process.pid, get.answer_mailbox, inbound->message, now());
  });
  inbound->bound = windows_.bind(target, header, {true, get.window, false});
  RVMA_ASSERT(inbound->bound.outcome == Outcome::pending, "a get's own window takes its answer");
  tell_bound(observers_, p_.node, inbound->message, header.message_length, inbound->bound, now());
  get.ticket = ++last_ticket_;
  inbound_.emplace(get.ticket, std::move(inbound));
  // 2. Nothing is read by a get of nothing.
  if (get.descriptor.length == 0) {
    Inbound& empty = *inbound_.at(get.ticket);
    observers_.tell([&](NicObserver& observer) { observer.packet_placed(p_.node, packet_of(empty), 0, now()); });
    complete(get.ticket);
    return;
  }
  answers_[get.region] = get.ticket;
  Descriptor work = get.descriptor;
  work.opcode = Opcode::rdma_read;
  work.mailbox = Mailbox{grant.mailbox};
  work.key = grant.key;
  work.page_list = PhysicalAddress{get.region};
  work.offset = std::uint64_t{queue_pair_of(process, get.rank)} << 32U;
  work.completion = PhysicalAddress{new_request(process, {Request::Kind::read, grant.request, {}, 0, {}, 0}) * kIdStep};
  if (open_reads_ == p_.rdma.open_reads) {
    waiting_reads_.push({process.pid, work});
    return;
  }
  ++open_reads_;
  post(process, work);
}

/// One that waited may go.
void Provider::read_has_ended() {
  --open_reads_;
  if (waiting_reads_.empty()) return;
  const auto [pid, work] = waiting_reads_.pop();
  ++open_reads_;
  post(process_of(pid), work);
}

void Provider::answered(const Completion& completion) {
  const auto found = gets_.find(completion.window);
  RVMA_ASSERT(found != gets_.end(), "an answer came to a window that no get waits for");
  const GetPlace place = found->second;
  gets_.erase(found);
  Process& process = process_of(place.pid);
  if (const std::uint32_t region = process.puts[place.put].region; region != 0) {
    answers_.erase(region);
    withdraw_region(process, region);
  }
  end(process, place.put, Outcome::ok);
}

/// A put or get ends otherwise than it was meant to; what a get's window has, goes.
void Provider::give_up(Process& process, std::uint32_t number, Outcome outcome) {
  const Put get = process.puts[number];
  if (get.descriptor.opcode == Opcode::get) {
    gets_.erase(get.window);
    inbound_.erase(get.ticket);
    if (get.region != 0) {
      answers_.erase(get.region);
      withdraw_region(process, get.region);
    }
    std::vector<WindowStore::CutMessage> cut;
    windows_.cut_off_window(get.window, cut);
    observers_.tell([&](NicObserver& observer) { observer.get_given_up(p_.node, get.window, now()); });
    std::vector<BufferId> returned;
    windows_.begin_close(get.window, returned, [this, window = get.window] { windows_.release_window(window); });
    observers_.tell([&](NicObserver& observer) { observer.window_closed(p_.node, get.window, returned, now()); });
  }
  end(process, number, outcome);
}

}  // namespace rvma
