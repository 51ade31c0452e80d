// The software of RDMA alone: a NIC that records what it is handed and says what the test wants, and the other ranks'
// software played by the test. Memory, address space and core are the host's own.
#include "rdma/provider.hpp"

#include <gtest/gtest.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "host/memory.hpp"
#include "plain_host.hpp"
#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::ns;
using test::run_until;

constexpr Pid kPid{0};
constexpr std::uint32_t kRanks = 4;  ///< one a node; the tested one is rank 0
constexpr std::uint32_t kManagement = RdmaState::kManagement;
constexpr Mailbox kMailbox{0xbeef};

/// Takes descriptors, and writes completion entries when told.
class FakeNic : public sc_core::sc_module, public RdmaNicIf {
 public:
  tlm_utils::simple_target_socket<FakeNic> mmio{"mmio"};

  FakeNic(const sc_core::sc_module_name& name, Memory& memory) : sc_module(name), memory_(memory) {
    mmio.register_b_transport(this, &FakeNic::b_transport);
  }
  void set_ring(Pid /*pid*/, PhysicalAddress /*base*/, std::uint32_t /*entries*/, PhysicalAddress word) override {
    consumed_word_ = word;
  }
  void set_completion_queue(Pid /*pid*/, PhysicalAddress base, std::uint32_t entries) override {
    ring_ = base;
    ring_entries_ = entries;
  }
  void prepare(const Descriptor& call, Pid /*pid*/) override {
    if (call.opcode == Opcode::rdma_post_receive) receives.push_back(call);
  }
  void on_placed(std::function<void(const Placed&)> placed) override { tell_placed = std::move(placed); }

  /// Everything but receives.
  struct Work {
    Descriptor descriptor;
    ControlMessage said;  ///< of a send
    Time at;              ///< when it leaves the core
    std::uint32_t queue_pair() const { return static_cast<std::uint32_t>(descriptor.offset >> 32U); }
    std::uint32_t immediate() const { return static_cast<std::uint32_t>(descriptor.offset); }
  };
  /// The oldest that was not taken yet.
  Work take() {
    RVMA_ASSERT(!works.empty(), "the software has asked for nothing");
    Work work = works.front();
    works.pop_front();
    return work;
  }
  void end(const Work& work, Outcome outcome, CqeKind kind = CqeKind::sent) {
    push({kind, outcome, 0, work.descriptor.completion.value()});
  }
  /// A message of another rank.
  void hear(const ControlMessage& message) {
    const ControlBytes bytes = encode(message);
    memory_.write(PhysicalAddress{receives.front().local.value()}, bytes.data(), bytes.size());
    push({CqeKind::received, Outcome::ok, 0, take_receive()});
  }
  /// A write with immediate.
  void was_written(std::uint32_t immediate) { push({CqeKind::written, Outcome::ok, immediate, take_receive()}); }
  void consume_all() {
    is_stalled = false;
    write_consumed();
  }

  std::deque<Work> works;
  std::deque<Descriptor> receives;
  bool is_stalled = false;  ///< takes descriptors and executes none
  std::function<void(const Placed&)> tell_placed;

 private:
  void b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay) {
    EXPECT_EQ(transaction.get_address(), kInlineOffset);
    DescriptorBytes bytes{};
    std::memcpy(bytes.data(), transaction.get_data_ptr(), bytes.size());
    const std::optional<Descriptor> descriptor = decode_descriptor(bytes);
    RVMA_ASSERT(descriptor, "no descriptor");
    ++arrived_;
    if (descriptor->opcode == Opcode::rdma_post_receive) {
      receives.push_back(*descriptor);
    } else {
      Work work{*descriptor, {}, SimContext::now() + Time::from_ps(static_cast<std::int64_t>(delay.value()))};
      if (descriptor->opcode == Opcode::rdma_send) {
        ControlBytes said{};
        memory_.read(PhysicalAddress{descriptor->local.value()}, said.data(), said.size());
        work.said = decode_control(said);
      }
      works.push_back(work);
    }
    if (!is_stalled) write_consumed();
    transaction.set_response_status(tlm::TLM_OK_RESPONSE);
  }
  void write_consumed() { memory_.write(consumed_word_, &arrived_, sizeof arrived_); }
  std::uint64_t take_receive() {
    const std::uint64_t id = receives.front().completion.value();
    receives.pop_front();
    return id;
  }
  void push(const Cqe& cqe) {
    const CqeWords words = encode(cqe);
    const std::uint64_t both[2] = {words.first, words.second};
    memory_.write(PhysicalAddress{ring_.value() + next_++ % ring_entries_ * kCqeBytes}, both, sizeof both);
  }

  Memory& memory_;
  PhysicalAddress consumed_word_;
  PhysicalAddress ring_;
  std::uint32_t ring_entries_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t next_ = 0;
};

struct Settings {
  NicConfig nic;
  RdmaConfig rdma;
  HostConfig host;
  RdmaCompletion completion = RdmaCompletion::write_imm;
};

