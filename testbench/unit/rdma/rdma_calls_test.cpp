// The calls of the RDMA NIC's software alone: a state, two caches, and a DMA engine that records what spills.
#include "rdma/rdma_calls.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "rdma_mocks.hpp"

namespace rvma {
namespace {

using test::cycle;
using test::run_until;

constexpr Pid kPid{3};
constexpr NodeId kPeer{6};
constexpr std::uint64_t kQueuePairArea = 0x100'0000;
constexpr std::uint64_t kRegionArea = 0x200'0000;

struct Bench {
  /// Entries on the NIC, of each kind.
  explicit Bench(std::uint32_t on_chip = 64) {
    rdma.queue_pairs.on_chip = on_chip;
    rdma.regions.on_chip = on_chip;
    queue_pairs.emplace(owner, StateCache::Parameters{rdma.queue_pairs, kQueuePairArea, "queue_pairs", true});
    regions.emplace(owner, StateCache::Parameters{rdma.regions, kRegionArea, "regions", false});
    unit.emplace("calls", context, nic, state, *queue_pairs, *regions);
  }
  /// From here on spilling costs something.
  void start() {
    queue_pairs->use(dma);
    regions->use(dma);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  static Descriptor call(Opcode opcode, std::uint32_t key, std::uint64_t length = 100) {
    Descriptor made;
    made.opcode = opcode;
    made.key = key;
    made.local = VirtualAddress{0x7000};
    made.length = length;
    made.single_page = true;
    made.page_list = PhysicalAddress{0x5000};
    made.mailbox = Mailbox{std::uint64_t{kPeer.value()} << 32U | 77U};
    made.completion = PhysicalAddress{std::uint64_t{key} * 16};
    return made;
  }
  /// The answer, which comes before execute() returns.
  Status execute(const Descriptor& call, Pid pid = kPid) {
    std::optional<CallAnswer> answer;
    unit->execute(call, pid, unit->current_cycle(), [&](const CallAnswer& given) { answer = given; });
    EXPECT_TRUE(answer.has_value()) << "a call takes no cycle of its own";
    if (!answer) return Status::full;
    EXPECT_EQ(answer->value, 0U);
    return answer->status;
  }
  Status execute(Opcode opcode, std::uint32_t key) { return execute(call(opcode, key)); }
  /// What becomes of a send from the peer over queue pair `number`.
  RdmaState::Opened send_over(std::uint32_t number, std::uint64_t length = 64) {
    DataHeader header;
    header.message_length = length;
    header.payload_length = static_cast<std::uint16_t>(length);
    header.rdma = {RdmaOperation::send, number, 0};
    return state.open(kPeer, header);
  }

  SimContext context{1};
  NicConfig nic;
  RdmaConfig rdma;
  test::Script script{"script", context};
  test::EntryDma dma{context, script};
  Component owner{"owner", context, Frequency::mhz(1000)};
  RdmaState state{4096, false};
  std::optional<StateCache> queue_pairs;
  std::optional<StateCache> regions;
  std::optional<RdmaCalls> unit;
};

TEST(RdmaCalls, ARegionIsThereFromItsRegistrationToItsEnd) {
  Bench bench;
  bench.start();
  EXPECT_EQ(bench.execute(Opcode::rdma_register, 9), Status::ok);
  EXPECT_TRUE(bench.state.has_region(9));
  EXPECT_TRUE(bench.regions->find(9)) << "new entries are on the NIC";
  EXPECT_EQ(bench.execute(Opcode::rdma_deregister, 9), Status::ok);
  EXPECT_FALSE(bench.state.has_region(9));
  EXPECT_FALSE(bench.regions->find(9));
  // The key may be used again.
  EXPECT_EQ(bench.execute(Opcode::rdma_register, 9), Status::ok);
  EXPECT_TRUE(bench.regions->find(9));
  EXPECT_EQ(bench.unit->stats().calls.value(), 3U);
  EXPECT_EQ(bench.unit->stats().failed.value(), 0U);
}

/// Neither the state nor the cache's book changes.
TEST(RdmaCalls, ACallThatFailsChangesNothing) {
  Bench bench;
  bench.start();
  ASSERT_EQ(bench.execute(Opcode::rdma_register, 9), Status::ok);
  ASSERT_EQ(bench.execute(Opcode::rdma_create_queue_pair, 40), Status::ok);
  EXPECT_EQ(bench.execute(Opcode::rdma_register, 9), Status::exists);
  EXPECT_EQ(bench.execute(Bench::call(Opcode::rdma_register, 10, 0)), Status::bad_argument);
  EXPECT_EQ(bench.execute(Opcode::rdma_deregister, 11), Status::bad_argument);
  EXPECT_EQ(bench.execute(Opcode::rdma_create_queue_pair, 40), Status::exists);
  EXPECT_EQ(bench.execute(Bench::call(Opcode::rdma_post_receive, 1, 0)), Status::bad_argument);
  EXPECT_EQ(bench.state.regions(), 1U);
  EXPECT_EQ(bench.state.queue_pairs(), 1U);
  EXPECT_EQ(bench.regions->stats().entries.value(), 1U);
  EXPECT_EQ(bench.queue_pairs->stats().entries.value(), 1U);
  EXPECT_EQ(bench.send_over(40).outcome, Outcome::no_buffer) << "an empty receive is none";
  EXPECT_EQ(bench.unit->stats().calls.value(), 7U);
  EXPECT_EQ(bench.unit->stats().failed.value(), 5U);
  // What was deregistered in vain left the book as it was.
  ASSERT_EQ(bench.execute(Opcode::rdma_register, 10), Status::ok);
  EXPECT_EQ(bench.regions->stats().entries.value(), 2U);
}

TEST(RdmaCalls, TheCallsOfTheOtherNicAreUnsupported) {
  Bench bench;
  bench.start();
  for (const Opcode opcode : {Opcode::init_window, Opcode::post_buffer, Opcode::inc_epoch, Opcode::get_epoch,
                              Opcode::get_buf_ptrs, Opcode::rewind, Opcode::close_window}) {
    EXPECT_EQ(bench.execute(opcode, 1), Status::unsupported);
  }
  EXPECT_EQ(bench.unit->stats().failed.value(), 7U);
}

TEST(RdmaCalls, AQueuePairBelongsToItsProcessAndItsPeer) {
  Bench bench;
  bench.start();
  ASSERT_EQ(bench.execute(Opcode::rdma_create_queue_pair, 40), Status::ok);
  EXPECT_TRUE(bench.queue_pairs->find(40));
  EXPECT_EQ(bench.state.owner_of(40), kPid);
  const RdmaState::Route route = bench.state.route_of(40, {});
  EXPECT_EQ(route.peer, kPeer);
  EXPECT_EQ(route.queue_pair, 77U);
}

TEST(RdmaCalls, ReceivesAreUsedUpInTheirOrderByTheirProcess) {
  Bench bench;
  bench.start();
  ASSERT_EQ(bench.execute(Opcode::rdma_create_queue_pair, 40), Status::ok);
  ASSERT_EQ(bench.execute(Bench::call(Opcode::rdma_post_receive, 5), Pid{4}), Status::ok);
  EXPECT_EQ(bench.send_over(40).outcome, Outcome::no_buffer) << "another process's";
  for (const std::uint32_t id : {7U, 6U}) {
    ASSERT_EQ(bench.execute(Opcode::rdma_post_receive, id), Status::ok);
  }
  EXPECT_EQ(bench.unit->stats().receives.value(), 3U);
  for (const std::uint64_t id : {7U, 6U}) {
    const RdmaState::Opened opened = bench.send_over(40);
    ASSERT_EQ(opened.outcome, Outcome::pending);
    std::vector<DueCqe> due;
    bench.state.placing(opened.message, {});
    bench.state.count(opened.message, 0, 64, due);
    ASSERT_EQ(due.size(), 1U);
    EXPECT_EQ(due[0].pid, kPid);
    EXPECT_EQ(due[0].cqe.id, 16 * id);
  }
  EXPECT_EQ(bench.send_over(40).outcome, Outcome::no_buffer);
}

// -------------------------------------------------------------------------------------------------------- spilling

/// Contexts change with every message, regions never.
TEST(RdmaCalls, NewEntriesPushOldOnesOut) {
  Bench bench(2);
  bench.start();
  for (const std::uint32_t number : {1U, 2U, 3U}) {
    ASSERT_EQ(bench.execute(Opcode::rdma_register, number), Status::ok);
  }
  EXPECT_TRUE(bench.dma.writes.empty()) << "what lies in host memory is the same";
  for (const std::uint32_t number : {1U, 2U, 3U}) {
    ASSERT_EQ(bench.execute(Opcode::rdma_create_queue_pair, number), Status::ok);
  }
  ASSERT_EQ(bench.dma.writes.size(), 1U);
  const Segment written = bench.dma.writes[0].write.to.segments.at(0);
  EXPECT_EQ(written.bytes, kRdmaEntryBytes);
  EXPECT_EQ((written.address.value() - kQueuePairArea) % kRdmaEntryBytes, 0U);
  const auto gone = static_cast<std::uint32_t>((written.address.value() - kQueuePairArea) / kRdmaEntryBytes);
  EXPECT_TRUE(gone == 1 || gone == 2) << "not the new one";
  EXPECT_FALSE(bench.queue_pairs->find(gone));
  EXPECT_TRUE(bench.queue_pairs->find(3));
  for (const StateCache* cache : {&*bench.queue_pairs, &*bench.regions}) {
    EXPECT_EQ(cache->stats().entries.value(), 3U);
    EXPECT_EQ(cache->stats().resident.value(), 2U);
    EXPECT_EQ(cache->stats().evictions.value(), 1U);
  }
  // State that is not on the NIC is there all the same.
  EXPECT_TRUE(bench.state.has_queue_pair(gone));
}

TEST(RdmaCalls, ARegionThatEndsWhileItIsFetchedTakesNoPlace) {
  Bench bench(1);
  bench.start();
  ASSERT_EQ(bench.execute(Opcode::rdma_register, 1), Status::ok);
  ASSERT_EQ(bench.execute(Opcode::rdma_register, 2), Status::ok);
  ASSERT_FALSE(bench.regions->find(1));
  bool came = false;
  bench.script.at(cycle(10), [&] {
    bench.regions->fetch(1, [&] { came = true; });
    EXPECT_EQ(bench.execute(Opcode::rdma_deregister, 1), Status::ok);
  });
  run_until(cycle(2000));
  EXPECT_TRUE(came);
  EXPECT_FALSE(bench.regions->find(1));
  EXPECT_TRUE(bench.regions->find(2));
}

/// What software prepares before the run is neither a call of it nor a write.
TEST(RdmaCalls, PreparationsAreFree) {
  Bench bench(1);
  for (const std::uint32_t number : {1U, 2U, 3U}) {
    EXPECT_EQ(bench.unit->perform(Bench::call(Opcode::rdma_create_queue_pair, number), kPid), Status::ok);
  }
  EXPECT_EQ(bench.unit->perform(Bench::call(Opcode::rdma_create_queue_pair, 3), kPid), Status::exists);
  bench.start();
  EXPECT_EQ(bench.unit->stats().calls.value(), 0U);
  EXPECT_EQ(bench.unit->stats().failed.value(), 0U);
  EXPECT_TRUE(bench.dma.writes.empty());
  EXPECT_EQ(bench.queue_pairs->stats().evictions.value(), 2U);
}

}  // namespace
}  // namespace rvma
