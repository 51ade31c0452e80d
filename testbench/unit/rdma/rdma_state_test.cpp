// What the RDMA NIC decides, without time: queue pairs, regions, receives, messages.
#include "rdma/rdma_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace rvma {
namespace {

constexpr std::uint64_t kMtu = 64;
constexpr NodeId kPeer{7};
constexpr Pid kPid{3};
constexpr std::uint32_t kQueuePair = 40;
constexpr std::uint32_t kKey = 9;
constexpr std::uint64_t kHead = 0x1'0000;
constexpr std::uint64_t kSize = 1000;

struct Bench {
  explicit Bench(bool tracks) : state(kMtu, tracks) {
    hear(1);
    EXPECT_EQ(create(kQueuePair), Status::ok);
    EXPECT_EQ(region(kKey, kHead, kSize), Status::ok);
  }
  Status create(std::uint32_t number, NodeId peer = kPeer, Pid pid = kPid) {
    Descriptor call;
    call.key = number;
    call.mailbox = Mailbox{std::uint64_t{peer.value()} << 32U | (number + 1)};
    return state.create_queue_pair(call, pid);
  }
  Status region(std::uint32_t key, std::uint64_t head, std::uint64_t size) {
    Descriptor call;
    call.key = key;
    call.local = VirtualAddress{head};
    call.length = size;
    call.page_list = PhysicalAddress{0x9000};
    return state.register_region(call);
  }
  Status receive(std::uint64_t id, std::uint64_t size = 64) {
    Descriptor call;
    call.local = VirtualAddress{0x5000 + id};
    call.length = size;
    call.completion = PhysicalAddress{id};
    return state.post_receive(call, kPid);
  }
  /// Packet `index` of a write.
  static DataHeader packet(std::uint64_t length, std::uint32_t index = 0, std::uint64_t order = 0,
                           RdmaOperation operation = RdmaOperation::write_immediate) {
    DataHeader header;
    header.mailbox = Mailbox{kHead};
    header.key = kKey;
    header.message_length = length;
    header.offset = order;
    header.packet_index = index;
    header.payload_length =
        static_cast<std::uint16_t>(length == 0 ? 0 : std::min(kMtu, length - std::uint64_t{index} * kMtu));
    header.rdma = {operation, kQueuePair, static_cast<std::uint32_t>(1000 + order)};
    return header;
  }
  void hear(std::uint32_t generation, NodeId source = kPeer) { state.hear(source, generation, told); }
  RdmaState::Index open(const DataHeader& header) {
    const RdmaState::Opened opened = state.open(kPeer, header);
    EXPECT_EQ(opened.outcome, Outcome::pending);
    EXPECT_FALSE(opened.malformed);
    return opened.message;
  }
  Outcome refusal(const DataHeader& header, NodeId source = kPeer) {
    const RdmaState::Opened opened = state.open(source, header);
    EXPECT_FALSE(opened.malformed);
    told.insert(told.end(), opened.due.begin(), opened.due.end());
    return opened.outcome;
  }
  /// The packet goes to memory and is counted; true: the message has ended.
  bool land(RdmaState::Index message, const DataHeader& header) {
    EXPECT_TRUE(state.agrees(message, header));
    const std::uint64_t at = state.offset_of(message, header);
    state.placing(message, header);
    return state.count(message, at, header.payload_length, told).whole;
  }
  std::vector<std::uint32_t> immediates() const {
    std::vector<std::uint32_t> all;
    for (const DueCqe& due : told) all.push_back(due.cqe.immediate);
    return all;
  }

