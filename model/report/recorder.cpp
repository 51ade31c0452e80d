#include "report/recorder.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <ostream>
#include <tuple>
#include <utility>

#include "base/random.hpp"
#include "base/value_text.hpp"

namespace rvma {
namespace {

constexpr std::size_t kUnmatchedShown = 8;
/// A record ends with the number of its message, which each NIC counts for itself.
constexpr std::uint64_t kNumberBytes = 8;
/// Buffers are read so much at a time, however large they are.
constexpr std::uint64_t kPieceBytes = 1024UL * 1024;

std::size_t index_of(Outcome outcome) { return static_cast<std::size_t>(outcome); }
std::size_t index_of(Stage stage) { return static_cast<std::size_t>(stage); }

OperationKind kind_of(Opcode opcode) {
  return opcode == Opcode::post_one_time_buffer ? OperationKind::post_one_time_buffer : OperationKind::post_buffer;
}

}  // namespace

/// A posted buffer, for as long as its completion pointer names it.
struct RunRecorder::BufferRecord {
  RankId rank;
  Pid pid;
  bool has_window = false;
  NameRef window;
  bool has_name = false;
  NameRef name;
  VirtualAddress head;
  std::uint64_t size = 0;
  bool is_layers = false;   ///< of the message layer: no row
  bool may_be_seen = true;  ///< a wait may still name it
  bool completed = false;
  bool failed = false;  ///< the post was refused
  Time posted;
  Time put_issued = Time::max();       ///< of its latest completion's sample, until a core has seen it
  std::vector<std::uint64_t> numbers;  ///< of messages, in records: where they lie; with a catch-all window
  std::shared_ptr<Row> row;            ///< its latest completion
};

/// A row of completions.csv on its way: first until the word is visible, then until seen_ns is known.
struct RunRecorder::Row {
  RankId rank;
  NodeId node;
  Pid pid;
  std::string window;
  std::string buffer;
  Epoch epoch;
  std::uint64_t length = 0;
  VirtualAddress head;
  std::uint64_t bytes = 0;  ///< to be covered by the checksum
  Time visible;
  std::string crc;
  std::vector<std::uint64_t> numbers;
  std::string data_crc;
  Time seen = Time::max();
  bool may_be_seen = true;
};

bool RunRecorder::Later::operator()(const std::shared_ptr<Row>& a, const std::shared_ptr<Row>& b) const {
  return std::tie(b->visible, b->rank, b->window, b->epoch) < std::tie(a->visible, a->rank, a->window, a->epoch);
}

std::size_t RunRecorder::WordHash::operator()(const WordKey& key) const {
  return static_cast<std::size_t>(mix64(key.word ^ (std::uint64_t{key.node} << 40U)));
}

std::array<Time, kStages> StageBreakdown::means() const {
  std::array<Time, kStages> means{};
  if (samples == 0) return means;
  // Rounding the mean time *at* each stage, not each difference, makes the differences add up to the total.
  Time sum;
  Time previous;
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    sum += sums[stage];
    const Time mean = Time::from_ps(sum.ps() / static_cast<std::int64_t>(samples));
    means[stage] = mean - previous;
    previous = mean;
  }
  return means;
}

RunRecorder::RunRecorder(const Trace& trace, PutRegistry& registry, Files files, ReadBuffer read_buffer,
                         std::function<void(Time)> wake_at)
    : trace_(trace),
      has_catch_all_(trace.has_catch_all()),
      registry_(registry),
      files_(files),
      read_buffer_(std::move(read_buffer)),
      wake_at_(std::move(wake_at)),
      inside_mark_(trace.ranks(), false) {
  if (files_.completions != nullptr) {
    *files_.completions << "rank,window,epoch,buffer,length,crc32,time_ns,seen_ns"
                        << (has_catch_all_ ? ",data_crc32\n" : "\n");
  }
  if (files_.puts != nullptr) *files_.puts << "rank,kind,name,dest,mailbox,size,status,issue_ns,ack_ns,tries\n";
  if (files_.calls != nullptr) *files_.calls << "rank,op,window,status,value,time_ns\n";
}

RunRecorder::~RunRecorder() = default;

