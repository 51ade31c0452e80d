#include "nic/dma_engine.hpp"

#include <gtest/gtest.h>
#include <tlm_utils/simple_target_socket.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "receive_mocks.hpp"

namespace rvma {
namespace {

using test::cycle;
using test::ns;
using test::run_until;

/// One burst as a target saw it.
struct SeenBurst {
  bool is_write;
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint8_t first_byte;  ///< of a write with data
  bool relaxed_ordering;
  bool timing_only;
  Time begin;
};

SeenBurst seen(tlm::tlm_generic_payload& burst, Time begin) {
  const auto* extension = burst.get_extension<BurstExtension>();
  const bool has_byte = burst.is_write() && burst.get_data_ptr() != nullptr;
  return {burst.is_write(),
          burst.get_address(),
          burst.get_data_length(),
          has_byte ? burst.get_data_ptr()[0] : std::uint8_t{0},
          extension->relaxed_ordering,
          extension->timing_only,
          begin};
}

/// Completes every write in its request, as Pcie does: one nanosecond a burst on the bus, visible 250 ns later. Reads
/// are taken at once and answered `read_time` later.
class PostedTarget : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<PostedTarget> socket{"socket"};
  PostedTarget(const sc_core::sc_module_name& name, test::Script& script) : sc_module(name), script_(script) {
    socket.register_nb_transport_fw(this, &PostedTarget::forward);
  }
  std::vector<SeenBurst> bursts;
  std::vector<tlm::tlm_generic_payload*> kept;  ///< writes, held as memory holds them until they are visible
  bool keep = false;
  Time read_time = ns(500);
  std::uint32_t outstanding = 0;
  std::uint32_t most_outstanding = 0;

 private:
  tlm::tlm_sync_enum forward(tlm::tlm_generic_payload& burst, tlm::tlm_phase& phase, sc_core::sc_time& delay) {
    RVMA_ASSERT(phase == tlm::BEGIN_REQ, "reads end with TLM_COMPLETED");
    const Time begin = SimContext::now() + Time::from_ps(static_cast<std::int64_t>(delay.value()));
    bursts.push_back(seen(burst, begin));
    burst.set_response_status(tlm::TLM_OK_RESPONSE);
    const Time end = std::max(begin, free_at_) + ns(1);
    free_at_ = end;
    delay = SimContext::to_sc(end - SimContext::now());
    if (burst.is_write()) {
      burst.get_extension<BurstExtension>()->visible = end + ns(250);
      if (keep) {
        burst.acquire();
        kept.push_back(&burst);
      }
      return tlm::TLM_COMPLETED;
    }
    burst.acquire();
    most_outstanding = std::max(most_outstanding, ++outstanding);
    script_.at(end + read_time, [this, &burst] {
      --outstanding;
      for (std::uint32_t i = 0; i < burst.get_data_length() && burst.get_data_ptr() != nullptr; ++i) {
        burst.get_data_ptr()[i] = static_cast<std::uint8_t>(burst.get_address() + i);
      }
      tlm::tlm_phase response = tlm::BEGIN_RESP;
      sc_core::sc_time zero = sc_core::SC_ZERO_TIME;
      RVMA_ASSERT(socket->nb_transport_bw(burst, response, zero) == tlm::TLM_COMPLETED, "response not taken");
      burst.release();
    });
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
  }
  test::Script& script_;
  Time free_at_;
};

/// A target of the approximately-timed style: takes a request after 10 ns, answers 20 ns later, one request at a time.
class SlowTarget : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<SlowTarget> socket{"socket"};
  SlowTarget(const sc_core::sc_module_name& name, test::Script& script) : sc_module(name), script_(script) {
    socket.register_nb_transport_fw(this, &SlowTarget::forward);
  }
  std::vector<SeenBurst> bursts;
  bool omits_end_request = false;
  std::uint32_t answered = 0;

