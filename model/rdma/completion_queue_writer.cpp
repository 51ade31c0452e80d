#include "rdma/completion_queue_writer.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace rvma {

CompletionQueueWriter::CompletionQueueWriter(const sc_core::sc_module_name& name, SimContext& context,
                                             const NicConfig& config)
    : Component(name, context, config.clock), dma("dma"), latency_(config.completion.latency) {
  context.stats().add(path(), stats_);
}

void CompletionQueueWriter::set_queue(Pid pid, PhysicalAddress base, std::uint32_t entries) {
  RVMA_ASSERT(entries > 0 && (entries & (entries - 1)) == 0, "a completion queue's entries are a power of two");
  if (pid.index() >= queues_.size()) queues_.resize(pid.index() + 1);
  queues_[pid.index()] = {base, entries, 0};
}

void CompletionQueueWriter::push(const DueCqe& due, Time at) {
  RVMA_ASSERT(due.pid.index() < queues_.size() && queues_[due.pid.index()].entries > 0,
              "an entry for a process without a completion queue");
  Queue& queue = queues_[due.pid.index()];
  const Cycles start = std::max(clock().edge_at_or_after(at) + latency_, next_);
  next_ = start + Cycles{1};
  stats_.write.occupy(clock().time_of(next_) - clock().time_of(start), 1);
  ++stats_.entries;
  const CqeWords words = encode(due.cqe);
  DmaWrite write;
  write.to.add(PhysicalAddress{queue.base.value() + queue.written % queue.entries * kCqeBytes}, kCqeBytes);
  write.word = {words.first, words.second};
  write.is_word = true;
  write.tag = static_cast<std::uint64_t>(at.ps());
  ++queue.written;
  dma->write(std::move(write), *this, clock().time_of(start));
}

void CompletionQueueWriter::dma_written(std::uint64_t tag, Time entered, Time /*visible*/) {
  stats_.write_ns += entered - Time::from_ps(static_cast<std::int64_t>(tag));
}

}  // namespace rvma
