#include "host/pcie.hpp"

#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "host/memory.hpp"
#include "host_fixture.hpp"

namespace rvma {
namespace {

using test::at;
using test::pattern;
using Item = test::TransactionPool::Item;

constexpr Time ns(std::int64_t n) { return Time::from_ns(n); }
Time from_sc(const sc_core::sc_time& time) { return Time::from_ps(static_cast<std::int64_t>(time.value())); }

/// How the initiator ends a response.
enum class Ending { completed, updated, accepted };

/// The RNIC's end of the link: issues DMA, takes MMIO.
struct Device : sc_core::sc_module {
  tlm_utils::simple_initiator_socket<Device> dma{"dma"};
  tlm_utils::simple_target_socket<Device> mmio{"mmio"};
  test::TransactionPool pool;
  Ending ending = Ending::completed;
  Time response_time = ns(3);  ///< for updated and accepted
  std::function<void(Time)> on_response;

  struct Response {
    tlm::tlm_generic_payload* payload;
    Time when;
  };
  std::vector<Response> responses;
  struct Mmio {
    Time called;
    Time effective;
    std::uint64_t address;
    std::vector<std::uint8_t> data;
  };
  std::vector<Mmio> writes;

  explicit Device(const sc_core::sc_module_name& name) : sc_module(name) {
    dma.register_nb_transport_bw(this, &Device::nb_transport_bw);
    mmio.register_b_transport(this, &Device::b_transport);
  }

  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) {
    EXPECT_EQ(phase, tlm::BEGIN_RESP);
    EXPECT_EQ(delay, sc_core::SC_ZERO_TIME);
    responses.push_back({&payload, SimContext::now()});
    if (on_response) on_response(SimContext::now());
    switch (ending) {
      case Ending::completed:
        payload.release();
        return tlm::TLM_COMPLETED;
      case Ending::updated:
        phase = tlm::END_RESP;
        delay = SimContext::to_sc(response_time);
        payload.release();
        return tlm::TLM_UPDATED;
      case Ending::accepted:
        break;
    }
    at(SimContext::now() + response_time, [this, &payload] {
      tlm::tlm_phase end = tlm::END_RESP;
      sc_core::sc_time none = sc_core::SC_ZERO_TIME;
      dma->nb_transport_fw(payload, end, none);
      payload.release();
    });
    return tlm::TLM_ACCEPTED;
  }
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    writes.push_back({SimContext::now(),
                      SimContext::now() + from_sc(delay),
                      payload.get_address(),
                      {payload.get_data_ptr(), payload.get_data_ptr() + payload.get_data_length()}});
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }

  struct Posted {
    Time entered;
    Time visible;
  };
  /// A write from `start` (not before now) on.
  Posted write(std::uint64_t address, std::vector<std::uint8_t> data, Time start, bool relaxed = true) {
    Item& item = pool.make(tlm::TLM_WRITE_COMMAND, address, std::move(data), relaxed);
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = SimContext::to_sc(start - SimContext::now());
    EXPECT_EQ(dma->nb_transport_fw(item.payload, phase, delay), tlm::TLM_COMPLETED);
    EXPECT_TRUE(item.payload.is_response_ok());
    const Posted posted{SimContext::now() + from_sc(delay), item.burst.visible};
    item.payload.release();
    return posted;
  }
  /// Returns the time at which the requests have left.
  Time read(std::uint64_t address, std::size_t bytes, Time start, Item** issued = nullptr) {
    Item& item = pool.make(tlm::TLM_READ_COMMAND, address, std::vector<std::uint8_t>(bytes, 0xee));
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = SimContext::to_sc(start - SimContext::now());
    EXPECT_EQ(dma->nb_transport_fw(item.payload, phase, delay), tlm::TLM_UPDATED);
    EXPECT_EQ(phase, tlm::END_REQ);
    if (issued != nullptr) *issued = &item;
    return SimContext::now() + from_sc(delay);
  }
};

/// A core's end.
struct Host : sc_core::sc_module {
  tlm_utils::simple_initiator_socket<Host> mmio{"mmio"};
  explicit Host(const sc_core::sc_module_name& name) : sc_module(name) {}

  tlm::tlm_response_status write(std::uint64_t address, std::vector<std::uint8_t> data,
                                 tlm::tlm_command command = tlm::TLM_WRITE_COMMAND) {
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_address(address);
    payload.set_data_ptr(data.data());
    payload.set_data_length(static_cast<unsigned>(data.size()));
    payload.set_streaming_width(static_cast<unsigned>(data.size()));
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    mmio->b_transport(payload, delay);
    EXPECT_EQ(delay, sc_core::SC_ZERO_TIME);
    return payload.get_response_status();
  }
};

