// The whole RDMA NIC: two of them back to back over a plain link, each in front of a plain memory.
#include "rdma/rdma_nic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plain_host.hpp"
#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::cycle;
using test::ns;
using test::run_until;
using test::TargetStyle;

constexpr std::uint64_t kPage = 4096;
constexpr Pid kPid{0};
constexpr std::uint32_t kQueuePair = 5;  ///< and the next one: both lead to the other node, under the same number
constexpr std::uint32_t kKey = 9;
constexpr std::uint32_t kImmediate = 0x1234;
// Addresses in each memory.
constexpr std::uint64_t kConsumed = 0x100;
constexpr std::uint64_t kReceives = 0x1000;  ///< buffers of posted receives
constexpr std::uint64_t kRing = 0x2000;
constexpr std::uint64_t kSource = 0x5000;  ///< a page that is sent
constexpr std::uint64_t kRegion = 0x7000;  ///< a page that is registered, and its virtual address
constexpr std::uint64_t kRegionHead = 0x5000'7000;

/// Loses or holds up what it is told to.
class FussyLink : public test::PlainLink {
 public:
  FussyLink(const char* name, test::Script& script) : PlainLink(name), script_(script) {}
  Time send(PacketPtr packet, Time not_before) override {
    if (loses && loses(*packet)) {
      ++lost;
      return earliest_start(packet->wire_bytes, not_before);
    }
    if (holds && holds(*packet)) {
      auto kept = std::make_shared<PacketPtr>(std::move(packet));
      script_.at(until, [this, kept] { deliver(std::move(*kept), SimContext::now()); });
      return not_before;
    }
    return PlainLink::send(std::move(packet), not_before);
  }
  std::function<bool(const Packet&)> loses;
  std::function<bool(const Packet&)> holds;
  Time until;
  std::uint64_t lost = 0;

 private:
  test::Script& script_;
};

struct Host {
  Host(SimContext& context, const RdmaNic::Parameters& parameters, PacketPool& packets, PayloadPool& payloads,
       const ObserverList& observers, TargetStyle style)
      : id(parameters.node.value()),
        nic(("nic" + std::to_string(id)).c_str(), context, parameters, packets, payloads, observers),
        memory(("memory" + std::to_string(id)).c_str(), style),
        cpu(("cpu" + std::to_string(id)).c_str()) {
    nic.dma.bind(memory.socket);
    cpu.socket.bind(nic.mmio);
    nic.set_ring(kPid, PhysicalAddress{}, 64, PhysicalAddress{kConsumed});
    nic.set_completion_queue(kPid, PhysicalAddress{kRing}, 64);
    for (const std::uint32_t number : {kQueuePair, kQueuePair + 1}) {
      Descriptor create;
      create.opcode = Opcode::rdma_create_queue_pair;
      create.key = number;
      create.mailbox = Mailbox{std::uint64_t{1 - id} << 32U | number};
      nic.prepare(create, kPid);
    }
    Descriptor region;
    region.opcode = Opcode::rdma_register;
    region.key = kKey;
    region.local = VirtualAddress{kRegionHead};
    region.length = kPage;
    region.single_page = true;
    region.page_list = PhysicalAddress{kRegion};
    nic.prepare(region, kPid);
    for (std::uint64_t i = 0; i < kPage; ++i) memory.bytes[kSource + i] = static_cast<std::uint8_t>(i * 7 + id + 1);
  }
  static Descriptor receive(std::uint64_t number) {
    Descriptor post;
    post.opcode = Opcode::rdma_post_receive;
    post.local = VirtualAddress{kReceives + 64 * number};
    post.length = 64;
    post.single_page = true;
    post.page_list = PhysicalAddress{kReceives};
    post.completion = PhysicalAddress{16 * number};
    return post;
  }
  static Descriptor work(Opcode opcode, std::uint64_t length, std::uint64_t id, std::uint64_t at = kRegionHead) {
    Descriptor request;
    request.opcode = opcode;
    request.mailbox = Mailbox{at};
    request.key = kKey;
    request.local = VirtualAddress{kSource};
    request.length = length;
    request.single_page = true;
    request.page_list = PhysicalAddress{kSource};
    request.offset = std::uint64_t{kQueuePair} << 32U | kImmediate;
    request.completion = PhysicalAddress{16 * id};
    return request;
  }
  static Descriptor read(std::uint64_t length, std::uint64_t id, std::uint64_t from = kRegionHead) {
    Descriptor request = work(Opcode::rdma_read, length, id, from);
    request.local = VirtualAddress{kRegionHead};
    request.page_list = PhysicalAddress{kKey};
    request.single_page = false;
    return request;
  }
  /// Of the completion queue, so far.
  std::vector<Cqe> entries() const {
    std::vector<Cqe> all;
    for (std::uint64_t at = kRing; memory.load64(at) != 0; at += kCqeBytes) {
      all.push_back(decode_cqe({memory.load64(at), memory.load64(at + 8)}));
    }
    return all;
  }
  bool holds(std::uint64_t at, std::uint64_t length, const Host& from) const {
    return std::equal(memory.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                      memory.bytes.begin() + static_cast<std::ptrdiff_t>(at + length),
                      from.memory.bytes.begin() + kSource);
  }
  bool is_untouched() const {
    const auto begin = memory.bytes.begin() + kRegion;
    return std::all_of(begin, begin + kPage, [](std::uint8_t byte) { return byte == 0; });
  }

