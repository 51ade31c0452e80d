/// \file
/// Surroundings of the transmit side's units, for their tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "nic/egress.hpp"
#include "nic/interfaces.hpp"
#include "receive_mocks.hpp"

namespace rvma::test {

/// A small physical memory behind a DMA engine without queues: reads take `read_time`, writes are visible at once.
class MemoryDma : public Component, public DmaIf {
 public:
  struct WordWrite {
    std::uint64_t address;
    std::uint64_t first;
    std::uint64_t second;
    Time at;
    bool relaxed;
  };
  struct ReadCall {
    SegmentList from;
    bool carries_bytes;
    Time at;
  };
  MemoryDma(const sc_core::sc_module_name& name, SimContext& context, Script& script, std::size_t bytes = 1U << 20U)
      : Component(name, context, Frequency::mhz(1000)), memory(bytes), script_(script) {}

  void write(DmaWrite write, DmaClient& client, Time at) override {
    RVMA_ASSERT(at >= SimContext::now(), "write in the past");
    RVMA_ASSERT(write.is_word && write.to.count() == 1, "the transmit side writes words only");
    const std::uint64_t address = write.to.segments[0].address.value();
    words.push_back({address, write.word[0], write.word[1], at, write.relaxed_ordering});
    if (address + 16 <= memory.size()) {
      store64(address, write.word[0]);
      store64(address + 8, write.word[1]);
    }
    client.dma_written(write.tag, at, at);
  }
  Time write_room_at() override { return Time::zero(); }
  void on_write_room(std::function<void()> /*room*/) override {}
  void read(DmaRead read, DmaClient& client, Time at) override {
    RVMA_ASSERT(at >= SimContext::now(), "read in the past");
    reads.push_back({read.from, read.into != nullptr, at});
    const Time duration = slow_read == reads.size() ? read_time * 3 : read_time;
    script_.at(at + duration, [this, read, &client] {
      std::uint32_t to = read.into_offset;
      for (std::uint32_t i = 0; i < read.from.count() && read.into; ++i) {
        const Segment& from = read.from.segments.at(i);
        RVMA_ASSERT(from.address.value() + from.bytes <= memory.size(), "read beyond the test's memory");
        std::memcpy(read.into->data() + to, memory.data() + from.address.value(), from.bytes);
        to += from.bytes;
      }
      client.dma_read_done(read.tag);
    });
  }
  void store64(std::uint64_t address, std::uint64_t value) {
    for (std::size_t b = 0; b < 8; ++b) memory.at(address + b) = static_cast<std::uint8_t>(value >> (8 * b));
  }
  /// The last word written to `address`; null: none.
  const WordWrite* word_at(std::uint64_t address) const {
    for (auto word = words.rbegin(); word != words.rend(); ++word) {
      if (word->address == address) return &*word;
    }
    return nullptr;
  }
  std::size_t words_at(std::uint64_t address) const {
    std::size_t count = 0;
    for (const WordWrite& word : words) count += word.address == address ? 1 : 0;
    return count;
  }

  std::vector<std::uint8_t> memory;
  std::vector<WordWrite> words;
  std::vector<ReadCall> reads;
  Time read_time = ns(500);
  std::size_t slow_read = 0;  ///< number of the read (from 1) that takes three times as long

 private:
  Script& script_;
};

}  // namespace rvma::test
