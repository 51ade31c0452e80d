// What the fabric costs by itself: uniform random traffic at saturation on several shapes and routings. For each: bytes
// that switches and links take before anything is sent, packet-hops a second of processor time, process activations a
// packet-hop, and the throughput as a share of what the nodes' links carry. Each runs in a process of its own (SystemC
// elaborates once). The throughput is reported, not judged: it depends on buffers, traffic and luck.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/wire.hpp"

namespace {

using namespace rvma;

constexpr std::uint16_t kPayloadBytes = 1024;
constexpr std::uint64_t kSeed = 1;

/// Sends packets to random others as early as credit allows; takes what comes at once.
class Endpoint : public PacketSinkIf {
 public:
  Endpoint(PacketPool& pool, std::uint32_t self, std::uint32_t nodes, std::uint64_t packets)
      : pool_(pool), self_(self), nodes_(nodes), left_(packets), random_(kSeed + self) {}
  void connect(LinkIf& out, LinkCreditIf& credit) {
    out_ = &out;
    credit_ = &credit;
    out.on_credit([this] { pump(); });
  }
  void pump() {
    while (left_ > 0) {
      if (out_->earliest_start(kPayloadBytes + kDataOverheadBytes, SimContext::now()).is_never()) return;
      PacketPtr packet = pool_.acquire();
      packet->transport.source = NodeId{self_};
      const auto other = static_cast<std::uint32_t>(random_.below(nodes_ - 1));
      packet->transport.destination = NodeId{other < self_ ? other : other + 1};
      packet->data.payload_length = kPayloadBytes;
      packet->wire_bytes = wire_bytes_of(*packet);
      --left_;
      out_->send(std::move(packet), SimContext::now());
    }
  }
  void deliver(PacketPtr packet, Time at) override {
    last_ = at;
    ++received_;
    credit_->return_credit(packet->wire_bytes, at);
  }
  std::uint64_t received() const { return received_; }
  Time last() const { return last_; }

 private:
  PacketPool& pool_;
  std::uint32_t self_;
  std::uint32_t nodes_;
  std::uint64_t left_;
  Random random_;
  LinkIf* out_ = nullptr;
  LinkCreditIf* credit_ = nullptr;
  std::uint64_t received_ = 0;
  Time last_;
};

struct Scenario {
  const char* name;
  std::uint32_t nodes;
  std::vector<const char*> sets;
};

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

double processor_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int measure(const Scenario& scenario, std::uint64_t packets, const std::string& buffer) {
  FabricConfig config;
  ErrorList errors;
  for (const char* set : scenario.sets) apply_set(set, keys_of(config), errors);
  apply_set("switch.buffer=" + buffer, keys_of(config), errors);
  validate_fabric(config, scenario.nodes, {kPayloadBytes + kDataOverheadBytes, 300}, errors);
  if (!errors.empty()) {
    std::fprintf(stderr, "%s\n", errors.shown().front().to_string().c_str());
    return 1;
  }
  SimContext context{kSeed};
  PacketPool pool;
  std::deque<Endpoint> endpoints;
  std::vector<FabricAttachment> attachments;
  const std::uint64_t each = std::max<std::uint64_t>(packets / scenario.nodes, 1);
  for (std::uint32_t node = 0; node < scenario.nodes; ++node) {
    attachments.push_back({&endpoints.emplace_back(pool, node, scenario.nodes, each), Bytes::kib(64)});
  }
  const std::uint64_t before = resident_bytes();
  const double set_up_from = processor_s();
  Fabric fabric("fabric", context, config, attachments);
  const double set_up_s = processor_s() - set_up_from;
  const std::uint64_t bytes = resident_bytes() - before;
  for (std::uint32_t node = 0; node < scenario.nodes; ++node) {
    endpoints[node].connect(fabric.link(NodeId{node}), fabric.credit(NodeId{node}));
  }
  const double from = processor_s();
  for (Endpoint& endpoint : endpoints) endpoint.pump();
  sc_core::sc_start();
  const double took_s = processor_s() - from;
  std::uint64_t received = 0;
  Time last;
  for (const Endpoint& endpoint : endpoints) {
    received += endpoint.received();
    last = std::max(last, endpoint.last());
  }
  if (received != each * scenario.nodes) {
    std::fprintf(stderr, "%s: %llu of %llu packets arrived\n", scenario.name, static_cast<unsigned long long>(received),
                 static_cast<unsigned long long>(each * scenario.nodes));
    return 1;
  }
  const auto hops = static_cast<double>(fabric.stats().packet_hops.value());
  const double offered_ps = static_cast<double>(last.ps()) / 20 * scenario.nodes;
  std::printf("%-28s %6u %7zu %7zu %8.0f %8.3f %6.2f %9.2f %7.2f %6.3f\n", scenario.name, scenario.nodes,
              fabric.switches().size(), fabric.links().size(), static_cast<double>(bytes) / scenario.nodes, set_up_s,
              hops / static_cast<double>(received), hops / took_s / 1e6,
              static_cast<double>(context.activations()) / hops,
              static_cast<double>(received) * (kPayloadBytes + kDataOverheadBytes) / offered_ps);
  return 0;
}

}  // namespace

int sc_main(int argc, char** argv) {
  std::uint64_t packets = 200'000;
  std::string buffer = "64KiB";
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string{argv[i]} == "--packets") packets = std::stoull(argv[i + 1]);
    if (std::string{argv[i]} == "--buffer") buffer = argv[i + 1];
  }
  const std::vector<Scenario> scenarios = {
      {"p2p", 2, {}},
      {"star 16", 16, {}},
      {"fat_tree 3x8 static", 512, {"topology=fat_tree"}},
      {"fat_tree 3x8 adaptive", 512, {"topology=fat_tree", "routing=adaptive"}},
      {"fat_tree 3x16/2 spray", 1024, {"topology=fat_tree", "fat_tree.arity=16", "fat_tree.taper=2", "routing=spray"}},
      {"dragonfly 4,8,4,33 static",
       1056,
       {"topology=dragonfly", "dragonfly.p=4", "dragonfly.a=8", "dragonfly.h=4", "dragonfly.groups=33"}},
      {"dragonfly 4,8,4,33 ugal",
       1056,
       {"topology=dragonfly", "dragonfly.p=4", "dragonfly.a=8", "dragonfly.h=4", "dragonfly.groups=33",
        "routing=ugal"}},
      {"hyperx 8x8x8 adaptive",
       1024,
       {"topology=hyperx", "hyperx.dims=8x8x8", "hyperx.nodes_per_switch=2", "routing=adaptive"}},
      {"torus 16x8x8 static", 1024, {"topology=torus", "torus.dims=16x8x8"}},
      {"torus 16x8x8 adaptive", 1024, {"topology=torus", "torus.dims=16x8x8", "routing=adaptive"}},
      {"torus 32x16x16 static", 8192, {"topology=torus", "torus.dims=32x16x16"}},
  };
  std::printf("%-28s %6s %7s %7s %8s %8s %6s %9s %7s %6s\n", "uniform random", "nodes", "switch", "links", "B/node",
              "set-up s", "hops", "Mhops/s", "act/hop", "share");
  std::fflush(stdout);
  int failed = 0;
  for (const Scenario& scenario : scenarios) {
    const pid_t child = fork();
    if (child == 0) {
      const int status = measure(scenario, packets, buffer);
      std::fflush(stdout);
      _exit(status);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failed += status == 0 ? 0 : 1;
  }
  return failed == 0 ? 0 : 1;
}