 private:
  tlm::tlm_sync_enum forward(tlm::tlm_generic_payload& burst, tlm::tlm_phase& phase, sc_core::sc_time& delay) {
    RVMA_ASSERT(phase == tlm::BEGIN_REQ, "unexpected phase");
    RVMA_ASSERT(!open_, "a request before the one before was taken");
    open_ = true;
    const Time begin = SimContext::now() + Time::from_ps(static_cast<std::int64_t>(delay.value()));
    bursts.push_back(seen(burst, begin));
    burst.acquire();
    if (!omits_end_request) {
      script_.at(begin + ns(10), [this, &burst] {
        open_ = false;
        send(burst, tlm::END_REQ);
      });
    }
    script_.at(begin + ns(30), [this, &burst] {
      open_ = false;
      burst.set_response_status(tlm::TLM_OK_RESPONSE);
      ++answered;
      send(burst, tlm::BEGIN_RESP);
      burst.release();
    });
    return tlm::TLM_ACCEPTED;
  }
  void send(tlm::tlm_generic_payload& burst, tlm::tlm_phase phase) {
    sc_core::sc_time zero = sc_core::SC_ZERO_TIME;
    socket->nb_transport_bw(burst, phase, zero);
  }
  test::Script& script_;
  bool open_ = false;
};

/// A memory of the loosely-timed style behind the standard adapter; 7 ns an access.
class BlockingTarget : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<BlockingTarget> socket{"socket"};
  explicit BlockingTarget(const sc_core::sc_module_name& name) : sc_module(name), bytes(65'536) {
    socket.register_b_transport(this, &BlockingTarget::access);
  }
  std::vector<std::uint8_t> bytes;

 private:
  void access(tlm::tlm_generic_payload& burst, sc_core::sc_time& delay) {
    sc_core::wait(delay + SimContext::to_sc(ns(7)));
    delay = sc_core::SC_ZERO_TIME;
    auto place = bytes.begin() + static_cast<std::ptrdiff_t>(burst.get_address());
    if (burst.is_write()) {
      std::copy_n(burst.get_data_ptr(), burst.get_data_length(), place);
    } else {
      std::copy_n(place, burst.get_data_length(), burst.get_data_ptr());
    }
    burst.set_response_status(tlm::TLM_OK_RESPONSE);
  }
};

class Client : public DmaClient {
 public:
  struct Written {
    std::uint64_t tag;
    Time entered;
    Time visible;
    Time told;
  };
  void dma_written(std::uint64_t tag, Time entered, Time visible) override {
    written.push_back({tag, entered, visible, SimContext::now()});
    if (when_written) when_written(tag);
  }
  void dma_read_done(std::uint64_t tag) override { read.emplace_back(tag, SimContext::now()); }
  std::vector<Written> written;
  std::vector<std::pair<std::uint64_t, Time>> read;
  std::function<void(std::uint64_t)> when_written;
};

struct Bench {
  explicit Bench(const std::function<void(NicConfig&)>& change = [](NicConfig&) {}) {
    change(config);
    engine = std::make_unique<DmaEngine>("dma", context, config);
  }
  DmaWrite payload_write(std::uint64_t tag, std::vector<Segment> to, std::uint8_t fill = 0) {
    DmaWrite write;
    for (const Segment& segment : to) write.to.add(segment.address, segment.bytes);
    write.payload = payloads.acquire();
    for (std::uint32_t i = 0; i < payloads.buffer_bytes(); ++i) {
      write.payload->data()[i] = static_cast<std::uint8_t>(fill + i);
    }
    write.relaxed_ordering = true;
    write.tag = tag;
    return write;
  }
  DmaWrite word_write(std::uint64_t tag, std::uint64_t address, std::uint64_t low, std::uint64_t high) {
    DmaWrite write;
    write.to.add(PhysicalAddress{address}, 16);
    write.word = {low, high};
    write.is_word = true;
    write.tag = tag;
    return write;
  }
  DmaRead read_of(std::uint64_t tag, std::vector<Segment> from) {
    DmaRead read;
    for (const Segment& segment : from) read.from.add(segment.address, segment.bytes);
    read.into = payloads.acquire();
    read.tag = tag;
    return read;
  }

  SimContext context{1};
  NicConfig config;
  PayloadPool payloads{4096};
  test::Script script{"script", context};
  Client client;
  std::unique_ptr<DmaEngine> engine;
};

Segment segment(std::uint64_t address, std::uint32_t bytes) { return Segment{PhysicalAddress{address}, bytes}; }

// ------------------------------------------------------------------------------------------- a target that completes

