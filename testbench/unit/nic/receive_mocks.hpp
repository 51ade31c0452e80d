/// \file
/// Surroundings of the receive path's units, for their tests: they record every call with the time that it names, and
/// do as they are told.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/component.hpp"
#include "fabric/interfaces.hpp"
#include "nic/config.hpp"
#include "nic/interfaces.hpp"
#include "nic/observer.hpp"
#include "nic/window_store.hpp"

namespace rvma::test {

inline Time ns(std::int64_t count) { return Time::from_ns(count); }
/// Times of the default clock of 1 GHz.
inline Time cycle(std::int64_t count) { return Time::from_ns(count); }

/// Runs everything up to and including `time`.
inline void run_until(Time time) { sc_core::sc_start(SimContext::to_sc(time + Time::from_ps(1) - SimContext::now())); }

/// Runs actions at their times; those for one time in the order in which they were given.
class Script : public Component {
 public:
  Script(const sc_core::sc_module_name& name, SimContext& context)
      : Component(name, context, Frequency::mhz(1000)), step_(*this, "step", [this] { step(); }) {}
  void at(Time time, std::function<void()> action) {
    actions_.emplace(time.ps(), std::move(action));
    if (started_) step_.at(next());
  }

 private:
  void start_of_simulation() override {
    started_ = true;
    if (!actions_.empty()) step_.at(next());
  }
  Time next() const { return Time::from_ps(actions_.begin()->first); }
  void step() {
    while (!actions_.empty() && next() <= now()) {
      const std::function<void()> action = std::move(actions_.begin()->second);
      actions_.erase(actions_.begin());
      action();
    }
    if (!actions_.empty()) step_.at(next());
  }
  std::multimap<std::int64_t, std::function<void()>> actions_;
  bool started_ = false;
  Wakeup step_;
};

/// Answers by mailbox; asserts that no answer is taken before its cycle.
class FakeTable : public sc_core::sc_object, public TableLookupIf {
 public:
  struct Lookup {
    Pid pid;
    Mailbox mailbox;
    Cycles at;
  };
  explicit FakeTable(Cycles latency = Cycles{2}) : latency_(latency) {}
  void know(Mailbox mailbox, WindowId window) {
    slots_[mailbox.value()] = SlotId{static_cast<std::uint16_t>(window.value())};
  }

  void lookup(Pid pid, Mailbox mailbox, Cycles at) override {
    RVMA_ASSERT(lookups.empty() || lookups.back().at < at, "two lookups in one cycle");
    lookups.push_back({pid, mailbox, at});
  }
  LookupResult take() override {
    const Lookup& asked = lookups.at(taken_++);
    RVMA_ASSERT(cycle((asked.at + latency_).count()) <= SimContext::now(), "answer taken before its cycle");
    const auto found = slots_.find(asked.mailbox.value());
    return found == slots_.end() ? LookupResult{} : LookupResult{true, found->second, false};
  }
  Cycles latency() const override { return latency_; }

  std::vector<Lookup> lookups;

 private:
  Cycles latency_;
  std::map<std::uint64_t, SlotId> slots_;
  std::size_t taken_ = 0;
};

class FakeConversion : public sc_core::sc_object, public AddressConversionIf {
 public:
  struct Call {
    std::uint32_t sequence;
    Cycles ready;
    StageTimes left;
  };
  void convert(PacketPtr packet, Cycles ready) override {
    calls.push_back({packet->transport.sequence, ready, packet->left});
  }
  std::vector<Call> calls;
};

class FakeAckSink : public sc_core::sc_object, public AckSinkIf {
 public:
  void acknowledgement(PacketPtr packet, Time at) override { calls.emplace_back(packet->ack.cumulative, at); }
  std::vector<std::pair<std::uint32_t, Time>> calls;
};

class FakeCredit : public sc_core::sc_object, public LinkCreditIf {
 public:
  void return_credit(std::uint32_t wire_bytes, Time at) override {
    RVMA_ASSERT(at >= SimContext::now(), "credit returned in the past");
    calls.emplace_back(wire_bytes, at);
  }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const auto& call : calls) sum += call.first;
    return sum;
  }
  std::vector<std::pair<std::uint32_t, Time>> calls;
};