struct Bench {
  explicit Bench(const std::function<void(Settings&)>& change = [](Settings&) {}) : settings(changed(change)) {
    const Provider::Parameters parameters{
        settings.nic, settings.rdma, settings.host, NodeId{0}, RankId{0}, kRanks, 1, settings.completion, &directory};
    software = std::make_unique<Provider>("software", context, parameters, memory, frames, nic, observers);
    software->mmio.bind(nic.mmio);
    core.mmio.bind(software->commands);
    cpu.socket.bind(software->commands);
    software->add_process(core, space, word());
  }
  static Settings changed(const std::function<void(Settings&)>& change) {
    Settings made;
    change(made);
    return made;
  }
  PhysicalAddress word() { return frames.allocate_contiguous(16); }
  std::uint64_t load(PhysicalAddress at) {
    std::uint64_t value = 0;
    memory.read(at, &value, sizeof value);
    return value;
  }
  std::pair<std::uint64_t, std::uint64_t> words(PhysicalAddress at) {
    return {load(at), load(PhysicalAddress{at.value() + 8})};
  }
  static std::pair<std::uint64_t, std::uint64_t> ended(Outcome outcome, std::uint64_t bytes = 0) {
    return {static_cast<std::uint64_t>(outcome), bytes};
  }
  Time issue() const { return ClockDomain(settings.host.core.clock).time(settings.host.core.issue); }
  /// Core time of acting on a completion entry that says something.
  Time entry_cost() const { return settings.rdma.software.poll.get() + settings.rdma.software.handle.get(); }

  /// A put or get of `length` bytes to rank 1 (another one: `rank`), whose word is answered.
  PhysicalAddress start(Opcode opcode, std::uint64_t length = 100, std::uint32_t rank = 1) {
    Descriptor call;
    call.opcode = opcode;
    call.mailbox = kMailbox;
    call.key = 3;
    call.offset = 8;
    call.length = length;
    const VirtualAddress source = space.allocate(4096, 4096);
    call.local = source;
    call.single_page = true;
    call.page_list = space.translate(source);
    call.completion = word();
    call.destination_node = NodeId{rank};
    call.destination_pid = kPid;
    cpu.command(call);
    return call.completion;
  }
  /// Opens the window and posts a buffer to it; waits until its region is registered.
  struct Buffer {
    VirtualAddress head;
    PhysicalAddress completion;
    std::uint32_t key = 0;
  };
  Buffer open_window(std::uint64_t threshold, std::uint8_t flags = 0, Mailbox mailbox = kMailbox) {
    Descriptor init;
    init.opcode = Opcode::init_window;
    init.mailbox = mailbox;
    init.threshold = threshold;
    init.window_flags = flags;
    if ((flags & kWindowCatchAll) != 0) init.placement = Placement::managed;
    init.key = 3;
    cpu.command(init);
    return post_buffer(mailbox);
  }
  Buffer post_buffer(Mailbox mailbox = kMailbox) {
    Buffer buffer;
    Descriptor post;
    post.opcode = Opcode::post_buffer;
    post.mailbox = mailbox;
    buffer.head = post.local = space.allocate(4096, 4096);
    post.length = 4096;
    post.single_page = true;
    post.page_list = space.translate(post.local);
    buffer.completion = post.completion = word();
    cpu.command(post);
    pass(Time::from_us(5));
    const FakeNic::Work registration = nic.take();
    EXPECT_EQ(registration.descriptor.opcode, Opcode::rdma_register);
    EXPECT_EQ(registration.descriptor.local, buffer.head);
    buffer.key = registration.descriptor.key;
    return buffer;
  }
  void pass(Time time) { run_until(SimContext::now() + time); }

  ControlMessage from(std::uint32_t rank, ControlKind kind, const FakeNic::Work& asked) {
    ControlMessage message;
    message.kind = kind;
    message.rank = rank;
    message.request = asked.said.request;
    message.message = asked.said.message;
    return message;
  }
  void hear(const ControlMessage& message) {
    nic.hear(message);
    pass(Time::from_us(20));
  }
  /// Rank `rank` sets a connection up.
  void connect(std::uint32_t rank = 1) {
    ControlMessage message;
    message.rank = rank;
    hear(message);
    EXPECT_EQ(nic.take().descriptor.opcode, Opcode::rdma_create_queue_pair);
    const FakeNic::Work reply = nic.take();
    EXPECT_EQ(reply.said.kind, ControlKind::connect_reply);
    nic.end(reply, Outcome::ok);
    message.kind = ControlKind::connect_ready;
    hear(message);
    EXPECT_TRUE(nic.works.empty());
  }
  /// Of a put to rank 1, whose connection is up: its request, which has arrived there.
  FakeNic::Work asked() {
    pass(Time::from_us(20));
    const FakeNic::Work request = nic.take();
    nic.end(request, Outcome::ok);
    pass(Time::from_us(1));
    return request;
  }
  ControlMessage grant_for(const FakeNic::Work& request) {
    ControlMessage grant = from(1, ControlKind::put_grant, request);
    grant.ticket = 0x77;
    grant.mailbox = 0x1234'5000;
    grant.key = 55;
    return grant;
  }
  ControlMessage request_of_rank_1(std::uint64_t length) const {
    ControlMessage request;
    request.kind = ControlKind::put_request;
    request.rank = 1;
    request.request = 4;
    request.message = 19;
    request.mailbox = kMailbox.value();
    request.key = 3;
    request.offset = 8;
    request.length = length;
    return request;
  }