TEST(DmaEngine, WriteStartsAfterTheLatencyAndIsToldAtOnce) {
  Bench bench;
  PostedTarget target{"target", bench.script};
  bench.engine->dma.bind(target.socket);
  bench.script.at(cycle(10),
                  [&] { bench.engine->write(bench.payload_write(5, {segment(0x7000, 64)}), bench.client, cycle(13)); });
  run_until(cycle(10));
  ASSERT_EQ(target.bursts.size(), 1U);
  EXPECT_EQ(target.bursts[0].begin, cycle(13 + 2));  // nic.dma.latency
  EXPECT_TRUE(target.bursts[0].relaxed_ordering);
  ASSERT_EQ(bench.client.written.size(), 1U);
  EXPECT_EQ(bench.client.written[0].tag, 5U);
  EXPECT_EQ(bench.client.written[0].told, cycle(10));
  EXPECT_EQ(bench.client.written[0].entered, cycle(16));
  EXPECT_EQ(bench.client.written[0].visible, cycle(16 + 250));
  EXPECT_EQ(bench.context.activations(), 1U);  // the script's; the engine needs none
  EXPECT_EQ(bench.payloads.in_use(), 0U);
}

TEST(DmaEngine, AWriteIsOneBurstASegmentAndToldOnce) {
  Bench bench;
  PostedTarget target{"target", bench.script};
  bench.engine->dma.bind(target.socket);
  bench.script.at(cycle(10), [&] {
    DmaWrite write = bench.payload_write(1, {segment(0x7100, 40), segment(0x9000, 24), segment(0x3000, 8)});
    write.payload_offset = 100;
    bench.engine->write(std::move(write), bench.client, cycle(10));
  });
  run_until(cycle(10));
  ASSERT_EQ(target.bursts.size(), 3U);
  EXPECT_EQ(target.bursts[0].first_byte, 100);
  EXPECT_EQ(target.bursts[1].first_byte, 140);
  EXPECT_EQ(target.bursts[2].first_byte, 164);
  EXPECT_EQ(target.bursts[1].address, 0x9000U);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(target.bursts[static_cast<std::size_t>(i)].begin, cycle(12 + i));
  ASSERT_EQ(bench.client.written.size(), 1U);
  EXPECT_EQ(bench.client.written[0].entered, cycle(15));
  EXPECT_EQ(bench.engine->stats().write_bursts.value(), 3U);
  EXPECT_EQ(bench.engine->stats().write_bytes.value(), 72U);
}

TEST(DmaEngine, AWordIsLittleEndianAndStrict) {
  Bench bench;
  PostedTarget target{"target", bench.script};
  target.keep = true;
  bench.engine->dma.bind(target.socket);
  bench.script.at(cycle(1), [&] {
    bench.engine->write(bench.word_write(0, 0x100, 0x1122334455667788, 0x99), bench.client, cycle(1));
  });
  run_until(cycle(1));
  ASSERT_EQ(target.kept.size(), 1U);
  const std::uint8_t* word = target.kept[0]->get_data_ptr();
  EXPECT_EQ(word[0], 0x88);
  EXPECT_EQ(word[7], 0x11);
  EXPECT_EQ(word[8], 0x99);
  EXPECT_EQ(word[15], 0x00);
  EXPECT_FALSE(target.bursts[0].relaxed_ordering);
  target.kept[0]->release();
}

TEST(DmaEngine, PayloadStaysUntilTheTargetLetsGo) {
  Bench bench;
  PostedTarget target{"target", bench.script};
  target.keep = true;
  bench.engine->dma.bind(target.socket);
  bench.script.at(cycle(1),
                  [&] { bench.engine->write(bench.payload_write(0, {segment(0, 64)}, 9), bench.client, cycle(1)); });
  run_until(cycle(100));
  EXPECT_EQ(bench.payloads.in_use(), 1U);
  EXPECT_EQ(target.kept[0]->get_data_ptr()[0], 9);
  target.kept[0]->release();
  EXPECT_EQ(bench.payloads.in_use(), 0U);
}

TEST(DmaEngine, TransactionsMayOutliveTheEngine) {
  Bench bench;
  PostedTarget target{"target", bench.script};
  target.keep = true;
  bench.engine->dma.bind(target.socket);
  bench.script.at(cycle(1),
                  [&] { bench.engine->write(bench.payload_write(0, {segment(0x40, 64)}), bench.client, cycle(1)); });
  run_until(cycle(1));
  bench.engine.reset();
  EXPECT_EQ(bench.payloads.in_use(), 0U);
  EXPECT_EQ(target.kept[0]->get_address(), 0x40U);
  target.kept[0]->release();
}

