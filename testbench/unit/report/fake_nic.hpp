/// \file
/// A run as an RNIC would tell it, event by event, so that tests can tell it wrongly: rank 0 on node 0 puts, rank 1 on
/// node 1 receives. Host memory is a few arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nic/observer.hpp"
#include "report/put_registry.hpp"
#include "report/recorder.hpp"
#include "workload/payload_pattern.hpp"
#include "workload/player.hpp"

namespace rvma::test {

inline constexpr std::uint32_t kMtu = 1024;
inline constexpr NodeId kSender{0};
inline constexpr NodeId kReceiver{1};
inline constexpr Pid kPid{0};
inline constexpr WindowId kSlot{5};
inline constexpr Mailbox kMailbox{0xbeef};

/// Memory of the receiver, as a load would see it.
class FakeHost {
 public:
  void write_pattern(VirtualAddress head, std::uint64_t offset, std::uint64_t bytes, std::uint64_t seed,
                     std::uint64_t from) {
    for (std::uint64_t i = 0; i < bytes; ++i) byte(head, offset + i) = pattern_byte(seed, from + i);
  }
  std::uint8_t& byte(VirtualAddress head, std::uint64_t offset) {
    std::vector<std::uint8_t>& bytes = buffers_[head.value()];
    if (offset >= bytes.size()) bytes.resize(offset + 1);
    return bytes[offset];
  }
  /// The first bytes of the buffer at `head`.
  void read(VirtualAddress head, std::uint64_t bytes, std::vector<std::uint8_t>& to) {
    to = buffers_[head.value()];
    to.resize(bytes);
  }
  std::uint64_t& word(PhysicalAddress address) { return words_[address.value()]; }

 private:
  std::map<std::uint64_t, std::vector<std::uint8_t>> buffers_;  ///< by head
  std::map<std::uint64_t, std::uint64_t> words_;
};

struct Buffer {
  BufferId id;
  VirtualAddress head;
  std::uint64_t size = 0;
  PhysicalAddress word;
};

struct Put {
  MessageRef message;
  PhysicalAddress word;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
  std::uint64_t seed = 0;
};

/// Tells all observers what happens, 1 ns apart, and keeps the totals that a recorder would.
class FakeNic {
 public:
  FakeNic(PutRegistry& registry, std::vector<NicObserver*> observers, std::vector<PlayerObserver*> players)
      : registry_(registry), observers_(std::move(observers)), players_(std::move(players)) {}

  Time now() const { return now_; }
  void wait(Time time) { now_ += time; }
  FakeHost& host() { return host_; }
  RunTotals& totals() { return totals_; }

  void open_window(std::uint64_t threshold, Placement placement = Placement::steered,
                   ThresholdType type = ThresholdType::bytes, std::uint32_t key = 0) {
    Descriptor call;
    call.opcode = Opcode::init_window;
    call.mailbox = kMailbox;
    call.threshold = threshold;
    call.threshold_type = type;
    call.placement = placement;
    call.key = key;
    tell([&](NicObserver& observer) { observer.window_opened(kReceiver, kPid, kSlot, call, now_); });
  }

  Buffer issue_post(std::uint64_t size, const NameRef* name = nullptr, const NameRef* window = nullptr,
                    bool has_seed = false, std::uint64_t seed = 0) {
    const std::uint32_t number = buffers_++;
    Buffer buffer{BufferId{number}, VirtualAddress{0x10000 + 0x10000ULL * number}, size,
                  PhysicalAddress{0x1000 + 16ULL * number}};
    if (has_seed) host_.write_pattern(buffer.head, 0, size, seed, 0);
    BufferPost post;
    post.rank = RankId{1};
    post.node = kReceiver;
    post.pid = kPid;
    post.window = window;
    post.name = name;
    post.mailbox = kMailbox;
    post.head = buffer.head;
    post.size = size;
    post.has_seed = has_seed;
    post.seed = seed;
    post.word = buffer.word;
    post.at = now_;
    for (PlayerObserver* player : players_) player->post_issued(post);
    return buffer;
  }
  /// Takes no time, so that tests count theirs from the first put.
  void take_post(const Buffer& buffer) {
    Descriptor call;
    call.opcode = Opcode::post_buffer;
    call.mailbox = kMailbox;
    call.local = buffer.head;
    call.length = buffer.size;
    call.completion = buffer.word;
    for (NicObserver* observer : observers_) {
      observer->buffer_posted(kReceiver, kPid, kSlot, buffer.id, call, now_);
    }
  }
  Buffer post(std::uint64_t size) {
    const Buffer buffer = issue_post(size);
    take_post(buffer);
    return buffer;
  }

