#include "nic/completion_writer.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "host/interfaces.hpp"

namespace rvma {

namespace {
constexpr std::uint32_t kWordBytes = 16;
constexpr std::uint64_t kInterruptTag = std::numeric_limits<std::uint64_t>::max();
}  // namespace

CompletionWriter::CompletionWriter(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config,
                                   NodeId node, const ObserverList& observers)
    : Component(name, context, config.clock),
      dma("dma"),
      node_(node),
      observers_(observers),
      latency_(config.completion.latency) {
  context.stats().add(path(), stats_);
}

void CompletionWriter::complete(const Completion& completion, Cycles at) {
  // 1. One a cycle.
  const Cycles taken = std::max(at, next_free_);
  next_free_ = taken + Cycles{1};
  stats_.write.occupy(clock().time_of(next_free_) - clock().time_of(taken), 1);
  // 2. The word: head and length, at once and strictly behind the payload.
  const Time start = clock().time_of(taken + latency_);
  ++stats_.completions;
  write_word(completion.word, completion.head.value(), completion.length, keep(completion, clock().time_of(at)), start);
  // 3. The interrupt follows the word on the same channel: the core that it wakes finds the word.
  if (completion.interrupt) {
    ++stats_.interrupts;
    write_word(interrupt_address(completion.pid), 0, 0, kInterruptTag, start);
  }
}

void CompletionWriter::write_word(PhysicalAddress to, std::uint64_t first, std::uint64_t second, std::uint64_t tag,
                                  Time at) {
  DmaWrite write;
  write.to.add(to, kWordBytes);
  write.word = {first, second};
  write.is_word = true;
  write.tag = tag;
  dma->write(std::move(write), *this, at);
}

std::uint32_t CompletionWriter::keep(const Completion& completion, Time since) {
  const std::uint32_t place = in_flight_.take();
  in_flight_[place] = {completion, since};
  stats_.in_flight.observe(in_flight_.taken());
  return place;
}

void CompletionWriter::dma_written(std::uint64_t tag, Time entered, Time visible) {
  if (tag == kInterruptTag) return;
  RVMA_ASSERT(tag < in_flight_.made(), "a write of this unit was answered twice or never made");
  InFlight& word = in_flight_[static_cast<std::uint32_t>(tag)];
  word.completion.left[static_cast<std::size_t>(Stage::completion_write)] = entered;
  word.completion.left[static_cast<std::size_t>(Stage::visible)] = visible;
  stats_.write_ns.add(entered - word.since);
  observers_.tell(
      [&](NicObserver& observer) { observer.completion_written(node_, word.completion, entered, visible); });
  in_flight_.give_back(static_cast<std::uint32_t>(tag));
}

void CompletionWriter::dma_read_done(std::uint64_t /*tag*/) {
  RVMA_ASSERT(false, "the completion writer reads nothing");
}

}  // namespace rvma