struct PcieTest : testing::Test {
  SimContext context{1};
  HostConfig config;
  Device device{"device"};  // first, because its transactions may be pending in memory until that ends
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Pcie> pcie;
  Host host{"host"};
  Host second_host{"second_host"};

  void build() {
    memory = std::make_unique<Memory>("memory", context, config);
    pcie = std::make_unique<Pcie>("pcie", context, config, *memory);
    device.dma.bind(pcie->device_dma);
    host.mmio.bind(pcie->core_mmio);
    second_host.mmio.bind(pcie->core_mmio);
    pcie->device_mmio.bind(device.mmio);
  }
  /// Time that `wire_bytes` take on an idle direction.
  Time on_wire(std::uint64_t wire_bytes) const { return Serializer{pcie->tlp_rate()}.duration_of(wire_bytes); }
  std::vector<std::uint8_t> peek(std::uint64_t address, std::size_t bytes) {
    std::vector<std::uint8_t> data(bytes);
    memory->read(PhysicalAddress{address}, data.data(), bytes);
    return data;
  }
};

// ------------------------------------------------------------------------------------------------- the rate table

double gbps(Rate rate) { return static_cast<double>(rate.bits_per_s()) / 1e9; }

void expect_within_one_percent(double value, double reference, const std::string& what) {
  EXPECT_NEAR(value, reference, reference * 0.01) << what;
}

TEST(PcieLinkTest, RatesAreThoseOfTheReference) {
  const double line[] = {126.0, 252.1, 504.1, 968, 1936, 3872};
  const double tlp[] = {113.7, 227.4, 454.8, 873, 1746, 3493};
  for (std::uint32_t generation = 3; generation <= 8; ++generation) {
    const std::string what = "generation " + std::to_string(generation);
    expect_within_one_percent(gbps(PcieLink::line_rate(generation, 16)), line[generation - 3], what);
    expect_within_one_percent(gbps(PcieLink::tlp_rate(generation, 16, Bytes{256})), tlp[generation - 3], what);
    expect_within_one_percent(gbps(PcieLink::line_rate(generation, 4)), line[generation - 3] / 4, what);
  }
  // The SIGCOMM'18 paper's own example.
  expect_within_one_percent(gbps(PcieLink::tlp_rate(3, 8, Bytes{256})), 57.88, "Gen3 x8");
}

TEST(PcieLinkTest, GenerationsAreThoseThatHaveARate) {
  PcieConfig config;
  for (const char* text : {"3", "8"}) EXPECT_FALSE(config.generation.set_text(text).has_value()) << text;
  for (const char* text : {"2", "9"}) EXPECT_TRUE(config.generation.set_text(text).has_value()) << text;
  EXPECT_EQ(PcieLink::line_rate(8, 16).bits_per_s(), 2 * PcieLink::line_rate(7, 16).bits_per_s());
}

TEST(PcieLinkTest, TlpsAreCutAtTheLimitAndAtAddressBoundaries) {
  EXPECT_EQ(PcieLink::tlps(0, 1, 256), 1U);
  EXPECT_EQ(PcieLink::tlps(0, 256, 256), 1U);
  EXPECT_EQ(PcieLink::tlps(0, 257, 256), 2U);
  EXPECT_EQ(PcieLink::tlps(100, 256, 256), 1U);
  EXPECT_EQ(PcieLink::tlps(4095, 2, 256), 2U);
  EXPECT_EQ(PcieLink::tlps(4096 - 300, 600, 256), 4U);
  EXPECT_EQ(PcieLink::tlps(0, 4096, 512), 8U);
  EXPECT_EQ(PcieLink::tlps(8, 4096, 4096), 2U);
}

/// Payload rate of back-to-back writes of `bytes`, in Gb/s.
struct WriteRateTest : PcieTest {
  double measure(std::uint32_t generation, std::uint64_t max_payload, std::size_t bytes) {
    config.pcie.generation = generation;
    config.pcie.max_payload = Bytes{max_payload};
    build();
    constexpr int kBursts = 5'000;
    Time end;
    at(ns(1), [&] {
      for (int i = 0; i < kBursts; ++i) {
        end = device.write(static_cast<std::uint64_t>(i) * bytes, pattern(bytes, 1), SimContext::now()).entered;
      }
    });
    sc_core::sc_start();
    EXPECT_EQ(pcie->stats().credit_stalls.value(), 0U) << "the defaults never limit";
    EXPECT_EQ(pcie->stats().upstream_payload_bytes.value(), kBursts * bytes);
    return static_cast<double>(kBursts) * static_cast<double>(bytes) * 8'000 / static_cast<double>((end - ns(1)).ps());
  }
};