std::string RunRecorder::spell(RankId rank, bool has_name, const NameRef& name) const {
  return has_name ? trace_.spelling(rank, name) : std::string{};
}

bool RunRecorder::is_measured(RankId rank) const { return !has_marks_ || inside_mark_[rank.index()]; }

// -------------------------------------------------------------------------------------------------------- programs

void RunRecorder::put_issued(const PutIssue& put) {
  PutRecord& record = registry_.issue(put);
  record.measured = is_measured(put.rank);
  ++totals_.puts;
  if (record.measured) region_.first = std::min(region_.first, put.at);
}

void RunRecorder::post_issued(const BufferPost& post) {
  auto record = std::make_unique<BufferRecord>();
  record->rank = post.rank;
  record->pid = post.pid;
  record->has_window = post.window != nullptr;
  if (record->has_window) record->window = *post.window;
  record->has_name = post.name != nullptr;
  if (record->has_name) record->name = *post.name;
  record->head = post.head;
  record->size = post.size;
  record->posted = post.at;
  record->is_layers = post.is_layers;
  if (post.rank.index() >= homes_.size()) homes_.resize(post.rank.index() + 1);
  homes_[post.rank.index()] = post.node;
  buffers_.insert_or_assign(WordKey{post.node.value(), post.word.value()}, std::move(record));
}

void RunRecorder::put_failed(NodeId node, PhysicalAddress word, Status status, Time at) {
  const PutRecord* record = registry_.find(node, word);
  RVMA_ASSERT(record != nullptr, "a put failed that no program issued, or that had ended");
  ++totals_.puts_failed;
  const std::string why = ValueText<Status>::print(status);
  note_unmatched(fmt::format("rank {}: {} to rank {} mailbox {:#018x} failed: {}", record->rank.value(),
                             ValueText<OperationKind>::print(record->kind), record->destination.value(),
                             record->mailbox.value(), why));
  if (files_.puts != nullptr) write_put(*record, why.c_str(), Time::max(), record->tries);
  registry_.put_ended(node, word, Outcome::unfinished, 0, at);
}

void RunRecorder::post_failed(NodeId node, PhysicalAddress word, Status /*status*/, Time /*at*/) {
  const auto found = buffers_.find(WordKey{node.value(), word.value()});
  if (found != buffers_.end()) found->second->failed = true;
}

void RunRecorder::wait_seen(NodeId node, PhysicalAddress word, Time at) {
  const auto found = buffers_.find(WordKey{node.value(), word.value()});
  if (found == buffers_.end()) return;
  if (const Time issued = std::exchange(found->second->put_issued, Time::max()); !issued.is_never()) {
    put_to_seen_.add(at - issued);
  }
  if (!found->second->row) return;
  Row& row = *found->second->row;
  if (row.seen.is_never()) row.seen = at;
  write_ready_rows();
}

void RunRecorder::buffer_unnamed(NodeId node, PhysicalAddress word) {
  const auto found = buffers_.find(WordKey{node.value(), word.value()});
  if (found == buffers_.end()) return;
  found->second->may_be_seen = false;
  if (found->second->row) found->second->row->may_be_seen = false;
  write_ready_rows();
}

void RunRecorder::buffer_freed(NodeId node, PhysicalAddress word) {
  settle(SimContext::now());
  buffers_.erase(WordKey{node.value(), word.value()});
  displaced_.erase(WordKey{node.value(), word.value()});
}

void RunRecorder::call_returned(RankId rank, OperationKind op, const NameRef* window, Status status,
                                const std::string& value, Time at) {
  if (files_.calls == nullptr) return;
  call_rows_.add(*files_.calls, rank,
                 fmt::format("{},{},{},{},{},{}\n", rank.value(), ValueText<OperationKind>::print(op),
                             window == nullptr ? std::string{} : trace_.spelling(rank, *window),
                             ValueText<Status>::print(status), value, to_ns_string(at)));
}