  RdmaState state;
  std::vector<DueCqe> told;
};

using Numbers = std::vector<std::uint32_t>;

// ----------------------------------------------------------------------------------------------------------- calls

TEST(Cqe, WordsComeBackAndHaveTheirPlaces) {
  const Cqe cqe{CqeKind::read, Outcome::timeout, 0x8765'4321, 0x0123'4567'89ab'cdef};
  const CqeWords words = encode(cqe);
  EXPECT_EQ(words.first, 0x8765'4321'0000'0904U);
  EXPECT_EQ(words.second, 0x0123'4567'89ab'cdefU);
  EXPECT_TRUE(decode_cqe(words) == cqe);
}

TEST(RdmaState, CallsAreRefused) {
  Bench bench(false);
  EXPECT_EQ(bench.region(kKey, 0, 10), Status::exists);
  EXPECT_EQ(bench.region(kKey + 1, 0, 0), Status::bad_argument);
  EXPECT_EQ(bench.create(kQueuePair), Status::exists);
  EXPECT_EQ(bench.receive(1, 0), Status::bad_argument);
  EXPECT_EQ(bench.state.deregister_region(kKey + 1), Status::bad_argument);
  EXPECT_EQ(bench.state.regions(), 1U);
  EXPECT_EQ(bench.state.queue_pairs(), 1U);
  EXPECT_EQ(bench.state.deregister_region(kKey), Status::ok);
  EXPECT_FALSE(bench.state.has_region(kKey));
  EXPECT_EQ(bench.region(kKey, 0, 10), Status::ok) << "its key is free again";
}

TEST(RdmaState, NothingOvertakesAMessageThatFoundNoReceive) {
  Bench bench(false);
  const auto outcome_of = [&](std::uint64_t order) {
    return bench.refusal(Bench::packet(10, 0, order, RdmaOperation::send));
  };
  bench.receive(1);
  EXPECT_EQ(outcome_of(0), Outcome::pending);
  EXPECT_EQ(outcome_of(1), Outcome::no_buffer);
  EXPECT_EQ(outcome_of(2), Outcome::no_buffer);
  bench.receive(2);
  EXPECT_EQ(outcome_of(3), Outcome::no_buffer) << "behind two that come again";
  EXPECT_EQ(outcome_of(2), Outcome::no_buffer) << "behind one";
  EXPECT_EQ(outcome_of(1), Outcome::pending);
  bench.receive(3);
  EXPECT_EQ(outcome_of(3), Outcome::no_buffer);
  EXPECT_EQ(outcome_of(2), Outcome::pending);
  bench.receive(4);
  EXPECT_EQ(outcome_of(3), Outcome::pending);
  // What the sender's context has given up does not come again.
  EXPECT_EQ(outcome_of(4), Outcome::no_buffer);
  bench.receive(5);
  bench.hear(2);
  EXPECT_EQ(outcome_of(0), Outcome::pending);
}

TEST(RdmaState, WhereOrderIsTrackedReceivesAreLeftToWhatComesBefore) {
  Bench bench(true);
  bench.receive(1);
  bench.receive(2);
  const DataHeader first = Bench::packet(10, 0, 0, RdmaOperation::send);
  const DataHeader second = Bench::packet(10, 0, 1, RdmaOperation::send);
  const RdmaState::Index early = bench.open(second);
  bench.land(early, second);
  EXPECT_EQ(bench.refusal(Bench::packet(10, 0, 2, RdmaOperation::send)), Outcome::no_buffer)
      << "it would wait for the first";
  const RdmaState::Index next = bench.open(first);
  EXPECT_TRUE(bench.told.empty());
  bench.land(next, first);
  EXPECT_EQ(bench.told.size(), 2U) << "software can post two again";
}

TEST(RdmaState, RequestsGoToThePeerOfTheirQueuePair) {
  Bench bench(false);
  const RdmaState::Route route = bench.state.route_of(kQueuePair, Descriptor{});
  EXPECT_EQ(route.peer, kPeer);
  EXPECT_EQ(route.queue_pair, kQueuePair + 1);
  EXPECT_EQ(bench.state.owner_of(kQueuePair), kPid);
  // A management queue pair's request names its destination.
  Descriptor request;
  request.destination_node = NodeId{11};
  request.destination_pid = Pid{2};
  const RdmaState::Route managed = bench.state.route_of(RdmaState::kManagement | 3, request);
  EXPECT_EQ(managed.peer, NodeId{11});
  EXPECT_EQ(managed.queue_pair, RdmaState::kManagement | 2);
}

// -------------------------------------------------------------------------------------------------------- refusals

TEST(RdmaState, EveryRefusal) {
  Bench bench(false);
  DataHeader header = Bench::packet(10, 0, 0, RdmaOperation::write);
  header.rdma.queue_pair = kQueuePair + 5;
  EXPECT_EQ(bench.refusal(header), Outcome::no_mailbox) << "no such queue pair";
  header = Bench::packet(10, 0, 0, RdmaOperation::write);
  EXPECT_EQ(bench.refusal(header, NodeId{8}), Outcome::no_mailbox) << "another peer's";
  header.key = kKey + 1;
  EXPECT_EQ(bench.refusal(header), Outcome::bad_key);
  header = Bench::packet(kSize + 1, 0, 0, RdmaOperation::write);
  EXPECT_EQ(bench.refusal(header), Outcome::bounds);
  EXPECT_EQ(bench.refusal(Bench::packet(10)), Outcome::no_buffer) << "write with immediate, and no receive";
  EXPECT_EQ(bench.refusal(Bench::packet(10, 0, 0, RdmaOperation::send)), Outcome::no_buffer);
  bench.receive(16, 9);
  EXPECT_EQ(bench.refusal(Bench::packet(10, 0, 0, RdmaOperation::send)), Outcome::bounds) << "longer than the receive";
  // None of these has used the receive up.
  EXPECT_EQ(bench.refusal(Bench::packet(9, 0, 0, RdmaOperation::send)), Outcome::pending);
  EXPECT_EQ(bench.refusal(Bench::packet(9, 0, 0, RdmaOperation::send)), Outcome::no_buffer);
}

TEST(RdmaState, AWriteThatIsRefusedLeavesTheReceive) {
  Bench bench(false);
  bench.receive(16);
  DataHeader header = Bench::packet(10);
  header.key = kKey + 1;
  EXPECT_EQ(bench.refusal(header), Outcome::bad_key);
  EXPECT_EQ(bench.refusal(Bench::packet(10)), Outcome::pending);
}

TEST(RdmaState, BadlyCutPacketsAreIgnored) {
  Bench bench(false);
  DataHeader header = Bench::packet(100);
  header.payload_length = 63;
  EXPECT_TRUE(bench.state.open(kPeer, header).malformed);
  header = Bench::packet(100);
  header.packet_index = 2;
  EXPECT_TRUE(bench.state.open(kPeer, header).malformed);
  header = Bench::packet(0);
  header.payload_length = 1;
  EXPECT_TRUE(bench.state.open(kPeer, header).malformed);
}

TEST(RdmaState, BoundsNeverWrap) {
  Bench bench(false);
  constexpr std::uint64_t kTop = ~std::uint64_t{0} - 99;
  ASSERT_EQ(bench.region(50, kTop, 100), Status::ok);
  const auto write = [&](std::uint64_t address, std::uint64_t length) {
    DataHeader header = Bench::packet(length, 0, 0, RdmaOperation::write);
    header.key = 50;
    header.mailbox = Mailbox{address};
    return bench.refusal(header);
  };
  EXPECT_EQ(write(kTop, 100), Outcome::pending) << "to the last byte of all";
  EXPECT_EQ(write(kTop, 101), Outcome::bounds);
  EXPECT_EQ(write(kTop - 1, 1), Outcome::bounds) << "before it";
  EXPECT_EQ(write(kTop + 99, 1), Outcome::pending);
  EXPECT_EQ(write(kTop + 99, 2), Outcome::bounds) << "the sum would wrap to 1";
  EXPECT_EQ(write(kTop + 1, ~std::uint64_t{0}), Outcome::bounds) << "the sum would wrap into the region";
  EXPECT_EQ(write(0, 1), Outcome::bounds);
}

TEST(RdmaState, AWriteOfNothingNeedsNoRegion) {
  Bench bench(false);
  bench.receive(16);
  DataHeader header = Bench::packet(0);
  header.key = 12345;
  const RdmaState::Index message = bench.open(header);
  EXPECT_TRUE(bench.land(message, header));
  ASSERT_EQ(bench.told.size(), 1U);
  EXPECT_EQ(bench.told[0].cqe.kind, CqeKind::written);
}

// -------------------------------------------------------------------------------------------------------- messages

TEST(RdmaState, EachOperationTellsItsOwn) {
  Bench bench(false);
  bench.receive(16);
  bench.receive(32);
  const DataHeader write = Bench::packet(10, 0, 0, RdmaOperation::write);
  EXPECT_TRUE(bench.land(bench.open(write), write));
  EXPECT_TRUE(bench.told.empty()) << "a plain write tells nobody";
  const DataHeader immediate = Bench::packet(10, 0, 1);
  EXPECT_TRUE(bench.land(bench.open(immediate), immediate));
  const DataHeader send = Bench::packet(10, 0, 2, RdmaOperation::send);
  EXPECT_TRUE(bench.land(bench.open(send), send));
  ASSERT_EQ(bench.told.size(), 2U);
  EXPECT_EQ(bench.told[0].pid, kPid);
  EXPECT_TRUE((bench.told[0].cqe == Cqe{CqeKind::written, Outcome::ok, 1001, 16})) << "names the receive it used up";
  EXPECT_TRUE((bench.told[1].cqe == Cqe{CqeKind::received, Outcome::ok, 1002, 32})) << "receives are used in order";
}

TEST(RdmaState, PayloadGoesWhereTheAddressOrTheReceiveSays) {
  Bench bench(false);
  DataHeader header = Bench::packet(200, 2, 0, RdmaOperation::write);
  header.mailbox = Mailbox{kHead + 300};
  const RdmaState::Index write = bench.open(header);
  EXPECT_EQ(bench.state.region_of(write).head, VirtualAddress{kHead});
  EXPECT_EQ(bench.state.region_of(write).size, kSize);
  EXPECT_EQ(bench.state.offset_of(write, header), 300 + 2 * kMtu);
  EXPECT_EQ(bench.state.placing_of(write).base, 300U);
  EXPECT_EQ(bench.state.placing_of(write).length, 200U);
  bench.receive(16);
  const DataHeader send = Bench::packet(30, 0, 1, RdmaOperation::send);
  const RdmaState::Index sent = bench.open(send);
  EXPECT_EQ(bench.state.region_of(sent).head, VirtualAddress{0x5010});
  EXPECT_EQ(bench.state.offset_of(sent, send), 0U);
}

TEST(RdmaState, LaterPacketsAgreeInEverything) {
  Bench bench(false);
  const RdmaState::Index message = bench.open(Bench::packet(200, 0, 0, RdmaOperation::write));
  const DataHeader good = Bench::packet(200, 1, 0, RdmaOperation::write);
  ASSERT_TRUE(bench.state.agrees(message, good));
  const auto differs = [&](auto change) {
    DataHeader header = good;
    change(header);
    return !bench.state.agrees(message, header);
  };
  EXPECT_TRUE(differs([](DataHeader& h) { ++h.message_length; }));
  EXPECT_TRUE(differs([](DataHeader& h) { ++h.key; }));
  EXPECT_TRUE(differs([](DataHeader& h) { h.mailbox = Mailbox{kHead + 1}; }));
  EXPECT_TRUE(differs([](DataHeader& h) { ++h.offset; }));
  EXPECT_TRUE(differs([](DataHeader& h) { h.rdma.operation = RdmaOperation::read_answer; }));
  EXPECT_TRUE(differs([](DataHeader& h) { ++h.rdma.queue_pair; }));
  EXPECT_TRUE(differs([](DataHeader& h) { ++h.rdma.immediate; }));
  EXPECT_TRUE(differs([](DataHeader& h) { --h.payload_length; }));
  EXPECT_TRUE(differs([](DataHeader& h) { h.packet_index = 4; }));
}

/// A packet that comes again under another sequence number must not stand for one that is missing.
TEST(RdmaState, APacketOfAMessageCountsOnce) {
  Bench bench(true);
  bench.receive(16);
  const DataHeader first = Bench::packet(2 * kMtu);
  const DataHeader second = Bench::packet(2 * kMtu, 1);
  const RdmaState::Index message = bench.open(first);
  bench.state.placing(message, first);
  EXPECT_FALSE(bench.state.agrees(message, first)) << "on its way to memory already";
  bench.state.count(message, 0, kMtu, bench.told);
  EXPECT_FALSE(bench.state.agrees(message, first));
  EXPECT_TRUE(bench.told.empty());
  EXPECT_TRUE(bench.land(message, second));
  EXPECT_EQ(bench.immediates(), Numbers{1000});
}

// ------------------------------------------------------------------------------------------------------- signalling

TEST(RdmaState, UntrackedItIsTheLastPacketThatTells) {
  Bench bench(false);
  bench.receive(16);
  const DataHeader last = Bench::packet(3 * kMtu, 2);
  const RdmaState::Index message = bench.open(last);
  EXPECT_FALSE(bench.land(message, last));
  EXPECT_EQ(bench.immediates(), Numbers{1000}) << "whatever is missing";
  EXPECT_FALSE(bench.land(message, Bench::packet(3 * kMtu, 0)));
  EXPECT_TRUE(bench.land(message, Bench::packet(3 * kMtu, 1)));
  EXPECT_EQ(bench.told.size(), 1U) << "once";
}

TEST(RdmaState, TrackedAllPacketsMustBeThere) {
  std::vector<std::uint32_t> order{0, 1, 2};
  do {
    Bench bench(true);
    bench.receive(16);
    const RdmaState::Index message = bench.open(Bench::packet(3 * kMtu, order[0]));
    for (int i = 0; i < 2; ++i) {
      EXPECT_FALSE(bench.land(message, Bench::packet(3 * kMtu, order[static_cast<std::size_t>(i)])));
      EXPECT_TRUE(bench.told.empty());
    }
    EXPECT_TRUE(bench.land(message, Bench::packet(3 * kMtu, order[2])));
    EXPECT_EQ(bench.immediates(), Numbers{1000});
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(RdmaState, TrackedMessagesOfAQueuePairAreToldInOrder) {
  for (const bool tracks : {true, false}) {
    Bench bench(tracks);
    for (std::uint64_t id = 1; id <= 8; ++id) bench.receive(16 * id);
    for (const std::uint64_t order : {2, 3, 1}) {
      const DataHeader header = Bench::packet(10, 0, order);
      bench.land(bench.open(header), header);
    }
    EXPECT_EQ(bench.immediates(), tracks ? Numbers{} : (Numbers{1002, 1003, 1001}));
    const DataHeader first = Bench::packet(10, 0, 0);
    bench.land(bench.open(first), first);
    EXPECT_EQ(bench.immediates(), tracks ? (Numbers{1000, 1001, 1002, 1003}) : (Numbers{1002, 1003, 1001, 1000}));
  }
}

TEST(RdmaState, PlainWritesHaveTheirPlaceInTheOrder) {
  Bench bench(true);
  bench.receive(16);
  bench.receive(32);
  const DataHeader behind = Bench::packet(10, 0, 1);
  bench.land(bench.open(behind), behind);
  EXPECT_TRUE(bench.told.empty()) << "what a write tells nobody is waited for as well";
  const DataHeader write = Bench::packet(10, 0, 0, RdmaOperation::write);
  bench.land(bench.open(write), write);
  EXPECT_EQ(bench.immediates(), Numbers{1001});
}

TEST(RdmaState, QueuePairsDoNotWaitForOneAnother) {
  Bench bench(true);
  bench.create(kQueuePair + 1);
  bench.receive(16);
  DataHeader header = Bench::packet(10, 0, 0);
  header.rdma.queue_pair = kQueuePair + 1;
  bench.open(Bench::packet(2 * kMtu, 0, 0, RdmaOperation::write));
  bench.land(bench.open(header), header);
  EXPECT_EQ(bench.immediates(), Numbers{1000});
}

TEST(RdmaState, AManagementQueuePairTakesFromEverybodyInAnyOrder) {
  Bench bench(true);
  bench.create(RdmaState::kManagement | 3);
  bench.receive(16);
  DataHeader header = Bench::packet(10, 0, 5, RdmaOperation::send);
  header.rdma.queue_pair = RdmaState::kManagement | 3;
  const RdmaState::Opened opened = bench.state.open(NodeId{99}, header);
  ASSERT_EQ(opened.outcome, Outcome::pending);
  bench.land(opened.message, header);
  EXPECT_EQ(bench.immediates(), Numbers{1005});
}

TEST(RdmaState, ARefusedMessageDoesNotHoldUpTheOrder) {
  Bench bench(true);
  bench.receive(16);
  bench.receive(32);
  const DataHeader behind = Bench::packet(10, 0, 1);
  bench.land(bench.open(behind), behind);
  EXPECT_TRUE(bench.told.empty());
  DataHeader bad = Bench::packet(10, 0, 0, RdmaOperation::write);
  bad.key = kKey + 1;
  EXPECT_EQ(bench.refusal(bad), Outcome::bad_key);
  EXPECT_EQ(bench.immediates(), Numbers{1001});
}

TEST(RdmaState, AMessageThatIsAskedForAgainDoes) {
  Bench bench(true);
  const DataHeader first = Bench::packet(10, 0, 0);
  EXPECT_EQ(bench.refusal(first), Outcome::no_buffer);
  bench.receive(16);
  bench.receive(32);
  const DataHeader behind = Bench::packet(10, 0, 1);
  EXPECT_EQ(bench.refusal(behind), Outcome::no_buffer) << "the first one comes again";
  bench.land(bench.open(first), first);
  bench.land(bench.open(behind), behind);
  EXPECT_EQ(bench.immediates(), (Numbers{1000, 1001}));
}

TEST(RdmaState, ACutOffMessageIsToldNeverAndHoldsNothingUp) {
  Bench bench(true);
  for (std::uint64_t id = 16; id <= 48; id += 16) bench.receive(id);
  const DataHeader first = Bench::packet(2 * kMtu, 0, 0);
  const RdmaState::Index cut = bench.open(first);
  const DataHeader behind = Bench::packet(10, 0, 1);
  bench.land(bench.open(behind), behind);
  bench.state.placing(cut, first);
  EXPECT_TRUE(bench.told.empty());
  bench.state.cut_off(cut, bench.told);
  EXPECT_EQ(bench.immediates(), Numbers{1001});
  // Its number is taken until the packet on its way is counted, for nothing.
  const DataHeader next = Bench::packet(2 * kMtu, 0, 2, RdmaOperation::write);
  const RdmaState::Index other = bench.open(next);
  EXPECT_NE(other, cut);
  EXPECT_FALSE(bench.state.count(cut, 0, kMtu, bench.told).whole);
  EXPECT_EQ(bench.told.size(), 1U);
  EXPECT_EQ(bench.open(Bench::packet(2 * kMtu, 0, 3, RdmaOperation::write)), cut) << "free again";
}

TEST(RdmaState, ACutOffMessageGivesItsReceiveBack) {
  for (const bool tracks : {true, false}) {
    Bench bench(tracks);
    bench.receive(16);
    const DataHeader first = Bench::packet(2 * kMtu);
    const RdmaState::Index cut = bench.open(first);
    bench.state.placing(cut, first);
    bench.state.cut_off(cut, bench.told);
    EXPECT_EQ(bench.refusal(Bench::packet(10, 0, 1)), Outcome::no_buffer) << "a packet is on its way to memory still";
    bench.state.count(cut, 0, kMtu, bench.told);
    const DataHeader next = Bench::packet(10, 0, 1);
    bench.land(bench.open(next), next);
    ASSERT_EQ(bench.told.size(), 1U);
    EXPECT_EQ(bench.told[0].cqe.id, 16U);
  }
  // Software has been told of it already, and has posted another.
  Bench bench(false);
  bench.receive(16);
  const DataHeader last = Bench::packet(2 * kMtu, 1);
  const RdmaState::Index cut = bench.open(last);
  bench.land(cut, last);
  EXPECT_EQ(bench.told.size(), 1U);
  bench.state.cut_off(cut, bench.told);
  EXPECT_EQ(bench.refusal(Bench::packet(10, 0, 1)), Outcome::no_buffer);
}

// ------------------------------------------------------------------------------------------------- a new generation

TEST(RdmaState, WhatTheSenderHasGivenUpIsNotWaitedFor) {
  Bench bench(true);
  for (std::uint64_t id = 1; id <= 8; ++id) bench.receive(16 * id);
  const auto land = [&](std::uint64_t order) {
    const DataHeader header = Bench::packet(10, 0, order);
    bench.land(bench.open(header), header);
  };
  for (const std::uint64_t order : {0, 2, 5}) land(order);
  EXPECT_EQ(bench.immediates(), Numbers{1000});
  bench.hear(1);
  EXPECT_EQ(bench.told.size(), 1U);
  bench.hear(2);
  EXPECT_EQ(bench.immediates(), (Numbers{1000, 1002, 1005})) << "what has come is told, in order";
  // The next ones are numbered from 0, and told in order, too.
  bench.told.clear();
  land(1);
  EXPECT_TRUE(bench.told.empty());
  land(0);
  EXPECT_EQ(bench.immediates(), (Numbers{1000, 1001}));
  bench.hear(3);
  bench.told.clear();
  land(0);
  EXPECT_EQ(bench.immediates(), Numbers{1000}) << "nothing was given up";
}

TEST(RdmaState, WhatIsOnItsWayToMemoryKeepsItsPlace) {
  Bench bench(true);
  for (std::uint64_t id = 1; id <= 8; ++id) bench.receive(16 * id);
  const DataHeader on_its_way = Bench::packet(10, 0, 3);
  const RdmaState::Index arriving = bench.open(on_its_way);
  bench.state.placing(arriving, on_its_way);
  const DataHeader whole = Bench::packet(10, 0, 5);
  bench.land(bench.open(whole), whole);
  bench.hear(2);
  const DataHeader next = Bench::packet(10, 0, 0);
  bench.land(bench.open(next), next);
  EXPECT_TRUE(bench.told.empty());
  bench.state.count(arriving, 0, 10, bench.told);
  EXPECT_EQ(bench.immediates(), (Numbers{1003, 1005, 1000}));
}

TEST(RdmaState, ReceivesAreNotLeftToWhatWasGivenUp) {
  Bench bench(true);
  for (std::uint64_t id = 1; id <= 4; ++id) bench.receive(16 * id);
  // Messages 0 to 3 never come.
  const DataHeader next = Bench::packet(10, 0, 4);
  EXPECT_EQ(bench.refusal(next), Outcome::no_buffer);
  bench.hear(2);
  const DataHeader first = Bench::packet(10, 0, 0);
  bench.land(bench.open(first), first);
  EXPECT_EQ(bench.immediates(), Numbers{1000});
}

TEST(RdmaState, AGenerationIsItsNodes) {
  constexpr NodeId kOther{8};
  Bench bench(true);
  bench.create(kQueuePair + 1, kOther);
  bench.create(kQueuePair + 2);
  for (std::uint64_t id = 1; id <= 8; ++id) bench.receive(16 * id);
  bench.hear(1, kOther);
  for (const std::uint32_t queue_pair : {kQueuePair + 1, kQueuePair + 2}) {
    DataHeader header = Bench::packet(10, 0, queue_pair - kQueuePair);
    header.rdma.queue_pair = queue_pair;
    const RdmaState::Opened opened = bench.state.open(queue_pair == kQueuePair + 1 ? kOther : kPeer, header);
    bench.land(opened.message, header);
  }
  EXPECT_TRUE(bench.told.empty());
  bench.hear(2);
  EXPECT_EQ(bench.immediates(), Numbers{1002}) << "all its queue pairs, but nobody else's";
  bench.hear(2, kOther);
  EXPECT_EQ(bench.immediates(), (Numbers{1002, 1001}));
}

TEST(RdmaState, RandomArrivalsAreToldInOrderByATrackingNic) {
  constexpr std::uint64_t kSeed = 77;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int round = 0; round < 20; ++round) {
    Bench bench(true);
    constexpr std::uint64_t kMessages = 30;
    struct Arrival {
      std::uint64_t message;
      DataHeader header;
    };
    std::vector<Arrival> arrivals;
    for (std::uint64_t m = 0; m < kMessages; ++m) {
      bench.receive(32 * m + 16);  // twice as many as messages: one behind others leaves some to each of them
      bench.receive(32 * m + 32);
      const std::uint64_t length = random.below(5 * kMtu);
      const std::uint64_t packets = length == 0 ? 1 : (length - 1) / kMtu + 1;
      for (std::uint32_t k = 0; k < packets; ++k) arrivals.push_back({m, Bench::packet(length, k, m)});
    }
    for (std::size_t i = arrivals.size(); i > 1; --i) std::swap(arrivals[i - 1], arrivals[random.below(i)]);
    std::vector<RdmaState::Index> index(kMessages);
    std::vector<bool> is_open(kMessages);
    for (const Arrival& arrival : arrivals) {
      if (!is_open[arrival.message]) index[arrival.message] = bench.open(arrival.header);
      is_open[arrival.message] = true;
      bench.land(index[arrival.message], arrival.header);
    }
    Numbers expected(kMessages);
    std::iota(expected.begin(), expected.end(), 1000U);
    EXPECT_EQ(bench.immediates(), expected);
  }
}

// ----------------------------------------------------------------------------------------------------------- reads

DataHeader read_request(std::uint64_t address, std::uint64_t length) {
  DataHeader header;
  header.mailbox = Mailbox{address};
  header.key = kKey;
  header.ask = {length, Mailbox{0x7777}, 88};
  header.rdma = {RdmaOperation::read, kQueuePair, 0x1'0000};
  return header;
}

TEST(RdmaState, ReadsAreRefusedAsWritesAre) {
  Bench bench(false);
  Descriptor answer;
  const auto read = [&](const DataHeader& header, NodeId source = kPeer) {
    return bench.state.read(source, header, answer, 4096);
  };
  DataHeader header = read_request(kHead, 10);
  EXPECT_EQ(read(header, NodeId{8}), Outcome::no_mailbox);
  header.rdma.queue_pair = 1;
  EXPECT_EQ(read(header), Outcome::no_mailbox);
  header = read_request(kHead, 10);
  header.key = kKey + 1;
  EXPECT_EQ(read(header), Outcome::bad_key);
  EXPECT_EQ(read(read_request(kHead, kSize + 1)), Outcome::bounds);
  EXPECT_EQ(read(read_request(kHead - 1, 1)), Outcome::bounds);
  EXPECT_EQ(read(read_request(kHead + 1, ~std::uint64_t{0})), Outcome::bounds) << "nothing wraps";
  EXPECT_EQ(read(read_request(kHead, kSize)), Outcome::pending);
}

TEST(RdmaState, AnAnswerNamesItsBytesAndTheAskersRegion) {
  Bench bench(false);
  // Of three pages, beginning in the middle of the first.
  ASSERT_EQ(bench.region(60, 0x2'0800, 3 * 4096), Status::ok);
  DataHeader header = read_request(0x2'0800 + 5000, 100);
  header.key = 60;
  Descriptor answer;
  ASSERT_EQ(bench.state.read(kPeer, header, answer, 4096), Outcome::pending);
  EXPECT_EQ(answer.local, VirtualAddress{0x2'0800 + 5000});
  EXPECT_EQ(answer.length, 100U);
  EXPECT_FALSE(answer.single_page);
  EXPECT_EQ(answer.page_list, PhysicalAddress{0x9000 + 8}) << "its list begins at the second page";
  EXPECT_EQ(answer.mailbox, Mailbox{0x7777});
  EXPECT_EQ(answer.key, 88U);
}

TEST(RdmaState, ReadsEndOnceAndTheirNumbersAreUsedAgain) {
  Bench bench(false);
  const std::uint32_t first = bench.state.open_read(kPid, 160);
  const std::uint32_t second = bench.state.open_read(Pid{1}, 320);
  EXPECT_NE(first, second);
  EXPECT_EQ(bench.state.open_reads(), 2U);
  Pid pid;
  std::uint64_t id = 0;
  ASSERT_TRUE(bench.state.end_read(first, pid, id));
  EXPECT_EQ(pid, kPid);
  EXPECT_EQ(id, 160U);
  EXPECT_FALSE(bench.state.end_read(first, pid, id)) << "it has ended";
  EXPECT_FALSE(bench.state.is_reading(first));
  EXPECT_TRUE(bench.state.is_reading(second));
  EXPECT_EQ(bench.state.open_reads(), 1U);
  const std::uint32_t again = bench.state.open_read(kPid, 480);
  EXPECT_EQ(again & 0xffffU, first & 0xffffU) << "the same place";
  EXPECT_NE(again, first) << "but a late answer to the first is no answer to it";
  EXPECT_FALSE(bench.state.is_reading(first));
  EXPECT_TRUE(bench.state.is_reading(again));
  EXPECT_FALSE(bench.state.end_read(99, pid, id));
}

/// What its peer has sent before may never come: the read has ended all the same.
TEST(RdmaState, AReadAnswerWaitsForNothingBeforeIt) {
  Bench bench(true);
  for (std::uint64_t id = 1; id <= 4; ++id) bench.receive(16 * id);
  const std::uint32_t read = bench.state.open_read(kPid, 160);
  const DataHeader behind = Bench::packet(10, 0, 2);
  bench.land(bench.open(behind), behind);
  DataHeader answer = Bench::packet(10, 0, 1, RdmaOperation::read_answer);
  answer.rdma.immediate = read;
  bench.land(bench.open(answer), answer);
  ASSERT_EQ(bench.told.size(), 1U);
  EXPECT_TRUE((bench.told[0].cqe == Cqe{CqeKind::read, Outcome::ok, 0, 160}));
  // It keeps its place for the messages.
  const DataHeader first = Bench::packet(10, 0, 0);
  bench.land(bench.open(first), first);
  ASSERT_EQ(bench.told.size(), 3U);
  EXPECT_EQ(bench.told[1].cqe.immediate, 1000U);
  EXPECT_EQ(bench.told[2].cqe.immediate, 1002U);
}

/// When it is whole, on any NIC: whoever reads counts what it has asked for.
TEST(RdmaState, AReadAnswerEndsItsRead) {
  for (const auto& [tracks, first] : {std::pair{true, 0U}, {true, 1U}, {false, 0U}, {false, 1U}}) {
    Bench bench(tracks);
    int answered = 0;
    bench.state.on_read_answered([&] { ++answered; });
    const std::uint32_t read = bench.state.open_read(Pid{1}, 160);
    DataHeader header = Bench::packet(2 * kMtu, first, 0, RdmaOperation::read_answer);
    header.rdma.immediate = read;
    const RdmaState::Index message = bench.open(header);
    bench.land(message, header);
    EXPECT_TRUE(bench.told.empty());
    EXPECT_EQ(answered, 0);
    header.packet_index = 1 - first;
    EXPECT_TRUE(bench.land(message, header));
    ASSERT_EQ(bench.told.size(), 1U);
    EXPECT_EQ(bench.told[0].pid, Pid{1});
    EXPECT_TRUE((bench.told[0].cqe == Cqe{CqeKind::read, Outcome::ok, 0, 160}));
    EXPECT_EQ(answered, 1);
    // A second answer to it tells nobody, and holds nobody up.
    DataHeader late = Bench::packet(10, 0, 1, RdmaOperation::read_answer);
    late.rdma.immediate = read;
    EXPECT_TRUE(bench.land(bench.open(late), late));
    EXPECT_EQ(bench.told.size(), 1U);
    EXPECT_EQ(answered, 1);
    bench.receive(16);
    const DataHeader behind = Bench::packet(10, 0, 2);
    bench.land(bench.open(behind), behind);
    EXPECT_EQ(bench.told.size(), 2U);
  }
}

}  // namespace
}  // namespace rvma