TEST(DmaEngine, AWordAskedForEarlyDoesNotHoldUpEarlierPayload) {
  Bench bench;
  PostedTarget target{"target", bench.script};
  bench.engine->dma.bind(target.socket);
  bench.script.at(cycle(10), [&] { bench.engine->write(bench.word_write(1, 0x100, 1, 1), bench.client, cycle(50)); });
  bench.script.at(cycle(11), [&] { bench.engine->write(bench.word_write(2, 0x200, 1, 1), bench.client, cycle(40)); });
  bench.script.at(cycle(20),
                  [&] { bench.engine->write(bench.payload_write(3, {segment(0, 64)}), bench.client, cycle(20)); });
  run_until(cycle(49));
  EXPECT_EQ(bench.client.written.size(), 2U);
  run_until(cycle(60));
  ASSERT_EQ(bench.client.written.size(), 3U);
  EXPECT_EQ(bench.client.written[0].tag, 3U);
  EXPECT_EQ(bench.client.written[1].tag, 2U);
  EXPECT_EQ(target.bursts[1].begin, cycle(42));
  EXPECT_EQ(bench.client.written[2].tag, 1U);
  EXPECT_EQ(target.bursts[2].begin, cycle(52));
}

TEST(DmaEngine, ClientsMayAskFromWithinTheirCall) {
  Bench bench;
  PostedTarget target{"target", bench.script};
  bench.engine->dma.bind(target.socket);
  bench.client.when_written = [&](std::uint64_t tag) {
    if (tag < 40) bench.engine->write(bench.payload_write(tag + 1, {segment(0, 64)}), bench.client, cycle(5));
  };
  bench.script.at(cycle(5),
                  [&] { bench.engine->write(bench.payload_write(0, {segment(0, 64)}), bench.client, cycle(5)); });
  run_until(cycle(5));
  ASSERT_EQ(bench.client.written.size(), 41U);
  for (std::size_t i = 0; i < 41; ++i) EXPECT_EQ(bench.client.written[i].tag, i);
}

TEST(DmaEngine, RoomIsWhenTheWriteAQueueLengthAgoEntered) {
  Bench bench{[](NicConfig& config) { config.dma.write_queue = 3; }};
  PostedTarget target{"target", bench.script};
  bench.engine->dma.bind(target.socket);
  bench.script.at(cycle(10), [&] {
    for (std::uint64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(bench.engine->write_room_at(), Time::zero());
      bench.engine->write(bench.payload_write(i, {segment(0, 64)}), bench.client, cycle(10));
    }
    EXPECT_EQ(bench.engine->write_room_at(), cycle(13));
    bench.engine->write(bench.payload_write(3, {segment(0, 64)}), bench.client, cycle(13));
    EXPECT_EQ(bench.engine->write_room_at(), cycle(14));
  });
  run_until(cycle(20));
  EXPECT_EQ(bench.client.written.size(), 4U);
  EXPECT_EQ(bench.engine->stats().write_queue.value(), 3U);
}

TEST(DmaEngine, ReadsFillTheirBufferFromAllSegments) {
  Bench bench;
  PostedTarget target{"target", bench.script};
  bench.engine->dma.bind(target.socket);
  DmaRead read = bench.read_of(7, {segment(0x10, 4), segment(0x80, 4)});
  read.into_offset = 2;
  const PayloadRef into = read.into;
  bench.script.at(cycle(10), [&] { bench.engine->read(read, bench.client, cycle(10)); });
  run_until(cycle(10 + 2 + 2 + 500) - Time::from_ps(2));
  EXPECT_TRUE(bench.client.read.empty());
  run_until(cycle(10 + 2 + 2 + 500));
  ASSERT_EQ(bench.client.read.size(), 1U);
  EXPECT_EQ(bench.client.read[0], std::make_pair(std::uint64_t{7}, cycle(514)));
  const std::vector<std::uint8_t> expected{0x10, 0x11, 0x12, 0x13, 0x80, 0x81, 0x82, 0x83};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(into->data()[2 + i], expected[i]) << i;
}