void RunRecorder::call_answered(RankId rank, const Descriptor& call, Status status, std::uint64_t /*value*/, Time at) {
  const bool is_post = call.opcode == Opcode::post_buffer || call.opcode == Opcode::post_one_time_buffer;
  if (!is_post || status == Status::ok) return;
  if (rank.index() >= homes_.size()) return;
  const auto found = buffers_.find(WordKey{homes_[rank.index()].value(), call.completion.value()});
  if (found == buffers_.end()) return;
  BufferRecord& buffer = *found->second;
  buffer.failed = true;
  call_returned(rank, kind_of(call.opcode), buffer.has_window ? &buffer.window : nullptr, status, "", at);
}

void RunRecorder::marked(RankId rank, bool begin, Time /*at*/) {
  if (!has_marks_) {
    // What was issued before the first mark belongs to no measured region.
    has_marks_ = true;
    region_ = Region{};
    wire_bytes_ = 0;
    put_to_completion_.reset();
    put_to_seen_.reset();
    for (auto& [key, buffer] : buffers_) buffer->put_issued = Time::max();
    put_to_ack_.reset();
    breakdown_ = StageBreakdown{};
    for (const PutRecord* open : registry_.open()) registry_.find(open->node, open->word)->measured = false;
    for (auto& node : last_counted_) {
      for (LastCounted& last : node) last.measured = false;
    }
    for (auto& [key, last] : displaced_) last.measured = false;
  }
  inside_mark_[rank.index()] = begin;
}

void RunRecorder::operation_done(RankId /*rank*/) { ++operations_; }

// ------------------------------------------------------------------------------------------------------------ NICs

void RunRecorder::message_opened(NodeId /*node*/, PhysicalAddress /*put*/, NodeId /*destination*/,
                                 const MessageRef& /*message*/, Time /*at*/) {
  ++totals_.messages_opened;
}

void RunRecorder::get_accepted(NodeId /*node*/, const MessageRef& /*request*/, BufferId /*buffer*/, Time /*at*/) {
  ++totals_.gets_accepted;
}

void RunRecorder::answer_opened(NodeId /*node*/, NodeId /*destination*/, Pid /*pid*/, Mailbox /*mailbox*/,
                                const MessageRef& /*message*/, Time /*at*/) {
  ++totals_.messages_opened;
}

void RunRecorder::put_ended(NodeId node, PhysicalAddress put, Outcome outcome, std::uint32_t tries, Time at) {
  ++totals_.ended[index_of(outcome)];
  const PutRecord* record = registry_.find(node, put);
  RVMA_ASSERT(record != nullptr, "a put ended that no program issued, or twice");
  // A get's answer may come before the end of its request is known.
  if (record->kind == OperationKind::get) tries = record->tries;
  if (record->measured) region_.ended = std::max(region_.ended, at);
  if (outcome == Outcome::ok && record->measured) put_to_ack_.add(at - record->issued);
  if (outcome != Outcome::ok) {
    note_unmatched(fmt::format("rank {}: {} to rank {} mailbox {:#018x} ended {}", record->rank.value(),
                               ValueText<OperationKind>::print(record->kind), record->destination.value(),
                               record->mailbox.value(), ValueText<Outcome>::print(outcome)));
  }
  if (files_.puts != nullptr) write_put(*record, ValueText<Outcome>::print(outcome).c_str(), at, tries);
}

void RunRecorder::packet_sent(NodeId /*node*/, const Packet& packet, Time /*at*/) {
  if (packet.transport.type != PacketType::data) {
    ++totals_.acknowledgements_sent;
    return;
  }
  ++totals_.packets_sent;
  if (packet.is_resent) ++totals_.packets_resent;
  totals_.wire_bytes_sent += packet.wire_bytes;
  if (packet.data.rdma.operation != RdmaOperation::none) {
    // What it is for, only its software knows: from the region's first issue on all count, requests and grants too.
    if (!region_.first.is_never()) wire_bytes_ += packet.wire_bytes;
    return;
  }
  const PutRecord* put = registry_.find(packet.transport.destination,
                                        MessageRef{packet.transport.source, packet.transport.source_incarnation,
                                                   packet.transport.generation, packet.data.message});
  if (put != nullptr && put->measured) wire_bytes_ += packet.wire_bytes;
}

