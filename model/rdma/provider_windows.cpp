// The receiver's side: windows, buckets, binding and counting, in software.
#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "nic/tell_bound.hpp"
#include "rdma/provider.hpp"
#include "rdma/provider_state.hpp"

namespace rvma {
namespace {

std::size_t index_of(Stage stage) { return static_cast<std::size_t>(stage); }

}  // namespace

// ----------------------------------------------------------------------------------------------------------- calls

void Provider::execute(Process& process, const Descriptor& call) {
  switch (call.opcode) {
    case Opcode::put:
    case Opcode::get:
      start(process, call);
      return;
    case Opcode::arm_interrupt:  // nothing interrupts: the core polls
      return;
    case Opcode::init_window:
    case Opcode::post_one_time_buffer:
      open(process, call);
      return;
    default:
      break;
  }
  const WindowStore::WindowAnswer window = windows_.find_window(process.pid, call.mailbox);
  if (window.status != Status::ok) {
    answer(call, window.status, 0);
    return;
  }
  call_window(process, call, window.window);
}

void Provider::open(Process& process, const Descriptor& call) {
  const WindowStore::WindowAnswer allocated = windows_.allocate_window(call, process.pid);
  if (allocated.status != Status::ok) {
    answer(call, allocated.status, 0);
    return;
  }
  const bool has_buffer = call.opcode == Opcode::post_one_time_buffer;
  WindowStore::PostAnswer buffer;
  if (has_buffer) {
    buffer = windows_.post_buffer(allocated.window, call);
    if (buffer.status != Status::ok) {
      windows_.abandon_window(allocated.window);
      answer(call, buffer.status, 0);
      return;
    }
  }
  windows_.open_window(allocated.window);
  may_advertise(call, allocated.window);
  observers_.tell(
      [&](NicObserver& observer) { observer.window_opened(p_.node, process.pid, allocated.window, call, now()); });
  if (has_buffer) posted(process, call, allocated.window, buffer.buffer);
  answer(call, Status::ok, 0);
}

/// The buffer is registered: the NIC may write to it.
void Provider::posted(Process& process, const Descriptor& call, WindowId window, BufferId buffer) {
  observers_.tell(
      [&](NicObserver& observer) { observer.buffer_posted(p_.node, process.pid, window, buffer, call, now()); });
  if (buffer.index() >= keys_.size()) keys_.resize(buffer.index() + 1);
  keys_[buffer.index()] = region_for(process, call);
  Advertising* const advertising = advertising_of(window);
  if (advertising == nullptr) return;
  advertising->unbound.push_back(buffer);
  advertise(process, *advertising);
}

void Provider::withdraw(Process& process, BufferId buffer) { withdraw_region(process, keys_[buffer.index()]); }

void Provider::call_window(Process& process, const Descriptor& call, WindowId window) {
  if (waits_for_revocation(process, call, window)) return;
  switch (call.opcode) {
    case Opcode::post_buffer: {
      const WindowStore::PostAnswer buffer = windows_.post_buffer(window, call);
      if (buffer.status == Status::ok) posted(process, call, window, buffer.buffer);
      answer(call, buffer.status, 0);
      return;
    }
    case Opcode::inc_epoch: {
      BufferId retired;
      Epoch epoch;
      const Status status = windows_.inc_epoch(window, retired, epoch);
      if (status == Status::ok) {
        has_bound(window);
        observers_.tell(
            [&](NicObserver& observer) { observer.epoch_retired(p_.node, window, retired, epoch, true, now()); });
        take_completions({});
      }
      answer(call, status, 0);
      return;
    }
    case Opcode::get_epoch:
      answer(call, Status::ok, windows_.completed_epochs(window));
      return;
    case Opcode::get_buf_ptrs:
      list_completed(call, window);
      return;
    case Opcode::close_window:
      close(process, call, window);
      return;
    default:
      answer(call, Status::unsupported, 0);
  }
}

void Provider::list_completed(const Descriptor& call, WindowId window) {
  std::vector<WindowStore::CompletedBuffer> list;
  const Status status = windows_.completed_buffers(window, call.threshold, list);
  std::vector<std::uint8_t> bytes;
  for (const WindowStore::CompletedBuffer& buffer : list) {
    for (const std::uint64_t word : {buffer.head.value(), buffer.length, buffer.epoch.value()}) {
      for (unsigned i = 0; i < 8; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
    }
  }
  if (!bytes.empty()) memory_.write(call.completion, bytes.data(), bytes.size());
  answer(call, status, list.size());
}

void Provider::close(Process& process, const Descriptor& call, WindowId window) {
  advertising_.erase(window);
  std::vector<BufferId> returned;
  windows_.begin_close(window, returned, [this, window, call] { drained_.push_back({window, call}); });
  for (const BufferId buffer : returned) withdraw(process, buffer);
  observers_.tell([&](NicObserver& observer) { observer.window_closed(p_.node, window, returned, now()); });
  finish_closes();
}

/// Windows whose last message has ended, once everybody knows of it.
void Provider::finish_closes() {
  for (const Drained& closed : std::exchange(drained_, {})) {
    windows_.release_window(closed.window);
    answer(closed.call, Status::ok, 0);
  }
}

void Provider::answer(const Descriptor& call, Status status, std::uint64_t value) {
  if (call.response.value() != 0) write_words(call.response, static_cast<std::uint64_t>(status), value);
}

// --------------------------------------------------------------------------------------------------------- binding

void Provider::bind(Process& process, const ControlMessage& request) {
  if (process.given_up.erase({request.rank, request.message}) > 0) {
    // It has waited so long for a revocation that nobody wants to know any more.
    process.owed.erase({request.rank, request.message});
    return;
  }
  const WindowStore::WindowAnswer found = windows_.locate(process.pid, Mailbox{request.mailbox});
  if (found.status == Status::ok && asks_in_vain(process, request, found.window)) return;
  DataHeader header;
  header.destination_pid = process.pid;
  header.source_pid = pid_of(request.rank);
  header.mailbox = Mailbox{request.mailbox};
  header.key = request.key;
  header.message = MessageId{request.message};
  header.message_length = request.length;
  header.offset = request.offset;
  header.payload_length = static_cast<std::uint16_t>(std::min<std::uint64_t>(request.length, kPieceBytes));
  const NodeId source = node_of(request.rank);
  const MessageRef message{source, kNoIncarnation, header.source_pid.value(), header.message};
  const BindAnswer bound = windows_.bind(source, header, {found.status == Status::ok, found.window, false});
  tell_bound(observers_, p_.node, message, header.message_length, bound, now());
  take_completions({});
  if (bound.outcome != Outcome::pending) {
    ++stats_.refusals;
    ControlMessage refusal;
    refusal.kind = ControlKind::refusal;
    refusal.request = request.request;
    refusal.message = request.message;
    refusal.outcome = bound.outcome;
    say(process, request.rank, refusal);
    return;
  }
  // Where the mailbox has no window, a catch-all window has taken it.
  has_bound(bound.window);
  auto inbound = std::make_unique<Inbound>();
  inbound->pid = process.pid;
  inbound->rank = request.rank;
  inbound->message = message;
  inbound->header = header;
  inbound->bound = bound;
  const std::uint32_t ticket = ++last_ticket_;
  Inbound& kept = *inbound;
  inbound_.emplace(ticket, std::move(inbound));
  if (bound.has_record) write_record(process, kept);
  if (request.length == 0) {
    // The request is all there is of it.
    observers_.tell([&](NicObserver& observer) {
      observer.packet_placed(p_.node, packet_of(kept), kept.bound.message_offset, now());
    });
    ControlMessage end;
    end.kind = ControlKind::refusal;
    end.request = request.request;
    end.message = request.message;
    end.outcome = Outcome::ok;
    say(process, request.rank, end);
    complete(ticket);
    return;
  }
  grant(process, request, ticket, kept);
  if (Advertising* const advertising = advertising_of(bound.window)) advertise(process, *advertising);
}

void Provider::grant(Process& process, const ControlMessage& request, std::uint32_t ticket, const Inbound& inbound) {
  const BufferPlace& place = inbound.bound.place;
  const VirtualAddress address{windows_.buffer(place.buffer).head.value() + place.offset};
  ++stats_.grants;
  ControlMessage message;
  message.kind = ControlKind::put_grant;
  message.request = request.request;
  message.message = request.message;
  message.ticket = ticket;
  message.mailbox = address.value();
  message.key = keys_[place.buffer.index()];
  // Software that polls the last byte of a message begins before it tells where to write.
  if (p_.completion == RdmaCompletion::last_byte) {
    const PhysicalAddress last = process.space.translate(VirtualAddress{address.value() + request.length - 1});
    memory_.watch(last, 1, [this, pid = process.pid, ticket] {
      Item item;
      item.kind = ItemKind::last_byte;
      item.number = ticket;
      add_item(process_of(pid), item);
    });
  }
  say(process, request.rank, message);
}

/// The record that precedes a message in a catch-all window: the software writes it itself.
void Provider::write_record(Process& process, Inbound& inbound) {
  const std::uint64_t words[] = {inbound.rank, inbound.header.mailbox.value(), inbound.header.message_length,
                                 inbound.header.message.value()};
  std::array<std::uint8_t, kRecordBytes> bytes{};
  for (std::uint32_t i = 0; i < kRecordBytes; ++i) {
    bytes.at(i) = static_cast<std::uint8_t>(words[i / 8] >> (8 * (i % 8)));
  }
  const std::uint64_t at = inbound.bound.message_offset - kRecordBytes;
  const BufferPlace& place = inbound.bound.place;
  process.space.write(VirtualAddress{windows_.buffer(place.buffer).head.value() + at}, bytes.data(), bytes.size());
  PlacedPacket record = packet_of(inbound);
  record.is_record = true;
  record.has_binding = true;
  record.payload_length = kRecordBytes;
  record.buffer_offset = at;
  observers_.tell([&](NicObserver& observer) { observer.record_placed(p_.node, record, at, now()); });
  windows_.count(record);
}

PlacedPacket Provider::packet_of(const Inbound& inbound) {
  PlacedPacket packet;
  packet.message = inbound.message;
  packet.buffer = inbound.bound.place.buffer;
  packet.binding = inbound.bound.place.binding;
  packet.has_binding = inbound.bound.place.has_binding;
  packet.left = inbound.left;
  return packet;
}

// -------------------------------------------------------------------------------------------------------- counting

/// A packet of a write has entered the posted channel; only results and checks learn of it.
void Provider::placed(const RdmaNicIf::Placed& placed) {
  std::uint32_t ticket = placed.message.immediate;
  if (placed.message.operation == RdmaOperation::read_answer) {
    const auto answer = answers_.find(placed.message.key);
    if (answer == answers_.end()) return;
    ticket = answer->second;
  } else if (placed.message.operation == RdmaOperation::send) {
    return;
  }
  const auto found = inbound_.find(ticket);
  // Early completion has forgotten the message: the packet still lands, and checks must see it.
  PlacedPacket packet = *placed.packet;
  if (found == inbound_.end()) {
    const auto late = late_.find(ticket);
    if (late == late_.end()) return;
    packet.message = late->second.message;
    packet.buffer = late->second.buffer;
    packet.buffer_offset = late->second.offset + placed.offset;
    late->second.missing -= packet.payload_length;
    if (late->second.missing == 0) late_.erase(late);
  } else {
    Inbound& inbound = *found->second;
    packet.message = inbound.message;
    packet.buffer = inbound.bound.place.buffer;
    packet.buffer_offset = inbound.bound.message_offset + placed.offset;
    inbound.left = packet.left;
    inbound.left[index_of(Stage::dma_write)] = placed.at;
    inbound.placed_bytes += packet.payload_length;
  }
  observers_.tell(
      [&](NicObserver& observer) { observer.packet_placed(p_.node, packet, packet.buffer_offset, placed.at); });
}

/// The software has learned that what `ticket` granted is written, or believes so.
void Provider::complete(std::uint32_t ticket) {
  const auto found = inbound_.find(ticket);
  if (found == inbound_.end()) return;
  const std::unique_ptr<Inbound> inbound = std::move(found->second);
  inbound_.erase(found);
  if (inbound->placed_bytes < inbound->header.message_length) {
    late_.emplace(ticket, Late{inbound->message, inbound->bound.place.buffer, inbound->bound.message_offset,
                               inbound->header.message_length - inbound->placed_bytes});
  }
  count(*inbound);
  heard_of(process_of(inbound->pid), ticket);
}

/// A put has ended, and nothing of it comes any more. If it is bound still, it is cut off, as the RNIC does it.
void Provider::cut_off(Process& process, const ControlMessage& news) {
  const auto found = std::find_if(inbound_.begin(), inbound_.end(), [&](const auto& entry) {
    const Inbound& inbound = *entry.second;
    return inbound.pid == process.pid && inbound.rank == news.rank && inbound.message.message.value() == news.message &&
           inbound.message.generation == pid_of(news.rank).value();
  });
  if (found == inbound_.end()) {
    if (process.owed.contains({news.rank, news.message})) process.given_up.insert({news.rank, news.message});
    return;
  }
  const std::uint32_t ticket = found->first;
  const std::unique_ptr<Inbound> inbound = std::move(found->second);
  inbound_.erase(found);
  will_not_hear_of(ticket);
  const WindowStore::CutOff cut = windows_.cut_off(inbound->bound.place.binding);
  observers_.tell([&](NicObserver& observer) {
    observer.message_cut_off(p_.node, inbound->message, cut.buffer, cut.is_broken, now());
    if (cut.retired_now) observer.epoch_retired(p_.node, cut.window, cut.buffer, cut.epoch, true, now());
  });
  // The request stands for its first packet, which is no longer on the way.
  windows_.count(packet_of(*inbound));
  take_completions(inbound->left);
  finish_closes();
}

void Provider::count(Inbound& inbound) {
  inbound.left[index_of(Stage::count)] = now();
  // The store counts in pieces; the last one makes the message whole.
  DataHeader header = inbound.header;
  const std::uint64_t length = header.message_length;
  for (std::uint64_t done = 0; done < length || done == 0; done += kPieceBytes) {
    PlacedPacket piece = packet_of(inbound);
    piece.payload_length = static_cast<std::uint32_t>(std::min<std::uint64_t>(kPieceBytes, length - done));
    piece.buffer_offset = inbound.bound.place.offset + done;
    if (done > 0) {
      header.packet_index = static_cast<std::uint32_t>(done / kPieceBytes);
      header.payload_length = static_cast<std::uint16_t>(piece.payload_length);
      BufferPlace place;
      const bool agrees = windows_.place(piece.binding, inbound.message.source, header, place);
      RVMA_ASSERT(agrees, "the software's own pieces agree with their message");
      piece.buffer_offset = place.offset;
    }
    if (!windows_.count(piece)) continue;
    observers_.tell([&](NicObserver& observer) {
      observer.message_counted(p_.node, inbound.message, inbound.bound.place.buffer, now());
    });
  }
  take_completions(inbound.left);
  finish_closes();
}

void Provider::take_completions(const StageTimes& left) {
  windows_.take_completions(due_);
  for (Completion& completion : std::exchange(due_, {})) {
    completion.left = left;
    if (completion.is_answer) {
      answered(completion);
      continue;
    }
    withdraw(process_of(completion.pid), completion.buffer);
    observers_.tell([&](NicObserver& observer) { observer.completion_written(p_.node, completion, now(), now()); });
    write_words(completion.word, completion.head.value(), completion.length);
  }
}

/// One-time windows that have closed themselves.
void Provider::reap() {
  windows_.take_expired(expired_);
  for (const WindowStore::Expired& window : std::exchange(expired_, {})) {
    if (Advertising* const advertising = advertising_of(window.window)) {
      for (auto& call : advertising->deferred) orphans_.push_back(std::move(call));
      advertising_.erase(window.window);
      forget_reminders();
    }
    windows_.release_window(window.window);
    observers_.tell([&](NicObserver& observer) { observer.window_closed(p_.node, window.window, {}, now()); });
  }
}

}  // namespace rvma
