// What a simulated packet costs: `gen stream` with 4 KiB packets on two nodes, with and without payload bytes, beside a
// bare SystemC loop of 11 method activations and two 4 KiB copies a packet. Each measurement runs in a process of its
// own (SystemC elaborates once), in turns, so that the ratio of two of them is of one moment of the machine.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <systemc>
#include <vector>

#include "measure.hpp"

namespace {

using namespace rvma;
using namespace rvma::bench;

/// The ceiling: what the kernel and the copies cost when nothing is modelled.
class BareLoop : public sc_core::sc_module {
 public:
  static constexpr std::size_t kStages = 11;
  static constexpr std::size_t kPacketBytes = 4096;

  BareLoop(const sc_core::sc_module_name& name, std::uint64_t packets)
      : sc_module(name), packets_(packets), source_(kPacketBytes, 1), payload_(kPacketBytes), target_(kPacketBytes) {
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      sc_core::sc_spawn_options options;
      options.spawn_method();
      options.dont_initialize();
      options.set_sensitivity(&events_[stage]);
      sc_core::sc_spawn([this, stage] { pass(stage); }, sc_core::sc_gen_unique_name("stage"), &options);
    }
    events_[0].notify(sc_core::sc_time(1, sc_core::SC_NS));
  }

  std::uint64_t activations() const { return activations_; }

 private:
  void pass(std::size_t stage) {
    ++activations_;
    if (stage == 3) std::memcpy(payload_.data(), source_.data(), kPacketBytes);
    if (stage == 8) std::memcpy(target_.data(), payload_.data(), kPacketBytes);
    const std::size_t next = (stage + 1) % kStages;
    if (next == 0 && ++done_ == packets_) return;
    events_[next].notify(sc_core::sc_time(1, sc_core::SC_NS));
  }

  std::uint64_t packets_;
  std::uint64_t done_ = 0;
  std::uint64_t activations_ = 0;
  std::vector<std::uint8_t> source_;
  std::vector<std::uint8_t> payload_;
  std::vector<std::uint8_t> target_;
  sc_core::sc_event events_[kStages];
};

Measurement measure_bare_loop(std::uint64_t packets) {
  BareLoop loop("loop", packets);
  const std::uint64_t wall = wall_ns_of([] { sc_core::sc_start(); });
  return {packets, wall, loop.activations()};
}

void print_line(const char* what, const Measurement& best, const Measurement& bare) {
  std::printf("%-34s %12.0f packets/s %8.2f activations/packet %6.2f of the bare loop\n", what, best.packets_per_s(),
              static_cast<double>(best.activations) / static_cast<double>(best.packets),
              best.packets_per_s() / bare.packets_per_s());
}

}  // namespace

int sc_main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::uint64_t packets = option(arguments, "--packets", 1'000'000);
  const std::uint64_t rounds = option(arguments, "--rounds", 5);
  // One stream alone, in this process: for a profiler.
  const std::uint64_t profile = option(arguments, "--profile", 0);
  Measurement bare;
  struct Stream {
    const char* name;
    std::uint64_t packets_per_put;
    PayloadMode payload;
    Measurement best;
  };
  std::vector<Stream> streams{{"stream of 64 KiB puts, bytes", 16, PayloadMode::bytes, {}},
                              {"stream of 64 KiB puts, timing only", 16, PayloadMode::none, {}},
                              {"stream of 4 KiB puts, bytes", 1, PayloadMode::bytes, {}},
                              {"stream of 4 KiB puts, timing only", 1, PayloadMode::none, {}}};
  if (profile > 0 && profile <= streams.size()) {
    const Stream& stream = streams[profile - 1];
    measure_stream(packets, stream.packets_per_put, stream.payload);
    return 0;
  }
  for (std::uint64_t round = 0; round < rounds; ++round) {
    keep_best(bare, in_child([&] { return measure_bare_loop(packets); }));
    for (Stream& stream : streams) {
      keep_best(stream.best, in_child([&] { return measure_stream(packets, stream.packets_per_put, stream.payload); }));
    }
  }
  std::printf("Best of %llu rounds, %llu packets of 4 KiB each\n", static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(packets));
  print_line("bare kernel, 11 activations, 2 copies", bare, bare);
  for (const Stream& stream : streams) print_line(stream.name, stream.best, bare);
  return 0;
}
