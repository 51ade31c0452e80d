// The completion writer alone, on a DMA engine of one's own: any object that takes writes will do.
#include <cstdint>
#include <functional>
#include <iostream>
#include <systemc>

#include "nic/completion_writer.hpp"

namespace {

class OwnDma : public rvma::DmaIf {
 public:
  void write(rvma::DmaWrite write, rvma::DmaClient& client, rvma::Time at) override {
    std::cout << "write at " << at.ps() / 1000 << " ns to 0x" << std::hex << write.to.segments[0].address.value()
              << ": head 0x" << write.word[0] << std::dec << ", length " << write.word[1] << "\n";
    client.dma_written(write.tag, at, at);
  }
  rvma::Time write_room_at() override { return rvma::Time::zero(); }
  void on_write_room(std::function<void()> /*room*/) override {}
  void read(rvma::DmaRead /*read*/, rvma::DmaClient& /*client*/, rvma::Time /*at*/) override {}
};

}  // namespace

int sc_main(int /*argc*/, char** /*argv*/) {
  rvma::SimContext context{1};
  const rvma::NicConfig config;  // 1 GHz: a cycle is a nanosecond
  const rvma::ObserverList observers;
  rvma::CompletionWriter writer("writer", context, config, rvma::NodeId{0}, observers);
  OwnDma dma;
  writer.dma(dma);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);

  // Two epochs end in cycle 10: one word a cycle, nic.completion.latency cycles after it was taken.
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    rvma::Completion completion;
    completion.epoch = rvma::Epoch{epoch};
    completion.head = rvma::VirtualAddress{0x7000 + 0x100 * epoch};
    completion.length = 64;
    completion.word = rvma::PhysicalAddress{0x200 + 16 * epoch};
    writer.complete(completion, rvma::Cycles{10});
  }
  std::cout << writer.stats().completions.value() << " words\n";
  return 0;
}
