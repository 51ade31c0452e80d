// The RDMA NIC's receive unit alone: delivery, payload writer and DMA engine record.
#include "rdma/rdma_receive.hpp"

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

constexpr std::uint64_t kPage = 4096;
constexpr NodeId kPeer{1};
constexpr std::uint32_t kQueuePair = 40;
constexpr std::uint32_t kKey = 9;
constexpr std::uint64_t kHead = 0x1'0000;
constexpr std::uint64_t kFrames = 0x80'0000;
constexpr std::uint64_t kList = 0x9000;
constexpr std::int64_t kReadNs = 500;

struct FakeAnswers : RdmaAnswerIf {
  bool answer(NodeId asker, const DataHeader& request, const Descriptor& answer) override {
    if (!has_room) return false;
    asked.push_back({asker, request, answer});
    return true;
  }
  struct Asked {
    NodeId asker;
    DataHeader request;
    Descriptor answer;
  };
  bool has_room = true;
  std::vector<Asked> asked;
};

/// Delivery that also remembers which messages have ended.
struct FakeDelivery : test::FakeDelivery {
  void end(const MessageRef& message, Time at) override {
    ended.emplace_back(message.message, at);
    test::FakeDelivery::end(message, at);
  }
  std::vector<std::pair<MessageId, Time>> ended;
};

struct Bench {
  explicit Bench(const std::function<void(NicConfig&, RdmaConfig&)>& change = [](NicConfig&, RdmaConfig&) {}) {
    change(nic, rdma);
    observers.add(observer);
    state = std::make_unique<RdmaState>(nic.mtu->count(), rdma.ooo_tracking);
    completions = std::make_unique<CompletionQueueWriter>("completions", context, nic);
    unit =
        std::make_unique<RdmaReceive>("receive", context, RdmaReceive::Parameters{nic, rdma, Bytes{kPage}, NodeId{0}},
                                      *state, *completions, observers);
    completions->dma.bind(dma);
    completions->set_queue(Pid{0}, PhysicalAddress{0x2000}, 256);
    unit->delivery.bind(delivery);
    unit->dma.bind(dma);
    unit->writer.bind(writer);
    unit->answers.bind(answers);
    unit->credit.bind(credit);
    queue_pair(kQueuePair);
    region(kKey, kHead, 16 * kPage);
  }
  void queue_pair(std::uint32_t number) {
    Descriptor call;
    call.key = number;
    call.mailbox = Mailbox{std::uint64_t{kPeer.value()} << 32U | number};
    ASSERT_EQ(state->create_queue_pair(call, Pid{0}), Status::ok);
    unit->queue_pairs().create(number);
  }
  /// Over scattered frames, if it has a list; else one page.
  void region(std::uint32_t key, std::uint64_t head, std::uint64_t size, bool single_page = false) {
    Descriptor call;
    call.key = key;
    call.local = VirtualAddress{head};
    call.length = size;
    call.single_page = single_page;
    call.page_list = PhysicalAddress{single_page ? kFrames : kList};
    std::vector<std::uint64_t> frames;
    for (std::uint64_t i = 0; i < (size + kPage - 1) / kPage + 1; ++i) frames.push_back(kFrames + 2 * i * kPage);
    dma.store_list(PhysicalAddress{kList}, frames);
    ASSERT_EQ(state->register_region(call), Status::ok);
    unit->regions().create(key);
  }
  void receives(std::size_t count) {
    Descriptor call;
    call.single_page = true;
    call.local = VirtualAddress{0x3000};
    call.page_list = PhysicalAddress{0x3000};
    call.length = 64;
    for (std::size_t i = 0; i < count; ++i) {
      call.completion = PhysicalAddress{16 * (i + 1)};
      ASSERT_EQ(state->post_receive(call, Pid{0}), Status::ok);
    }
  }
  struct Spec {
    std::uint32_t sequence = 0;
    std::uint32_t message = 0;
    std::uint64_t offset = 0;  ///< in the region
    std::uint64_t length = 100;
    std::uint32_t index = 0;
    RdmaOperation operation = RdmaOperation::write;
    std::uint32_t queue_pair = kQueuePair;
    std::uint32_t key = kKey;
    std::uint64_t order = 0;
  };
  void hand(const Spec& spec, std::int64_t ready) {
    const std::uint64_t mtu = nic.mtu->count();
    test::PacketSpec fields;
    fields.sequence = spec.sequence;
    fields.message = spec.message;
    fields.mailbox = kHead + spec.offset;
    fields.key = spec.key;
    fields.message_length = spec.length;
    fields.offset = spec.order;
    fields.index = spec.index;
    fields.length = static_cast<std::uint16_t>(std::min<std::uint64_t>(mtu, spec.length - spec.index * mtu));
    PacketPtr packet = data_packet(pool, fields);
    packet->data.rdma = {spec.operation, spec.queue_pair, 77};
    unit->convert(std::move(packet), Cycles{ready});
  }
  /// Hands packets over at time 0, ready at `ready`.
  void at_start(std::vector<Spec> specs, std::int64_t ready = 10) {
    script.at(cycle(0), [this, specs = std::move(specs), ready] {
      for (std::size_t i = 0; i < specs.size(); ++i) hand(specs[i], ready + static_cast<std::int64_t>(i));
    });
  }
  std::vector<std::uint32_t> placed() const {
    std::vector<std::uint32_t> sequences;
    for (const auto& call : writer.calls) sequences.push_back(call.packet.sequence);
    return sequences;
  }