TEST_F(WriteRateTest, Generation4MaxPayload256) { expect_within_one_percent(measure(4, 256, 4096), 207.9, "Gb/s"); }
TEST_F(WriteRateTest, Generation4MaxPayload512) { expect_within_one_percent(measure(4, 512, 4096), 219.0, "Gb/s"); }
TEST_F(WriteRateTest, Generation5MaxPayload256) { expect_within_one_percent(measure(5, 256, 4096), 415.8, "Gb/s"); }
TEST_F(WriteRateTest, Generation5MaxPayload512) { expect_within_one_percent(measure(5, 512, 4096), 438.0, "Gb/s"); }
TEST_F(WriteRateTest, Generation4Of64Bytes) { expect_within_one_percent(measure(4, 256, 64) / 512e-3, 323, "M/s"); }
TEST_F(WriteRateTest, Generation5Of64Bytes) { expect_within_one_percent(measure(5, 256, 64) / 512e-3, 646, "M/s"); }
TEST_F(WriteRateTest, Generation5Of8Bytes) { expect_within_one_percent(measure(5, 256, 8) / 64e-3, 1777, "M/s"); }
TEST_F(WriteRateTest, Generation6Of1Byte) {
  const double expected = 873.0 / (25 * 8);
  expect_within_one_percent(measure(6, 256, 1) / 8, expected, "G/s");
}

TEST_F(PcieTest, ReadsReachTheDownstreamRate) {
  build();
  constexpr int kReads = 1000;
  at(ns(1), [&] {
    for (int i = 0; i < kReads; ++i) device.read(static_cast<std::uint64_t>(i) * 4096, 4096, SimContext::now());
  });
  sc_core::sc_start();
  ASSERT_EQ(device.responses.size(), static_cast<std::size_t>(kReads));
  // 16 completions of 256 B each; the first read's latency apart.
  const Time busy = device.responses.back().when - device.responses.front().when;
  const double rate = (kReads - 1) * 4096.0 * 8'000 / static_cast<double>(busy.ps());
  expect_within_one_percent(rate, 454.8 * 256 / 276, "Gb/s");
  // One activation a read, one for the time at which the requests were issued.
  EXPECT_LE(context.activations(), static_cast<std::uint64_t>(kReads));
}

// ------------------------------------------------------------------------------------------------- exact latencies

TEST_F(PcieTest, AWriteEntersAndBecomesVisibleAtTheExactTimes) {
  build();
  const auto data = pattern(64, 4);
  Device::Posted posted;
  at(ns(10), [&] {
    posted = device.write(8192, data, ns(25));
    EXPECT_EQ(posted.entered, ns(25) + on_wire(64 + 24));
    EXPECT_EQ(posted.visible, posted.entered + ns(250));
    at(posted.visible - Time::from_ps(1), [&] { EXPECT_EQ(peek(8192, 64), std::vector<std::uint8_t>(64, 0)); });
    at(posted.visible, [&] { EXPECT_EQ(peek(8192, 64), data); });
  });
  sc_core::sc_start();
  EXPECT_EQ(SimContext::now(), posted.visible);
  EXPECT_EQ(context.activations(), 0U);
  EXPECT_EQ(device.pool.freed(), 1U);
}

TEST_F(PcieTest, AReadTakesExactlyTheSumOfItsParts) {
  build();
  const auto data = pattern(64, 4);
  memory->write(PhysicalAddress{640}, data.data(), data.size());
  Item* item = nullptr;
  at(ns(10), [&] { EXPECT_EQ(device.read(640, 64, ns(12), &item), ns(12) + on_wire(24)); });
  const Time expected = ns(12) + on_wire(24) + ns(500) + on_wire(64 + 20);
  at(expected - Time::from_ps(1), [&] { EXPECT_TRUE(device.responses.empty()); });
  sc_core::sc_start();
  ASSERT_EQ(device.responses.size(), 1U);
  EXPECT_EQ(device.responses[0].when, expected);
  EXPECT_TRUE(item->payload.is_response_ok());
  EXPECT_EQ(item->data, data);
  EXPECT_EQ(context.activations(), 1U);
  EXPECT_EQ(device.pool.freed(), 1U);
}

