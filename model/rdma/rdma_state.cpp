#include "rdma/rdma_state.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "nic/window_store.hpp"

namespace rvma {
namespace {

constexpr std::uint32_t kEntryBytes = 8;  ///< of a page list

/// Whether [address, + length) lies in the region; nothing wraps.
bool covers(const TranslatedRegion& region, std::uint64_t address, std::uint64_t length) {
  const std::uint64_t head = region.head.value();
  return address >= head && address - head <= region.size && length <= region.size - (address - head);
}

TranslatedRegion region_of_call(const Descriptor& call, std::uint64_t posting) {
  return {call.local, call.length, call.page_list, call.single_page, posting};
}

}  // namespace

CqeWords encode(const Cqe& cqe) {
  return {static_cast<std::uint64_t>(cqe.kind) | static_cast<std::uint64_t>(cqe.outcome) << 8U |
              std::uint64_t{cqe.immediate} << 32U,
          cqe.id};
}

Cqe decode_cqe(const CqeWords& words) {
  return {static_cast<CqeKind>(words.first & 0xffU), static_cast<Outcome>((words.first >> 8U) & 0xffU),
          static_cast<std::uint32_t>(words.first >> 32U), words.second};
}

RdmaState::RdmaState(std::uint64_t mtu, bool tracks_order) : mtu_(mtu), tracks_order_(tracks_order) {}

// ----------------------------------------------------------------------------------------------------------- calls

Status RdmaState::register_region(const Descriptor& call) {
  if (call.length == 0) return Status::bad_argument;
  const bool is_new = regions_.try_emplace(call.key, region_of_call(call, ++postings_)).second;
  return is_new ? Status::ok : Status::exists;
}

Status RdmaState::deregister_region(std::uint32_t key) {
  return regions_.erase(key) > 0 ? Status::ok : Status::bad_argument;
}

Status RdmaState::create_queue_pair(const Descriptor& call, Pid pid) {
  auto queue_pair = std::make_unique<QueuePair>();
  queue_pair->pid = pid;
  queue_pair->route = {NodeId{static_cast<std::uint32_t>(call.mailbox.value() >> 32U)},
                       static_cast<std::uint32_t>(call.mailbox.value())};
  return queue_pairs_.try_emplace(call.key, std::move(queue_pair)).second ? Status::ok : Status::exists;
}

Status RdmaState::post_receive(const Descriptor& call, Pid pid) {
  if (call.length == 0) return Status::bad_argument;
  std::unique_ptr<FifoRing<Receive>>& queue = receives_[pid.value()];
  if (!queue) queue = std::make_unique<FifoRing<Receive>>();
  queue->push({region_of_call(call, ++postings_), call.completion.value()});
  return Status::ok;
}

RdmaState::Route RdmaState::route_of(std::uint32_t queue_pair, const Descriptor& request) const {
  if ((queue_pair & kManagement) == 0) return queue_pairs_.at(queue_pair)->route;
  return {request.destination_node, kManagement | request.destination_pid.value()};
}

Pid RdmaState::owner_of(std::uint32_t queue_pair) const { return queue_pairs_.at(queue_pair)->pid; }

// -------------------------------------------------------------------------------------------------------- messages

void RdmaState::hear(NodeId source, std::uint32_t generation, std::vector<DueCqe>& due) {
  const auto [latest, is_first] = generations_.try_emplace(source, generation);
  if (is_first || std::exchange(latest->second, generation) == generation) return;
  std::set<std::uint32_t> numbers;
  for (const auto& [number, queue_pair] : queue_pairs_) {
    const bool is_managed = (number & kManagement) != 0;
    if (!is_managed && queue_pair->route.peer == source) numbers.insert(number);
  }
  for (const std::uint32_t number : numbers) begin_anew(*queue_pairs_.at(number), number, due);
}

RdmaState::Opened RdmaState::open(NodeId source, const DataHeader& header) {
  Opened answer;
  if (!is_well_cut(header, mtu_)) {
    answer.malformed = true;
    return answer;
  }
  const auto queue_pair = queue_pairs_.find(header.rdma.queue_pair);
  const bool is_managed = (header.rdma.queue_pair & kManagement) != 0;
  if (queue_pair == queue_pairs_.end() || (!is_managed && queue_pair->second->route.peer != source)) {
    answer.outcome = Outcome::no_mailbox;
    return answer;
  }
  QueuePair& own = *queue_pair->second;
  Message message;
  message.open = true;
  message.pid = own.pid;
  message.source = source;
  message.id = header.message;
  message.rdma = header.rdma;
  message.order = header.offset;
  message.place = own.first + header.offset;
  message.length = header.message_length;
  message.missing = header.message_length;
  message.address = header.mailbox.value();
  message.key = header.key;
  const bool uses_receive =
      header.rdma.operation == RdmaOperation::send || header.rdma.operation == RdmaOperation::write_immediate;
  if (header.rdma.operation != RdmaOperation::send) answer.outcome = locate(header, message);
  if (answer.outcome == Outcome::pending && uses_receive) {
    const bool may_take = is_managed || may_take_receive(own, message.place);
    answer.outcome = may_take ? take_receive(own.pid, message) : Outcome::no_buffer;
    if (answer.outcome == Outcome::no_buffer && !is_managed) own.not_ready.insert(message.place);
  }
  if (answer.outcome != Outcome::no_buffer) own.not_ready.erase(message.place);
  if (answer.outcome != Outcome::pending) {
    // It will not come again: what is behind it need not wait for it.
    if (tracks_order_ && !is_managed && answer.outcome != Outcome::no_buffer) pass(own, message.place, {}, answer.due);
    return answer;
  }
  // Its length is that of memory that exists, by now.
  if (header.message_length > mtu_) message.seen.resize((header.message_length - 1) / mtu_ + 1);
  answer.message = messages_.take();
  messages_[answer.message] = std::move(message);
  return answer;
}

Outcome RdmaState::locate(const DataHeader& header, Message& message) {
  const auto region = regions_.find(header.key);
  // A write of nothing touches no region.
  if (header.message_length == 0) return Outcome::pending;
  if (region == regions_.end()) return Outcome::bad_key;
  if (!covers(region->second, message.address, message.length)) return Outcome::bounds;
  message.memory = region->second;
  message.base = message.address - message.memory.head.value();
  return Outcome::pending;
}

/// The peer has given up what it had open, and has set the queue pair up again, so to say. What has come of the
/// generation before keeps its place in the order, also where it is on its way to memory still; what has not come never
/// will, and nothing waits for it any more.
void RdmaState::begin_anew(QueuePair& queue_pair, std::uint32_t number, std::vector<DueCqe>& due) {
  queue_pair.not_ready.clear();
  if (!tracks_order_) return;
  // 1. Its messages on their way.
  std::set<std::uint64_t> arriving;
  for (Index index = 0; index < messages_.made(); ++index) {
    const Message& message = messages_[index];
    if (message.open && !message.cut && message.rdma.queue_pair == number) arriving.insert(message.place);
  }
  // 2. The gaps before the last one that has come.
  std::uint64_t end = queue_pair.next_whole;
  if (!queue_pair.waiting.empty()) end = std::max(end, queue_pair.waiting.rbegin()->first + 1);
  if (!arriving.empty()) end = std::max(end, *arriving.rbegin() + 1);
  for (std::uint64_t place = queue_pair.next_whole; place < end; ++place) {
    if (arriving.count(place) == 0) queue_pair.waiting.try_emplace(place);
  }
  // 3. The new generation comes behind it.
  queue_pair.first = end;
  tell_waiting(queue_pair, due);
}

/// Messages of a queue pair take receives in their order, once one was refused: it comes again, and none may overtake
/// it. And where messages are told in order, as many receives are kept as messages are waited for before this one is
/// told: else those behind one that finds none would hold all of them.
bool RdmaState::may_take_receive(const QueuePair& queue_pair, std::uint64_t place) const {
  if (!queue_pair.not_ready.empty() && *queue_pair.not_ready.begin() < place) return false;
  if (!tracks_order_ || place <= queue_pair.next_whole) return true;
  const auto queue = receives_.find(queue_pair.pid.value());
  return queue != receives_.end() && queue->second->size() > place - queue_pair.next_whole;
}

Outcome RdmaState::take_receive(Pid pid, Message& message) {
  const auto queue = receives_.find(pid.value());
  if (queue == receives_.end() || queue->second->empty()) return Outcome::no_buffer;
  if (message.rdma.operation == RdmaOperation::send) {
    if (message.length > queue->second->front().memory.size) return Outcome::bounds;
    message.memory = queue->second->front().memory;
  }
  message.has_receive = true;
  message.receive = queue->second->pop();
  return Outcome::pending;
}

bool RdmaState::agrees(Index index, const DataHeader& header) const {
  const Message& message = messages_[index];
  if (!is_well_cut(header, mtu_) || header.message_length != message.length || header.key != message.key ||
      header.mailbox.value() != message.address || header.offset != message.order ||
      header.rdma.operation != message.rdma.operation || header.rdma.queue_pair != message.rdma.queue_pair ||
      header.rdma.immediate != message.rdma.immediate) {
    return false;
  }
  return message.seen.empty() || !message.seen[header.packet_index];
}

const TranslatedRegion& RdmaState::region_of(Index message) const { return messages_[message].memory; }

std::uint64_t RdmaState::offset_of(Index message, const DataHeader& header) const {
  return messages_[message].base + header.packet_index * mtu_;
}

void RdmaState::placing(Index index, const DataHeader& header) {
  Message& message = messages_[index];
  if (!message.seen.empty()) message.seen[header.packet_index] = true;
  ++message.on_their_way;
}

RdmaState::Placing RdmaState::placing_of(Index index) const {
  const Message& message = messages_[index];
  return {message.source, message.pid, message.rdma.operation, message.rdma.immediate, message.key,
          message.length, message.base};
}

RdmaState::Counted RdmaState::count(Index index, std::uint64_t payload_offset, std::uint32_t payload_length,
                                    std::vector<DueCqe>& due) {
  Message& message = messages_[index];
  Counted counted;
  counted.source = message.source;
  counted.id = message.id;
  --message.on_their_way;
  if (message.cut) {
    if (message.on_their_way == 0) release(index);
    return counted;
  }
  const std::uint64_t at = payload_offset - message.base;
  message.missing -= payload_length;
  counted.whole = message.missing == 0;
  const bool is_last = at + payload_length == message.length;
  // Whoever reads knows how much it has asked for, and counts.
  const bool is_counted = tracks_order_ || message.rdma.operation == RdmaOperation::read_answer;
  if (is_counted ? counted.whole : is_last) signal(message, due);
  if (counted.whole) release(index);
  return counted;
}

bool RdmaState::cqe_of(const Message& message, DueCqe& due) {
  due.cqe.immediate = message.rdma.immediate;
  due.cqe.id = message.receive.id;
  switch (message.rdma.operation) {
    case RdmaOperation::send:
      due.cqe.kind = CqeKind::received;
      return true;
    case RdmaOperation::write_immediate:
      due.cqe.kind = CqeKind::written;
      return true;
    case RdmaOperation::read_answer:
      due.cqe.kind = CqeKind::read;
      due.cqe.immediate = 0;
      if (!end_read(message.rdma.immediate, due.pid, due.cqe.id)) return false;
      if (read_answered_) read_answered_();
      return true;
    case RdmaOperation::write:
    case RdmaOperation::read:
    case RdmaOperation::none:
      break;
  }
  return false;
}

void RdmaState::signal(Message& message, std::vector<DueCqe>& due) {
  if (std::exchange(message.signalled, true)) return;
  QueuePair& queue_pair = *queue_pairs_.at(message.rdma.queue_pair);
  std::vector<DueCqe> own;
  DueCqe entry{queue_pair.pid, {}};
  if (cqe_of(message, entry)) own.push_back(entry);
  const bool is_ordered = tracks_order_ && (message.rdma.queue_pair & kManagement) == 0;
  // An answer ends its read at once: whatever its peer has sent before it has no part in that, and may never come.
  if (!is_ordered || message.rdma.operation == RdmaOperation::read_answer) {
    due.insert(due.end(), own.begin(), own.end());
    own.clear();
  }
  if (is_ordered) pass(queue_pair, message.place, std::move(own), due);
}

/// The message at `place` is over, with entries of its own; tells what need not wait any more.
void RdmaState::pass(QueuePair& queue_pair, std::uint64_t place, std::vector<DueCqe> own, std::vector<DueCqe>& due) {
  queue_pair.waiting[place] = std::move(own);
  tell_waiting(queue_pair, due);
}

void RdmaState::tell_waiting(QueuePair& queue_pair, std::vector<DueCqe>& due) {
  for (auto next = queue_pair.waiting.begin(); next != queue_pair.waiting.end() && next->first == queue_pair.next_whole;
       next = queue_pair.waiting.erase(next)) {
    due.insert(due.end(), next->second.begin(), next->second.end());
    ++queue_pair.next_whole;
  }
}

void RdmaState::cut_off(Index index, std::vector<DueCqe>& due) {
  Message& message = messages_[index];
  message.cut = true;
  if (tracks_order_ && (message.rdma.queue_pair & kManagement) == 0) {
    pass(*queue_pairs_.at(message.rdma.queue_pair), message.place, {}, due);
  }
  if (message.on_their_way == 0) release(index);
}

void RdmaState::release(Index index) {
  Message& message = messages_[index];
  message.open = false;
  // Nobody has been told of the receive: it is the next one's again.
  if (message.cut && message.has_receive && !message.signalled)
    receives_.at(message.pid.value())->push(message.receive);
  messages_.give_back(index);
}

// ----------------------------------------------------------------------------------------------------------- reads

Outcome RdmaState::read(NodeId source, const DataHeader& header, Descriptor& answer, std::uint64_t page_bytes) const {
  const auto queue_pair = queue_pairs_.find(header.rdma.queue_pair);
  if (queue_pair == queue_pairs_.end() || queue_pair->second->route.peer != source) return Outcome::no_mailbox;
  const auto region = regions_.find(header.key);
  if (region == regions_.end()) return Outcome::bad_key;
  const TranslatedRegion& memory = region->second;
  if (!covers(memory, header.mailbox.value(), header.ask.length)) return Outcome::bounds;
  answer.local = VirtualAddress{header.mailbox.value()};
  answer.length = header.ask.length;
  answer.single_page = memory.single_page;
  answer.page_list = memory.page_list;
  if (!memory.single_page) {
    const std::uint64_t first = answer.local.value() / page_bytes - memory.head.value() / page_bytes;
    answer.page_list = PhysicalAddress{memory.page_list.value() + first * kEntryBytes};
  }
  answer.mailbox = header.ask.mailbox;
  answer.key = header.ask.key;
  return Outcome::pending;
}

std::uint32_t RdmaState::open_read(Pid pid, std::uint64_t id) {
  const std::uint32_t index = reads_.take();
  RVMA_ASSERT(index <= 0xffff, "more reads than their numbers can tell apart");
  Read& read = reads_[index];
  read.open = true;
  read.pid = pid;
  read.id = id;
  return std::uint32_t{++read.uses} << 16U | index;
}

bool RdmaState::is_reading(std::uint32_t number) const {
  const std::uint32_t index = number & 0xffffU;
  return index < reads_.made() && reads_[index].open && reads_[index].uses == number >> 16U;
}

bool RdmaState::end_read(std::uint32_t number, Pid& pid, std::uint64_t& id) {
  const std::uint32_t index = number & 0xffffU;
  if (!is_reading(number)) return false;
  reads_[index].open = false;
  pid = reads_[index].pid;
  id = reads_[index].id;
  reads_.give_back(index);
  return true;
}

}  // namespace rvma