void RunRecorder::packet_ignored(NodeId /*node*/, const Packet& packet, const char* why, Time /*at*/) {
  if (packet.transport.type != PacketType::data) return;
  if (std::strcmp(why, "crc") == 0) {
    ++totals_.packets_corrupt;
  } else if (std::strcmp(why, "duplicate") == 0) {
    ++totals_.packets_duplicate;
  } else {
    ++totals_.packets_ignored;
  }
}

void RunRecorder::message_refused(NodeId /*node*/, const MessageRef& /*message*/, Outcome reason, Time /*at*/) {
  ++totals_.refused[index_of(reason)];
}

void RunRecorder::node_crashed(NodeId node, Time /*at*/) {
  // The next incarnation counts its buffers from 0 again.
  if (node.index() < last_counted_.size()) last_counted_[node.index()].clear();
}

RunRecorder::LastCounted& RunRecorder::last_counted(NodeId node, BufferId buffer) {
  if (node.index() >= last_counted_.size()) last_counted_.resize(node.index() + 1);
  std::vector<LastCounted>& buffers = last_counted_[node.index()];
  if (buffer.index() >= buffers.size()) buffers.resize(buffer.index() + 1);
  return buffers[buffer.index()];
}

void RunRecorder::buffer_posted(NodeId node, Pid /*pid*/, WindowId /*slot*/, BufferId buffer, const Descriptor& call,
                                Time /*at*/) {
  take_number(node, buffer, call.completion);
}

/// From now on `buffer` is the number of the buffer with this word.
void RunRecorder::take_number(NodeId node, BufferId buffer, PhysicalAddress word) {
  LastCounted& last = last_counted(node, buffer);
  if (last.word.value() != 0) displaced_.insert_or_assign(WordKey{node.value(), last.word.value()}, last);
  last = LastCounted{};
  last.word = word;
}

void RunRecorder::window_rewound(NodeId node, WindowId /*slot*/, Epoch /*epoch*/,
                                 const std::vector<RewoundBuffer>& buffers, Time /*at*/) {
  for (const RewoundBuffer& rewound : buffers) {
    // What was counted into it before does not count any more.
    last_counted(node, rewound.buffer).valid = false;
    take_number(node, rewound.buffer, rewound.word);
    displaced_.erase(WordKey{node.value(), rewound.word.value()});
    const auto found = buffers_.find(WordKey{node.value(), rewound.word.value()});
    if (found == buffers_.end()) continue;
    BufferRecord& buffer = *found->second;
    buffer.completed = false;
    buffer.numbers.clear();
    buffer.put_issued = Time::max();
    // Waits from now on are for the completion to come.
    if (buffer.row) buffer.row->may_be_seen = false;
    buffer.row.reset();
  }
  write_ready_rows();
}

/// The NIC frees a buffer's id when its completion is due, so that another may have it before the word is written.
RunRecorder::LastCounted RunRecorder::take_last_counted(NodeId node, const Completion& completion) {
  LastCounted& last = last_counted(node, completion.buffer);
  if (last.word == completion.word) return std::exchange(last, LastCounted{});
  const auto found = displaced_.find(WordKey{node.value(), completion.word.value()});
  if (found == displaced_.end()) return {};
  const LastCounted displaced = found->second;
  displaced_.erase(found);
  return displaced;
}

void RunRecorder::packet_placed(NodeId node, const PlacedPacket& packet, std::uint64_t /*buffer_offset*/, Time at) {
  ++totals_.packets_delivered;
  if (packet.payload_length > 0) delivered_.add(at, packet.payload_length);
  last_counted(node, packet.buffer).left = packet.left;
}

void RunRecorder::record_placed(NodeId node, const PlacedPacket& packet, std::uint64_t buffer_offset, Time /*at*/) {
  if (!has_catch_all_) return;
  const auto found = buffers_.find(WordKey{node.value(), last_counted(node, packet.buffer).word.value()});
  if (found == buffers_.end()) return;
  found->second->numbers.push_back(buffer_offset + packet.payload_length - kNumberBytes);
}

