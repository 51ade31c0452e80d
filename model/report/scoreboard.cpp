// Claims of the NICs; what memory holds: scoreboard_memory.cpp.
#include "report/scoreboard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/random.hpp"
#include "base/value_text.hpp"
#include "nic/window_store.hpp"
#include "report/scoreboard_shadow.hpp"

namespace rvma {
namespace {

std::string name_of(NodeId destination, const MessageRef& message) {
  return fmt::format("message {} of node {} to node {}", message.message.value(), message.source.value(),
                     destination.value());
}

}  // namespace

bool Scoreboard::LaterCheck::operator()(const PendingCheck& a, const PendingCheck& b) const {
  return std::tie(b.visible, b.order) < std::tie(a.visible, a.order);
}

std::size_t Scoreboard::Hash::operator()(const NodeKey& key) const {
  return static_cast<std::size_t>(mix64(key.id ^ (std::uint64_t{key.node} << 40U)));
}
Scoreboard::Scoreboard(PutRegistry& registry, Host host, std::uint32_t mtu_bytes, bool with_bytes)
    : registry_(registry), host_(std::move(host)), mtu_bytes_(mtu_bytes), with_bytes_(with_bytes) {}

Scoreboard::~Scoreboard() = default;

void Scoreboard::fail(Time at, const std::string& text) {
  ++failure_count_;
  if (failures_.size() < kShown) failures_.push_back(to_ns_string(at) + " ns: " + text);
}

// -------------------------------------------------------------------------------------------------- what is posted

void Scoreboard::post_issued(const BufferPost& post) {
  auto buffer = std::make_shared<ShadowBuffer>();
  buffer->node = post.node;
  buffer->pid = post.pid;
  buffer->head = post.head;
  buffer->size = post.size;
  buffer->has_seed = post.has_seed;
  buffer->seed = post.seed;
  buffer->word = post.word;
  posted_.insert_or_assign(NodeKey{post.node.value(), post.word.value()}, std::move(buffer));
}

void Scoreboard::buffer_freed(NodeId node, PhysicalAddress word) {
  settle(SimContext::now());
  const auto found = posted_.find(NodeKey{node.value(), word.value()});
  if (found == posted_.end()) return;
  // A write after the completion would have changed the bytes since.
  if (found->second->checked) compare_memory(*found->second, SimContext::now());
  if (const std::shared_ptr<ShadowWindow> home = found->second->home.lock()) home->forget(*found->second);
  posted_.erase(found);
}

void Scoreboard::window_opened(NodeId node, Pid pid, WindowId slot, const Descriptor& call, Time at) {
  const NodeKey key{node.value(), slot.value()};
  expect(!windows_.contains(key), at,
         [&] { return fmt::format("node {}: slot {} was opened twice", node.value(), slot.value()); });
  auto window = std::make_shared<ShadowWindow>();
  window->node = node;
  window->pid = pid;
  window->mailbox = call.mailbox;
  window->threshold = call.threshold;
  window->type = call.threshold_type;
  window->placement = call.placement;
  window->key = call.key;
  window->catch_all = (call.window_flags & kWindowCatchAll) != 0;
  window->readable = (call.window_flags & kWindowReadable) != 0;
  if (window->catch_all) window->placement = Placement::managed;
  windows_.insert_or_assign(key, std::move(window));
}

void Scoreboard::buffer_posted(NodeId node, Pid /*pid*/, WindowId slot, BufferId id, const Descriptor& call, Time at) {
  const auto window = windows_.find(NodeKey{node.value(), slot.value()});
  const auto posted = posted_.find(NodeKey{node.value(), call.completion.value()});
  if (!expect(
          window != windows_.end(), at,
          [&] { return fmt::format("node {}: a buffer was posted to closed slot {}", node.value(), slot.value()); }) ||
      !expect(posted != posted_.end(), at,
              [&] { return fmt::format("node {}: a buffer was posted that no program issued", node.value()); })) {
    return;
  }
  ShadowBuffer& buffer = *posted->second;
  expect(call.local == buffer.head && call.length == buffer.size, at,
         [&] { return fmt::format("node {}: a posted buffer changed its place or size on the way", node.value()); });
  buffer.window = window->second;
  buffer.home = window->second;
  buffer.window->bucket.push_back(&buffer);
  buffer.window->posted.push_back(&buffer);
  buffer.id = id;
  std::shared_ptr<ShadowBuffer>& place = buffers_[NodeKey{node.value(), id.value()}];
  expect(place == nullptr || place->may_lose_id(), at, [&] {
    return fmt::format("node {}: buffer id {} was given to a second buffer before the first had its messages",
                       node.value(), id.value());
  });
  place = posted->second;
}

void Scoreboard::window_closed(NodeId node, WindowId slot, const std::vector<BufferId>& returned, Time at) {
  const auto found = windows_.find(NodeKey{node.value(), slot.value()});
  if (!expect(found != windows_.end(), at,
              [&] { return fmt::format("node {}: slot {} was closed but not open", node.value(), slot.value()); })) {
    return;
  }
  ShadowWindow& window = *found->second;
  expect(returned.size() == window.bucket.size(), at, [&] {
    return fmt::format("node {}: close_window returned {} buffers of mailbox {:#018x}, {} were unretired", node.value(),
                       returned.size(), window.mailbox.value(), window.bucket.size());
  });
  for (std::size_t i = 0; i < std::min(returned.size(), window.bucket.size()); ++i) {
    const auto place = buffers_.find(NodeKey{node.value(), returned[i].value()});
    expect(place != buffers_.end() && place->second.get() == window.bucket[i], at, [&] {
      return fmt::format("node {}: close_window returned another buffer of mailbox {:#018x} than was unretired",
                         node.value(), window.mailbox.value());
    });
  }
  for (ShadowBuffer* buffer : window.bucket) {
    buffer->returned = true;
    buffer->window.reset();
  }
  // A misfit needs no explanation any more. Retired buffers keep the window: their completions have an order.
  if (window.misfit_open) --open_misfits_;
  window.closing = true;
  windows_.erase(found);
}

// ------------------------------------------------------------------------------------------------- what is decided

void Scoreboard::packet_arrived(NodeId /*node*/, const Packet& packet, Time /*at*/) {
  if (packet.transport.type == PacketType::data) ++packets_arrived_;
}

void Scoreboard::message_refused(NodeId node, const MessageRef& message, Outcome reason, Time at) {
  expect(!messages_.contains(MessageKey(node, message)), at,
         [&] { return name_of(node, message) + " was refused after it was bound"; });
  if (reason != Outcome::no_buffer || open_misfits_ == 0) return;
  for (auto& [key, window] : windows_) {
    if (key.node == node.value() && window->misfit_open && window->bucket.empty()) {
      window->misfit_open = false;
      --open_misfits_;
    }
  }
}

void Scoreboard::expect_retired_where_due(const ShadowWindow& window, Time at) {
  if (window.bucket.empty()) return;
  const ShadowBuffer& active = *window.bucket.front();
  expect(active.reserved < window.threshold, at, [&] {
    return fmt::format("node {}: mailbox {:#018x} epoch {} reserved {} of {} and was not retired", window.node.value(),
                       window.mailbox.value(), window.next_epoch, active.reserved, window.threshold);
  });
}

bool Scoreboard::is_open(NodeId node, Pid pid, Mailbox mailbox) const {
  return std::any_of(windows_.begin(), windows_.end(), [&](const auto& entry) {
    const ShadowWindow& window = *entry.second;
    return window.node == node && window.pid == pid && window.mailbox == mailbox;
  });
}

void Scoreboard::message_bound(NodeId node, const MessageRef& message, WindowId slot, BufferId id, Epoch epoch,
                               std::uint64_t buffer_offset, std::uint64_t length, Time at) {
  const auto say = [&](const std::string& what) { return name_of(node, message) + " " + what; };
  // 1. Somebody sent it, to this window.
  PutRecord* put = registry_.find(node, message);
  const auto found = windows_.find(NodeKey{node.value(), slot.value()});
  if (!expect(put != nullptr, at, [&] { return say("was bound but no open put sends it"); }) ||
      !expect(found != windows_.end(), at, [&] { return say("was bound to a slot that is not open"); })) {
    return;
  }
  ShadowWindow& window = *found->second;
  expect(!window.rewinding, at, [&] { return say("was bound while its window was being rewound"); });
  const bool is_caught = window.catch_all && put->mailbox != window.mailbox;
  expect((put->mailbox == window.mailbox || (is_caught && !is_open(node, window.pid, put->mailbox))) &&
             put->destination_pid == window.pid,
         at, [&] { return say("was bound to another mailbox than it names"); });
  expect(window.key == 0 || window.key == put->key, at, [&] { return say("was bound with a wrong key"); });
  expect(put->size == length, at, [&] { return say("was bound with a wrong length"); });
  if (!expect(!messages_.contains(MessageKey(node, message)) && !put->counted, at,
              [&] { return say("was bound twice"); })) {
    return;
  }

  // 2. To the active buffer: the first that is not retired, in the order of posting.
  expect_retired_where_due(window, at);
  const auto place = buffers_.find(NodeKey{node.value(), id.value()});
  if (!expect(place != buffers_.end() && !window.bucket.empty() && window.bucket.front() == place->second.get(), at,
              [&] { return say("was not bound to the active buffer"); })) {
    return;
  }
  ShadowBuffer& buffer = *place->second;
  expect(epoch.value() == window.next_epoch, at, [&] {
    return say(fmt::format("was bound to epoch {}, the active one is {}", epoch.value(), window.next_epoch));
  });
  const std::uint64_t record_bytes = window.catch_all ? kShadowRecord : 0;
  const std::uint64_t unit = length + record_bytes;
  if (window.misfit_open) {
    expect(unit > window.misfit_room, at,
           [&] { return say("fitted the buffer that was retired because it did not fit"); });
    window.misfit_open = false;
    --open_misfits_;
  }

  // 3. At its place, within bounds.
  const std::uint64_t offset = window.placement == Placement::steered ? put->offset : buffer.tail + record_bytes;
  expect(buffer_offset == offset, at,
         [&] { return say(fmt::format("was bound at offset {}, it belongs at {}", buffer_offset, offset)); });
  const bool in_bounds = expect(length <= buffer.size && buffer_offset <= buffer.size - length, at,
                                [&] { return say("was bound beyond the end of its buffer"); });

  // 4. Reserved.
  buffer.reserved += window.type == ThresholdType::bytes ? unit : 1;
  buffer.tail += unit;
  ++buffer.unfinished;
  auto bound = std::make_unique<BoundMessage>();
  bound->buffer = place->second;
  bound->window = found->second;
  bound->offset = buffer_offset;
  bound->length = length;
  bound->seed = put->seed;
  bound->is_answer = put->is_answer;
  bound->in_bounds = in_bounds;
  bound->record_bytes = record_bytes;
  if (record_bytes > 0) {
    for (const std::uint64_t word :
         {std::uint64_t{put->rank.value()}, put->mailbox.value(), put->size, std::uint64_t{message.message.value()}}) {
      for (unsigned i = 0; i < 8; ++i) bound->record.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
    }
  }
  if (length > mtu_bytes_) bound->placed.resize((length + mtu_bytes_ - 1) / mtu_bytes_);
  messages_.insert_or_assign(MessageKey(node, message), std::move(bound));
}

void Scoreboard::epoch_retired(NodeId node, WindowId slot, BufferId id, Epoch epoch, bool by_call, Time at) {
  const auto found = windows_.find(NodeKey{node.value(), slot.value()});
  const auto place = buffers_.find(NodeKey{node.value(), id.value()});
  if (!expect(found != windows_.end() && place != buffers_.end() && !found->second->bucket.empty() &&
                  found->second->bucket.front() == place->second.get(),
              at, [&] { return fmt::format("node {}: a buffer was retired that is not active", node.value()); })) {
    return;
  }
  ShadowWindow& window = *found->second;
  ShadowBuffer& buffer = *place->second;
  expect(epoch.value() == window.next_epoch, at,
         [&] { return fmt::format("node {}: epoch {} was retired out of order", node.value(), epoch.value()); });
  const bool full = buffer.reserved >= window.threshold;
  // An empty buffer cannot be a misfit: what does not fit there is refused.
  if (!full && !by_call && expect(window.placement == Placement::managed && buffer.tail > 0, at, [&] {
        return fmt::format("node {}: mailbox {:#018x} epoch {} was retired at {} of {}", node.value(),
                           window.mailbox.value(), epoch.value(), buffer.reserved, window.threshold);
      })) {
    window.misfit_open = true;
    ++open_misfits_;
    window.misfit_room = buffer.size - buffer.tail;
  }
  buffer.retired = true;
  buffer.epoch = epoch;
  if (buffer.broken) window.broken_epochs.insert(epoch.value());
  window.bucket.pop_front();
  ++window.next_epoch;
}

// ------------------------------------------------------------------------------------------------- what is written

void Scoreboard::packet_placed(NodeId node, const PlacedPacket& packet, std::uint64_t buffer_offset, Time at) {
  const auto say = [&](const std::string& what) { return "a packet of " + name_of(node, packet.message) + " " + what; };
  const auto found = messages_.find(MessageKey(node, packet.message));
  if (!expect(found != messages_.end(), at, [&] { return say("was placed, but its message is not bound"); })) return;
  BoundMessage& message = *found->second;
  const std::uint64_t place = buffer_offset - message.offset;
  const std::uint64_t due = std::min<std::uint64_t>(mtu_bytes_, message.length - std::min(place, message.length));
  if (!expect(buffer_offset >= message.offset && place % mtu_bytes_ == 0 && packet.payload_length == due &&
                  (place < message.length || (message.length == 0 && place == 0)),
              at, [&] {
                return say(fmt::format("was placed at {} with {} bytes", buffer_offset, packet.payload_length));
              })) {
    return;
  }
  const std::uint64_t index = place / mtu_bytes_;
  const bool again = message.placed.empty() ? message.placed_packets > 0 : message.placed[index];
  if (!expect(!again, at, [&] { return say(fmt::format("was placed twice at {}", buffer_offset)); })) return;
  if (!message.placed.empty()) message.placed[index] = true;
  ++message.placed_packets;
  message.buffer->last_placed = std::max(message.buffer->last_placed, at);
  if (with_bytes_ && due > 0 && message.in_bounds && !message.buffer->is_answer) {
    if (!message.is_answer) {
      message.buffer->write_pattern(buffer_offset, due, message.seed, place);
    } else if (packet.payload) {
      // A late answer in a catch-all window.
      const std::uint8_t* const bytes = packet.payload->data();
      message.buffer->write_bytes(buffer_offset, {bytes, bytes + due});
    }
  }
  // An RDMA read's answer is known as such only where it arrives.
  if (!message.buffer->is_answer || !packet.payload || packet.payload_length == 0) return;
  const auto get = gets_.find(NodeKey{node.value(), message.buffer->word.value()});
  if (get != gets_.end() && packet.message.source_incarnation == kNoIncarnation) {
    take_answer(*get->second, place, packet.payload->data(), packet.payload_length, at);
  }
}

void Scoreboard::record_placed(NodeId node, const PlacedPacket& packet, std::uint64_t buffer_offset, Time at) {
  const auto say = [&](const std::string& what) { return "the record of " + name_of(node, packet.message) + what; };
  const auto found = messages_.find(MessageKey(node, packet.message));
  if (!expect(found != messages_.end() && found->second->record_bytes > 0, at,
              [&] { return say(" was placed, but the message is not bound to a catch-all window"); })) {
    return;
  }
  BoundMessage& message = *found->second;
  expect(!message.record_placed, at, [&] { return say(" was placed twice"); });
  message.record_placed = true;
  if (!expect(buffer_offset + message.record_bytes == message.offset && packet.payload_length == message.record_bytes,
              at, [&] { return say(fmt::format(" was placed at {}", buffer_offset)); })) {
    return;
  }
  message.buffer->last_placed = std::max(message.buffer->last_placed, at);
  if (with_bytes_) message.buffer->write_bytes(buffer_offset, message.record);
}

void Scoreboard::message_cut_off(NodeId node, const MessageRef& message, BufferId id, bool is_broken, Time at) {
  const auto found = messages_.find(MessageKey(node, message));
  if (!expect(found != messages_.end() && !found->second->cut_off, at,
              [&] { return name_of(node, message) + " was cut off, but is not bound"; })) {
    return;
  }
  BoundMessage& bound = *found->second;
  bound.cut_off = true;
  ShadowBuffer& buffer = *bound.buffer;
  expect(buffer.id == id, at, [&] { return name_of(node, message) + " was cut off from another buffer than its own"; });
  // Appended messages leave no hole for others to fill: their buffer is retired, unless the window gives it back.
  const bool ends_buffer = bound.window->placement == Placement::managed && !bound.window->closing;
  expect(is_broken == (buffer.retired || ends_buffer), at, [&] {
    return name_of(node, message) + (is_broken ? " broke a buffer that goes on" : " left a buffer that it has broken");
  });
  buffer.broken = is_broken;
  if (buffer.retired) bound.window->broken_epochs.insert(buffer.epoch.value());
  buffer.reserved -= bound.window->type == ThresholdType::bytes ? bound.length + bound.record_bytes : 1;
  --buffer.unfinished;
}

void Scoreboard::message_counted(NodeId node, const MessageRef& message, BufferId id, Time at) {
  const auto found = messages_.find(MessageKey(node, message));
  if (!expect(found != messages_.end(), at,
              [&] { return name_of(node, message) + " was counted, but is not bound (or was counted before)"; })) {
    return;
  }
  BoundMessage& bound = *found->second;
  expect(!bound.cut_off, at, [&] { return name_of(node, message) + " was counted after it was cut off"; });
  const std::uint64_t packets = bound.packets();
  expect(bound.placed_packets == packets, at, [&] {
    return fmt::format("{} was counted after {} of {} packets", name_of(node, message), bound.placed_packets, packets);
  });
  expect(bound.record_placed || bound.record_bytes == 0, at,
         [&] { return name_of(node, message) + " was counted before its record was placed"; });
  const auto place = buffers_.find(NodeKey{node.value(), id.value()});
  expect(place != buffers_.end() && place->second == bound.buffer, at,
         [&] { return name_of(node, message) + " was counted into another buffer than it was bound to"; });
  if (PutRecord* put = registry_.find(node, message)) put->counted = true;
  bound.buffer->delivered += bound.length + bound.record_bytes;
  --bound.buffer->unfinished;
  messages_.erase(found);
}

void Scoreboard::completion_written(NodeId node, const Completion& completion, Time at, Time visible) {
  const auto say = [&](const std::string& what) {
    return fmt::format("node {}: the completion of mailbox {:#018x} epoch {} {}", node.value(),
                       completion.mailbox.value(), completion.epoch.value(), what);
  };
  const auto found = posted_.find(NodeKey{node.value(), completion.word.value()});
  if (!expect(found != posted_.end(), at, [&] { return say("went to a word that belongs to no buffer"); })) return;
  ShadowBuffer& buffer = *found->second;
  if (!expect(!buffer.completion_claimed, at, [&] { return say("came twice"); })) return;
  ++completions_claimed_;
  buffer.completion_claimed = true;
  expect(completion.buffer == buffer.id, at, [&] { return say("names another buffer"); });
  if (buffer.returned) {
    fail(at, say("came for a buffer that close_window returned"));
  } else {
    expect(buffer.retired, at, [&] { return say("came before the buffer was retired"); });
  }
  expect(!buffer.broken, at, [&] { return say("came for a buffer that lacks a message"); });
  expect(buffer.unfinished == 0, at,
         [&] { return say(fmt::format("came with {} messages unfinished", buffer.unfinished)); });
  expect(buffer.epoch == completion.epoch, at, [&] { return say("names another epoch than was retired"); });
  expect(completion.head == buffer.head, at, [&] { return say("has a wrong head"); });
  expect(completion.length == buffer.delivered, at,
         [&] { return say(fmt::format("says {} bytes, {} were delivered", completion.length, buffer.delivered)); });
  expect(at >= buffer.last_placed, at, [&] { return say("was written before the payload"); });
  if (buffer.window != nullptr) {
    ShadowWindow& window = *buffer.window;
    while (window.closing && window.broken_epochs.erase(window.next_completion) > 0) ++window.next_completion;
    expect(completion.epoch.value() == buffer.window->next_completion, at,
           [&] { return say(fmt::format("came before that of epoch {}", buffer.window->next_completion)); });
    buffer.window->next_completion = completion.epoch.value() + 1;
    buffer.window.reset();
  }
  expect(host_.load64(node, buffer.word) == 0, at, [&] { return say("found its word already written"); });
  // The NIC may have given the id to a later buffer while this word was on its way.
  const auto place = buffers_.find(NodeKey{node.value(), buffer.id.value()});
  if (place != buffers_.end() && place->second == found->second) buffers_.erase(place);
  if (visible.is_never()) return;
  pending_.push({visible, next_check_++, found->second, completion.length});
  if (host_.wake_at) host_.wake_at(visible);
}

/// From now on nothing that is bound to the window counts, and nothing is bound to it.
void Scoreboard::window_rewinding(NodeId node, WindowId slot, Time at) {
  const auto found = windows_.find(NodeKey{node.value(), slot.value()});
  if (!expect(found != windows_.end(), at, [&] {
        return fmt::format("node {}: slot {} was rewound but is not open", node.value(), slot.value());
      })) {
    return;
  }
  found->second->rewinding = true;
  cut_off_all(found->second);
}

void Scoreboard::cut_off_all(const std::shared_ptr<ShadowWindow>& window) {
  for (auto& [key, message] : messages_) {
    if (message->window != window || message->cut_off) continue;
    // A message of one packet of a get that is given up may still count: it has come whole.
    if (!window->rewinding && message->placed.empty()) continue;
    message->cut_off = true;
    message->buffer->broken = true;
    --message->buffer->unfinished;
  }
}

void Scoreboard::window_rewound(NodeId node, WindowId slot, Epoch epoch, const std::vector<RewoundBuffer>& buffers,
                                Time at) {
  const auto found = windows_.find(NodeKey{node.value(), slot.value()});
  const auto say = [&](const std::string& what) {
    return fmt::format("node {}: the rewind of slot {} to epoch {} {}", node.value(), slot.value(), epoch.value(),
                       what);
  };
  if (!expect(found != windows_.end() && found->second->rewinding, at, [&] { return say("was not begun"); })) return;
  ShadowWindow& window = *found->second;
  settle(at);
  // 1. Exactly the buffers of that epoch and all later ones, up to the one that was active.
  const std::uint64_t last = window.next_epoch + (window.bucket.empty() ? 0 : 1);
  if (!expect(epoch.value() >= window.first_posted && epoch.value() <= window.next_completion &&
                  epoch.value() + buffers.size() == last,
              at, [&] { return say(fmt::format("brought back {} buffers", buffers.size())); })) {
    return;
  }
  if (!window.bucket.empty()) window.bucket.pop_front();
  for (std::size_t i = buffers.size(); i > 0; --i) {
    ShadowBuffer* const buffer = window.posted[epoch.value() - window.first_posted + i - 1];
    if (!expect(buffer != nullptr && buffer->word == buffers[i - 1].word, at,
                [&] { return say("brought back another buffer than was posted there"); })) {
      return;
    }
    // 2. What was written to it is visible, its word is gone.
    expect(host_.load64(node, buffer->word) == 0, at, [&] { return say("left a word that is not zero"); });
    compare_memory(*buffer, at);
    // 3. It is as if just posted.
    take_base(*buffer);
    buffer->live_again(found->second, buffers[i - 1].buffer);
    window.bucket.push_front(buffer);
    std::shared_ptr<ShadowBuffer>& place = buffers_[NodeKey{node.value(), buffers[i - 1].buffer.value()}];
    expect(place == nullptr || place.get() == buffer || place->may_lose_id(), at,
           [&] { return say("gave a buffer the id of another one"); });
    place = posted_.at(NodeKey{node.value(), buffer->word.value()});
  }
  window.next_epoch = epoch.value();
  window.next_completion = epoch.value();
  window.broken_epochs.erase(window.broken_epochs.lower_bound(epoch.value()), window.broken_epochs.end());
  window.rewinding = false;
}

/// Memory stays as it is; nothing that was posted will ever complete.
void Scoreboard::node_crashed(NodeId node, Time /*at*/) {
  lost_bound_ += boost::unordered::erase_if(
      messages_, [&](const auto& entry) { return static_cast<std::uint32_t>(entry.first.nodes) == node.value(); });
  for (auto place = windows_.begin(); place != windows_.end();) {
    const auto next = std::next(place);
    if (place->first.node == node.value()) {
      if (place->second->misfit_open) --open_misfits_;
      windows_.erase(place);
    }
    place = next;
  }
  for (auto place = buffers_.begin(); place != buffers_.end();) {
    const auto next = std::next(place);
    if (place->first.node == node.value()) buffers_.erase(place);
    place = next;
  }
  for (auto& [key, buffer] : posted_) {
    if (key.node != node.value() || buffer->completion_claimed) continue;
    buffer->returned = true;
    buffer->broken = true;
    buffer->window.reset();
  }
}

// --------------------------------------------------------------------------------------------------------- the end

void Scoreboard::finish(Time now, const RunTotals& totals, bool drained) {
  settle(now);
  drained_ = drained;
  // 1. Buffers that have not completed hold what was written to them and nothing else; completed ones have not changed.
  std::vector<ShadowBuffer*> left;
  for (auto& [key, buffer] : posted_) left.push_back(buffer.get());
  std::sort(left.begin(), left.end(), [](const ShadowBuffer* a, const ShadowBuffer* b) {
    return std::tie(a->node, a->pid, a->head) < std::tie(b->node, b->pid, b->head);
  });
  for (ShadowBuffer* buffer : left) {
    compare_memory(*buffer, now);
    // An earlier epoch that waits for a message that was given up holds the later ones back.
    const bool held_back = buffer->window && buffer->window->next_completion < buffer->epoch.value();
    const bool is_whole = buffer->unfinished == 0 && !buffer->broken;
    expect(!drained || !buffer->retired || buffer->completion_claimed || !is_whole || held_back, now, [&] {
      return fmt::format("node {}: buffer at {:#x} of epoch {} is retired and whole but never completed",
                         buffer->node.value(), buffer->head.value(), buffer->epoch.value());
    });
  }
  std::vector<const ShadowWindow*> open_windows;
  for (const auto& [key, window] : windows_) open_windows.push_back(window.get());
  std::sort(open_windows.begin(), open_windows.end(), [](const ShadowWindow* a, const ShadowWindow* b) {
    return std::tie(a->node, a->pid, a->mailbox) < std::tie(b->node, b->pid, b->mailbox);
  });
  for (const ShadowWindow* window : open_windows) {
    expect_retired_where_due(*window, now);
    expect(!window->misfit_open, now, [&] {
      return fmt::format("node {}: mailbox {:#018x} epoch {} was retired for a message that never came",
                         window->node.value(), window->mailbox.value(), window->next_epoch - 1);
    });
  }

  for (const auto& [key, get] : gets_) {
    // Where the run was cut, its bytes may be on their way still, and its word behind them.
    const bool is_visible = drained || host_.load64(NodeId{key.node}, PhysicalAddress{key.id}) != 0;
    if (is_visible) check_get(*get, now);
  }

  // 2. Conservation: nothing appears, nothing is lost.
  std::uint64_t ended = totals.puts_failed;
  for (const std::uint64_t count : totals.ended) ended += count;
  expect(totals.puts == ended, now,
         [&] { return fmt::format("{} puts were issued, {} ended, failed or are unfinished", totals.puts, ended); });
  const std::uint64_t gone_out = totals.packets_sent + totals.packets_copied;
  const std::uint64_t come_in = packets_arrived_ + totals.packets_lost;
  expect(drained ? gone_out == come_in : gone_out >= come_in, now, [&] {
    return fmt::format("{} packets were sent, {} copied and {} lost by the fabric, {} arrived", totals.packets_sent,
                       totals.packets_copied, totals.packets_lost, packets_arrived_);
  });
  std::uint64_t refused = 0;
  for (const std::uint64_t count : totals.refused) refused += count;
  const std::uint64_t decided =
      totals.messages_delivered + totals.gets_accepted + refused + messages_.size() + lost_bound_;
  // With nic.nack = off a refusal that opens no context is not remembered: each packet of such a message is refused
  // anew, and its put ends `timeout`, or is unfinished if its sender crashes before.
  const std::uint64_t open = totals.ended[static_cast<std::size_t>(Outcome::unfinished)] +
                             totals.ended[static_cast<std::size_t>(Outcome::timeout)];
  expect(decided <= totals.messages_opened || open > 0, now, [&] {
    return fmt::format("{} messages were opened, {} delivered, refused or bound", totals.messages_opened, decided);
  });
  expect(totals.messages_opened <= decided + open, now, [&] {
    return fmt::format("{} messages were opened, {} delivered, refused or bound, {} puts open or given up",
                       totals.messages_opened, decided, open);
  });
  // Where software counts, a sender knows that all has come before the receiver does; a run may be stopped in between.
  std::uint64_t not_counted = 0;
  if (!drained) {
    for (const auto& [key, message] : messages_) not_counted += message->is_whole() ? 1 : 0;
  }
  const std::uint64_t ok = totals.ended[static_cast<std::size_t>(Outcome::ok)];
  expect(ok <= totals.messages_delivered + not_counted, now, [&] {
    const std::string more = not_counted > 0 ? fmt::format(", {} were whole", not_counted) : std::string{};
    return fmt::format("{} puts ended ok, {} messages were delivered{}", ok, totals.messages_delivered, more);
  });
  expect(checked_completions_ + pending_.size() == completions_claimed_, now,
         [&] { return fmt::format("{} completions, {} checked", completions_claimed_, checked_completions_); });
}

}  // namespace rvma
