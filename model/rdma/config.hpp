/// \file
/// Section `rdma` of the configuration: the baseline NIC and the software that runs on it.
#pragma once

#include <cstdint>

#include "base/config.hpp"
#include "nic/config.hpp"

namespace rvma {

/// How the receiver of a write learns that it is complete.
enum class RdmaCompletion : std::uint8_t { auto_, last_byte, write_imm, write_imm_tracked, ack_then_send };
BOOST_DESCRIBE_ENUM(RdmaCompletion, auto_, last_byte, write_imm, write_imm_tracked, ack_then_send)

/// How a sender learns where to write.
enum class RdmaExchange : std::uint8_t { per_put, advertised };
BOOST_DESCRIBE_ENUM(RdmaExchange, per_put, advertised)

/// State on the NIC that spills to host memory behind a cache.
struct RdmaStateConfig {
  Key<std::uint32_t> on_chip;
  Key<ReplacementName> policy{ReplacementName{}, "which entry makes room for another"};
  Key<std::uint32_t> misses{16, {1, 1024}, "fetches from host memory outstanding; beyond it packets wait"};
  RdmaStateConfig(std::uint32_t entries, std::string_view description)
      : on_chip(entries, {1, 1U << 24U}, description) {}
  BOOST_DESCRIBE_CLASS(RdmaStateConfig, (), (on_chip, policy, misses), (), ())
};

struct RdmaSoftwareConfig {
  Key<Time> poll{Time::from_ns(20),
                 {Time::zero(), Time::from_us(1000)},
                 "core time of a poll of the completion queue that finds an entry"};
  Key<Time> handle{Time::from_ns(50),
                   {Time::zero(), Time::from_us(1000)},
                   "core time to act on a message or a completion: look up, match, answer"};
  Key<Time> connect{Time::from_us(10),
                    {Time::zero(), Time::from_us(1'000'000)},
                    "core time at each end to bring a queue pair up, beside its three messages"};
  Key<Time> registration{
      Time::from_us(1), {Time::zero(), Time::from_us(1'000'000)}, "core time to register a region with the NIC"};
  Key<Time> registration_page{
      Time::from_ns(20), {Time::zero(), Time::from_us(1000)}, "the same, for each page of it beyond the first"};
  BOOST_DESCRIBE_CLASS(RdmaSoftwareConfig, (), (poll, handle, connect, registration, registration_page), (), ())
};

struct RdmaConfig {
  Key<RdmaCompletion> completion{RdmaCompletion::auto_,
                                 "how a write's completion is told at its receiver; auto: the fastest that is "
                                 "right on the configured fabric"};
  Key<RdmaExchange> exchange{RdmaExchange::per_put,
                             "per_put: every put asks its receiver for an address; advertised: the receiver tells the "
                             "rank that uses a window of each buffer when it is posted, and puts write at once"};
  Key<std::uint32_t> registration_cache{
      0,
      {0, 1U << 20U},
      "regions of a process that stay registered when their buffers complete, for the same memory to "
      "be posted again without registration; 0: none"};
  Key<bool> ooo_tracking{
      false, "the NIC tracks packets out of order: it signals a message when it and all before it are whole"};
  RdmaStateConfig queue_pairs{512, "queue pair contexts on the NIC"};  // JingZhao: 512
  RdmaStateConfig regions{1024, "memory region entries on the NIC"};   // JingZhao: 1,024
  Key<std::uint32_t> receives{
      256, {1, 65536}, "receive buffers that a process keeps posted, for all its queue pairs together"};
  Key<std::uint32_t> completion_queue{4096, {16, 1U << 20U}, "entries of a process's completion queue; a power of two"};
  Key<std::uint32_t> reads{64, {1, 1U << 20U}, "reads of others being answered at a time; beyond it `busy`"};
  Key<std::uint32_t> open_reads{
      65536, {1, 65536}, "reads of a node that are under way at a time; software holds further ones back"};
  RdmaSoftwareConfig software;
  BOOST_DESCRIBE_CLASS(RdmaConfig, (),
                       (completion, exchange, registration_cache, ooo_tracking, queue_pairs, regions, receives,
                        completion_queue, reads, open_reads, software),
                       (), ())
};

}  // namespace rvma
