// What the scoreboard knows of gets: the bytes that left the target must have been its buffer's, and be the asker's.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "report/scoreboard.hpp"
#include "report/scoreboard_shadow.hpp"

namespace rvma {

/// The window for the answer is one like any other, but that no program posted its buffer and no word is written for
/// it.
void Scoreboard::get_opened(NodeId node, Pid pid, WindowId slot, BufferId id, const Descriptor& call, Time at) {
  const PutRecord* put = registry_.find(node, call.completion);
  if (!expect(put != nullptr && put->kind == OperationKind::get, at,
              [&] { return fmt::format("node {}: a get was opened that no program issued", node.value()); })) {
    return;
  }
  expect(call.length == put->size && (put->size == 0 || call.local == put->memory), at,
         [&] { return fmt::format("node {}: a get changed its place or size on the way", node.value()); });
  window_opened(node, pid, slot, call, at);
  auto get = std::make_unique<ShadowGet>();
  get->node = node;
  get->pid = pid;
  get->memory = put->memory;
  get->size = put->size;
  get->offset = put->offset;
  get->buffer = std::make_shared<ShadowBuffer>();
  ShadowBuffer& buffer = *get->buffer;
  buffer.node = node;
  buffer.pid = pid;
  buffer.head = put->memory;
  buffer.size = put->size;
  buffer.word = call.completion;
  buffer.is_answer = true;
  buffer.id = id;
  buffer.window = windows_.at(NodeKey{node.value(), slot.value()});
  buffer.window->bucket.push_back(&buffer);
  std::shared_ptr<ShadowBuffer>& place = buffers_[NodeKey{node.value(), id.value()}];
  expect(place == nullptr || place->may_lose_id(), at, [&] {
    return fmt::format("node {}: buffer id {} was given to a get before the one before had its messages", node.value(),
                       id.value());
  });
  place = get->buffer;
  gets_.insert_or_assign(NodeKey{node.value(), call.completion.value()}, std::move(get));
}

void Scoreboard::get_given_up(NodeId node, WindowId slot, Time at) {
  const auto found = windows_.find(NodeKey{node.value(), slot.value()});
  if (!expect(found != windows_.end(), at,
              [&] { return fmt::format("node {}: a get was given up that has no window", node.value()); })) {
    return;
  }
  cut_off_all(found->second);
}

void Scoreboard::get_accepted(NodeId node, const MessageRef& request, BufferId id, Time at) {
  PutRecord* put = registry_.find(node, request);
  if (put == nullptr) return;
  const auto source = buffers_.find(NodeKey{node.value(), id.value()});
  if (!expect(put->kind == OperationKind::get && source != buffers_.end(), at,
              [&] { return fmt::format("node {}: a get was accepted that nobody asked for", node.value()); })) {
    return;
  }
  const ShadowBuffer& from = *source->second;
  const bool is_right = from.window && !from.window->bucket.empty() && from.window->bucket.front() == &from &&
                        from.window->mailbox == put->mailbox && from.pid == put->destination_pid &&
                        (from.window->key == 0 || from.window->key == put->key) && from.window->readable &&
                        put->offset <= from.size && put->size <= from.size - put->offset;
  expect(is_right, at, [&] { return fmt::format("node {}: a get was accepted that had to be refused", node.value()); });
  if (put->is_given_up) return;
  const auto get = gets_.find(NodeKey{put->node.value(), put->word.value()});
  if (get == gets_.end()) return;
  get->second->source = source->second;
  get->second->accepted = at;
}

/// A packet of an answer: its bytes are what the buffer holds, unless messages are changing that.
void Scoreboard::packet_sent(NodeId /*node*/, const Packet& packet, Time at) {
  if (packet.transport.type != PacketType::data || packet.data.payload_length == 0 || !packet.payload) return;
  const PutRecord* put = registry_.find(packet.transport.destination,
                                        MessageRef{packet.transport.source, packet.transport.source_incarnation,
                                                   packet.transport.generation, packet.data.message});
  if (put == nullptr || !put->is_answer || put->is_given_up) return;
  const auto found = gets_.find(NodeKey{packet.transport.destination.value(), put->word.value()});
  if (found == gets_.end()) return;
  take_answer(*found->second, std::uint64_t{packet.data.packet_index} * mtu_bytes_, packet.payload->data(),
              packet.data.payload_length, at);
}

/// Bytes of an answer on their way to the asker.
void Scoreboard::take_answer(ShadowGet& get, std::uint64_t place, const std::uint8_t* payload, std::uint64_t bytes,
                             Time at) {
  if (!expect(place + bytes <= get.size, at, [&] { return std::string("an answer is longer than its get"); })) return;
  std::vector<std::vector<std::uint8_t>>& versions = get.sent[place];
  std::vector<std::uint8_t> version(payload, payload + bytes);
  if (std::find(versions.begin(), versions.end(), version) == versions.end()) versions.push_back(std::move(version));
  const std::shared_ptr<ShadowBuffer> source = get.source.lock();
  const bool is_quiet = source && source->unfinished == 0 && source->last_placed < get.accepted && !source->retired;
  if (!is_quiet) return;
  host_.read(source->node, source->pid, VirtualAddress{source->head.value() + get.offset + place}, bytes, memory_);
  expect(std::memcmp(memory_.data(), payload, bytes) == 0, at, [&] {
    return fmt::format("node {}: an answer carries other bytes than its buffer holds", source->node.value());
  });
}

void Scoreboard::put_ended(NodeId node, PhysicalAddress put, Outcome outcome, std::uint32_t /*tries*/, Time at) {
  const auto found = gets_.find(NodeKey{node.value(), put.value()});
  if (found == gets_.end()) return;
  ShadowGet& get = *found->second;
  get.ended_ok = outcome == Outcome::ok;
  expect(!get.ended_ok || (get.buffer->unfinished == 0 && get.buffer->delivered == get.size && get.buffer->retired), at,
         [&] { return fmt::format("node {}: a get ended ok before its answer had come", node.value()); });
}

/// The program has seen the word, so the bytes are there.
void Scoreboard::put_freed(NodeId node, PhysicalAddress word) {
  const auto found = gets_.find(NodeKey{node.value(), word.value()});
  if (found == gets_.end()) return;
  check_get(*found->second, SimContext::now());
  gets_.erase(found);
}

void Scoreboard::check_get(const ShadowGet& get, Time at) {
  if (!with_bytes_ || !get.ended_ok || get.size == 0) return;
  std::vector<std::uint8_t> found;
  host_.read(get.node, get.pid, get.memory, get.size, found);
  const auto is_one_of = [&](std::uint64_t place, const std::vector<std::vector<std::uint8_t>>& versions) {
    return std::any_of(versions.begin(), versions.end(), [&](const std::vector<std::uint8_t>& version) {
      return std::memcmp(found.data() + place, version.data(), version.size()) == 0;
    });
  };
  std::uint64_t end = 0;  // of what was sent without a gap
  for (const auto& [place, versions] : get.sent) {
    if (place != end || !is_one_of(place, versions)) break;
    end = place + versions.front().size();
  }
  expect(end == get.size, at, [&] {
    return fmt::format("node {}: a get of {} bytes found other bytes than were sent to it", get.node.value(), get.size);
  });
}

}  // namespace rvma