TEST_F(PcieTest, AnMmioWriteReachesTheDeviceAtTheExactTimeWithoutAnEvent) {
  build();
  at(ns(10), [&] {
    EXPECT_EQ(host.write(0x40, pattern(64, 1)), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(second_host.write(0x1000, pattern(8, 2)), tlm::TLM_OK_RESPONSE);
  });
  sc_core::sc_start();
  ASSERT_EQ(device.writes.size(), 2U);
  EXPECT_EQ(device.writes[0].called, ns(10));
  EXPECT_EQ(device.writes[0].effective, ns(10) + on_wire(88) + ns(250));
  EXPECT_EQ(device.writes[0].data, pattern(64, 1));
  EXPECT_EQ(device.writes[1].effective, ns(10) + on_wire(88 + 32) + ns(250));
  EXPECT_EQ(device.writes[1].address, 0x1000U);
  EXPECT_EQ(context.activations(), 0U);
  EXPECT_EQ(pcie->stats().mmio_writes.value(), 2U);
}

TEST_F(PcieTest, ALongMmioWriteLeavesTheCoreIn64BytePieces) {
  build();
  at(ns(10), [&] { EXPECT_EQ(host.write(0x40, pattern(64 + 130, 1)), tlm::TLM_OK_RESPONSE); });
  sc_core::sc_start();
  ASSERT_EQ(device.writes.size(), 1U);
  EXPECT_EQ(device.writes[0].effective, ns(10) + on_wire(194 + 4 * 24) + ns(250));
  EXPECT_EQ(device.writes[0].data, pattern(64 + 130, 1));
  EXPECT_EQ(pcie->stats().downstream_tlps.value(), 4U);
}

TEST_F(PcieTest, AnMmioWriteOvertakesTheLatencyOfReadsButNotTheirCompletions) {
  build();
  Time first_byte;
  at(ns(10), [&] {
    device.read(0, 4096, ns(10));
    first_byte = ns(10) + on_wire(24) + ns(500);
    // While the host looks up the data, the downstream channel is free.
    host.write(0, pattern(8, 1));
    // Just before the completions: the write delays them.
    at(first_byte - Time::from_ps(100), [&] { host.write(0, pattern(64, 1)); });
    // In their midst: the write waits for their end.
    at(first_byte + ns(5), [&] { host.write(0, pattern(8, 1)); });
  });
  sc_core::sc_start();
  ASSERT_EQ(device.writes.size(), 3U);
  EXPECT_EQ(device.writes[0].effective, ns(10) + on_wire(32) + ns(250));
  Serializer downstream{pcie->tlp_rate()};
  const Time second = downstream.occupy(88, first_byte - Time::from_ps(100)).end;
  EXPECT_EQ(device.writes[1].effective, second + ns(250));
  const Time read_end = downstream.occupy(4096 + 16 * 20, first_byte).end;
  ASSERT_EQ(device.responses.size(), 1U);
  EXPECT_EQ(device.responses[0].when, read_end);
  EXPECT_EQ(device.writes[2].effective, downstream.occupy(32, first_byte + ns(5)).end + ns(250));
}

// --------------------------------------------------------------------------------------------------------- ordering

TEST_F(PcieTest, AStrictWriteIsNeverVisibleBeforeEarlierOnes) {
  constexpr std::uint64_t kSeed = 4242;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  config.memory.channels = 2U;
  config.memory.channel_rate = Rate::gbps(250);  // slow enough that payload waits for channels, out of order
  build();
  Random random{kSeed};
  Time latest;
  int overtaken = 0;
  Time now_and_then = ns(1);
  at(ns(1), [&] {
    for (int i = 0; i < 20'000; ++i) {
      const bool strict = random.below(5) == 0;
      const std::size_t bytes = strict ? 16 : 1 + random.below(4096);
      const std::uint64_t address = random.below(1 << 20) * 64;
      now_and_then = std::max(now_and_then, ns(static_cast<std::int64_t>(random.below(1000))));
      const Device::Posted posted = device.write(address, pattern(bytes, 1), now_and_then, !strict);
      ASSERT_GE(posted.visible, posted.entered + ns(250));
      if (strict) {
        ASSERT_GE(posted.visible, latest) << "write " << i;
      } else if (posted.visible < latest) {
        ++overtaken;
      }
      latest = std::max(latest, posted.visible);
    }
  });
  sc_core::sc_start();
  EXPECT_GT(overtaken, 20) << "relaxed writes do overtake, or this test shows nothing";
}

TEST_F(PcieTest, WithoutRelaxedOrderingNothingOvertakes) {
  config.pcie.relaxed_ordering = false;
  config.memory.channels = 2U;
  config.memory.channel_rate = Rate::gbps(250);
  build();
  Time latest;
  at(ns(1), [&] {
    for (std::uint64_t i = 0; i < 2'000; ++i) {
      const Device::Posted posted = device.write(i * i * 64, pattern(1 + i % 4096, 1), SimContext::now());
      ASSERT_GE(posted.visible, latest);
      latest = posted.visible;
    }
  });
  sc_core::sc_start();
}

TEST_F(PcieTest, AWriteWithoutTheExtensionIsStrict) {
  config.memory.channels = 1U;
  config.memory.channel_rate = Rate::gbps(1);
  build();
  at(ns(1), [&] {
    device.write(0, pattern(64, 1), ns(1));
    const Device::Posted slow = device.write(0, pattern(64, 1), ns(1));
    EXPECT_GT(slow.visible, slow.entered + ns(250));
    Item& item = device.pool.make(tlm::TLM_WRITE_COMMAND, interrupt_address(Pid{0}).value(), pattern(4, 1), true);
    item.payload.clear_extension(&item.burst);
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay;
    device.dma->nb_transport_fw(item.payload, phase, delay);
    item.payload.release();
    memory->on_interrupt([slow](Pid) { EXPECT_EQ(SimContext::now(), slow.visible); });
  });
  sc_core::sc_start();
  EXPECT_EQ(memory->stats().interrupts.value(), 1U);
}

TEST_F(PcieTest, AReadSeesEveryWriteThatEnteredBeforeIt) {
  config.pcie.read_latency = ns(10);  // shorter than a write takes to become visible
  build();
  const auto data = pattern(4096, 4);
  Item* after = nullptr;
  Item* before = nullptr;
  Device::Posted posted;
  at(ns(10), [&] {
    device.read(0, 4096, ns(10), &before);
    posted = device.write(0, data, ns(10));
    device.read(0, 4096, ns(10), &after);
  });
  sc_core::sc_start();
  EXPECT_EQ(before->data, std::vector<std::uint8_t>(4096, 0));
  EXPECT_EQ(after->data, data);
  EXPECT_GE(device.responses[1].when, posted.visible);
}

TEST_F(PcieTest, RandomReadsSeeWhatWasPostedBeforeAndNothingFromTheFuture) {
  constexpr std::uint64_t kSeed = 99;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  config.pcie.read_latency = ns(20);
  config.memory.channels = 2U;
  config.memory.channel_rate = Rate::gbps(250);
  build();
  Random random{kSeed};
  // Each word only grows: a read may be newer than its request, never older.
  constexpr std::size_t kWords = 64;
  std::vector<std::uint8_t> posted(kWords, 0);
  struct Check {
    Item* item;
    std::size_t word;
    std::uint8_t least;
  };
  std::vector<Check> checks;
  int pushed = 0;
  sc_core::sc_spawn([&] {
    for (int step = 0; step < 20'000; ++step) {
      const std::size_t word = random.below(kWords);
      if (random.below(3) == 0) {
        Check check{nullptr, word, posted[word]};
        device.read(word * 4096, 1 + random.below(4096), SimContext::now(), &check.item);
        checks.push_back(check);
        if (peek(word * 4096, 1)[0] != posted[word]) ++pushed;
      } else if (posted[word] < 255) {
        device.write(word * 4096, std::vector<std::uint8_t>(1 + random.below(4096), ++posted[word]), SimContext::now(),
                     false);
      }
      if (random.below(2) == 0) sc_core::wait(static_cast<double>(random.below(200)), sc_core::SC_NS);
    }
  });
  sc_core::sc_start();
  ASSERT_EQ(device.responses.size(), checks.size());
  for (const Check& check : checks) {
    ASSERT_GE(check.item->data[0], check.least);
    ASSERT_LE(check.item->data[0], posted[check.word]);
  }
  EXPECT_GT(pushed, 100) << "writes were still on their way when reads were issued, or this test shows nothing";
}

// ---------------------------------------------------------------------------------------------------------- credits

TEST_F(PcieTest, FewHeaderCreditsLimitSmallWrites) {
  config.pcie.posted_headers = 4U;
  build();
  constexpr int kWrites = 4'000;
  Time end;
  at(ns(1), [&] {
    for (int i = 0; i < kWrites; ++i) {
      end = device.write(static_cast<std::uint64_t>(i) * 64, pattern(64, 1), SimContext::now()).entered;
    }
  });
  sc_core::sc_start();
  // Four TLPs every (last byte of the first + drain).
  const double period_ns = static_cast<double>((Pcie::kDrain + on_wire(88)).ps()) / 1000.0;
  const double expected_ns = kWrites / 4.0 * period_ns;
  EXPECT_NEAR(static_cast<double>((end - ns(1)).ps()) / 1000.0, expected_ns, expected_ns * 0.01);
  // Of each four, the first waits for the drain, the others (but for a rounded ps) only for one another.
  EXPECT_GE(pcie->stats().credit_stalls.value(), static_cast<std::uint64_t>(kWrites / 4 - 1));
  const double stalled_ns = kWrites / 4.0 * static_cast<double>((Pcie::kDrain - on_wire(3 * 88)).ps()) / 1000.0;
  EXPECT_NEAR(static_cast<double>(pcie->stats().credit_stalled_ns.value().ps()) / 1000.0, stalled_ns,
              stalled_ns * 0.01);
}

TEST_F(PcieTest, FewDataCreditsHoldBackTheTlpsOfOneBurst) {
  config.pcie.posted_data = Bytes{512};  // two TLPs of 256 B
  build();
  at(ns(1), [&] {
    const Time entered = device.write(0, pattern(1024, 1), ns(1)).entered;
    // TLP 2 follows TLP 1; TLP 3 waits for the credits of 1, TLP 4 for those of 2.
    Serializer wire{pcie->tlp_rate()};
    const Time first = wire.occupy(280, ns(1)).end;
    const Time second = wire.occupy(280, first).end;
    const Time third = wire.occupy(280, first + Pcie::kDrain).end;
    const Time fourth = wire.occupy(280, std::max(third, second + Pcie::kDrain)).end;
    EXPECT_EQ(entered, fourth);
  });
  sc_core::sc_start();
  EXPECT_EQ(pcie->stats().credit_stalls.value(), 1U);
}

TEST_F(PcieTest, OneHeaderCreditStillMakesProgress) {
  config.pcie.posted_headers = 1U;
  config.pcie.posted_data = Bytes{128};  // less than one TLP: the link grants what one TLP needs
  build();
  at(ns(1), [&] { EXPECT_LT(device.write(0, pattern(4096, 1), ns(1)).entered, Time::from_us(2)); });
  sc_core::sc_start();
  EXPECT_EQ(pcie->stats().credit_stalls.value(), 15U);
}

TEST_F(PcieTest, SlowMemoryHoldsBackCreditsAndSoTheLink) {
  config.memory.channels = 1U;
  config.memory.channel_rate = Rate::gbps(10);
  build();
  constexpr int kWrites = 1'000;
  Time end;
  at(ns(1), [&] {
    for (int i = 0; i < kWrites; ++i) {
      end = device.write(static_cast<std::uint64_t>(i) * 4096, pattern(4096, 1), SimContext::now()).entered;
    }
  });
  sc_core::sc_start();
  const double rate = kWrites * 4096.0 * 8'000 / static_cast<double>(end.ps());
  EXPECT_NEAR(rate, 10.0, 0.3);
}

TEST(MemoryChannelsTest, ABurstIsSpreadOverTheChannels) {
  MemoryConfig config;
  config.channels = 4U;
  config.channel_rate = Rate::gbps(64);  // 256 B take 32 ns
  MemoryChannels channels{config};
  // 1 KiB: 256 B on each channel.
  EXPECT_EQ(channels.write(PhysicalAddress{0}, 1024, ns(100)).wait, Time::zero());
  // Channel 2 is busy until 132.
  EXPECT_EQ(channels.write(PhysicalAddress{512 + 3}, 1, ns(110)).wait, ns(22));
  EXPECT_EQ(channels.write(PhysicalAddress{1024}, 1, ns(132)).wait, Time::zero());
  // 128..1408 covers blocks 0 (half) to 5 (half): channel 0 has 128 + 256, channel 1 256 + 128 bytes.
  EXPECT_EQ(channels.write(PhysicalAddress{128}, 1280, ns(200)).wait, Time::zero());
  EXPECT_EQ(channels.write(PhysicalAddress{0}, 1, ns(247)).wait, ns(1));
  EXPECT_EQ(channels.write(PhysicalAddress{256}, 1, ns(248)).wait, Time::zero());
  EXPECT_EQ(channels.write(PhysicalAddress{512}, 1, ns(231)).wait, ns(1));
}

// ------------------------------------------------------------------------------------------- other initiators, errors

TEST_F(PcieTest, AFourPhaseInitiatorGetsOneResponseAtATime) {
  device.ending = Ending::accepted;
  device.response_time = ns(100);
  build();
  at(ns(10), [&] {
    for (int i = 0; i < 3; ++i) device.read(0, 64, ns(10));
  });
  sc_core::sc_start();
  ASSERT_EQ(device.responses.size(), 3U);
  EXPECT_EQ(device.responses[1].when, device.responses[0].when + ns(100));
  EXPECT_EQ(device.responses[2].when, device.responses[1].when + ns(100));
  EXPECT_EQ(device.pool.freed(), 3U);
}

TEST_F(PcieTest, AnEndResponseWithDelayHoldsTheNextResponse) {
  device.ending = Ending::updated;
  device.response_time = ns(70);
  build();
  at(ns(10), [&] {
    for (int i = 0; i < 2; ++i) device.read(0, 64, ns(10));
  });
  sc_core::sc_start();
  ASSERT_EQ(device.responses.size(), 2U);
  EXPECT_EQ(device.responses[1].when, device.responses[0].when + ns(70));
}

TEST_F(PcieTest, AnInitiatorMayReadAgainFromWithinItsResponse) {
  build();
  int left = 5;
  device.on_response = [&](Time when) {
    if (left-- > 0) device.read(0, 64, when);
  };
  at(ns(10), [&] { device.read(0, 64, ns(10)); });
  sc_core::sc_start();
  EXPECT_EQ(device.responses.size(), 6U);
  EXPECT_EQ(device.pool.freed(), 6U);
}

TEST_F(PcieTest, BlockingTransportReadsAndWrites) {
  build();
  std::vector<std::uint8_t> data = pattern(64, 8);
  at(ns(10), [&] {
    tlm::tlm_generic_payload payload;
    payload.set_write();
    payload.set_address(256);
    payload.set_data_ptr(data.data());
    payload.set_data_length(64);
    payload.set_streaming_width(64);
    sc_core::sc_time delay = SimContext::to_sc(ns(5));
    device.dma->b_transport(payload, delay);
    EXPECT_EQ(from_sc(delay), ns(5) + on_wire(88));
    std::vector<std::uint8_t> back(64);
    payload.set_read();
    payload.set_data_ptr(back.data());
    const Time start = SimContext::now() + from_sc(delay);
    device.dma->b_transport(payload, delay);
    EXPECT_EQ(delay, sc_core::SC_ZERO_TIME);
    EXPECT_TRUE(payload.is_response_ok());
    EXPECT_EQ(back, data);
    EXPECT_NEAR(static_cast<double>((SimContext::now() - start).ps()),
                static_cast<double>((on_wire(24) + ns(500) + on_wire(84)).ps()), 2);
    payload.set_address(256 + 32);
    payload.set_data_length(32);
    EXPECT_EQ(device.dma->transport_dbg(payload), 32U);
    EXPECT_EQ(std::vector<std::uint8_t>(back.begin(), back.begin() + 32),
              std::vector<std::uint8_t>(data.begin() + 32, data.end()));
  });
  sc_core::sc_start();
  EXPECT_EQ(pcie->stats().dma_reads.value(), 1U);
}

TEST_F(PcieTest, WhatPcieCannotCarryIsAnsweredWithAnError) {
  build();
  at(ns(10), [&] {
    const auto status = [&](const std::function<void(tlm::tlm_generic_payload&)>& change) {
      Item& item = device.pool.make(tlm::TLM_READ_COMMAND, 0, std::vector<std::uint8_t>(64));
      change(item.payload);
      tlm::tlm_phase phase = tlm::BEGIN_REQ;
      sc_core::sc_time delay;
      EXPECT_EQ(device.dma->nb_transport_fw(item.payload, phase, delay), tlm::TLM_COMPLETED);
      item.payload.release();
      return item.payload.get_response_status();
    };
    unsigned char enable = 0xff;
    EXPECT_EQ(status([](auto& payload) { payload.set_data_length(0); }), tlm::TLM_BURST_ERROR_RESPONSE);
    EXPECT_EQ(status([](auto& payload) { payload.set_streaming_width(8); }), tlm::TLM_BURST_ERROR_RESPONSE);
    EXPECT_EQ(status([&](auto& payload) { payload.set_byte_enable_ptr(&enable); }),
              tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    EXPECT_EQ(status([](auto& payload) { payload.set_address(kInterruptWindow); }), tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(status([](auto& payload) { payload.set_address(~std::uint64_t{0}); }), tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(status([](auto& payload) { payload.set_command(tlm::TLM_IGNORE_COMMAND); }), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(host.write(0, pattern(8, 1), tlm::TLM_READ_COMMAND), tlm::TLM_COMMAND_ERROR_RESPONSE);
  });
  sc_core::sc_start();
  EXPECT_TRUE(device.responses.empty());
  EXPECT_EQ(device.pool.freed(), 6U);
}

TEST_F(PcieTest, TimingOnlyBurstsTakeTheSameTime) {
  build();
  at(ns(10), [&] {
    Item& item = device.pool.make(tlm::TLM_WRITE_COMMAND, 0, pattern(4096, 1), true);
    item.burst.timing_only = true;
    item.payload.set_data_ptr(nullptr);
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay;
    EXPECT_EQ(device.dma->nb_transport_fw(item.payload, phase, delay), tlm::TLM_COMPLETED);
    EXPECT_EQ(from_sc(delay), on_wire(4096 + 16 * 24));
    EXPECT_EQ(item.burst.visible, ns(260) + from_sc(delay));
    item.payload.release();
    Item& read = device.pool.make(tlm::TLM_READ_COMMAND, 0, std::vector<std::uint8_t>(4096));
    read.payload.set_data_ptr(nullptr);
    delay = sc_core::SC_ZERO_TIME;
    phase = tlm::BEGIN_REQ;
    device.dma->nb_transport_fw(read.payload, phase, delay);
  });
  sc_core::sc_start();
  EXPECT_EQ(device.responses.size(), 1U);
  EXPECT_EQ(memory->backed_pages(), 0U);
  EXPECT_EQ(device.pool.freed(), 2U);
}

TEST_F(PcieTest, StatisticsCountTlpsAndBytesOfEachDirection) {
  build();
  at(ns(10), [&] {
    device.write(4000, pattern(600, 1), ns(10));  // 96 + 504: 1 + 2 TLPs
    device.read(0, 1500, ns(10));                 // 3 requests, 6 completions
    host.write(0, pattern(64, 1));                // 1
  });
  sc_core::sc_start();
  const PcieStats& stats = pcie->stats();
  EXPECT_EQ(stats.upstream_tlps.value(), 3U + 3U);
  EXPECT_EQ(stats.upstream_payload_bytes.value(), 600U);
  EXPECT_EQ(stats.upstream_wire_bytes.value(), 600U + 6 * 24);
  EXPECT_EQ(stats.downstream_tlps.value(), 6U + 1U);
  EXPECT_EQ(stats.downstream_payload_bytes.value(), 1500U + 64U);
  EXPECT_EQ(stats.downstream_wire_bytes.value(), 1500U + 6 * 20 + 64 + 24);
  EXPECT_EQ(stats.upstream.work(), stats.upstream_wire_bytes.value() * 8);
  EXPECT_EQ(stats.downstream.work(), stats.downstream_wire_bytes.value() * 8);
  // The bound that the report derives, work / busy, is the TLP rate.
  const double bound =
      static_cast<double>(stats.upstream.work()) * 1000 / static_cast<double>(stats.upstream.busy().ps());
  EXPECT_NEAR(bound, 454.8, 1.0);
}

TEST(BurstExtensionTest, AMemberIsLeftToItsOwnerAndACloneBelongsToItsPayload) {
  BurstExtension burst;
  burst.relaxed_ordering = true;
  burst.visible = ns(5);
  {
    tlm::tlm_generic_payload payload;
    payload.set_extension(&burst);
    tlm::tlm_generic_payload copy;
    copy.deep_copy_from(payload);
    ASSERT_NE(copy.get_extension<BurstExtension>(), nullptr);
    EXPECT_NE(copy.get_extension<BurstExtension>(), &burst);
    EXPECT_TRUE(copy.get_extension<BurstExtension>()->relaxed_ordering);
    // Both payloads end here: the member survives, the sanitizer finds no leak of the clone.
  }
  burst.reset();
  EXPECT_FALSE(burst.relaxed_ordering);
  EXPECT_TRUE(burst.visible.is_never());
}

}  // namespace
}  // namespace rvma