  Put issue(std::uint64_t size, std::uint64_t offset = 0, std::uint32_t key = 0, Mailbox mailbox = kMailbox,
            Pid pid = kPid) {
    Put put;
    put.size = size;
    put.offset = offset;
    put.seed = puts_;
    put.word = PhysicalAddress{0x9000 + 16ULL * puts_};
    ++puts_;
    ++totals_.puts;
    PutIssue issue;
    issue.rank = RankId{0};
    issue.node = kSender;
    issue.destination = RankId{1};
    issue.destination_node = kReceiver;
    issue.destination_pid = pid;
    issue.mailbox = mailbox;
    issue.size = size;
    issue.offset = offset;
    issue.key = key;
    issue.seed = put.seed;
    issue.word = put.word;
    issue.at = now_;
    if (recorder_issues) {
      for (PlayerObserver* player : players_) player->put_issued(issue);
    } else {
      registry_.issue(issue);
    }
    return put;
  }
  /// As a new message; all its packets leave and arrive.
  void send(Put& put) {
    put.message = MessageRef{kSender, 1, 1, MessageId{messages_++}};
    ++totals_.messages_opened;
    registry_.message_opened(kSender, put.word, kReceiver, put.message, now_);
    tell([&](NicObserver& observer) { observer.message_opened(kSender, put.word, kReceiver, put.message, now_); });
    Packet packet;
    packet.transport.type = PacketType::data;
    for (std::uint64_t i = 0; i < packets_of(put); ++i) {
      ++totals_.packets_sent;
      tell([&](NicObserver& observer) { observer.packet_arrived(kReceiver, packet, now_); });
    }
  }
  Put put(std::uint64_t size, std::uint64_t offset = 0, std::uint32_t key = 0) {
    Put put = issue(size, offset, key);
    send(put);
    return put;
  }
  static std::uint64_t packets_of(const Put& put) { return std::max<std::uint64_t>(1, (put.size + kMtu - 1) / kMtu); }

