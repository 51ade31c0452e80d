/// \file
/// Section `nic` of the configuration.
#pragma once

#include <cstdint>

#include "base/config.hpp"
#include "base/widening.hpp"
#include "nic/congestion.hpp"
#include "nic/replacement.hpp"

namespace rvma {

enum class CommandMode : std::uint8_t { inline_, ring };
BOOST_DESCRIBE_ENUM(CommandMode, inline_, ring)

struct TableConfig {
  Key<std::uint32_t> banks{4, {2, 8}, "hash banks of the translation table, each with its own hash function"};
  Key<std::uint32_t> rows{512, {4, 1U << 20U}, "rows of a bank; a power of two"};
  Key<std::uint32_t> slots{2, {1, 4}, "entries of a row"};
  Key<std::uint32_t> stash{8, {0, 64}, "entries of the fully searched stash"};
  Key<std::uint32_t> max_kicks{32, {0, 256}, "longest path of moves that an insertion may take"};
  Key<Cycles> latency{Cycles{2}, {Cycles{1}, Cycles{3}}, "cycles from a lookup to its answer"};
  Key<std::uint64_t> seed{0x5eed'7ab1'e000'0001ULL, "seed of the keyed hash functions"};
  BOOST_DESCRIBE_CLASS(TableConfig, (), (banks, rows, slots, stash, max_kicks, latency, seed), (), ())
};

struct OnChipConfig {
  Key<std::uint32_t> on_chip;
  explicit OnChipConfig(std::uint32_t entries, std::string_view description, std::uint32_t most = 1U << 24U)
      : on_chip(entries, {1, most}, description) {}
  BOOST_DESCRIBE_CLASS(OnChipConfig, (), (on_chip), (), ())
};

/// A cache on the NIC of things that are too many to be held there at once.
struct CacheConfig {
  Key<std::uint32_t> on_chip;
  Key<ReplacementName> policy{ReplacementName{}, "which entry makes room for another"};
  CacheConfig(std::uint32_t entries, std::string_view description, std::uint32_t most = 1U << 24U)
      : on_chip(entries, {1, most}, description) {}
  BOOST_DESCRIBE_CLASS(CacheConfig, (), (on_chip, policy), (), ())
};

/// Units that bring entries back from host memory, and the keys of their sections.
inline constexpr Widenings kWindowPlaces{
    {{"nic.windows.on_chip", Effect::capacity}, {"nic.windows.misses", Effect::proportional}}};
inline constexpr Widenings kBufferPlaces{
    {{"nic.buffers.on_chip", Effect::capacity}, {"nic.buffers.misses", Effect::proportional}}};
inline constexpr Widenings kCounterPlaces{
    {{"nic.counters.on_chip", Effect::capacity}, {"nic.counters.misses", Effect::proportional}}};
inline constexpr Widenings kPeerPlaces{
    {{"nic.peers.on_chip", Effect::capacity}, {"nic.peers.misses", Effect::proportional}}};

/// A structure of the NIC that holds so many entries, and keeps the others in host memory (spilled_cache.hpp,
/// context_cache.hpp) or refuses them.
struct SpillConfig {
  Key<std::uint32_t> on_chip;
  Key<bool> spill;
  Key<ReplacementName> policy{ReplacementName{}, "which entry makes room for another"};
  Key<std::uint32_t> misses;
  /// What the keys say: entries, what happens with and without spilling, and beyond the misses.
  struct Texts {
    std::string_view on_chip;
    std::string_view spill;
    std::string_view misses;
  };
  const Widenings* widened_by;  ///< the unit that brings entries back
  SpillConfig(std::uint32_t entries, std::uint32_t most, const Texts& texts, const Widenings& widened = kNotWidened)
      : on_chip(entries, {1, most}, texts.on_chip),
        spill(true, texts.spill),
        misses(16, {1, 1024}, texts.misses),
        widened_by(&widened) {}
  BOOST_DESCRIBE_CLASS(SpillConfig, (), (on_chip, spill, policy, misses), (), ())
};

struct CommandConfig {
  Key<CommandMode> mode{CommandMode::inline_,
                        "inline: the core writes the 64 B descriptor to the NIC; ring: to host memory, and rings a "
                        "doorbell on which the NIC fetches it"};
  Key<Bytes> inline_payload{
      Bytes{0},
      {Bytes{0}, Bytes{1024}},
      "inline: a put of up to so many bytes, within one page, brings its payload with the descriptor, and the NIC "
      "reads nothing; at most nic.mtu"};
  Key<std::uint32_t> depth{256, {2, 65536}, "descriptors in flight per process; a power of two"};
  Key<std::uint32_t> fetch{8, {1, 64}, "descriptors that one DMA read fetches at most (ring)"};
  Key<Cycles> latency{Cycles{4}, {Cycles{1}, Cycles{1000}}, "cycles from a descriptor's arrival to its execution"};
  BOOST_DESCRIBE_CLASS(CommandConfig, (), (mode, inline_payload, depth, fetch, latency), (), ())
};

struct TransmitConfig {
  Key<std::uint32_t> open_puts{1024,
                               {1, 1U << 20U},
                               "puts, and requests of gets, that the NIC holds from acceptance to outcome; answers to "
                               "gets have entries of their own, one for each of nic.get.queue"};
  Key<Bytes> buffer{Bytes::kib(64),
                    {Bytes{64}, Bytes::mib(64)},
                    "payload being read or waiting for the link; at least one mtu is always allowed"};
  Key<Cycles> latency{Cycles{4}, {Cycles{1}, Cycles{1000}}, "cycles from payload (or header) ready to the link"};
  BOOST_DESCRIBE_CLASS(TransmitConfig, (), (open_puts, buffer, latency), (), ())
};

struct ReceiveConfig {
  Key<Bytes> buffer{Bytes::kib(256),
                    {Bytes{256}, Bytes::mib(256)},
                    "input buffer; its free space is the credit of the link that feeds it"};
  Key<Cycles> parse_latency{Cycles{4},
                            {Cycles{1}, Cycles{1000}},
                            "cycles from a packet's last bit to its lookup's answer; at least the table's latency"};
  Key<Cycles> conversion_latency{Cycles{4},
                                 {Cycles{1}, Cycles{1000}},
                                 "cycles of the address-conversion pipeline: key, binding, bounds, page translation"};
  Key<std::uint32_t> page_misses{16, {1, 1024}, "page-translation misses outstanding; beyond it the pipeline waits"};
  BOOST_DESCRIBE_CLASS(ReceiveConfig, (), (buffer, parse_latency, conversion_latency, page_misses), (), ())
};

struct DmaConfig {
  Key<std::uint32_t> write_queue{32, {1, 4096}, "packets that may wait for the posted channel"};
  Key<std::uint32_t> reads{512, {1, 65536}, "read bursts outstanding (tags)"};
  Key<Cycles> latency{Cycles{2}, {Cycles{0}, Cycles{1000}}, "cycles from a request to its first burst"};
  BOOST_DESCRIBE_CLASS(DmaConfig, (), (write_queue, reads, latency), (), ())
};

struct CounterConfig : SpillConfig {
  Key<Cycles> latency{Cycles{2}, {Cycles{1}, Cycles{1000}}, "cycles of a counter update"};
  Key<bool> forwarding{true,
                       "on: an update takes the value of one that is not written back yet; off: it waits until the "
                       "update of the same counter before it is written back, and all behind it wait as well"};
  Key<std::uint32_t> queue{64, {1, 1U << 20U}, "updates that may wait; beyond it packets stay in the input buffer"};
  CounterConfig()
      : SpillConfig(4096, 1U << 24U,
                    {"buffers with a counter: bound to by a message and not completed",
                     "on: beyond them counters lie in host memory; off: beyond them messages are refused busy",
                     "counters being read at a time; beyond it new messages are refused busy, and counts wait"},
                    kCounterPlaces) {}
  BOOST_DESCRIBE_CLASS(CounterConfig, (), (on_chip, spill, policy, misses, latency, forwarding, queue), (), ())
};

struct CompletionConfig {
  Key<Cycles> latency{Cycles{2}, {Cycles{1}, Cycles{1000}}, "cycles from the last count to the completion write"};
  BOOST_DESCRIBE_CLASS(CompletionConfig, (), (latency), (), ())
};

struct ReliabilityConfig {
  Key<std::uint32_t> window{1024, {1, 65536}, "packets in flight per peer and direction"};
  Key<std::uint32_t> messages{1024, {1, 32768}, "messages open per peer and direction"};
  Key<Time> rto{Time::from_us(100),
                {Time::from_ns(100), Time::from_us(10'000'000)},
                "least retransmission time-out; measured round trips raise it, and each time-out in a row doubles it, "
                "three times at most"};
  Key<std::uint32_t> max_tries{
      8,
      {1, 64},
      "sendings of a packet, or requests for an outcome, in a row that nothing answers, before the sender gives up"};
  Key<Time> reorder_window{Time::from_us(5),
                           {Time::zero(), Time::from_us(10'000'000)},
                           "a packet counts as lost when one that was sent so much later is acknowledged; doubles when "
                           "that was wrong"};
  Key<Time> idle{Time::from_us(100'000),
                 {Time::from_us(1), Time::from_us(1'000'000'000)},
                 "silence after which a receiver cuts off a peer's bound messages"};
  Key<Time> quiet{Time::from_us(1000),
                  {Time::zero(), Time::from_us(1'000'000'000)},
                  "for so long a restarted NIC ignores all packets: longer than one can live in the fabric"};
  Key<std::uint32_t> rnr_tries{7, {0, 1'000'000}, "retries of a message refused no_buffer or busy"};
  Key<Time> rnr_delay{Time::from_us(5), {Time::zero(), Time::from_us(10'000'000)}, "pause before such a retry"};
  Key<std::uint32_t> ack_every{16, {1, 1024}, "packets that one acknowledgement covers at most"};
  Key<Time> ack_delay{
      Time::from_ns(400), {Time::zero(), Time::from_us(1'000'000)}, "longest wait of an acknowledgement for company"};
  Key<std::uint32_t> refusals_told{64, {64, 65536}, "refusals told to one source in any 10 us"};
  BOOST_DESCRIBE_CLASS(ReliabilityConfig, (),
                       (window, messages, rto, max_tries, reorder_window, idle, quiet, rnr_tries, rnr_delay, ack_every,
                        ack_delay, refusals_told),
                       (), ())
};

struct GetConfig {
  Key<std::uint32_t> open{256, {1, 1U << 20U}, "gets of the own host open at a time"};
  Key<std::uint32_t> queue{64, {1, 1U << 20U}, "requests of others being answered at a time; beyond it `busy`"};
  Key<Time> timeout{Time::from_us(100'000),
                    {Time::from_us(1), Time::from_us(1'000'000'000)},
                    "an accepted get of whose answer nothing comes for so long ends `timeout`"};
  BOOST_DESCRIBE_CLASS(GetConfig, (), (open, queue, timeout), (), ())
};

struct CongestionConfig {
  Key<CongestionControl> control{CongestionControl::swift,
                                 "swift: round trips tell each sender how many packets it may have on their way to a "
                                 "receiver; none: only nic.reliability.window limits them"};
  Key<Time> target{Time::from_us(5),
                   {Time::from_ns(10), Time::from_us(1'000'000)},
                   "queueing that is allowed beyond the shortest round trip"};
  Key<std::uint32_t> initial_window{256, {1, 65536}, "packets that may be on their way before the first answer"};
  BOOST_DESCRIBE_CLASS(CongestionConfig, (), (control, target, initial_window), (), ())
};

struct NicConfig {
  Key<Frequency> clock{Frequency::mhz(1000),
                       {Frequency::mhz(1), Frequency::mhz(100'000)},
                       "clock of the whole RNIC; 1 GHz with 64 B a cycle is a 400 Gb/s-class NIC"};
  Key<Bytes> datapath{Bytes{64}, {Bytes{1}, Bytes{4096}}, "bytes that the NIC moves in a cycle"};
  Key<Bytes> mtu{Bytes::kib(4), {Bytes{64}, Bytes{32768}}, "payload bytes of every packet of a message but the last"};
  Key<bool> nack{true, "tell refusals to the sender"};
  Key<std::uint32_t> history{16, {0, 65536}, "completed buffers remembered per window"};
  Key<std::uint32_t> closed_memory{64, {1, 65536}, "closed mailboxes remembered, to refuse `closed`"};
  TableConfig table;
  // The table's values have 16 bits.
  SpillConfig windows{2048,
                      65536,
                      {"window contexts on the NIC",
                       "on: beyond them contexts lie in host memory; off: beyond them init_window is answered full",
                       "searches of host memory for a context outstanding; beyond it messages are refused busy"},
                      kWindowPlaces};
  SpillConfig buffers{
      8192,
      1U << 24U,
      {"descriptors of posted buffers on the NIC, all windows together",
       "on: beyond them descriptors lie in host memory; off: beyond them post_buffer is answered full",
       "descriptors being read at a time; beyond it new messages are refused busy, and packets of others wait"},
      kBufferPlaces};
  CounterConfig counters;
  OnChipConfig binding{4096, "messages of more than one packet bound at a time"};
  SpillConfig peers{4096,
                    1U << 20U,
                    {"packet-delivery contexts on the NIC, as many to receive and as many to send",
                     "on: beyond them contexts lie in host memory; off: beyond them a new peer's packets are dropped, "
                     "and puts to one end busy",
                     "contexts being read at a time, for receiving and for sending; beyond it packets wait"},
                    kPeerPlaces};
  CacheConfig page_cache{8192, "page translations on the NIC, fetched eight at a time"};
  CommandConfig command;
  TransmitConfig transmit;
  ReceiveConfig receive;
  DmaConfig dma;
  CompletionConfig completion;
  ReliabilityConfig reliability;
  GetConfig get;
  CongestionConfig congestion;
  BOOST_DESCRIBE_CLASS(NicConfig, (),
                       (clock, datapath, mtu, nack, history, closed_memory, table, windows, buffers, counters, binding,
                        peers, page_cache, command, transmit, receive, dma, completion, reliability, get, congestion),
                       (), ())
};

}  // namespace rvma