/// Keeps the state of each message as it is told, and what is admitted as it is set.
class FakeDelivery : public sc_core::sc_object, public DeliveryIf {
 public:
  struct Refusal {
    MessageId message;
    Outcome reason;
    Time at;
  };
  struct Disposal {
    std::uint32_t sequence;
    Time at;
  };
  bool is_first(const Packet& packet) override { return states_.count(packet.data.message.value()) == 0; }
  Admission admit(const Packet& packet) override {
    admitted.emplace_back(packet.transport.sequence, SimContext::now());
    const auto special = verdicts.find(packet.transport.sequence);
    if (special != verdicts.end()) return {special->second, MessageState::unseen, 0};
    const auto known = states_.find(packet.data.message.value());
    return known == states_.end() ? Admission{} : Admission{Verdict::fresh, known->second.first, known->second.second};
  }
  void bind(const MessageRef& message, std::uint32_t binding) override {
    states_[message.message.value()] = {MessageState::bound, binding};
  }
  void refuse(const MessageRef& message, Outcome reason, Time at) override {
    refusals.push_back({message.message, reason, at});
    states_[message.message.value()] = {MessageState::refused, 0};
  }
  void dispose(const MessageRef& /*message*/, std::uint32_t sequence, Time at) override {
    disposals.push_back({sequence, at});
  }
  void end(const MessageRef& message, Time /*at*/) override {
    states_[message.message.value()] = {MessageState::done, 0};
  }
  void withdraw(NodeId /*source*/, MessageId message, Time at) override {
    refusals.push_back({message, Outcome::stale, at});
    states_[message.value()] = {MessageState::refused, 0};
  }

  std::map<std::uint32_t, Verdict> verdicts;  ///< by sequence number; others are fresh
  std::vector<std::pair<std::uint32_t, Time>> admitted;
  std::vector<Refusal> refusals;
  std::vector<Disposal> disposals;

 private:
  std::map<std::uint32_t, std::pair<MessageState, std::uint32_t>> states_;
};

/// Page lists in a small memory; reads take a fixed time; writes enter the channel after a fixed time, or when told.
class FakeDma : public Component, public DmaIf {
 public:
  struct WriteCall {
    DmaWrite write;
    DmaClient* client;
    Time at;
  };
  struct ReadCall {
    PhysicalAddress address;
    std::uint32_t bytes;
    Time at;
  };
  FakeDma(const sc_core::sc_module_name& name, SimContext& context, Script& script)
      : Component(name, context, Frequency::mhz(1000)), script_(script) {}

  void write(DmaWrite write, DmaClient& client, Time at) override {
    RVMA_ASSERT(writes.empty() || writes.back().at <= at, "writes asked for out of order");
    const std::uint64_t tag = write.tag;
    writes.push_back({std::move(write), &client, at});
    if (!write_time.is_never()) client.dma_written(tag, at + write_time, at + write_time + ns(250));
  }
  Time write_room_at() override { return room_at; }
  void on_write_room(std::function<void()> room) override { room_ = std::move(room); }
  void give_room() {
    room_at = Time::zero();
    room_();
  }
  void read(DmaRead read, DmaClient& client, Time at) override {
    RVMA_ASSERT(read.from.count() == 1, "a page list's line is one piece");
    const Segment from = read.from.segments[0];
    reads.push_back({from.address, from.bytes, at});
    script_.at(at + read_time, [this, read, from, &client] {
      for (std::uint32_t i = 0; i < from.bytes; ++i) read.into->data()[i] = bytes.at(from.address.value() + i);
      client.dma_read_done(read.tag);
    });
  }
  /// Stores a page list, little endian.
  void store_list(PhysicalAddress list, const std::vector<std::uint64_t>& pages) {
    for (std::size_t i = 0; i < pages.size(); ++i) {
      for (std::size_t b = 0; b < 8; ++b) {
        bytes[list.value() + 8 * i + b] = static_cast<std::uint8_t>(pages[i] >> (8 * b));
      }
    }
  }

  std::map<std::uint64_t, std::uint8_t> bytes;
  std::vector<WriteCall> writes;
  std::vector<ReadCall> reads;
  Time write_time = Time::zero();  ///< never: the test calls dma_written() itself
  Time read_time = ns(500);
  Time room_at = Time::zero();

 private:
  Script& script_;
  std::function<void()> room_;
};

class FakeWriter : public sc_core::sc_object, public PayloadWriterIf {
 public:
  struct Call {
    PlacedPacket packet;
    SegmentList to;
    Cycles at;
  };
  void place(PlacedPacket packet, const SegmentList& to, Cycles at) override {
    RVMA_ASSERT(calls.empty() || calls.back().at < at, "two packets placed in one cycle");
    calls.push_back({std::move(packet), to, at});
  }
  const Call& of(std::uint32_t sequence) const {
    for (const Call& call : calls) {
      if (call.packet.sequence == sequence) return call;
    }
    RVMA_ASSERT(false, "packet " + std::to_string(sequence) + " was not placed");
    return calls.front();
  }
  std::vector<Call> calls;
};

class FakeCounter : public sc_core::sc_object, public CounterIf {
 public:
  struct Call {
    PlacedPacket packet;
    Time at;
  };
  void count(PlacedPacket packet, Time at) override {
    RVMA_ASSERT(calls.empty() || calls.back().at <= at, "counted out of order");
    calls.push_back({std::move(packet), at});
  }
  Time room_at() const override { return room; }
  std::vector<Call> calls;
  Time room;
};