void RunRecorder::message_counted(NodeId node, const MessageRef& message, BufferId buffer, Time at) {
  ++totals_.messages_delivered;
  const PutRecord* put = registry_.find(node, message);
  if (put == nullptr) return;  // its sender has given up; the message counts all the same
  totals_.bytes_delivered += put->size;
  if (put->measured) {
    region_.payload_bytes += put->size;
    ++region_.messages;
    region_.last = std::max(region_.last, at);
    region_.wire_bytes = wire_bytes_;
  }
  LastCounted& last = last_counted(node, buffer);
  last.issued = put->issued;
  last.counted = at;
  last.measured = put->measured;
  last.valid = true;
}

Time RunRecorder::sample_completion(NodeId node, const Completion& completion, Time at, Time visible) {
  const LastCounted last = take_last_counted(node, completion);
  if (!last.valid || !last.measured || visible.is_never()) return Time::max();
  // Where a call completed the epoch, or a message that did not fit, no put's delivery did.
  if (completion.left == StageTimes{}) return Time::max();
  put_to_completion_.add(visible - last.issued);
  // 1. The stages that its last packet passed; the NIC does not know when the core began. A completion that had to wait
  // for an earlier epoch's waited in completion_write.
  StageTimes times = last.left;
  times[index_of(Stage::issued)] = last.issued;
  times[index_of(Stage::count)] = last.counted;
  times[index_of(Stage::completion_write)] = at;
  times[index_of(Stage::visible)] = visible;
  // 2. Nothing runs backwards.
  ++breakdown_.samples;
  for (std::size_t stage = 1; stage < kStages; ++stage) {
    times[stage] = std::max(times[stage], times[stage - 1]);
    breakdown_.sums[stage] += times[stage] - times[stage - 1];
  }
  return last.issued;
}

void RunRecorder::completion_written(NodeId node, const Completion& completion, Time at, Time visible) {
  ++totals_.completions;
  const Time issued = sample_completion(node, completion, at, visible);
  const auto found = buffers_.find(WordKey{node.value(), completion.word.value()});
  if (found == buffers_.end()) return;  // the scoreboard reports a completion of nothing
  BufferRecord& buffer = *found->second;
  buffer.completed = true;
  buffer.put_issued = issued;
  if (files_.completions == nullptr || buffer.is_layers) return;

  auto row = std::make_shared<Row>();
  row->rank = buffer.rank;
  row->node = node;
  row->pid = buffer.pid;
  row->buffer = spell(buffer.rank, buffer.has_name, buffer.name);
  row->window = buffer.has_window ? spell(buffer.rank, true, buffer.window) : row->buffer;
  row->epoch = completion.epoch;
  row->length = completion.length;
  row->head = completion.head;
  row->bytes = std::min(completion.length, buffer.size);
  row->visible = visible;
  row->may_be_seen = buffer.may_be_seen;
  row->numbers = std::move(buffer.numbers);
  buffer.numbers.clear();
  std::sort(row->numbers.begin(), row->numbers.end());
  buffer.row = row;
  invisible_.push(std::move(row));
  if (wake_at_ && !visible.is_never()) wake_at_(visible);
}

// ----------------------------------------------------------------------------------------------------------- files

void RunRecorder::settle(Time now) {
  while (!invisible_.empty() && invisible_.top()->visible <= now) {
    std::shared_ptr<Row> row = invisible_.top();
    invisible_.pop();
    row->crc = checksum(*row, {});
    row->data_crc = row->numbers.empty() ? row->crc : checksum(*row, row->numbers);
    rows_.push_back(std::move(row));
  }
  write_ready_rows();
}

std::string RunRecorder::checksum(const Row& row, const std::vector<std::uint64_t>& numbers) {
  if (!read_buffer_) return "-";
  std::uint32_t crc = 0;
  for (std::uint64_t done = 0; done < row.bytes; done += scratch_.size()) {
    read_buffer_(row.node, row.pid, VirtualAddress{row.head.value() + done}, std::min(row.bytes - done, kPieceBytes),
                 scratch_);
    const std::uint64_t end = done + scratch_.size();
    auto number = std::upper_bound(numbers.begin(), numbers.end(), done,
                                   [](std::uint64_t from, std::uint64_t at) { return from < at + kNumberBytes; });
    for (; number != numbers.end() && *number < end; ++number) {
      const std::uint64_t first = std::max(*number, done);
      const std::uint64_t last = std::min(*number + kNumberBytes, end);
      std::fill_n(scratch_.begin() + static_cast<std::ptrdiff_t>(first - done), last - first, std::uint8_t{0});
    }
    crc = libdeflate_crc32(crc, scratch_.data(), scratch_.size());
  }
  return fmt::format("{:08x}", crc);
}

