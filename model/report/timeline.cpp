#include "report/timeline.hpp"

#include <algorithm>
#include <utility>

#include "base/random.hpp"
#include "base/value_text.hpp"

namespace rvma {
namespace {

std::size_t index_of(Stage stage) { return static_cast<std::size_t>(stage); }

}  // namespace

std::size_t Timeline::WordHash::operator()(const WordKey& key) const {
  return static_cast<std::size_t>(mix64(key.word ^ (std::uint64_t{key.node} << 40U)));
}

/// Where packets wait for their turn.
bool Timeline::has_counter(Stage stage) {
  switch (stage) {
    case Stage::turn:
    case Stage::window:
    case Stage::payload_read:
    case Stage::transmit:
    case Stage::fabric:
    case Stage::context:
    case Stage::address_conversion:
    case Stage::dma_write:
      return true;
    default:
      return false;
  }
}

Timeline::Timeline(const Options& options, PutRegistry& registry, const Trace& trace)
    : options_(options), registry_(registry), trace_(trace) {}

bool Timeline::pay(std::uint64_t events, Time at) {
  if (is_full() || used_ + events > options_.limit) {
    if (!is_full()) full_at_ = at;
    dropped_ += events;
    return false;
  }
  used_ += events;
  return true;
}

std::uint32_t Timeline::message_of(const PutRecord& record, Time at) {
  if (const auto found = index_of_.find(record.number); found != index_of_.end()) return found->second;
  if (!pay(kMessageEvents, at)) return kNone;
  // Of an answer: the get that asked for it.
  const PutRecord* get =
      record.is_answer && !record.is_given_up ? registry_.find(record.destination_node, record.word) : nullptr;
  const PutRecord& put = get == nullptr ? record : *get;
  TimelineMessage message;
  message.number = put.number;
  message.kind = put.kind;
  if (put.has_name) message.name = trace_.spelling(put.rank, put.name);
  message.rank = put.rank;
  message.destination = put.destination;
  message.node = put.node;
  message.mailbox = put.mailbox;
  message.size = put.size;
  message.issued = put.issued;
  const auto index = static_cast<std::uint32_t>(messages_.size());
  messages_.push_back(std::move(message));
  index_of_.emplace(record.number, index);
  return index;
}

std::uint32_t Timeline::draw(const TimelineSlice& slice) {
  if (slice.left <= slice.entered || !overlaps(slice.entered, slice.left)) return kNone;
  if (!pay(has_counter(slice.stage) ? kCountedSliceEvents : 1, slice.left)) return kNone;
  slices_.push_back(slice);
  return static_cast<std::uint32_t>(slices_.size() - 1);
}

// ------------------------------------------------------------------------------------------------------------ slices

void Timeline::packet_placed(NodeId node, const PlacedPacket& packet, std::uint64_t /*buffer_offset*/, Time at) {
  const PutRecord* put = registry_.find(node, packet.message);
  if (put == nullptr || !is_sampled(*put) || !overlaps(put->issued, at)) return;
  const std::uint32_t index = message_of(*put, at);
  if (index == kNone) return;
  TimelineMessage& message = messages_[index];
  // 1. The stages as the latency breakdown has them: the NIC does not know when the core began; nothing runs backwards.
  StageTimes times = packet.left;
  times[index_of(Stage::issued)] = put->issued;
  times[index_of(Stage::dma_write)] = at;
  for (std::size_t stage = 1; stage <= index_of(Stage::dma_write); ++stage) {
    times[stage] = std::max(times[stage], times[stage - 1]);
  }
  // 2. Call and command are those of the whole message.
  TimelineSlice slice;
  slice.message = index;
  slice.sequence = packet.sequence;
  slice.bytes = packet.payload_length;
  const bool is_first = message.packets == 0;
  const std::uint32_t number = message.packets++;
  for (std::size_t stage = 1; stage <= index_of(Stage::dma_write); ++stage) {
    slice.stage = static_cast<Stage>(stage);
    const bool is_whole = slice.stage <= Stage::retry;
    if (is_whole && !is_first) continue;
    slice.packet = is_whole ? kNone : number;
    slice.entered = times[stage - 1];
    slice.left = times[stage];
    slice.node = slice.stage <= Stage::fabric ? put->node : node;
    if (slice.stage == Stage::doorbell) {
      // A get's answer leaves another node than the one whose core began.
      slice.node = message.node;
      slice.pid = put->is_answer ? put->destination_pid : put->pid;
    }
    draw(slice);
  }
  message.placed = at;
}

void Timeline::message_counted(NodeId node, const MessageRef& ref, BufferId buffer, Time at) {
  const PutRecord* put = registry_.find(node, ref);
  if (put == nullptr) return;
  const auto found = index_of_.find(put->number);
  if (found == index_of_.end()) return;
  TimelineMessage& message = messages_[found->second];
  message.counted = at;
  TimelineSlice slice;
  slice.entered = message.placed;
  slice.left = at;
  slice.node = node;
  slice.message = found->second;
  slice.stage = Stage::count;
  draw(slice);
  if (node.index() >= words_.size() || buffer.index() >= words_[node.index()].size()) return;
  const PhysicalAddress word = words_[node.index()][buffer.index()];
  if (word.value() != 0) counted_[WordKey{node.value(), word.value()}].push_back(found->second);
}

void Timeline::completion_written(NodeId node, const Completion& completion, Time at, Time visible) {
  std::vector<std::uint32_t> told;
  if (const auto found = counted_.find(WordKey{node.value(), completion.word.value()}); found != counted_.end()) {
    told = std::move(found->second);
    counted_.erase(found);
  }
  // With a sample, only the completions that tell of one of its messages.
  if ((told.empty() && options_.sample > 1) || visible.is_never() || !overlaps(at, visible)) return;
  TimelineSlice slice;
  slice.node = node;
  slice.message = told.empty() ? kNone : told.back();
  slice.entered = told.empty() ? at : std::min(messages_[told.back()].counted, at);
  slice.left = at;
  slice.epoch = static_cast<std::uint32_t>(epochs_.size());
  slice.stage = Stage::completion_write;
  std::uint32_t last = draw(slice);
  slice.entered = at;
  slice.left = visible;
  slice.stage = Stage::visible;
  if (const std::uint32_t index = draw(slice); index != kNone) last = index;
  if (last == kNone) return;
  epochs_.push_back({completion.mailbox, completion.epoch, completion.length});
  for (const std::uint32_t message : told) messages_[message].end_slice = last;
}

// --------------------------------------------------------------------------------------------- puts, buffers, events

void Timeline::put_ended(NodeId node, PhysicalAddress word, Outcome outcome, std::uint32_t tries, Time at) {
  const PutRecord* put = registry_.find(node, word);
  if (put == nullptr || !is_sampled(*put) || !overlaps(put->issued, at)) return;
  const std::uint32_t index = message_of(*put, at);
  if (index == kNone) return;
  messages_[index].ended = at;
  messages_[index].outcome = outcome;
  messages_[index].tries = tries;
}

void Timeline::finish(Time now) {
  for (const PutRecord* put : registry_.open()) {
    if (!is_sampled(*put) || !overlaps(put->issued, now)) continue;
    const std::uint32_t index = message_of(*put, now);
    if (index != kNone) messages_[index].tries = put->tries;
  }
}

void Timeline::set_word(NodeId node, BufferId buffer, PhysicalAddress word) {
  if (node.index() >= words_.size()) words_.resize(node.index() + 1);
  std::vector<PhysicalAddress>& buffers = words_[node.index()];
  if (buffer.index() >= buffers.size()) buffers.resize(buffer.index() + 1);
  buffers[buffer.index()] = word;
}

void Timeline::buffer_posted(NodeId node, Pid /*pid*/, WindowId /*slot*/, BufferId buffer, const Descriptor& call,
                             Time /*at*/) {
  set_word(node, buffer, call.completion);
}

/// The answer's buffer has no completion of its own: the end of the get tells of it.
void Timeline::get_opened(NodeId node, Pid /*pid*/, WindowId /*slot*/, BufferId buffer, const Descriptor& /*window*/,
                          Time /*at*/) {
  set_word(node, buffer, PhysicalAddress{});
}

void Timeline::window_rewound(NodeId node, WindowId /*slot*/, Epoch epoch, const std::vector<RewoundBuffer>& buffers,
                              Time at) {
  for (const RewoundBuffer& rewound : buffers) {
    set_word(node, rewound.buffer, rewound.word);
    counted_.erase(WordKey{node.value(), rewound.word.value()});
  }
  note(node, Stage::count, nullptr, "window rewound to epoch " + std::to_string(epoch.value()), at);
}

void Timeline::note(NodeId node, Stage stage, const PutRecord* put, std::string what, Time at) {
  if (!overlaps(at, at + Time::from_ps(1))) return;
  std::uint32_t message = kNone;
  if (put != nullptr) {
    if (!is_sampled(*put)) return;
    message = message_of(*put, at);
    if (message == kNone) return;
  } else if (options_.sample > 1 && stage != Stage::issued) {
    return;
  }
  if (pay(1, at)) instants_.push_back({at, node, stage, std::move(what), message});
}

void Timeline::packet_ignored(NodeId node, const Packet& packet, const char* why, Time at) {
  if (packet.transport.type != PacketType::data) return;
  const PutRecord* put = registry_.find(node, MessageRef{packet.transport.source, packet.transport.source_incarnation,
                                                         packet.transport.generation, packet.data.message});
  note(node, Stage::parse, put, std::string{"packet ignored: "} + why, at);
}

void Timeline::message_refused(NodeId node, const MessageRef& message, Outcome reason, Time at) {
  note(node, Stage::address_conversion, registry_.find(node, message),
       "message refused: " + ValueText<Outcome>::print(reason), at);
}

void Timeline::node_crashed(NodeId node, Time at) {
  if (node.index() < words_.size()) words_[node.index()].clear();
  note(node, Stage::issued, nullptr, "loses power", at);
}

void Timeline::node_restarted(NodeId node, std::uint32_t incarnation, Time at) {
  note(node, Stage::issued, nullptr, "restarts as incarnation " + std::to_string(incarnation), at);
}

}  // namespace rvma
