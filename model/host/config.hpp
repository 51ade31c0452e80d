/// \file
/// Section `host` of the configuration.
#pragma once

#include <cstdint>

#include "base/config.hpp"

namespace rvma {

struct PcieConfig {
  Key<std::uint32_t> generation{5, {3, 8}, "PCI Express generation"};
  Key<std::uint32_t> lanes{16, {1, 16}, "lanes: 1, 2, 4, 8 or 16"};
  Key<Bytes> max_payload{Bytes{256}, {Bytes{128}, Bytes{4096}}, "largest payload of a TLP; a power of two"};
  Key<Bytes> max_read_request{Bytes{512}, {Bytes{128}, Bytes{4096}}, "largest read request; a power of two"};
  Key<Time> read_latency{Time::from_ns(500),
                         {Time::from_ns(1), Time::from_us(1000)},
                         "from a read request's arrival at the host to its first completion leaving"};
  Key<Time> write_latency{Time::from_ns(250),
                          {Time::from_ns(1), Time::from_us(1000)},
                          "from a posted write's last byte on the bus to its visibility, either direction"};
  Key<bool> relaxed_ordering{true, "payload writes may pass one another in the host"};
  Key<std::uint32_t> posted_headers{256, {1, 65536}, "flow-control credits: posted TLPs that the host can hold"};
  Key<Bytes> posted_data{Bytes::kib(64), {Bytes{128}, Bytes::mib(64)}, "flow-control credits: their payload"};
  BOOST_DESCRIBE_CLASS(PcieConfig, (),
                       (generation, lanes, max_payload, max_read_request, read_latency, write_latency, relaxed_ordering,
                        posted_headers, posted_data),
                       (), ())
};

struct MemoryConfig {
  Key<std::uint32_t> channels{8, {1, 64}, "memory channels, interleaved by 256 B"};
  Key<Rate> channel_rate{Rate::gbps(300), {Rate::gbps(1), Rate::gbps(100'000)}, "data rate of a channel"};
  BOOST_DESCRIBE_CLASS(MemoryConfig, (), (channels, channel_rate), (), ())
};

struct CoreConfig {
  Key<Frequency> clock{Frequency::mhz(3000), {Frequency::mhz(1), Frequency::mhz(100'000)}, "clock of a core"};
  Key<Delay> issue{Time::from_ns(2), "time that a core spends on one call; low, so that the NIC is what limits"};
  Key<Delay> poll_interval{Time::from_ns(20), "time between two polls of a word"};
  Key<Delay> mwait_wakeup{Time::from_ns(150), "from a monitored write to the next instruction"};
  Key<Delay> interrupt_latency{Time::from_ns(1500), "from an interrupt's arrival to the waiting thread"};
  BOOST_DESCRIBE_CLASS(CoreConfig, (), (clock, issue, poll_interval, mwait_wakeup, interrupt_latency), (), ())
};

struct HostConfig {
  Key<Bytes> page{Bytes::kib(4), {Bytes::kib(4), Bytes::mib(2)}, "page size; a power of two"};
  PcieConfig pcie;
  MemoryConfig memory;
  CoreConfig core;
  BOOST_DESCRIBE_CLASS(HostConfig, (), (page, pcie, memory, core), (), ())
};

}  // namespace rvma
