// Two hosts of one's own, an RVMA RNIC in each, a link between them: one opens a window, the other puts into it.
#include <cstdint>
#include <functional>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "bus.hpp"
#include "fabric/fabric.hpp"
#include "nic/rnic.hpp"

namespace {

constexpr std::uint64_t kMailbox = 0xcafe;
constexpr std::uint32_t kKey = 4711;
constexpr std::uint64_t kLength = 10'000;

// Where each host keeps what. The driver of a real host would take these from its page tables.
constexpr std::uint64_t kAnswer = 0x100;      // (status, value) of a call
constexpr std::uint64_t kWord = 0x200;        // a completion word: (head, length); of a put: (outcome, bytes)
constexpr std::uint64_t kPageList = 0x1000;   // physical addresses of the pages of the buffer
constexpr std::uint64_t kVirtual = 0x7f0000;  // the buffer, as its process names it
constexpr std::uint64_t kPage = 4096;
const std::vector<std::uint64_t> kPages{0x20000, 0x16000, 0x31000};

struct OwnHost {
  OwnHost(const std::string& name, std::uint32_t node, rvma::SimContext& context, const rvma::NicConfig& config,
          rvma::PacketPool& packets, rvma::PayloadPool& payloads, const rvma::ObserverList& observers,
          std::function<void(OwnCpu&)> program)
      : rnic((name + "_rnic").c_str(), context, {config, rvma::Bytes{kPage}, rvma::NodeId{node}}, packets, payloads,
             observers),
        memory((name + "_memory").c_str(), 1U << 20U),
        bus((name + "_bus").c_str()),
        cpu((name + "_cpu").c_str(), std::move(program)) {
    cpu.socket.bind(bus.from_cpu);
    rnic.dma.bind(bus.from_device);
    bus.to_memory.bind(memory.socket);
    bus.to_device.bind(rnic.mmio);
  }
  rvma::Rnic rnic;
  OwnMemory memory;
  OwnBus bus;
  OwnCpu cpu;
};

void command(OwnCpu& cpu, const rvma::Descriptor& descriptor) {
  const rvma::DescriptorBytes bytes = rvma::encode(descriptor);
  cpu.write(kDeviceBase + rvma::kInlineOffset, bytes.data(), bytes.size());
}

// A call that answers: waits for its (status, value).
bool call(OwnCpu& cpu, rvma::Descriptor descriptor) {
  const std::uint64_t none[2] = {0, 0};
  cpu.write(kAnswer, none, sizeof none);
  descriptor.response = rvma::PhysicalAddress{kAnswer};
  command(cpu, descriptor);
  return cpu.wait_until_written(kAnswer) == static_cast<std::uint64_t>(rvma::Status::ok);
}

std::vector<std::uint8_t> message() {
  std::vector<std::uint8_t> bytes(kLength);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  return bytes;
}

void receive(OwnCpu& cpu) {
  rvma::Descriptor init;
  init.opcode = rvma::Opcode::init_window;
  init.mailbox = rvma::Mailbox{kMailbox};
  init.threshold = kLength;
  init.key = kKey;
  std::cout << "receiver: init_window " << (call(cpu, init) ? "ok" : "failed") << "\n";

  cpu.write(kPageList, kPages.data(), 8 * kPages.size());
  rvma::Descriptor post;
  post.opcode = rvma::Opcode::post_buffer;
  post.mailbox = rvma::Mailbox{kMailbox};
  post.local = rvma::VirtualAddress{kVirtual};
  post.length = kLength;
  post.page_list = rvma::PhysicalAddress{kPageList};
  post.completion = rvma::PhysicalAddress{kWord};
  std::cout << "receiver: post_buffer " << (call(cpu, post) ? "ok" : "failed") << "\n";

  // One completion word, 16 bytes at once; what it announces is in memory.
  const std::uint64_t head = cpu.wait_until_written(kWord);
  std::cout << "receiver: completion word: head 0x" << std::hex << head << std::dec << ", length "
            << cpu.load(kWord + 8) << "\n";
  std::vector<std::uint8_t> bytes(kLength);
  for (std::uint64_t at = 0; at < kLength; at += kPage) {
    cpu.read(kPages[at / kPage], bytes.data() + at, std::min(kPage, kLength - at));
  }
  std::cout << "receiver: bytes " << (bytes == message() ? "as they were sent" : "wrong") << "\n";
}

void send(OwnCpu& cpu) {
  const std::vector<std::uint8_t> bytes = message();
  for (std::uint64_t at = 0; at < kLength; at += kPage) {
    cpu.write(kPages[at / kPage], bytes.data() + at, std::min(kPage, kLength - at));
  }
  cpu.write(kPageList, kPages.data(), 8 * kPages.size());
  wait(5, sc_core::SC_US);  // the window is open by then
  rvma::Descriptor put;
  put.opcode = rvma::Opcode::put;
  put.mailbox = rvma::Mailbox{kMailbox};
  put.key = kKey;
  put.length = kLength;
  put.local = rvma::VirtualAddress{kVirtual};
  put.page_list = rvma::PhysicalAddress{kPageList};
  put.completion = rvma::PhysicalAddress{kWord};
  put.destination_node = rvma::NodeId{1};
  const sc_core::sc_time before = sc_core::sc_time_stamp();
  command(cpu, put);
  const bool ok = cpu.wait_until_written(kWord) == static_cast<std::uint64_t>(rvma::Outcome::ok);
  std::cout << "sender: put " << (ok ? "ok" : "failed") << ", " << cpu.load(kWord + 8) << " bytes, after "
            << sc_core::sc_time_stamp() - before << "\n";
}

}  // namespace

int sc_main(int /*argc*/, char** /*argv*/) {
  rvma::SimContext context{1};
  const rvma::NicConfig config;  // the defaults; config.table.rows = 1024 and the like change them
  const rvma::FabricConfig fabric_config;
  rvma::PacketPool packets;
  rvma::PayloadPool payloads(static_cast<std::uint32_t>(config.mtu->count()));
  const rvma::ObserverList observers;

  OwnHost sender("sender", 0, context, config, packets, payloads, observers, send);
  OwnHost receiver("receiver", 1, context, config, packets, payloads, observers, receive);
  const std::vector<rvma::FabricAttachment> ends{{&sender.rnic.network_input(), config.receive.buffer},
                                                 {&receiver.rnic.network_input(), config.receive.buffer}};
  rvma::Fabric fabric("fabric", context, fabric_config, ends, packets);
  sender.rnic.connect(fabric.link(rvma::NodeId{0}), fabric.credit(rvma::NodeId{0}));
  receiver.rnic.connect(fabric.link(rvma::NodeId{1}), fabric.credit(rvma::NodeId{1}));

  sc_core::sc_start();
  std::cout << "receiver's RNIC wrote " << receiver.rnic.dma_engine().stats().write_bytes.value()
            << " bytes to the bus\n";
  return 0;
}