class FakeObserver : public NicObserver {
 public:
  void packet_arrived(NodeId /*node*/, const Packet& packet, Time at) override {
    arrived.emplace_back(packet.transport.sequence, at);
  }
  void packet_ignored(NodeId /*node*/, const Packet& packet, const char* why, Time at) override {
    ignored.push_back({packet.transport.sequence, why, at});
  }
  void message_refused(NodeId /*node*/, const MessageRef& message, Outcome reason, Time /*at*/) override {
    refused.emplace_back(message.message, reason);
  }
  void message_bound(NodeId /*node*/, const MessageRef& message, WindowId /*slot*/, BufferId buffer, Epoch epoch,
                     std::uint64_t offset, std::uint64_t /*length*/, Time /*at*/) override {
    bound.push_back({message.message, buffer, epoch, offset});
  }
  void packet_placed(NodeId /*node*/, const PlacedPacket& packet, std::uint64_t offset, Time at) override {
    placed.push_back({packet.sequence, offset, at});
  }
  void epoch_retired(NodeId /*node*/, WindowId /*slot*/, BufferId buffer, Epoch epoch, bool by_call,
                     Time /*at*/) override {
    retired.push_back({buffer, epoch, by_call});
  }

  struct Ignored {
    std::uint32_t sequence;
    std::string why;
    Time at;
  };
  struct Bound {
    MessageId message;
    BufferId buffer;
    Epoch epoch;
    std::uint64_t offset;
  };
  struct Placed {
    std::uint32_t sequence;
    std::uint64_t offset;
    Time at;
  };
  struct Retired {
    BufferId buffer;
    Epoch epoch;
    bool by_call;
  };
  std::vector<std::pair<std::uint32_t, Time>> arrived;
  std::vector<Ignored> ignored;
  std::vector<std::pair<MessageId, Outcome>> refused;
  std::vector<Bound> bound;
  std::vector<Placed> placed;
  std::vector<Retired> retired;
};

/// Fields of a data packet that the tests vary; a message of its own unless said otherwise.
struct PacketSpec {
  std::uint32_t sequence = 0;
  std::uint32_t message = 0;
  std::uint64_t mailbox = 1;
  std::uint32_t key = 0;
  std::uint64_t message_length = 0;
  std::uint64_t offset = 0;
  std::uint32_t index = 0;
  std::uint16_t length = 0;
};

inline PacketPtr data_packet(PacketPool& pool, const PacketSpec& spec) {
  PacketPtr packet = pool.acquire();
  packet->transport.type = PacketType::data;
  packet->transport.source = NodeId{1};
  packet->transport.source_incarnation = 1;
  packet->transport.sequence = spec.sequence;
  packet->data.mailbox = Mailbox{spec.mailbox};
  packet->data.key = spec.key;
  packet->data.message = MessageId{spec.message};
  packet->data.message_length = spec.message_length;
  packet->data.offset = spec.offset;
  packet->data.packet_index = spec.index;
  packet->data.payload_length = spec.length;
  packet->wire_bytes = 100U + spec.length;
  return packet;
}

/// The only packet of message `number`, with sequence number `number`.
inline PacketSpec single(std::uint32_t number, std::uint16_t length, std::uint64_t offset = 0) {
  return PacketSpec{number, number, 1, 0, length, offset, 0, length};
}

/// An open window for `mailbox` of pid 0.
inline WindowId open_window(WindowStore& store, std::uint64_t mailbox, std::uint64_t threshold, std::uint32_t key = 0,
                            Placement placement = Placement::steered) {
  Descriptor call;
  call.opcode = Opcode::init_window;
  call.mailbox = Mailbox{mailbox};
  call.threshold = threshold;
  call.key = key;
  call.placement = placement;
  const WindowStore::WindowAnswer answer = store.allocate_window(call, Pid{0});
  RVMA_ASSERT(answer.status == Status::ok, "window not allocated");
  store.open_window(answer.window);
  return answer.window;
}

inline BufferId post(WindowStore& store, WindowId slot, std::uint64_t head, std::uint64_t size, std::uint64_t page_list,
                     bool single_page) {
  Descriptor call;
  call.opcode = Opcode::post_buffer;
  call.local = VirtualAddress{head};
  call.length = size;
  call.page_list = PhysicalAddress{page_list};
  call.single_page = single_page;
  call.completion = PhysicalAddress{0x10};
  const WindowStore::PostAnswer answer = store.post_buffer(slot, call);
  RVMA_ASSERT(answer.status == Status::ok, "buffer not posted");
  return answer.buffer;
}

}  // namespace rvma::test