  std::uint32_t id;
  RdmaNic nic;
  test::PlainMemory memory;
  test::Cpu cpu;
};

using Change = std::function<void(NicConfig&, RdmaConfig&)>;

struct Bench {
  explicit Bench(
      const Change& change = [](NicConfig&, RdmaConfig&) {}, TargetStyle style = TargetStyle::early_completion) {
    change(nic, rdma);
    payloads = std::make_unique<PayloadPool>(static_cast<std::uint32_t>(nic.mtu->count()));
    for (std::uint32_t id = 0; id < 2; ++id) {
      const RdmaNic::Parameters parameters{nic, rdma, Bytes{kPage}, NodeId{id}};
      hosts.push_back(std::make_unique<Host>(context, parameters, packets, *payloads, observers, style));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      links[i].connect(hosts[1 - i]->nic.network_input());
      hosts[i]->nic.connect(links[i], links[1 - i]);
    }
  }
  Host& sender() { return *hosts[0]; }
  Host& receiver() { return *hosts[1]; }
  void post_receive(std::uint64_t number) { receiver().nic.prepare(Host::receive(number), kPid); }
  /// A descriptor that the sender's software writes at `at`.
  void command(Time at, const Descriptor& descriptor) {
    script.at(at, [this, descriptor] { sender().cpu.command(descriptor); });
  }
  void expect_all_given_back() {
    EXPECT_EQ(packets.in_use(), 0U);
    EXPECT_EQ(payloads->in_use(), 0U);
    const std::uint64_t before = context.activations();
    run_until(SimContext::now() + Time::from_us(100'000));
    EXPECT_EQ(context.activations(), before) << "nothing goes on";
  }

  SimContext context{1};
  NicConfig nic;
  RdmaConfig rdma;
  PacketPool packets;
  std::unique_ptr<PayloadPool> payloads;
  ObserverList observers;
  test::Script script{"script", context};
  FussyLink links[2]{{"link0", script}, {"link1", script}};
  std::vector<std::unique_ptr<Host>> hosts;
};

// -------------------------------------------------------------------------------------------------------- messages

void one_write(TargetStyle style) {
  Bench bench([](NicConfig& nic, RdmaConfig&) { nic.mtu = Bytes{256}; }, style);
  bench.post_receive(3);
  bench.command(ns(1000), Host::work(Opcode::rdma_write_immediate, 1000, 7, kRegionHead + 50));
  run_until(Time::from_us(50));
  EXPECT_TRUE(bench.receiver().holds(kRegion + 50, 1000, bench.sender()));
  EXPECT_EQ(bench.receiver().memory.bytes[kRegion + 49], 0U);
  EXPECT_EQ(bench.receiver().memory.bytes[kRegion + 1050], 0U);
  EXPECT_EQ(bench.receiver().entries(), (std::vector<Cqe>{{CqeKind::written, Outcome::ok, kImmediate, 16 * 3}}));
  EXPECT_EQ(bench.sender().entries(), (std::vector<Cqe>{{CqeKind::sent, Outcome::ok, 0, 16 * 7}}));
  EXPECT_EQ(bench.links[0].packets, 4U);
  bench.expect_all_given_back();
}

TEST(RdmaNic, WritesThroughAForeignFourPhaseMemory) { one_write(TargetStyle::four_phase); }
TEST(RdmaNic, WritesThroughAForeignEarlyCompletingMemory) { one_write(TargetStyle::early_completion); }

/// Until a receive is posted, however long: no message is lost, and no queue pair breaks.
TEST(RdmaNic, ASendIsAskedForAgainUntilThereIsAReceive) {
  Bench bench([](NicConfig& nic, RdmaConfig&) { nic.reliability.rnr_tries = 2; });
  bench.command(ns(1000), Host::work(Opcode::rdma_send, 40, 7));
  bench.script.at(Time::from_us(100), [&] { bench.receiver().cpu.command(Host::receive(2)); });
  run_until(Time::from_us(100));
  EXPECT_TRUE(bench.receiver().entries().empty());
  EXPECT_TRUE(bench.sender().entries().empty()) << "more than rnr_tries pauses ago";
  EXPECT_GT(bench.links[0].packets, 10U);
  run_until(Time::from_us(200));
  EXPECT_EQ(bench.receiver().entries(), (std::vector<Cqe>{{CqeKind::received, Outcome::ok, kImmediate, 16 * 2}}));
  EXPECT_TRUE(bench.receiver().holds(kReceives + 128, 40, bench.sender()));
  EXPECT_EQ(bench.sender().entries(), (std::vector<Cqe>{{CqeKind::sent, Outcome::ok, 0, 16 * 7}}));
  bench.expect_all_given_back();
}

TEST(RdmaNic, ARefusedWriteEndsWithItsReasonAndLeavesNoTrace) {
  Bench bench;
  bench.post_receive(1);
  Descriptor key = Host::work(Opcode::rdma_write_immediate, 100, 1);
  key.key = kKey + 1;
  const Descriptor bounds = Host::work(Opcode::rdma_write_immediate, 100, 2, kRegionHead + kPage - 99);
  bench.command(ns(1000), key);
  bench.command(ns(1100), bounds);
  run_until(Time::from_us(50));
  EXPECT_EQ(bench.sender().entries(), (std::vector<Cqe>{{CqeKind::sent, Outcome::bad_key, 0, 16 * 1},
                                                        {CqeKind::sent, Outcome::bounds, 0, 16 * 2}}));
  EXPECT_TRUE(bench.receiver().entries().empty());
  EXPECT_TRUE(bench.receiver().is_untouched());
  // The posted receive is there still.
  bench.script.at(Time::from_us(60), [&] { bench.sender().cpu.command(Host::work(Opcode::rdma_send, 8, 3)); });
  run_until(Time::from_us(100));
  EXPECT_EQ(bench.receiver().entries().size(), 1U);
}

TEST(RdmaNic, AReadNeedsNobodyAtItsTarget) {
  Bench bench([](NicConfig& nic, RdmaConfig&) { nic.mtu = Bytes{256}; });
  auto& memory = bench.receiver().memory.bytes;
  for (std::uint64_t i = 0; i < kPage; ++i) memory[kRegion + i] = static_cast<std::uint8_t>(i * 3 + 1);
  bench.command(ns(1000), Host::read(1000, 7, kRegionHead + 80));
  bench.command(ns(1000), Host::read(1000, 8, kRegionHead + kPage - 999));
  run_until(Time::from_us(50));
  const auto entries = bench.sender().entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(std::count(entries.begin(), entries.end(), Cqe{CqeKind::read, Outcome::ok, 0, 16 * 7}), 1);
  EXPECT_EQ(std::count(entries.begin(), entries.end(), Cqe{CqeKind::read, Outcome::bounds, 0, 16 * 8}), 1);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(bench.sender().memory.bytes[kRegion + i], static_cast<std::uint8_t>((i + 80) * 3 + 1)) << i;
  }
  EXPECT_TRUE(bench.receiver().entries().empty());
  bench.expect_all_given_back();
}

/// Beyond rdma.reads they are refused, and asked again.
TEST(RdmaNic, ReadsAreServedAFewAtATime) {
  Bench bench([](NicConfig& nic, RdmaConfig& rdma) {
    rdma.reads = 1;
    nic.reliability.rnr_delay = ns(2000);
  });
  for (std::uint64_t id = 1; id <= 3; ++id) bench.command(ns(1000), Host::read(64, id));
  run_until(Time::from_us(100));
  const auto entries = bench.sender().entries();
  EXPECT_EQ(entries.size(), 3U);
  for (const Cqe& entry : entries) EXPECT_EQ(entry.outcome, Outcome::ok);
  EXPECT_GT(bench.links[0].packets, 3U + 3U) << "requests, acknowledgements of answers, and requests again";
  bench.expect_all_given_back();
}

// ---------------------------------------------------------------------------------------------------------- timing

/// From the payload's place in the posted channel to the completion entry, of a write that nothing stands in the way
/// of.
void entry_follows_payload(std::int64_t counters, std::int64_t completion, std::int64_t dma) {
  constexpr std::int64_t kMemoryNs = 30;  ///< the plain memory's answer to the payload
  Bench bench([&](NicConfig& nic, RdmaConfig&) {
    nic.counters.latency = Cycles{counters};
    nic.completion.latency = Cycles{completion};
    nic.dma.latency = Cycles{dma};
  });
  bench.post_receive(3);
  bench.command(ns(1000), Host::work(Opcode::rdma_write_immediate, 100, 7));
  run_until(Time::from_us(50));
  const test::PlainMemory& memory = bench.receiver().memory;
  ASSERT_EQ(bench.receiver().entries().size(), 1U);
  EXPECT_EQ(memory.written_at(kRing) - memory.written_at(kRegion), cycle(kMemoryNs + counters + completion + dma))
      << "not a cycle earlier, nor later";
}

TEST(RdmaNic, TheEntryFollowsThePayload) { entry_follows_payload(2, 2, 2); }
TEST(RdmaNic, TheEntryFollowsThePayloadAfterLongerLatencies) { entry_follows_payload(7, 19, 5); }

// -------------------------------------------------------------------------------------------------- order and loss

/// The second of four packets is late.
void one_late_packet(bool tracks) {
  Bench bench([&](NicConfig& nic, RdmaConfig& rdma) {
    nic.mtu = Bytes{256};
    nic.reliability.reorder_window = Time::from_us(1000);
    rdma.ooo_tracking = tracks;
  });
  bench.post_receive(1);
  bench.post_receive(2);
  bench.links[0].holds = [](const Packet& packet) { return packet.data.packet_index == 1; };
  bench.links[0].until = Time::from_us(20);
  bench.command(ns(1000), Host::work(Opcode::rdma_write_immediate, 1000, 7));
  bench.command(ns(2000), Host::work(Opcode::rdma_send, 8, 8));
  run_until(Time::from_us(20) - ns(1));
  EXPECT_FALSE(bench.receiver().holds(kRegion, 1000, bench.sender()));
  const std::vector<Cqe> all{{CqeKind::written, Outcome::ok, kImmediate, 16 * 1},
                             {CqeKind::received, Outcome::ok, kImmediate, 16 * 2}};
  EXPECT_EQ(bench.receiver().entries(), tracks ? std::vector<Cqe>{} : all);
  run_until(Time::from_us(40));
  EXPECT_TRUE(bench.receiver().holds(kRegion, 1000, bench.sender()));
  EXPECT_EQ(bench.receiver().entries(), all);
}

/// The last packet tells, whatever is missing: right on a path that keeps order.
TEST(RdmaNic, WithoutTrackingAHoleIsNotSeen) { one_late_packet(false); }
/// Nor is what comes behind a message that has a hole.
TEST(RdmaNic, WithTrackingAMessageWithAHoleIsNotSignalled) { one_late_packet(true); }

TEST(RdmaNic, APeerThatIsSilentIsGivenUp) {
  Bench bench([](NicConfig& nic, RdmaConfig&) {
    nic.reliability.rto = Time::from_us(10);
    nic.reliability.max_tries = 3;
  });
  bench.post_receive(1);
  bench.links[0].loses = [](const Packet&) { return true; };
  bench.command(ns(1000), Host::work(Opcode::rdma_write_immediate, 100, 7));
  // Time-outs of 10, 20 and 40 us.
  run_until(Time::from_us(70));
  EXPECT_TRUE(bench.sender().entries().empty());
  run_until(Time::from_us(80));
  EXPECT_EQ(bench.sender().entries(), (std::vector<Cqe>{{CqeKind::sent, Outcome::timeout, 0, 16 * 7}}));
  EXPECT_EQ(bench.links[0].lost, 3U);
  // The queue pair goes on (hardware would have to set it up again).
  bench.links[0].loses = nullptr;
  bench.command(Time::from_us(100), Host::work(Opcode::rdma_write_immediate, 100, 9));
  run_until(Time::from_us(150));
  EXPECT_EQ(bench.receiver().entries().size(), 1U);
  EXPECT_EQ(bench.sender().entries().back().outcome, Outcome::ok);
}

// ------------------------------------------------------------------------------------------------- finite hardware

/// Both ends use two queue pairs by turns. What they are lent lies beyond the plain memory.
void two_queue_pairs(std::uint32_t on_chip, const std::function<void(const test::PlainMemory&)>& expect) {
  Bench bench([&](NicConfig&, RdmaConfig& rdma) { rdma.queue_pairs.on_chip = on_chip; });
  for (std::uint64_t i = 0; i < 6; ++i) {
    bench.post_receive(i);
    Descriptor send = Host::work(Opcode::rdma_send, 8 + i, i + 1);
    send.offset += (i % 2) << 32U;
    bench.command(Time::from_us(1 + 5 * static_cast<std::int64_t>(i)), send);
  }
  run_until(Time::from_us(100));
  for (Host* const host : {&bench.sender(), &bench.receiver()}) {
    EXPECT_EQ(host->entries().size(), 6U);
    for (const Cqe& entry : host->entries()) EXPECT_EQ(entry.outcome, Outcome::ok);
    expect(host->memory);
  }
}

TEST(RdmaNic, ContextsThatFitCostNothing) {
  two_queue_pairs(2, [](const test::PlainMemory& memory) { EXPECT_TRUE(memory.beyond.empty()); });
}

TEST(RdmaNic, ContextsThatDoNotFitAreFetched) {
  two_queue_pairs(1, [](const test::PlainMemory& memory) {
    // Each use, but for one of the context that was set up last, reads one and writes one.
    EXPECT_GE(memory.beyond.size(), 2U * 5U);
    EXPECT_EQ(memory.beyond.size() % 2, 0U);
    for (const std::uint64_t address : memory.beyond) EXPECT_EQ(address % kRdmaEntryBytes, 0U);
  });
}

TEST(RdmaNic, MmioAccessesThatMeanNothingAreErrors) {
  Bench bench;
  run_until(ns(1));
  std::uint8_t bytes[64] = {};
  EXPECT_EQ(bench.sender().cpu.access(0, bytes, 8, true, tlm::TLM_READ_COMMAND), tlm::TLM_COMMAND_ERROR_RESPONSE);
  EXPECT_EQ(bench.sender().cpu.access(8, bytes, 8), tlm::TLM_GENERIC_ERROR_RESPONSE);
}

}  // namespace
}  // namespace rvma