void RunRecorder::write_ready_rows() {
  while (!rows_.empty() && (!rows_.front()->seen.is_never() || !rows_.front()->may_be_seen)) {
    write_row(*rows_.front());
    rows_.pop_front();
  }
}

void RunRecorder::write_row(const Row& row) {
  *files_.completions << fmt::format("{},{},{},{},{},{},{},{}{}\n", row.rank.value(), row.window, row.epoch.value(),
                                     row.buffer, row.length, row.crc, to_ns_string(row.visible),
                                     row.seen.is_never() ? std::string{} : to_ns_string(row.seen),
                                     has_catch_all_ ? "," + row.data_crc : std::string{});
}

void RunRecorder::write_put(const PutRecord& put, const char* status, Time ack, std::uint32_t tries) {
  put_rows_.add(*files_.puts, put.rank, put_row(put, status, ack, tries));
}

std::string RunRecorder::put_row(const PutRecord& put, const char* status, Time ack, std::uint32_t tries) const {
  return fmt::format("{},{},{},{},0x{:016x},{},{},{},{},{}\n", put.rank.value(),
                     ValueText<OperationKind>::print(put.kind), spell(put.rank, put.has_name, put.name),
                     put.destination.value(), put.mailbox.value(), put.size, status, to_ns_string(put.issued),
                     ack.is_never() ? std::string{} : to_ns_string(ack), tries);
}

void InstantRows::add(std::ostream& out, RankId rank, std::string row) {
  const Time now = SimContext::now();
  if (now != instant_) flush(out);
  instant_ = now;
  rows_.emplace_back(rank, std::move(row));
}

void InstantRows::flush(std::ostream& out) {
  std::stable_sort(rows_.begin(), rows_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [rank, row] : rows_) out << row;
  rows_.clear();
}

void RunRecorder::note_unmatched(std::string line) {
  ++unmatched_count_;
  if (unmatched_.size() < kUnmatchedShown) unmatched_.push_back(std::move(line));
}

void RunRecorder::finish(Time now, const FabricLosses& losses) {
  totals_.packets_lost = losses.data_lost;
  totals_.packets_copied = losses.data_copied;
  totals_.acknowledgements_lost = losses.acknowledgements_lost;
  settle(now);
  for (const std::shared_ptr<Row>& row : rows_) write_row(*row);
  rows_.clear();
  // The unfinished ones come behind all others, in order of their issue.
  if (files_.puts != nullptr) put_rows_.flush(*files_.puts);
  for (const PutRecord* put : registry_.open()) {
    ++totals_.ended[index_of(Outcome::unfinished)];
    note_unmatched(fmt::format("rank {}: {} to rank {} mailbox {:#018x} has not ended", put->rank.value(),
                               ValueText<OperationKind>::print(put->kind), put->destination.value(),
                               put->mailbox.value()));
    if (files_.puts != nullptr) *files_.puts << put_row(*put, "unfinished", Time::max(), put->tries);
  }
  if (files_.calls != nullptr) call_rows_.flush(*files_.calls);
  std::vector<const BufferRecord*> unfilled;
  for (const auto& [key, record] : buffers_) {
    if (!record->completed && !record->failed && !record->is_layers) unfilled.push_back(record.get());
  }
  std::sort(unfilled.begin(), unfilled.end(), [](const BufferRecord* a, const BufferRecord* b) {
    return std::tie(a->posted, a->rank, a->head) < std::tie(b->posted, b->rank, b->head);
  });
  for (const BufferRecord* record : unfilled) {
    const std::string name = spell(record->rank, record->has_name, record->name);
    note_unmatched(
        fmt::format("rank {}: buffer {} was not filled", record->rank.value(), name.empty() ? "(unnamed)" : name));
  }
}

}  // namespace rvma