  const Settings settings;
  SimContext context{1};
  test::Script script{"script", context};
  Memory memory{"memory", context, settings.host};
  FrameAllocator frames{settings.host.page, 1};
  AddressSpace space{memory, frames};
  Core core{"core", context, settings.host.core, kPid, memory};
  test::Cpu cpu{"cpu"};
  FakeNic nic{"nic", memory};
  ObserverList observers;
  ProviderDirectory directory;
  std::unique_ptr<Provider> software;
};

// ----------------------------------------------------------------------------------------------------------- a put

TEST(Provider, APutConnectsThenAsksThenWrites) {
  Bench bench;
  run_until(ns(1000));
  const PhysicalAddress word = bench.start(Opcode::put);
  // 1. The connection, after its core time and that of the call.
  const Time begun = SimContext::now() + bench.settings.rdma.software.handle.get();
  run_until(begun - Time::from_ps(1));
  EXPECT_TRUE(bench.nic.works.empty());
  run_until(begun);
  ASSERT_EQ(bench.nic.works.size(), 2U);
  const FakeNic::Work create = bench.nic.take();
  EXPECT_EQ(create.descriptor.opcode, Opcode::rdma_create_queue_pair);
  EXPECT_EQ(create.descriptor.key, 1U) << "pid x ranks + peer's rank";
  EXPECT_EQ(create.descriptor.mailbox, (Mailbox{1ULL << 32U | 0U}));
  EXPECT_EQ(create.at, begun + bench.settings.rdma.software.connect.get() + bench.issue());
  const FakeNic::Work hello = bench.nic.take();
  EXPECT_EQ(hello.said.kind, ControlKind::connect_request);
  EXPECT_EQ(hello.queue_pair(), kManagement | 0U);
  EXPECT_EQ(hello.descriptor.destination_node, NodeId{1});
  EXPECT_EQ(hello.at, create.at + bench.issue());
  // 2. The request.
  bench.nic.end(hello, Outcome::ok);
  bench.hear(bench.from(1, ControlKind::connect_reply, hello));
  EXPECT_EQ(bench.nic.take().said.kind, ControlKind::connect_ready);
  const FakeNic::Work request = bench.nic.take();
  EXPECT_EQ(request.said.kind, ControlKind::put_request);
  EXPECT_EQ(request.queue_pair(), 1U);
  EXPECT_EQ(request.said.mailbox, kMailbox.value());
  EXPECT_EQ(request.said.key, 3U);
  EXPECT_EQ(request.said.offset, 8U);
  EXPECT_EQ(request.said.length, 100U);
  // 3. The write.
  bench.hear(bench.grant_for(request));
  const FakeNic::Work write = bench.nic.take();
  EXPECT_EQ(write.descriptor.opcode, Opcode::rdma_write_immediate);
  EXPECT_EQ(write.descriptor.mailbox, Mailbox{0x1234'5000});
  EXPECT_EQ(write.descriptor.key, 55U);
  EXPECT_EQ(write.descriptor.length, 100U);
  EXPECT_EQ(write.queue_pair(), 1U);
  EXPECT_EQ(write.immediate(), 0x77U);
  EXPECT_EQ(bench.load(word), 0U);
  bench.nic.end(write, Outcome::ok);
  bench.pass(bench.settings.rdma.software.poll.get() - Time::from_ps(1));
  EXPECT_EQ(bench.load(word), 0U);
  bench.pass(Time::from_ps(1));
  EXPECT_EQ(bench.words(word), Bench::ended(Outcome::ok, 100));
  EXPECT_TRUE(bench.nic.works.empty());
  EXPECT_EQ(bench.software->stats().connections.value(), 1U);
  EXPECT_EQ(bench.nic.receives.size(), bench.settings.rdma.receives.get()) << "all are posted again";
}

TEST(Provider, ARefusalThatMayPassIsAskedForAgain) {
  Bench bench([](Settings& settings) {
    settings.nic.reliability.rnr_tries = 2;
    settings.nic.reliability.rnr_delay = ns(3000);
  });
  run_until(ns(1000));
  bench.connect();
  const PhysicalAddress word = bench.start(Opcode::put);
  std::vector<std::uint32_t> messages;
  for (int i = 0; i < 3; ++i) {
    const FakeNic::Work request = bench.nic.works.empty() ? bench.asked() : bench.nic.take();
    messages.push_back(request.said.message);
    ControlMessage refusal = bench.from(1, ControlKind::refusal, request);
    refusal.outcome = Outcome::no_buffer;
    bench.nic.hear(refusal);
    if (i == 2) break;
    bench.pass(bench.entry_cost() + ns(3000) + bench.settings.rdma.software.handle.get() - Time::from_ps(1));
    EXPECT_TRUE(bench.nic.works.empty());
    bench.pass(Time::from_us(1));
    ASSERT_EQ(bench.nic.works.size(), 1U);
  }
  bench.pass(Time::from_us(20));
  EXPECT_EQ(bench.words(word), Bench::ended(Outcome::no_buffer));
  EXPECT_TRUE(bench.nic.works.empty());
  EXPECT_EQ(messages, (std::vector<std::uint32_t>{messages[0], messages[0] + 1, messages[0] + 2})) << "each is new";
}

TEST(Provider, ARefusalThatStaysEndsThePut) {
  Bench bench;
  run_until(ns(1000));
  bench.connect();
  for (const Outcome outcome : {Outcome::bad_key, Outcome::bounds, Outcome::no_mailbox, Outcome::closed}) {
    const PhysicalAddress word = bench.start(Opcode::put);
    ControlMessage refusal = bench.from(1, ControlKind::refusal, bench.asked());
    refusal.outcome = outcome;
    bench.hear(refusal);
    EXPECT_EQ(bench.words(word), Bench::ended(outcome));
  }
  EXPECT_TRUE(bench.nic.works.empty());
}

TEST(Provider, AWriteThatFailsEndsThePutWithoutNewsOfCompletion) {
  Bench bench([](Settings& settings) { settings.completion = RdmaCompletion::ack_then_send; });
  run_until(ns(1000));
  bench.connect();
  const PhysicalAddress word = bench.start(Opcode::put);
  bench.hear(bench.grant_for(bench.asked()));
  bench.nic.end(bench.nic.take(), Outcome::timeout);
  bench.pass(Time::from_us(20));
  EXPECT_EQ(bench.words(word), Bench::ended(Outcome::timeout));
  EXPECT_EQ(bench.nic.take().said.kind, ControlKind::given_up);
  EXPECT_TRUE(bench.nic.works.empty());
}

// ---------------------------------------------------------------------------------------------------- the receiver

/// From the request to the grant; returns the ticket.
std::uint32_t granted(Bench& bench, const Bench::Buffer& buffer, std::uint64_t length) {
  bench.hear(bench.request_of_rank_1(length));
  const FakeNic::Work grant = bench.nic.take();
  EXPECT_EQ(grant.said.kind, ControlKind::put_grant);
  EXPECT_EQ(grant.said.request, 4U);
  EXPECT_EQ(grant.said.message, 19U);
  EXPECT_EQ(grant.said.mailbox, buffer.head.value() + 8);
  EXPECT_EQ(grant.said.key, buffer.key);
  bench.nic.end(grant, Outcome::ok);
  bench.pass(Time::from_us(1));
  EXPECT_EQ(bench.load(buffer.completion), 0U);
  return grant.said.ticket;
}

/// The buffer is complete `after` from now: its word is written, and its region goes.
void expect_complete(Bench& bench, const Bench::Buffer& buffer, std::uint64_t length, Time after) {
  bench.pass(after - Time::from_ps(1));
  EXPECT_EQ(bench.load(buffer.completion), 0U);
  bench.pass(Time::from_ps(1));
  EXPECT_EQ(bench.words(buffer.completion), std::make_pair(buffer.head.value(), length));
  const FakeNic::Work gone = bench.nic.take();
  EXPECT_EQ(gone.descriptor.opcode, Opcode::rdma_deregister);
  EXPECT_EQ(gone.descriptor.key, buffer.key);
  EXPECT_TRUE(bench.nic.works.empty());
}

TEST(Provider, TheImmediateOfAWriteCompletesItsBuffer) {
  Bench bench;
  run_until(ns(1000));
  bench.connect();
  const Bench::Buffer buffer = bench.open_window(100);
  const std::uint32_t ticket = granted(bench, buffer, 100);
  bench.nic.was_written(ticket + 1000);
  bench.pass(Time::from_us(1));
  EXPECT_EQ(bench.load(buffer.completion), 0U) << "nobody's";
  bench.nic.was_written(ticket);
  expect_complete(bench, buffer, 100, bench.entry_cost());
  EXPECT_EQ(bench.nic.receives.size(), bench.settings.rdma.receives.get()) << "each write uses one up";
}

TEST(Provider, NewsFromTheSenderCompletesTheBuffer) {
  Bench bench([](Settings& settings) { settings.completion = RdmaCompletion::ack_then_send; });
  run_until(ns(1000));
  bench.connect();
  const Bench::Buffer buffer = bench.open_window(100);
  ControlMessage news;
  news.kind = ControlKind::written;
  news.rank = 1;
  news.ticket = granted(bench, buffer, 100);
  bench.nic.hear(news);
  expect_complete(bench, buffer, 100, bench.entry_cost());
}

TEST(Provider, TheLastByteCompletesTheBuffer) {
  Bench bench([](Settings& settings) { settings.completion = RdmaCompletion::last_byte; });
  run_until(ns(1000));
  bench.connect();
  const Bench::Buffer buffer = bench.open_window(100);
  granted(bench, buffer, 100);
  const std::uint8_t byte = 1;
  bench.space.write(VirtualAddress{buffer.head.value() + 8 + 98}, &byte, 1);
  bench.pass(Time::from_us(1));
  EXPECT_EQ(bench.load(buffer.completion), 0U) << "not the last one";
  bench.space.write(VirtualAddress{buffer.head.value() + 8 + 99}, &byte, 1);
  expect_complete(bench, buffer, 100, bench.entry_cost());
}

/// How the sender of a write tells its receiver.
void told_by(RdmaCompletion completion, Opcode opcode, bool has_news) {
  Bench bench([&](Settings& settings) { settings.completion = completion; });
  run_until(ns(1000));
  bench.connect();
  bench.start(Opcode::put);
  bench.hear(bench.grant_for(bench.asked()));
  const FakeNic::Work write = bench.nic.take();
  EXPECT_EQ(write.descriptor.opcode, opcode);
  EXPECT_TRUE(bench.nic.works.empty()) << "no news before the acknowledgement";
  bench.nic.end(write, Outcome::ok);
  bench.pass(Time::from_us(20));
  ASSERT_EQ(bench.nic.works.size(), has_news ? 1U : 0U);
  if (!has_news) return;
  EXPECT_EQ(bench.nic.works[0].said.kind, ControlKind::written);
  EXPECT_EQ(bench.nic.works[0].said.ticket, 0x77U);
}
TEST(Provider, LastByteNeedsAPlainWrite) { told_by(RdmaCompletion::last_byte, Opcode::rdma_write, false); }
TEST(Provider, WriteImmTells) { told_by(RdmaCompletion::write_imm, Opcode::rdma_write_immediate, false); }
TEST(Provider, WriteImmTrackedTells) {
  told_by(RdmaCompletion::write_imm_tracked, Opcode::rdma_write_immediate, false);
}
TEST(Provider, AckThenSendTells) { told_by(RdmaCompletion::ack_then_send, Opcode::rdma_write, true); }

/// In the window's words: the software decides as the RNIC does.
TEST(Provider, RequestsAreRefusedAsPutsAre) {
  Bench bench;
  run_until(ns(1000));
  bench.connect();
  bench.open_window(100);
  const auto answer_to = [&](const std::function<void(ControlMessage&)>& change) {
    ControlMessage request = bench.request_of_rank_1(100);
    change(request);
    bench.hear(request);
    const FakeNic::Work answer = bench.nic.take();
    EXPECT_EQ(answer.said.kind, ControlKind::refusal);
    return answer.said.outcome;
  };
  EXPECT_EQ(answer_to([](ControlMessage& request) { request.mailbox = 5; }), Outcome::no_mailbox);
  EXPECT_EQ(answer_to([](ControlMessage& request) { request.key = 4; }), Outcome::bad_key);
  EXPECT_EQ(answer_to([](ControlMessage& request) { request.offset = 4090; }), Outcome::bounds);
  EXPECT_EQ(answer_to([](ControlMessage& request) { request.kind = ControlKind::get_request; }), Outcome::bad_key)
      << "not readable";
  EXPECT_EQ(answer_to([](ControlMessage& request) { request.length = 0; }), Outcome::ok) << "nothing to write";
  bench.hear(bench.request_of_rank_1(100));
  EXPECT_EQ(bench.nic.take().said.kind, ControlKind::put_grant) << "refusals left no trace";
  EXPECT_EQ(answer_to([](ControlMessage&) {}), Outcome::no_buffer) << "the only one is bound";
}

// ------------------------------------------------------------------------------------------------------------ gets

/// Up to the read of a get.
FakeNic::Work reading(Bench& bench) {
  bench.pass(Time::from_us(20));
  EXPECT_EQ(bench.nic.take().descriptor.opcode, Opcode::rdma_register);
  ControlMessage grant = bench.grant_for(bench.asked());
  grant.kind = ControlKind::get_grant;
  bench.hear(grant);
  return bench.nic.take();
}

TEST(Provider, AGetRegistersReadsAndDeregisters) {
  Bench bench;
  run_until(ns(1000));
  bench.connect();
  for (const Outcome outcome : {Outcome::ok, Outcome::timeout}) {
    const PhysicalAddress word = bench.start(Opcode::get);
    const FakeNic::Work read = reading(bench);
    EXPECT_EQ(read.descriptor.opcode, Opcode::rdma_read);
    EXPECT_EQ(read.descriptor.mailbox, Mailbox{0x1234'5000});
    EXPECT_EQ(read.descriptor.key, 55U);
    EXPECT_TRUE(bench.nic.works.empty());
    bench.nic.end(read, outcome, CqeKind::read);
    bench.pass(Time::from_us(20));
    EXPECT_EQ(bench.words(word), Bench::ended(outcome, outcome == Outcome::ok ? 100 : 0));
    const FakeNic::Work gone = bench.nic.take();
    EXPECT_EQ(gone.descriptor.opcode, Opcode::rdma_deregister);
    EXPECT_EQ(gone.descriptor.key, read.descriptor.page_list.value());
  }
}

// --------------------------------------------------------------------------------------------------------- the core

TEST(Provider, WhatComesWaitsForAComputingCore) {
  Bench bench;
  bench.core.run([&] { bench.core.compute(Time::from_us(100)); });
  run_until(ns(1000));
  ControlMessage hello;
  hello.rank = 1;
  bench.nic.hear(hello);
  const Time heard = SimContext::now();
  run_until(Time::from_us(100) + bench.entry_cost() - Time::from_ps(1));
  EXPECT_TRUE(bench.nic.works.empty());
  run_until(Time::from_us(100) + bench.entry_cost());
  EXPECT_EQ(bench.nic.works.size(), 2U);
  EXPECT_EQ(bench.software->stats().held_up_ns.value(), Time::from_us(100) - heard);
}

/// A call takes what waits with it.
TEST(Provider, ACallIsCarriedOutWhenItIsMade) {
  Bench bench;
  bench.core.run([&] { bench.core.compute(Time::from_us(100)); });
  run_until(ns(1000));
  ControlMessage hello;
  hello.rank = 1;
  bench.nic.hear(hello);
  run_until(ns(2000));
  EXPECT_TRUE(bench.nic.works.empty());
  bench.start(Opcode::put, 100, 2);
  run_until(SimContext::now() + bench.entry_cost());
  ASSERT_EQ(bench.nic.works.size(), 2U);
  EXPECT_EQ(bench.nic.works[1].said.kind, ControlKind::connect_reply);
  run_until(Time::from_us(40));
  ASSERT_EQ(bench.nic.works.size(), 4U);
  EXPECT_EQ(bench.nic.works[3].said.kind, ControlKind::connect_request);
}

TEST(Provider, WaitsForRoomInTheNic) {
  Bench bench([](Settings& settings) { settings.nic.command.depth = 4; });
  run_until(ns(1000));
  bench.nic.is_stalled = true;
  for (const std::uint32_t rank : {1U, 2U, 3U}) bench.start(Opcode::put, 100, rank);
  run_until(Time::from_us(100));
  EXPECT_EQ(bench.nic.works.size(), 4U) << "a queue pair and a message each";
  bench.nic.consume_all();
  run_until(Time::from_us(110));
  ASSERT_EQ(bench.nic.works.size(), 6U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bench.nic.works[2 * i].descriptor.key, i + 1) << "in order";
    EXPECT_EQ(bench.nic.works[2 * i + 1].descriptor.destination_node, NodeId{i + 1});
  }
}

// ---------------------------------------------------------------------------------------- answers that stay away

void set_idle(Settings& settings) { settings.nic.reliability.idle = Time::from_us(500); }

/// A put that has asked, and whose answer stays away: the reminder that follows.
FakeNic::Work reminder_of(Bench& bench) {
  bench.pass(Time::from_us(20));
  const FakeNic::Work request = bench.nic.take();
  bench.nic.end(request, Outcome::ok);
  const Time asked = request.at - bench.issue();
  run_until(asked + Time::from_us(500) + bench.settings.rdma.software.handle.get() - Time::from_ps(1));
  EXPECT_TRUE(bench.nic.works.empty());
  run_until(asked + Time::from_us(500) + bench.settings.rdma.software.handle.get());
  const FakeNic::Work reminder = bench.nic.take();
  EXPECT_EQ(reminder.said.kind, ControlKind::reminder);
  EXPECT_EQ(reminder.said.message, request.said.message);
  EXPECT_EQ(reminder.queue_pair(), kManagement | 0U);
  return reminder;
}

TEST(Provider, AnAnswerThatStaysAwayIsAskedAfter) {
  Bench bench(set_idle);
  run_until(ns(1000));
  bench.connect();
  const PhysicalAddress word = bench.start(Opcode::put);
  bench.nic.end(reminder_of(bench), Outcome::ok);
  // Nothing is said: the other side has not decided yet. Again, after as long.
  bench.pass(Time::from_us(510));
  const FakeNic::Work again = bench.nic.take();
  EXPECT_EQ(again.said.kind, ControlKind::reminder);
  EXPECT_EQ(bench.load(word), 0U);
  bench.hear(bench.from(1, ControlKind::forgotten, again));
  EXPECT_EQ(bench.words(word), Bench::ended(Outcome::timeout));
  const FakeNic::Work news = bench.nic.take();
  EXPECT_EQ(news.said.kind, ControlKind::given_up) << "it may have been granted";
  bench.nic.end(news, Outcome::ok);
  bench.pass(Time::from_us(10'000));
  EXPECT_TRUE(bench.nic.works.empty());
  EXPECT_EQ(bench.software->stats().reminders.value(), 2U);
}

TEST(Provider, AReminderThatDoesNotArriveEndsAPutOrGet) {
  Bench bench(set_idle);
  run_until(ns(1000));
  bench.connect();
  const PhysicalAddress word = bench.start(Opcode::put);
  bench.nic.end(reminder_of(bench), Outcome::timeout);
  bench.pass(Time::from_us(1));
  EXPECT_EQ(bench.words(word), Bench::ended(Outcome::timeout));
}

/// Its number is a later put's by then.
TEST(Provider, ALateAnswerReachesNobody) {
  Bench bench;
  run_until(ns(1000));
  bench.connect();
  const PhysicalAddress first = bench.start(Opcode::put);
  bench.pass(Time::from_us(20));
  const FakeNic::Work lost = bench.nic.take();
  bench.nic.end(lost, Outcome::timeout);
  bench.pass(Time::from_us(1));
  EXPECT_EQ(bench.words(first), Bench::ended(Outcome::timeout));
  EXPECT_EQ(bench.nic.take().said.kind, ControlKind::given_up);
  const PhysicalAddress second = bench.start(Opcode::put, 200);
  const FakeNic::Work request = bench.asked();
  ASSERT_EQ(request.said.request, lost.said.request);
  bench.hear(bench.grant_for(lost));
  ControlMessage refusal = bench.from(1, ControlKind::refusal, lost);
  refusal.outcome = Outcome::bad_key;
  bench.hear(refusal);
  EXPECT_TRUE(bench.nic.works.empty());
  EXPECT_EQ(bench.load(second), 0U);
  bench.hear(bench.grant_for(request));
  EXPECT_EQ(bench.nic.take().descriptor.length, 200U);
}

TEST(Provider, SaysSoIfItOwesNoAnswerAnyMore) {
  Bench bench;
  run_until(ns(1000));
  bench.connect();
  bench.open_window(100);
  ControlMessage reminder = bench.request_of_rank_1(100);
  bench.hear(reminder);
  const FakeNic::Work grant = bench.nic.take();
  reminder.kind = ControlKind::reminder;
  bench.hear(reminder);
  EXPECT_TRUE(bench.nic.works.empty()) << "the grant is on its way";
  bench.nic.end(grant, Outcome::timeout);
  bench.pass(Time::from_us(1));
  bench.hear(reminder);
  const FakeNic::Work answer = bench.nic.take();
  EXPECT_EQ(answer.said.kind, ControlKind::forgotten);
  EXPECT_EQ(answer.said.request, 4U);
  EXPECT_EQ(answer.said.message, 19U);
  EXPECT_EQ(answer.queue_pair(), kManagement | 0U);
}

TEST(Provider, AConnectionThatCannotBeSetUpEndsAllThatWaitsForIt) {
  Bench bench;
  run_until(ns(1000));
  const PhysicalAddress words[] = {bench.start(Opcode::put), bench.start(Opcode::put)};
  bench.pass(Time::from_us(50));
  bench.nic.take();
  bench.nic.end(bench.nic.take(), Outcome::timeout);
  bench.pass(Time::from_us(1));
  for (const PhysicalAddress word : words) EXPECT_EQ(bench.words(word), Bench::ended(Outcome::timeout));
  EXPECT_TRUE(bench.nic.works.empty());
  // The next one tries again; the queue pair is there.
  bench.start(Opcode::put);
  bench.pass(Time::from_us(50));
  EXPECT_EQ(bench.nic.take().said.kind, ControlKind::connect_request);
  EXPECT_TRUE(bench.nic.works.empty());
}

TEST(Provider, LostNewsIsToldAgain) {
  Bench bench([](Settings& settings) {
    set_idle(settings);
    settings.completion = RdmaCompletion::ack_then_send;
    settings.nic.reliability.max_tries = 2;
  });
  run_until(ns(1000));
  bench.connect();
  bench.start(Opcode::put);
  bench.hear(bench.grant_for(bench.asked()));
  bench.nic.end(bench.nic.take(), Outcome::ok);
  bench.pass(Time::from_us(20));
  for (int i = 0; i <= 2; ++i) {
    const FakeNic::Work news = bench.nic.take();
    EXPECT_EQ(news.said.kind, ControlKind::written);
    EXPECT_EQ(news.said.ticket, 0x77U);
    bench.nic.end(news, Outcome::timeout);
    bench.pass(Time::from_us(490));
    EXPECT_TRUE(bench.nic.works.empty());
    bench.pass(Time::from_us(40));
  }
  EXPECT_TRUE(bench.nic.works.empty()) << "twice and no more";
}

TEST(Provider, APutThatIsGivenUpIsToldOf) {
  Bench bench([](Settings& settings) {
    set_idle(settings);
    settings.nic.reliability.max_tries = 2;
  });
  run_until(ns(1000));
  bench.connect();
  const PhysicalAddress word = bench.start(Opcode::put);
  const FakeNic::Work request = bench.asked();
  bench.hear(bench.grant_for(request));
  bench.nic.end(bench.nic.take(), Outcome::timeout);
  bench.pass(Time::from_us(20));
  EXPECT_EQ(bench.words(word), Bench::ended(Outcome::timeout));
  for (int i = 0; i <= 2; ++i) {
    const FakeNic::Work news = bench.nic.take();
    EXPECT_EQ(news.said.kind, ControlKind::given_up);
    EXPECT_EQ(news.said.message, request.said.message);
    EXPECT_EQ(news.queue_pair(), kManagement) << "nothing on the queue pair holds it up";
    bench.nic.end(news, Outcome::timeout);
    bench.pass(Time::from_us(490));
    EXPECT_TRUE(bench.nic.works.empty());
    bench.pass(Time::from_us(40));
  }
  EXPECT_TRUE(bench.nic.works.empty()) << "twice and no more";
}

TEST(Provider, WhatIsBoundToAPutThatWasGivenUpIsCutOff) {
  Bench bench;
  run_until(ns(1000));
  bench.connect();
  const Bench::Buffer buffer = bench.open_window(4000);
  granted(bench, buffer, 100);
  Descriptor close;
  close.opcode = Opcode::close_window;
  close.mailbox = kMailbox;
  close.response = bench.word();
  bench.memory.write(close.response, "\xff", 1);
  bench.cpu.command(close);
  bench.pass(Time::from_us(20));
  EXPECT_EQ(bench.load(close.response), 0xffU) << "the put may write still";
  ControlMessage news;
  news.kind = ControlKind::given_up;
  news.rank = 2;
  news.message = 19;
  bench.hear(news);
  news.rank = 1;
  ++news.message;
  bench.hear(news);
  EXPECT_EQ(bench.load(close.response), 0xffU) << "other puts";
  --news.message;
  bench.hear(news);
  EXPECT_EQ(bench.load(close.response), static_cast<std::uint64_t>(Status::ok));
  bench.hear(news);
}

// ---------------------------------------------------------------------------------------------- advertised buffers

TEST(Provider, WhatACatchAllWindowTakesIsNoMessageOfAnotherWindow) {
  Bench bench([](Settings& settings) { settings.rdma.exchange = RdmaExchange::advertised; });
  run_until(ns(1000));
  bench.connect();
  // The window with number 0, whose sender is not known yet.
  std::vector<Bench::Buffer> buffers{bench.open_window(100)};
  for (int i = 0; i < 2; ++i) buffers.push_back(bench.post_buffer());
  const Mailbox catch_all{1};
  const Bench::Buffer others[] = {bench.open_window(100, kWindowCatchAll, catch_all), bench.post_buffer(catch_all)};
  for (const Bench::Buffer& other : others) {
    ControlMessage request = bench.request_of_rank_1(100);
    request.mailbox = 0x777;
    bench.hear(request);
    const FakeNic::Work answer = bench.nic.take();
    EXPECT_EQ(answer.said.kind, ControlKind::put_grant);
    EXPECT_EQ(answer.said.key, other.key);
    EXPECT_TRUE(bench.nic.works.empty()) << "nothing is advertised";
    if (&other != others) break;
    bench.hear(bench.request_of_rank_1(100));
    EXPECT_EQ(bench.nic.take().said.key, buffers[0].key);
    for (const std::size_t buffer : {1, 2}) {
      const FakeNic::Work told = bench.nic.take();
      EXPECT_EQ(told.said.kind, ControlKind::advertisement);
      EXPECT_EQ(told.said.key, buffers[buffer].key);
    }
  }
  // Both are advertised still.
  bench.hear(bench.request_of_rank_1(100));
  EXPECT_EQ(bench.nic.take().said.kind, ControlKind::use_advertised);
}

// ---------------------------------------------------------------------------------------------- kept registrations

TEST(Provider, MemoryThatIsPostedAgainKeepsItsRegion) {
  Bench bench([](Settings& settings) { settings.rdma.registration_cache = 1; });
  run_until(ns(1000));
  bench.connect();
  const Bench::Buffer buffer = bench.open_window(100);
  bench.nic.was_written(granted(bench, buffer, 100));
  bench.pass(Time::from_us(20));
  EXPECT_EQ(bench.words(buffer.completion), std::make_pair(buffer.head.value(), std::uint64_t{100}));
  EXPECT_TRUE(bench.nic.works.empty()) << "it stays";
  Descriptor post;
  post.opcode = Opcode::post_buffer;
  post.mailbox = kMailbox;
  post.local = buffer.head;
  post.length = 4096;
  post.single_page = true;
  post.page_list = bench.space.translate(buffer.head);
  post.completion = bench.word();
  bench.cpu.command(post);
  bench.pass(Time::from_us(20));
  EXPECT_TRUE(bench.nic.works.empty());
  EXPECT_EQ(bench.software->stats().regions_reused.value(), 1U);
  bench.hear(bench.request_of_rank_1(100));
  EXPECT_EQ(bench.nic.take().said.key, buffer.key);
}

}  // namespace
}  // namespace rvma
