// The whole RNIC: two of them back to back, over a plain link, each in front of a plain memory that knows nothing of
// this project's bus extension.
#include "nic/rnic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plain_host.hpp"
#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::Cpu;
using test::ns;
using test::PlainLink;
using test::PlainMemory;
using test::run_until;
using test::Script;
using test::TargetStyle;

constexpr std::uint64_t kPage = 4096;
constexpr Mailbox kMailbox{0xbeef'0000'0000'0000};

struct Host {
  Host(SimContext& context, const NicConfig& config, std::uint32_t id, PacketPool& packets, PayloadPool& payloads,
       const ObserverList& observers, TargetStyle style)
      : rnic(("rnic" + std::to_string(id)).c_str(), context, {config, Bytes{kPage}, NodeId{id}}, packets, payloads,
             observers),
        memory(("memory" + std::to_string(id)).c_str(), style),
        cpu(("cpu" + std::to_string(id)).c_str()) {
    rnic.dma.bind(memory.socket);
    cpu.socket.bind(rnic.mmio);
  }
  Rnic rnic;
  PlainMemory memory;
  Cpu cpu;
};

struct Bench {
  explicit Bench(TargetStyle style, const NicConfig& nic_config = {}) : config(nic_config) {
    payloads = std::make_unique<PayloadPool>(static_cast<std::uint32_t>(config.mtu->count()));
    for (std::uint32_t id = 0; id < 2; ++id) {
      hosts.push_back(std::make_unique<Host>(context, config, id, packets, *payloads, observers, style));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      links[i].connect(hosts[1 - i]->rnic.network_input());
      hosts[i]->rnic.connect(links[i], links[1 - i]);
    }
  }

  SimContext context{1};
  NicConfig config;
  PacketPool packets;
  std::unique_ptr<PayloadPool> payloads;
  ObserverList observers;
  Script script{"script", context};
  PlainLink links[2]{PlainLink{"link0"}, PlainLink{"link1"}};
  std::vector<std::unique_ptr<Host>> hosts;
};

// Addresses in each host's memory.
constexpr std::uint64_t kAnswer = 0x100;
constexpr std::uint64_t kBufferWord = 0x200;
constexpr std::uint64_t kPutWord = 0x300;
constexpr std::uint64_t kBufferList = 0x1000;
constexpr std::uint64_t kSourceList = 0x2000;
constexpr std::uint64_t kData = 0x10000;
constexpr std::uint64_t kLength = 10'000;

/// Pages of a buffer or source that begins at byte `first` of its first page; scattered, and not where the other is.
std::vector<std::uint64_t> pages(std::uint64_t salt) {
  return {kData + (7 + salt) * kPage, kData + (2 + salt) * kPage, kData + (11 + salt) * kPage,
          kData + (4 + salt) * kPage};
}

void open_window(Host& host, std::uint64_t threshold) {
  Descriptor init;
  init.opcode = Opcode::init_window;
  init.mailbox = kMailbox;
  init.threshold = threshold;
  init.key = 77;
  init.response = PhysicalAddress{kAnswer};
  host.cpu.command(init);
  const std::vector<std::uint64_t> list = pages(20);
  for (std::size_t i = 0; i < list.size(); ++i) host.memory.store64(kBufferList + 8 * i, list[i]);
  Descriptor post;
  post.opcode = Opcode::post_buffer;
  post.mailbox = kMailbox;
  post.local = VirtualAddress{0x5000'0000 + 64};
  post.length = kLength;
  post.page_list = PhysicalAddress{kBufferList};
  post.completion = PhysicalAddress{kBufferWord};
  post.response = PhysicalAddress{kAnswer + 16};
  host.cpu.command(post, /*blocking=*/false);
}

void put(Host& host, NodeId to, std::uint32_t key = 77) {
  const std::vector<std::uint64_t> list = pages(0);
  for (std::size_t i = 0; i < list.size(); ++i) host.memory.store64(kSourceList + 8 * i, list[i]);
  for (std::uint64_t i = 0; i < kLength; ++i) {
    host.memory.bytes[list[(i + 1000) / kPage] + (i + 1000) % kPage] = static_cast<std::uint8_t>(i * 7 + i / 256);
  }
  Descriptor put;
  put.opcode = Opcode::put;
  put.mailbox = kMailbox;
  put.key = key;
  put.length = kLength;
  put.local = VirtualAddress{0x6000'0000 + 1000};
  put.page_list = PhysicalAddress{kSourceList};
  put.completion = PhysicalAddress{kPutWord};
  put.destination_node = to;
  host.cpu.command(put);
}

void expect_delivered(const Host& host) {
  EXPECT_EQ(host.memory.load64(kAnswer), static_cast<std::uint64_t>(Status::ok));
  EXPECT_EQ(host.memory.load64(kAnswer + 16), static_cast<std::uint64_t>(Status::ok));
  EXPECT_EQ(host.memory.load64(kBufferWord), 0x5000'0040U);
  EXPECT_EQ(host.memory.load64(kBufferWord + 8), kLength);
  const std::vector<std::uint64_t> list = pages(20);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kLength; ++i) {
    const std::uint8_t byte = host.memory.bytes[list[(i + 64) / kPage] + (i + 64) % kPage];
    wrong += byte == static_cast<std::uint8_t>(i * 7 + i / 256) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0U);
}

void one_put(TargetStyle style) {
  Bench bench{style};
  bench.script.at(Time::from_us(1), [&] { open_window(*bench.hosts[1], kLength); });
  bench.script.at(Time::from_us(5), [&] { put(*bench.hosts[0], NodeId{1}); });
  run_until(Time::from_us(5));
  EXPECT_EQ(bench.hosts[1]->memory.load64(kBufferWord), 0U);
  run_until(Time::from_us(50));
  expect_delivered(*bench.hosts[1]);
  EXPECT_EQ(bench.hosts[0]->memory.load64(kPutWord), static_cast<std::uint64_t>(Outcome::ok));
  EXPECT_EQ(bench.hosts[0]->memory.load64(kPutWord + 8), kLength);
  // Everything is given back, and nothing goes on.
  EXPECT_EQ(bench.packets.in_use(), 0U);
  EXPECT_EQ(bench.payloads->in_use(), 0U);
  EXPECT_EQ(bench.hosts[0]->rnic.transmit().open_puts(), 0U);
  EXPECT_EQ(bench.links[0].packets, 3U);
  EXPECT_EQ(bench.links[0].credit, bench.hosts[0]->rnic.egress().stats().wire_bytes.value());
  const std::uint64_t before = bench.context.activations();
  run_until(Time::from_us(100'000));
  EXPECT_EQ(bench.context.activations(), before);
}

TEST(Rnic, PutsThroughAForeignFourPhaseMemory) { one_put(TargetStyle::four_phase); }

TEST(Rnic, PutsThroughAForeignEarlyCompletingMemory) { one_put(TargetStyle::early_completion); }

TEST(Rnic, APutToTheOwnNodeTurnsRoundBeforeTheLink) {
  Bench bench{TargetStyle::early_completion};
  bench.script.at(Time::from_us(1), [&] { open_window(*bench.hosts[0], kLength); });
  bench.script.at(Time::from_us(5), [&] { put(*bench.hosts[0], NodeId{0}); });
  run_until(Time::from_us(50));
  expect_delivered(*bench.hosts[0]);
  EXPECT_EQ(bench.hosts[0]->memory.load64(kPutWord), static_cast<std::uint64_t>(Outcome::ok));
  EXPECT_EQ(bench.links[0].packets + bench.links[1].packets, 0U);
  EXPECT_EQ(bench.links[0].credit + bench.links[1].credit, 0U);
}

TEST(Rnic, ARefusedPutEndsWithItsReasonAndLeavesNoTrace) {
  Bench bench{TargetStyle::early_completion};
  bench.script.at(Time::from_us(1), [&] { open_window(*bench.hosts[1], kLength); });
  bench.script.at(Time::from_us(5), [&] { put(*bench.hosts[0], NodeId{1}, 78); });
  run_until(Time::from_us(50));
  EXPECT_EQ(bench.hosts[0]->memory.load64(kPutWord), static_cast<std::uint64_t>(Outcome::bad_key));
  EXPECT_EQ(bench.hosts[1]->memory.load64(kBufferWord), 0U);
  const auto& memory = bench.hosts[1]->memory.bytes;
  EXPECT_TRUE(std::all_of(memory.begin() + kData, memory.end(), [](std::uint8_t byte) { return byte == 0; }));
}

TEST(Rnic, AnArmedBufferInterrupts) {
  Bench bench{TargetStyle::early_completion};
  bench.script.at(Time::from_us(1), [&] {
    open_window(*bench.hosts[1], kLength);
    Descriptor arm;
    arm.opcode = Opcode::arm_interrupt;
    arm.completion = PhysicalAddress{kBufferWord};
    bench.hosts[1]->cpu.command(arm);
  });
  bench.script.at(Time::from_us(5), [&] { put(*bench.hosts[0], NodeId{1}); });
  run_until(Time::from_us(5));
  EXPECT_TRUE(bench.hosts[1]->memory.beyond.empty());
  run_until(Time::from_us(50));
  EXPECT_EQ(bench.hosts[1]->memory.beyond, (std::vector<std::uint64_t>{interrupt_address(Pid{0}).value()}));
  EXPECT_TRUE(bench.hosts[0]->memory.beyond.empty());
}

TEST(Rnic, RingModeFetchesItsDescriptors) {
  NicConfig config;
  config.command.mode = CommandMode::ring;
  Bench bench{TargetStyle::four_phase, config};
  Host& host = *bench.hosts[0];
  host.rnic.set_ring(Pid{0}, PhysicalAddress{0x4000}, 16, PhysicalAddress{0x5000});
  Descriptor init;
  init.opcode = Opcode::init_window;
  init.mailbox = kMailbox;
  init.threshold = 1;
  init.response = PhysicalAddress{kAnswer};
  const DescriptorBytes bytes = encode(init);
  std::copy(bytes.begin(), bytes.end(), host.memory.bytes.begin() + 0x4000);
  bench.script.at(Time::from_us(1), [&] {
    std::uint8_t tail[8] = {1};
    EXPECT_EQ(host.cpu.access(kDoorbellOffset, tail, 8), tlm::TLM_OK_RESPONSE);
  });
  run_until(Time::from_us(5));
  EXPECT_EQ(host.memory.load64(kAnswer), static_cast<std::uint64_t>(Status::ok));
}

TEST(Rnic, MmioAccessesThatMeanNothingAreErrors) {
  Bench bench{TargetStyle::early_completion};
  Cpu& cpu = bench.hosts[0]->cpu;
  run_until(ns(1));
  std::uint8_t bytes[64] = {};
  EXPECT_EQ(cpu.access(0, bytes, 8, true, tlm::TLM_READ_COMMAND), tlm::TLM_COMMAND_ERROR_RESPONSE);
  EXPECT_EQ(cpu.access(8, bytes, 8), tlm::TLM_GENERIC_ERROR_RESPONSE);
  EXPECT_EQ(cpu.access(65536 * kMmioPageBytes, bytes, 8), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(cpu.access(~std::uint64_t{0} - 7, bytes, 8, false), tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

}  // namespace
}  // namespace rvma
