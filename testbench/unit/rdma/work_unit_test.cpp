// The RDMA NIC's send side alone: transmit records, completion entries go to a DMA engine that records.
#include "rdma/work_unit.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "rdma_mocks.hpp"

namespace rvma {
namespace {

using test::cycle;
using test::ns;
using test::run_until;

constexpr NodeId kPeer{6};
constexpr Pid kPid{0};
constexpr std::uint32_t kQueuePair = 40;
constexpr std::uint32_t kThere = 41;  ///< its number at the peer
constexpr std::int64_t kTimeoutNs = 10'000;

struct FakeTransmit : TransmitIf {
  bool submit(const PutRequest& put, Cycles) override {
    if (puts.size() >= room) return false;
    puts.push_back(put);
    return true;
  }
  void on_room(std::function<void()> callback) override { tell_room = std::move(callback); }
  std::size_t room = 1000;
  std::vector<PutRequest> puts;
  std::function<void()> tell_room;
};

struct Bench {
  /// `on_chip`: queue pair contexts.
  explicit Bench(std::uint32_t on_chip = 64) {
    nic.get.timeout = ns(kTimeoutNs);
    rdma.queue_pairs.on_chip = on_chip;
    rdma.reads = 2;
    cache = std::make_unique<StateCache>(owner, StateCache::Parameters{rdma.queue_pairs, 0, "queue_pairs", true});
    unit = std::make_unique<WorkUnit>("work", context, nic, rdma, state, *cache, completions);
    completions.dma.bind(dma);
    completions.set_queue(kPid, PhysicalAddress{0x2000}, 256);
    completions.set_queue(Pid{1}, PhysicalAddress{0x8000}, 256);
    cache->use(dma);
    unit->transmit.bind(transmit);
    for (const std::uint32_t number : {kQueuePair, kQueuePair + 10}) {
      Descriptor call;
      call.key = number;
      call.mailbox = Mailbox{std::uint64_t{kPeer.value()} << 32U | (number + 1)};
      state.create_queue_pair(call, kPid);
      cache->create(number);
    }
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  static PutRequest request(Opcode opcode, std::uint64_t id, std::uint32_t queue_pair = kQueuePair) {
    PutRequest made;
    made.pid = kPid;
    made.descriptor.opcode = opcode;
    made.descriptor.mailbox = Mailbox{0xabc0};
    made.descriptor.key = 9;
    made.descriptor.local = VirtualAddress{0x7000};
    made.descriptor.page_list = PhysicalAddress{55};
    made.descriptor.length = 300;
    made.descriptor.offset = std::uint64_t{queue_pair} << 32U | 0x1234;
    made.descriptor.completion = PhysicalAddress{id};
    return made;
  }
  bool submit(Opcode opcode, std::uint64_t id = 16, std::uint32_t queue_pair = kQueuePair) {
    return unit->submit(request(opcode, id, queue_pair), unit->current_cycle());
  }
  std::vector<Cqe> entries() const {
    std::vector<Cqe> all;
    for (const auto& write : dma.writes) all.push_back(decode_cqe({write.write.word[0], write.write.word[1]}));
    return all;
  }
  std::vector<std::uint64_t> submitted() const {
    std::vector<std::uint64_t> ids;
    for (const PutRequest& put : transmit.puts) ids.push_back(put.descriptor.completion.value());
    return ids;
  }

  SimContext context{1};
  NicConfig nic;
  RdmaConfig rdma;
  test::Script script{"script", context};
  test::EntryDma dma{context, script};
  Component owner{"owner", context, Frequency::mhz(1000)};
  RdmaState state{64, false};
  CompletionQueueWriter completions{"completions", context, nic};
  FakeTransmit transmit;
  std::unique_ptr<StateCache> cache;
  std::unique_ptr<WorkUnit> unit;
};

using Ids = std::vector<std::uint64_t>;

// -------------------------------------------------------------------------------------------- from request to message

TEST(WorkUnit, ARequestBecomesAMessageOfItsQueuePair) {
  Bench bench;
  const std::pair<Opcode, RdmaOperation> kinds[] = {{Opcode::rdma_write, RdmaOperation::write},
                                                    {Opcode::rdma_write_immediate, RdmaOperation::write_immediate},
                                                    {Opcode::rdma_send, RdmaOperation::send}};
  for (const auto& [opcode, operation] : kinds) {
    ASSERT_TRUE(bench.submit(opcode));
    const PutRequest& put = bench.transmit.puts.back();
    EXPECT_EQ(put.purpose, Purpose::rdma);
    EXPECT_EQ(put.rdma.operation, operation);
    EXPECT_EQ(put.rdma.queue_pair, kThere);
    EXPECT_EQ(put.rdma.immediate, 0x1234U);
    EXPECT_EQ(put.descriptor.destination_node, kPeer);
    EXPECT_EQ(put.descriptor.mailbox, Mailbox{0xabc0});
    EXPECT_EQ(put.descriptor.key, 9U);
    EXPECT_EQ(put.descriptor.length, 300U);
    EXPECT_EQ(put.descriptor.offset, 0U) << "its place in the order is transmit's to say";
  }
  EXPECT_EQ(bench.unit->stats().writes.value(), 2U);
  EXPECT_EQ(bench.unit->stats().sends.value(), 1U);
}

TEST(WorkUnit, AReadAsks) {
  Bench bench;
  bench.submit(Opcode::rdma_read);
  const PutRequest& put = bench.transmit.puts.back();
  EXPECT_EQ(put.rdma.operation, RdmaOperation::read);
  EXPECT_EQ(put.descriptor.length, 0U) << "the request carries nothing";
  EXPECT_EQ(put.ask.length, 300U);
  EXPECT_EQ(put.ask.mailbox, Mailbox{0x7000}) << "where the answer goes";
  EXPECT_EQ(put.ask.key, 55U) << "the asker's region";
  EXPECT_TRUE(bench.state.is_reading(put.rdma.immediate));
}

TEST(WorkUnit, AManagementQueuePairsRequestNamesItsDestination) {
  Bench bench;
  const std::uint32_t number = RdmaState::kManagement | 0U;
  Descriptor call;
  call.key = number;
  bench.state.create_queue_pair(call, kPid);
  bench.cache->create(number);
  PutRequest request = Bench::request(Opcode::rdma_send, 16, number);
  request.descriptor.destination_node = NodeId{13};
  request.descriptor.destination_pid = Pid{2};
  bench.unit->submit(request, Cycles{0});
  EXPECT_EQ(bench.transmit.puts.back().descriptor.destination_node, NodeId{13});
  EXPECT_EQ(bench.transmit.puts.back().rdma.queue_pair, RdmaState::kManagement | 2U);
}

TEST(WorkUnit, WithoutAQueuePairItIsDropped) {
  Bench bench;
  EXPECT_TRUE(bench.submit(Opcode::rdma_write, 16, 4));
  EXPECT_TRUE(bench.transmit.puts.empty());
  EXPECT_EQ(bench.unit->stats().malformed.value(), 1U);
}

// ----------------------------------------------------------------------------------------------------------- waiting

TEST(WorkUnit, WaitsForItsContextInOrder) {
  Bench bench(1);  // kQueuePair's has gone
  bench.script.at(cycle(100), [&] {
    bench.submit(Opcode::rdma_write, 16);
    bench.submit(Opcode::rdma_write, 32, kQueuePair + 10);
    bench.submit(Opcode::rdma_write, 48);
  });
  run_until(cycle(599));
  EXPECT_EQ(bench.submitted(), Ids{32}) << "whose context is here goes on";
  run_until(cycle(600));
  EXPECT_EQ(bench.submitted(), (Ids{32, 16, 48}));
  EXPECT_EQ(bench.unit->stats().held.value(), 2U);
}

/// The command unit offers the next request as soon as it is told of room.
TEST(WorkUnit, WhoeverIsLetInLaterComesLater) {
  Bench bench(1);
  std::uint64_t next = 16;
  const std::uint64_t last = 16 * 80;
  const auto offer = [&] {
    while (next <= last && bench.submit(Opcode::rdma_write, next)) next += 16;
  };
  bench.unit->on_room(offer);
  bench.script.at(cycle(100), offer);
  run_until(cycle(599));
  EXPECT_EQ(next, 16 * 65U) << "64 wait, the next one is refused";
  run_until(cycle(2000));
  Ids expected;
  for (std::uint64_t id = 16; id <= last; id += 16) expected.push_back(id);
  EXPECT_EQ(bench.submitted(), expected);
}

TEST(WorkUnit, WaitsForTransmit) {
  Bench bench;
  int told = 0;
  bench.unit->on_room([&] { ++told; });
  bench.transmit.room = 0;
  int taken = 0;
  while (bench.submit(Opcode::rdma_write, 16)) ++taken;
  EXPECT_EQ(taken, 64);
  EXPECT_EQ(told, 0);
  bench.transmit.room = 10;
  bench.transmit.tell_room();
  EXPECT_EQ(bench.transmit.puts.size(), 10U);
  EXPECT_EQ(told, 1) << "once for one refusal";
  bench.transmit.room = 100;
  bench.transmit.tell_room();
  EXPECT_EQ(bench.transmit.puts.size(), 64U);
  EXPECT_EQ(told, 1);
}

// ------------------------------------------------------------------------------------------------------- completion

TEST(WorkUnit, EndsWithAnEntryThatNamesTheRequest) {
  Bench bench;
  bench.submit(Opcode::rdma_write, 160);
  bench.submit(Opcode::rdma_send, 0);
  bench.submit(Opcode::rdma_send, 320);
  bench.unit->ended(bench.transmit.puts[0], Outcome::ok, 1, cycle(20));
  bench.unit->ended(bench.transmit.puts[1], Outcome::ok, 1, cycle(20));
  bench.unit->ended(bench.transmit.puts[2], Outcome::timeout, 7, cycle(20));
  const std::vector<Cqe> entries = bench.entries();
  ASSERT_EQ(entries.size(), 2U) << "number 0 asks for none";
  EXPECT_TRUE((entries[0] == Cqe{CqeKind::sent, Outcome::ok, 0, 160}));
  EXPECT_TRUE((entries[1] == Cqe{CqeKind::sent, Outcome::timeout, 0, 320}));
  EXPECT_EQ(bench.unit->stats().ended_ok.value(), 2U);
  EXPECT_EQ(bench.unit->stats().ended_otherwise.value(), 1U);
}

// ------------------------------------------------------------------------------------------------------------ reads

/// What the receive unit does when a read's answer is whole.
void answer_comes(Bench& bench, std::uint32_t read) {
  DataHeader header;
  header.message_length = 0;
  header.rdma = {RdmaOperation::read_answer, kQueuePair, read};
  const RdmaState::Opened opened = bench.state.open(kPeer, header);
  ASSERT_EQ(opened.outcome, Outcome::pending);
  bench.state.placing(opened.message, header);
  std::vector<DueCqe> due;
  bench.state.count(opened.message, 0, 0, due);
}

void answer_and_acknowledgement(bool answer_first) {
  Bench bench;
  bench.submit(Opcode::rdma_read, 160);
  const PutRequest put = bench.transmit.puts[0];
  bench.script.at(cycle(100), [&] {
    if (answer_first) answer_comes(bench, put.rdma.immediate);
    bench.unit->ended(put, Outcome::ok, 1, cycle(100));
    if (!answer_first) answer_comes(bench, put.rdma.immediate);
  });
  run_until(cycle(200));
  EXPECT_FALSE(sc_core::sc_pending_activity()) << "no timer is left";
  EXPECT_EQ(bench.unit->stats().ended_ok.value(), 1U);
  EXPECT_EQ(bench.unit->stats().reads_timed_out.value(), 0U);
  EXPECT_TRUE(bench.dma.writes.empty()) << "its entry is the receive unit's to write";
}

TEST(WorkUnit, AnAnswerMayComeBeforeItsAcknowledgement) { answer_and_acknowledgement(true); }
TEST(WorkUnit, AnAnswerMayComeAfterItsAcknowledgement) { answer_and_acknowledgement(false); }

TEST(WorkUnit, AReadWhoseAnswerStaysAwayEndsAfterItsTime) {
  Bench bench;
  bench.script.at(cycle(100), [&] {
    bench.submit(Opcode::rdma_read, 160);
    bench.submit(Opcode::rdma_read, 320);
    bench.unit->ended(bench.transmit.puts[0], Outcome::ok, 1, cycle(100));
  });
  bench.script.at(cycle(300), [&] { bench.unit->ended(bench.transmit.puts[1], Outcome::ok, 1, cycle(300)); });
  run_until(cycle(100 + kTimeoutNs - 1));
  EXPECT_TRUE(bench.dma.writes.empty());
  run_until(cycle(100 + kTimeoutNs));
  ASSERT_EQ(bench.entries().size(), 1U);
  EXPECT_TRUE((bench.entries()[0] == Cqe{CqeKind::read, Outcome::timeout, 0, 160}));
  run_until(cycle(300 + kTimeoutNs));
  ASSERT_EQ(bench.entries().size(), 2U);
  EXPECT_TRUE((bench.entries()[1] == Cqe{CqeKind::read, Outcome::timeout, 0, 320}));
  EXPECT_EQ(bench.unit->stats().reads_timed_out.value(), 2U);
  EXPECT_EQ(bench.state.open_reads(), 0U);
}

TEST(WorkUnit, ARefusedReadEndsAtOnce) {
  Bench bench;
  bench.submit(Opcode::rdma_read, 160);
  bench.unit->ended(bench.transmit.puts[0], Outcome::bad_key, 1, cycle(20));
  ASSERT_EQ(bench.entries().size(), 1U);
  EXPECT_TRUE((bench.entries()[0] == Cqe{CqeKind::read, Outcome::bad_key, 0, 160}));
  EXPECT_EQ(bench.state.open_reads(), 0U);
}

TEST(WorkUnit, AnswersAreBounded) {
  Bench bench;
  bench.submit(Opcode::rdma_write, 16);
  DataHeader header;
  header.rdma = {RdmaOperation::read, kQueuePair, 0x5'0001};
  Descriptor answer;
  answer.local = VirtualAddress{0x4444};
  answer.length = 70;
  ASSERT_TRUE(bench.unit->answer(kPeer, header, answer));
  const PutRequest put = bench.transmit.puts[1];
  EXPECT_EQ(put.rdma.operation, RdmaOperation::read_answer);
  EXPECT_EQ(put.rdma.queue_pair, kThere);
  EXPECT_EQ(put.rdma.immediate, 0x5'0001U) << "names the read";
  EXPECT_EQ(put.descriptor.destination_node, kPeer);
  EXPECT_EQ(put.descriptor.local, VirtualAddress{0x4444});
  ASSERT_TRUE(bench.unit->answer(kPeer, header, answer));
  EXPECT_FALSE(bench.unit->answer(kPeer, header, answer)) << "rdma.reads is 2";
  EXPECT_EQ(bench.transmit.puts.size(), 3U);
  bench.unit->ended(put, Outcome::ok, 1, cycle(20));
  EXPECT_TRUE(bench.unit->answer(kPeer, header, answer)) << "until one has ended";
  EXPECT_TRUE(bench.dma.writes.empty()) << "nobody here waits for an answer's end";
  EXPECT_EQ(bench.unit->stats().answers.value(), 3U);
}

}  // namespace
}  // namespace rvma
