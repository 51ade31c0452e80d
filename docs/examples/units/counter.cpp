// The counter unit alone. It counts in a window store, which is plain C++; what it would tell the rest of an RNIC, this
// program takes.
#include <cstdint>
#include <iostream>
#include <systemc>

#include "nic/counter_unit.hpp"

namespace {

class OwnDelivery : public rvma::DeliveryIf {
 public:
  Admission admit(const rvma::Packet& /*packet*/) override { return {}; }
  bool is_first(const rvma::Packet& /*packet*/) override { return false; }
  void bind(const rvma::MessageRef& /*message*/, std::uint32_t /*binding*/) override {}
  void refuse(const rvma::MessageRef& /*message*/, rvma::Outcome /*reason*/, rvma::Time /*at*/) override {}
  void dispose(const rvma::MessageRef& /*message*/, std::uint32_t /*sequence*/, rvma::Time /*at*/) override {}
  void withdraw(rvma::NodeId /*source*/, rvma::MessageId /*message*/, rvma::Time /*at*/) override {}
  void end(const rvma::MessageRef& message, rvma::Time at) override {
    std::cout << "message " << message.message.value() << " is whole at " << at.ps() / 1000 << " ns\n";
  }
};

class OwnCompletions : public rvma::CompletionWriterIf {
 public:
  void complete(const rvma::Completion& completion, rvma::Cycles at) override {
    std::cout << "epoch " << completion.epoch.value() << " ends with " << completion.length << " bytes in cycle "
              << at.count() << "\n";
  }
};

}  // namespace

int sc_main(int /*argc*/, char** /*argv*/) {
  rvma::SimContext context{1};
  rvma::NicConfig config;  // 1 GHz: a cycle is a nanosecond
  config.counters.latency = rvma::Cycles{3};
  rvma::WindowStore windows(config);
  const rvma::ObserverList observers;
  rvma::CounterUnit counters("counters", context, config, rvma::NodeId{0}, windows, observers);
  OwnDelivery delivery;
  OwnCompletions completions;
  counters.delivery(delivery);
  counters.completions(completions);

  // A window that completes after 16 bytes, with one buffer.
  rvma::Descriptor call;
  call.mailbox = rvma::Mailbox{1};
  call.threshold = 16;
  call.length = 64;
  const rvma::WindowId window = windows.allocate_window(call, rvma::Pid{0}).window;
  windows.open_window(window);
  windows.post_buffer(window, call);

  // Two messages of one packet each are bound, and their bytes enter the posted channel in the same nanosecond.
  for (std::uint32_t id = 0; id < 2; ++id) {
    rvma::DataHeader header;
    header.mailbox = rvma::Mailbox{1};
    header.message = rvma::MessageId{id};
    header.message_length = 8;
    header.payload_length = 8;
    header.offset = 8 * id;
    const rvma::BindAnswer bound = windows.bind(rvma::NodeId{1}, header, {true, window, false});
    rvma::PlacedPacket packet;
    packet.message.message = rvma::MessageId{id};
    packet.buffer = bound.place.buffer;
    packet.payload_length = 8;
    counters.count(std::move(packet), rvma::Time::from_ns(10));
  }
  sc_core::sc_start(1, sc_core::SC_US);
  std::cout << counters.stats().updates.value() << " updates\n";
  return 0;
}