  void bind(const Put& put, const Buffer& buffer, std::uint64_t epoch, std::uint64_t offset) {
    tell([&](NicObserver& observer) {
      observer.message_bound(kReceiver, put.message, kSlot, buffer.id, Epoch{epoch}, offset, put.size, now_);
    });
  }
  /// Packet `index` of the put, written to memory where the RNIC says so.
  void place(const Put& put, const Buffer& buffer, std::uint64_t message_offset, std::uint64_t index) {
    const std::uint64_t from = index * kMtu;
    const std::uint64_t bytes = std::min<std::uint64_t>(kMtu, put.size - from);
    host_.write_pattern(buffer.head, message_offset + from, bytes, put.seed, from);
    claim_placed(put, buffer, message_offset + from, static_cast<std::uint32_t>(bytes));
  }
  void claim_placed(const Put& put, const Buffer& buffer, std::uint64_t buffer_offset, std::uint32_t bytes) {
    PlacedPacket packet;
    packet.message = put.message;
    packet.buffer = buffer.id;
    packet.payload_length = bytes;
    packet.left = left;
    tell([&](NicObserver& observer) { observer.packet_placed(kReceiver, packet, buffer_offset, now_); });
  }
  void place_all(const Put& put, const Buffer& buffer, std::uint64_t message_offset) {
    for (std::uint64_t i = 0; i < packets_of(put); ++i) place(put, buffer, message_offset, i);
  }
  void count(const Put& put, const Buffer& buffer) {
    ++totals_.messages_delivered;
    tell([&](NicObserver& observer) { observer.message_counted(kReceiver, put.message, buffer.id, now_); });
  }
  void end(const Put& put, Outcome outcome = Outcome::ok) {
    ++totals_.ended[static_cast<std::size_t>(outcome)];
    registry_.put_ended(kSender, put.word, outcome, 1, now_);
    tell([&](NicObserver& observer) { observer.put_ended(kSender, put.word, outcome, 1, now_); });
  }
  void refuse(const Put& put, Outcome reason) {
    ++totals_.refused[static_cast<std::size_t>(reason)];
    tell([&](NicObserver& observer) { observer.message_refused(kReceiver, put.message, reason, now_); });
  }
  void retire(const Buffer& buffer, std::uint64_t epoch, bool by_call = false) {
    tell([&](NicObserver& observer) {
      observer.epoch_retired(kReceiver, kSlot, buffer.id, Epoch{epoch}, by_call, now_);
    });
  }
  static Completion completion_of(const Buffer& buffer, std::uint64_t epoch, std::uint64_t length) {
    Completion completion;
    completion.window = kSlot;
    completion.buffer = buffer.id;
    completion.mailbox = kMailbox;
    completion.epoch = Epoch{epoch};
    completion.head = buffer.head;
    completion.length = length;
    completion.word = buffer.word;
    completion.left.fill(Time::from_ps(1));
    return completion;
  }
  /// The word enters the posted channel, and is visible kVisible later (write_word() puts it there).
  void claim(const Completion& completion) {
    ++totals_.completions;
    tell([&](NicObserver& observer) { observer.completion_written(kReceiver, completion, now_, now_ + kVisible); });
  }
  void write_word(const Buffer& buffer, std::uint64_t length) {
    host_.word(buffer.word) = buffer.head.value();
    host_.word(PhysicalAddress{buffer.word.value() + 8}) = length;
  }
  void complete(const Buffer& buffer, std::uint64_t epoch, std::uint64_t length) {
    claim(completion_of(buffer, epoch, length));
    write_word(buffer, length);
  }
  void close(const std::vector<BufferId>& returned) {
    tell([&](NicObserver& observer) { observer.window_closed(kReceiver, kSlot, returned, now_); });
  }
  void begin_rewind() {
    tell([&](NicObserver& observer) { observer.window_rewinding(kReceiver, kSlot, now_); });
  }
  /// The words of these buffers are zero, and they stand at the front.
  void end_rewind(std::uint64_t epoch, const std::vector<Buffer>& buffers) {
    std::vector<RewoundBuffer> rewound;
    for (const Buffer& buffer : buffers) {
      rewound.push_back({buffer.id, buffer.word});
      host_.word(buffer.word) = host_.word(PhysicalAddress{buffer.word.value() + 8}) = 0;
    }
    claim_rewound(epoch, rewound);
  }
  void claim_rewound(std::uint64_t epoch, const std::vector<RewoundBuffer>& buffers) {
    tell([&](NicObserver& observer) { observer.window_rewound(kReceiver, kSlot, Epoch{epoch}, buffers, now_); });
  }
  /// The whole way of a put that fits.
  void deliver(Put& put, const Buffer& buffer, std::uint64_t epoch, std::uint64_t offset) {
    bind(put, buffer, epoch, offset);
    place_all(put, buffer, offset);
    count(put, buffer);
    end(put);
  }

  static constexpr Time kVisible = Time::from_ns(250);
  StageTimes left{};             ///< of the packets that are placed
  bool recorder_issues = false;  ///< a recorder among the players registers puts

 private:
  template <class Call>
  void tell(Call&& call) {
    now_ += Time::from_ns(1);
    for (NicObserver* observer : observers_) call(*observer);
  }

  PutRegistry& registry_;
  std::vector<NicObserver*> observers_;
  std::vector<PlayerObserver*> players_;
  FakeHost host_;
  RunTotals totals_;
  Time now_;
  std::uint32_t buffers_ = 0;
  std::uint64_t puts_ = 0;
  std::uint32_t messages_ = 0;
};

}  // namespace rvma::test