  SimContext context{1};
  NicConfig nic;
  RdmaConfig rdma;
  PacketPool pool;
  ObserverList observers;
  test::FakeObserver observer;
  test::Script script{"script", context};
  FakeDelivery delivery;
  test::EntryDma dma{context, script};
  test::FakeWriter writer;
  test::FakeCredit credit;
  FakeAnswers answers;
  std::unique_ptr<RdmaState> state;
  std::unique_ptr<CompletionQueueWriter> completions;
  std::unique_ptr<RdmaReceive> unit;
};

using Sequences = std::vector<std::uint32_t>;
using Spec = Bench::Spec;

// ---------------------------------------------------------------------------------------------------------- timing

TEST(RdmaReceive, PlacesAfterItsLatency) {
  Bench bench;
  bench.region(20, 0x5'0040, 1000, true);
  Spec spec;
  spec.key = 20;
  spec.offset = 0x5'0040 + 8 - kHead;
  bench.at_start({spec});
  run_until(cycle(10) - Time::from_ps(1));
  EXPECT_TRUE(bench.delivery.admitted.empty()) << "not before it is ready";
  run_until(cycle(1000));
  ASSERT_EQ(bench.writer.calls.size(), 1U);
  const auto& call = bench.writer.calls[0];
  EXPECT_EQ(call.at, Cycles{10} + bench.nic.receive.conversion_latency.get());
  ASSERT_EQ(call.to.count(), 1U);
  EXPECT_EQ(call.to.segments[0].address, PhysicalAddress{kFrames + 0x48});
  EXPECT_EQ(call.to.segments[0].bytes, 100U);
  EXPECT_EQ(bench.unit->stats().decisions.value(), 1U);
  EXPECT_TRUE(bench.credit.calls.empty()) << "the payload writer gives back what is placed";
}

TEST(RdmaReceive, DecidesOnePacketACycle) {
  Bench bench;
  bench.region(20, kHead, kPage, true);
  bench.script.at(cycle(0), [&] {
    for (std::uint32_t i = 0; i < 20; ++i) {
      Spec spec;
      spec.sequence = spec.message = i;
      spec.key = 20;
      bench.hand(spec, 10);
    }
  });
  run_until(cycle(1000));
  ASSERT_EQ(bench.writer.calls.size(), 20U);
  for (std::uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(bench.delivery.admitted[i], std::make_pair(i, cycle(10 + i)));
    EXPECT_EQ(bench.writer.calls[i].at, Cycles{10 + i} + bench.nic.receive.conversion_latency.get());
  }
  EXPECT_EQ(bench.unit->stats().decide.busy(), ns(20));
}

TEST(RdmaReceive, TellsAfterTheLatenciesOfCountAndCompletion) {
  Bench bench;
  bench.receives(1);
  Spec spec;
  spec.operation = RdmaOperation::write_immediate;
  bench.at_start({spec});
  run_until(cycle(1000));
  ASSERT_EQ(bench.writer.calls.size(), 1U);
  bench.script.at(cycle(1500), [&] { bench.unit->count(bench.writer.calls[0].packet, cycle(2000)); });
  run_until(cycle(3000));
  ASSERT_EQ(bench.dma.writes.size(), 1U);
  const Cycles due = Cycles{2000} + bench.nic.counters.latency.get() + bench.nic.completion.latency.get();
  EXPECT_EQ(bench.dma.writes[0].at, cycle(due.count()));
  EXPECT_EQ(bench.dma.writes[0].write.word[0], 77ULL << 32U | 0x0103U) << "written, ok, immediate";
  ASSERT_EQ(bench.delivery.ended.size(), 1U);
  EXPECT_EQ(bench.delivery.ended[0].second, cycle(2000) + ns(bench.nic.counters.latency.get().count()));
  EXPECT_EQ(bench.unit->stats().whole.value(), 1U);
}

TEST(RdmaReceive, WaitsForRoomInTheWriteQueue) {
  Bench bench;
  bench.region(20, kHead, kPage, true);
  Spec spec;
  spec.key = 20;
  bench.dma.room_at = Time::max();
  bench.at_start({spec});
  bench.script.at(cycle(60), [&] { bench.dma.give_room(); });
  run_until(cycle(59));
  EXPECT_TRUE(bench.delivery.admitted.empty());
  run_until(cycle(1000));
  EXPECT_EQ(bench.delivery.admitted.at(0).second, cycle(60));
  EXPECT_EQ(bench.unit->stats().stalled_on_writes_ns.value(), ns(50));
  EXPECT_EQ(bench.unit->stats().stalled_on_misses_ns.value(), Time::zero());
}

TEST(RdmaReceive, WaitsWhenTranslationsAreUsedUp) {
  Bench bench([](NicConfig& nic, RdmaConfig&) { nic.receive.page_misses = 1; });
  // Lines 0, 1: one fetch at a time. The third packet waits for a decision.
  bench.at_start({{0, 0, 0}, {1, 1, 8 * kPage}, {2, 2, 8 * kPage}});
  run_until(cycle(10 + kReadNs - 1));
  EXPECT_EQ(bench.delivery.admitted.size(), 2U);
  run_until(cycle(5000));
  EXPECT_EQ(bench.delivery.admitted.at(2).second, cycle(10 + kReadNs));
  EXPECT_EQ(bench.unit->stats().stalled_on_misses_ns.value(), ns(kReadNs - 2)) << "due in cycle 12";
  EXPECT_EQ(bench.writer.calls.size(), 3U);
}

// ------------------------------------------------------------------------------------------------ state on the NIC

/// Room for one queue pair's context, and for one region's entry.
void small(NicConfig&, RdmaConfig& rdma) {
  rdma.queue_pairs.on_chip = 1;
  rdma.regions.on_chip = 1;
}

TEST(RdmaReceive, AContextInHostMemoryCostsItsRead) {
  Bench bench([](NicConfig&, RdmaConfig& rdma) { rdma.queue_pairs.on_chip = 1; });
  bench.region(20, kHead, kPage, true);
  bench.queue_pair(41);  // 40 has gone
  Spec spec;
  spec.key = 20;
  bench.at_start({spec});
  run_until(cycle(10 + kReadNs) - Time::from_ps(1));
  EXPECT_TRUE(bench.delivery.admitted.empty());
  run_until(cycle(2000));
  EXPECT_EQ(bench.delivery.admitted.at(0).second, cycle(10 + kReadNs));
  EXPECT_EQ(bench.unit->stats().state_wait_ns.value(), ns(kReadNs));
  EXPECT_EQ(bench.unit->stats().held.value(), 1U);
  EXPECT_EQ(bench.unit->queue_pairs().stats().fetches.value(), 1U);
}

TEST(RdmaReceive, ContextThenRegionOneAfterTheOther) {
  Bench bench(small);
  bench.queue_pair(41);
  bench.region(20, kHead, kPage, true);  // kKey's entry has gone
  Spec spec;
  bench.at_start({spec});
  run_until(cycle(10 + 2 * kReadNs - 1));
  EXPECT_TRUE(bench.delivery.admitted.empty());
  run_until(cycle(10 + 2 * kReadNs));
  EXPECT_EQ(bench.delivery.admitted.size(), 1U);
  EXPECT_EQ(bench.unit->stats().state_wait_ns.value(), ns(2 * kReadNs));
}

TEST(RdmaReceive, WhoWaitsForAContextKeepsItsOrderAndOthersOvertake) {
  Bench bench(small);
  bench.queue_pair(41);
  Spec other;
  other.queue_pair = 41;
  std::vector<Spec> specs;
  for (std::uint32_t i = 0; i < 3; ++i) {
    Spec spec;
    spec.sequence = spec.message = 2 * i;
    specs.push_back(spec);
    other.sequence = other.message = 2 * i + 1;
    specs.push_back(other);
  }
  bench.at_start(specs);
  // One more of those that wait comes when the first of them goes on.
  bench.script.at(cycle(500), [&] {
    Spec late;
    late.sequence = late.message = 6;
    bench.hand(late, 11 + kReadNs);
  });
  run_until(cycle(5000));
  Sequences order;
  for (const auto& admitted : bench.delivery.admitted) order.push_back(admitted.first);
  EXPECT_EQ(order, (Sequences{1, 3, 5, 0, 2, 4, 6}));
  EXPECT_EQ(bench.unit->stats().held.value(), 3U);
  EXPECT_EQ(bench.unit->queue_pairs().stats().fetches.value(), 1U);
}

TEST(RdmaReceive, ASendAndAnEmptyWriteNeedNoRegion) {
  Bench bench(small);
  bench.receives(2);
  bench.region(20, kHead, kPage, true);
  Spec send{0, 0, 0, 64};
  send.operation = RdmaOperation::send;
  Spec empty{1, 1, 0, 0};
  empty.operation = RdmaOperation::write_immediate;
  bench.at_start({send, empty});
  run_until(cycle(20));
  EXPECT_EQ(bench.delivery.admitted.size(), 2U) << "kKey's entry is in host memory";
  run_until(cycle(2000));
  EXPECT_EQ(bench.placed(), (Sequences{0, 1}));
  EXPECT_EQ(bench.writer.calls[1].to.count(), 0U);
}

TEST(RdmaReceive, ARegionThatGoesWhileItIsFetchedIsNoRegion) {
  Bench bench(small);
  bench.region(20, kHead, kPage, true);
  bench.at_start({Spec{}});
  bench.script.at(cycle(100), [&] {
    bench.state->deregister_region(kKey);
    bench.unit->regions().erase(kKey);
  });
  run_until(cycle(2000));
  ASSERT_EQ(bench.delivery.refusals.size(), 1U);
  EXPECT_EQ(bench.delivery.refusals[0].reason, Outcome::bad_key);
}

// ------------------------------------------------------------------------------------------------------- decisions

TEST(RdmaReceive, RefusesWithEachReasonAndGivesEachPacketsCreditBackOnce) {
  Bench bench;
  Spec unknown{0, 0};
  unknown.queue_pair = 4;
  Spec key{1, 1};
  key.key = 5;
  Spec bounds{2, 2, 16 * kPage - 50};
  Spec not_ready{3, 3};
  not_ready.operation = RdmaOperation::write_immediate;
  Spec again{4, 1};  // another packet of a refused message
  again.key = 5;
  bench.at_start({unknown, key, bounds, not_ready, again});
  run_until(cycle(1000));
  ASSERT_EQ(bench.delivery.refusals.size(), 4U);
  EXPECT_EQ(bench.delivery.refusals[0].reason, Outcome::no_mailbox);
  EXPECT_EQ(bench.delivery.refusals[1].reason, Outcome::bad_key);
  EXPECT_EQ(bench.delivery.refusals[2].reason, Outcome::bounds);
  EXPECT_EQ(bench.delivery.refusals[3].reason, Outcome::no_buffer);
  EXPECT_EQ(bench.delivery.disposals.size(), 5U);
  EXPECT_EQ(bench.credit.calls.size(), 5U);
  EXPECT_EQ(bench.credit.total(), 5U * 200);
  const RdmaReceiveStats& stats = bench.unit->stats();
  EXPECT_EQ(stats.refused_queue_pair.value(), 1U);
  EXPECT_EQ(stats.refused_region.value(), 1U);
  EXPECT_EQ(stats.refused_bounds.value(), 1U);
  EXPECT_EQ(stats.refused_not_ready.value(), 1U);
  EXPECT_EQ(stats.refused_packets.value(), 1U);
  EXPECT_TRUE(bench.writer.calls.empty());
}

TEST(RdmaReceive, StopsWhatDeliveryStops) {
  Bench bench;
  bench.delivery.verdicts = {
      {0, DeliveryIf::Verdict::duplicate}, {1, DeliveryIf::Verdict::stale}, {2, DeliveryIf::Verdict::closed}};
  bench.at_start({{0, 0}, {1, 1}, {2, 2}});
  run_until(cycle(1000));
  EXPECT_EQ(bench.unit->stats().duplicates.value(), 1U);
  EXPECT_EQ(bench.unit->stats().stale.value(), 1U);
  EXPECT_EQ(bench.unit->stats().late.value(), 1U);
  EXPECT_TRUE(bench.delivery.disposals.empty());
  EXPECT_EQ(bench.credit.calls.size(), 3U);
  ASSERT_EQ(bench.observer.ignored.size(), 3U);
  EXPECT_EQ(bench.observer.ignored[0].why, "duplicate");
}

TEST(RdmaReceive, WhatContradictsItsMessageIsIgnored) {
  Bench bench;
  const std::uint64_t mtu = bench.nic.mtu->count();
  Spec contradicts{1, 0, 0, 2 * mtu, 1};
  contradicts.key = 10;
  Spec rvma{2, 7};
  rvma.operation = RdmaOperation::none;
  bench.at_start({{0, 0, 0, 2 * mtu, 0}, contradicts, rvma, {3, 0, 0, 2 * mtu, 1}});
  run_until(cycle(2000));
  EXPECT_EQ(bench.unit->stats().mismatches.value(), 2U);
  EXPECT_EQ(bench.placed(), (Sequences{0, 3}));
  EXPECT_EQ(bench.delivery.disposals.size(), 2U) << "acknowledged, or they would come again";
  EXPECT_EQ(bench.credit.calls.size(), 2U);
}

TEST(RdmaReceive, ReadsGoToTheAnswersOrAreBusy) {
  Bench bench;
  Spec read{0, 0, 100, 0};
  read.operation = RdmaOperation::read;
  bench.at_start({read});
  bench.script.at(cycle(50), [&] {
    bench.answers.has_room = false;
    read.sequence = read.message = 1;
    bench.hand(read, 60);
    read.sequence = read.message = 2;
    read.key = 3;
    bench.hand(read, 61);
  });
  run_until(cycle(1000));
  ASSERT_EQ(bench.answers.asked.size(), 1U);
  EXPECT_EQ(bench.answers.asked[0].asker, kPeer);
  EXPECT_EQ(bench.answers.asked[0].answer.local, VirtualAddress{kHead + 100});
  ASSERT_EQ(bench.delivery.ended.size(), 1U);
  ASSERT_EQ(bench.delivery.refusals.size(), 2U);
  EXPECT_EQ(bench.delivery.refusals[0].reason, Outcome::busy);
  EXPECT_EQ(bench.delivery.refusals[1].reason, Outcome::bad_key);
  EXPECT_EQ(bench.credit.calls.size(), 3U);
  EXPECT_EQ(bench.unit->stats().reads.value(), 1U);
  EXPECT_EQ(bench.unit->stats().refused_busy.value(), 1U);
}

TEST(RdmaReceive, ACutOffMessageSetsFreeWhatWaitsBehindIt) {
  Bench bench([](NicConfig&, RdmaConfig& rdma) { rdma.ooo_tracking = true; });
  bench.receives(2);
  Spec cut{0, 0, 0, 2 * bench.nic.mtu->count()};
  Spec behind{1, 1};
  behind.operation = RdmaOperation::write_immediate;
  behind.order = 1;
  bench.at_start({cut, behind});
  run_until(cycle(2000));
  bench.script.at(cycle(3000), [&] {
    bench.unit->count(bench.writer.of(1).packet, cycle(3000));
    EXPECT_TRUE(bench.dma.writes.empty());
    bench.unit->cut_off(bench.writer.of(0).packet.message, bench.writer.of(0).packet.binding, cycle(3010));
  });
  run_until(cycle(4000));
  EXPECT_EQ(bench.dma.writes.size(), 1U);
}

// --------------------------------------------------------------------------------------------- order and translation

/// The first packet's page is not in the page cache, the second one's is.
void overtake(Bench& bench, std::uint32_t second_queue_pair) {
  const std::uint64_t mtu = bench.nic.mtu->count();
  Spec second{2, 2, 12 * kPage, mtu};
  second.queue_pair = second_queue_pair;
  second.order = 2;
  bench.at_start({{0, 0, 8 * kPage, 10}});  // brings the second line
  bench.script.at(cycle(1000), [&bench, second] {
    Spec first{1, 1, 0, 10};
    first.order = 1;
    bench.hand(first, 1010);
    bench.hand(second, 1011);
    // A packet without payload is no exception.
    Spec empty{3, 3, 0, 0};
    empty.queue_pair = second.queue_pair;
    empty.order = 3;
    bench.hand(empty, 1012);
  });
  run_until(cycle(5000));
}

TEST(RdmaReceive, UntrackedPacketsOfAQueuePairWaitForOneAnothersTranslations) {
  Bench bench;
  overtake(bench, kQueuePair);
  EXPECT_EQ(bench.placed(), (Sequences{0, 1, 2, 3})) << "or the last packet would tell of a hole";
  const Cycles out = Cycles{1010 + kReadNs} + bench.nic.receive.conversion_latency.get();
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bench.writer.calls[static_cast<std::size_t>(i + 1)].at, out + Cycles{i});
  }
  EXPECT_EQ(bench.writer.of(1).packet.payload_length, 10U);
  EXPECT_EQ(bench.writer.of(2).to.segments.at(0).address, PhysicalAddress{kFrames + 2 * 12 * kPage});
}

TEST(RdmaReceive, PacketsOfOthersOvertake) {
  Bench bench;
  bench.queue_pair(41);
  overtake(bench, 41);
  EXPECT_EQ(bench.placed(), (Sequences{0, 2, 3, 1}));
}

TEST(RdmaReceive, ATrackingNicLetsThemOvertake) {
  Bench bench([](NicConfig&, RdmaConfig& rdma) { rdma.ooo_tracking = true; });
  overtake(bench, kQueuePair);
  EXPECT_EQ(bench.placed(), (Sequences{0, 2, 3, 1}));
}

}  // namespace
}  // namespace rvma