TEST(DmaEngine, ReadsBeyondTheTagsWaitInOrder) {
  Bench bench{[](NicConfig& config) { config.dma.reads = 4; }};
  PostedTarget target{"target", bench.script};
  bench.engine->dma.bind(target.socket);
  bench.script.at(cycle(10), [&] {
    for (std::uint64_t i = 0; i < 10; ++i) {
      bench.engine->read(bench.read_of(i, {segment(64 * i, 64)}), bench.client, cycle(10));
    }
  });
  run_until(ns(5'000));
  EXPECT_EQ(target.most_outstanding, 4U);
  EXPECT_EQ(bench.engine->stats().reads_outstanding.value(), 4U);
  EXPECT_GT(bench.engine->stats().tags_full.busy(), ns(900));
  ASSERT_EQ(bench.client.read.size(), 10U);
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(bench.client.read[i].first, i);
}

TEST(DmaEngine, TimingOnlyBurstsCarryNoBytes) {
  Bench bench;
  PostedTarget target{"target", bench.script};
  bench.engine->dma.bind(target.socket);
  bench.script.at(cycle(10), [&] {
    DmaWrite write = bench.payload_write(0, {segment(0, 64)});
    write.payload.reset();
    bench.engine->write(std::move(write), bench.client, cycle(10));
    bench.engine->write(bench.payload_write(1, {segment(0, 64)}), bench.client, cycle(10));
    DmaRead read = bench.read_of(2, {segment(0, 64)});
    read.into.reset();
    bench.engine->read(std::move(read), bench.client, cycle(10));
  });
  run_until(ns(1'000));
  ASSERT_EQ(target.bursts.size(), 3U);
  EXPECT_TRUE(target.bursts[0].timing_only);
  EXPECT_FALSE(target.bursts[1].timing_only);  // a recycled transaction remembers nothing
  EXPECT_TRUE(target.bursts[2].timing_only);
  EXPECT_EQ(bench.client.read.size(), 1U);
}

// ------------------------------------------------------------------------------------------------- foreign platforms

TEST(DmaEngine, HoldsOneRequestOpenAtATime) {
  Bench bench{[](NicConfig& config) { config.dma.write_queue = 2; }};
  SlowTarget target{"target", bench.script};
  bench.engine->dma.bind(target.socket);
  std::vector<Time> rooms;
  bench.engine->on_write_room([&] { rooms.push_back(SimContext::now()); });
  bench.script.at(cycle(10), [&] {
    for (std::uint64_t i = 0; i < 2; ++i) {
      bench.engine->write(bench.payload_write(i, {segment(0, 64)}), bench.client, cycle(10));
    }
    EXPECT_TRUE(bench.engine->write_room_at().is_never());
    bench.engine->read(bench.read_of(9, {segment(0, 64)}), bench.client, cycle(10));
  });
  run_until(ns(200));
  ASSERT_EQ(bench.client.written.size(), 2U);
  EXPECT_EQ(bench.client.written[0].entered, cycle(22));  // END_REQ
  EXPECT_TRUE(bench.client.written[0].visible.is_never());
  ASSERT_EQ(rooms.size(), 1U);
  EXPECT_EQ(rooms[0], cycle(22));
  EXPECT_EQ(target.bursts.size(), 3U);
  EXPECT_EQ(target.answered, 3U);
  EXPECT_EQ(bench.client.read.size(), 1U);
  EXPECT_EQ(bench.payloads.in_use(), 0U);
}

TEST(DmaEngine, AResponseWithoutEndReqEndsTheRequest) {
  Bench bench;
  SlowTarget target{"target", bench.script};
  target.omits_end_request = true;
  bench.engine->dma.bind(target.socket);
  bench.script.at(cycle(10), [&] {
    for (std::uint64_t i = 0; i < 3; ++i) {
      bench.engine->write(bench.payload_write(i, {segment(0, 64)}), bench.client, cycle(10));
    }
  });
  run_until(ns(300));
  ASSERT_EQ(bench.client.written.size(), 3U);
  EXPECT_EQ(bench.client.written[0].entered, cycle(42));
  EXPECT_EQ(bench.client.written[2].entered, cycle(102));
}

TEST(DmaEngine, WorksWithALooselyTimedMemory) {
  Bench bench;
  BlockingTarget target{"target"};
  bench.engine->dma.bind(target.socket);
  const DmaRead read = bench.read_of(2, {segment(0x1020, 64), segment(0x2000, 16)});
  const PayloadRef into = read.into;
  bench.script.at(cycle(10), [&] {
    bench.engine->write(bench.payload_write(0, {segment(0x1000, 200)}, 3), bench.client, cycle(10));
    bench.engine->write(bench.word_write(1, 0x2000, 0x55, 0x66), bench.client, cycle(10));
  });
  bench.script.at(cycle(100), [&] { bench.engine->read(read, bench.client, cycle(100)); });
  run_until(ns(1'000));
  EXPECT_EQ(bench.client.written.size(), 2U);
  ASSERT_EQ(bench.client.read.size(), 1U);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(into->data()[i], 3 + 32 + i);
  EXPECT_EQ(into->data()[64], 0x55);
  EXPECT_EQ(into->data()[72], 0x66);
}

}  // namespace
}  // namespace rvma
