/// \file
/// The way of work requests and calls from a process's software to the RDMA NIC: written to the NIC one by one, never
/// more than it can hold.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <functional>
#include <systemc>
#include <tlm>

#include "base/component.hpp"
#include "host/interfaces.hpp"
#include "nic/config.hpp"
#include "nic/descriptor.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/inline_command.hpp"

namespace rvma {

class WorkQueue {
 public:
  /// Writes to the NIC's page of a process; the bytes leave the core `delay` from now.
  using WriteMmio = std::function<void(const InlineCommand&, Time delay)>;

  /// The NIC counts the descriptors that it has consumed at `consumed_word`.
  WorkQueue(MemoryIf& memory, PhysicalAddress consumed_word, const CommandConfig& config, std::uint64_t page_bytes,
            WriteMmio write)
      : memory_(memory),
        consumed_word_(consumed_word),
        depth_(config.depth),
        inline_payload_bytes_(config.inline_payload->count()),
        page_bytes_(page_bytes),
        write_(std::move(write)) {}
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() = default;

  /// Goes to the NIC `delay` from now, or as soon as it has room; in order.
  void post(const Descriptor& descriptor, Time delay);

 private:
  std::uint64_t consumed();
  void go_on();

  MemoryIf& memory_;
  PhysicalAddress consumed_word_;
  std::uint64_t depth_;
  std::uint64_t inline_payload_bytes_;
  std::uint64_t page_bytes_;
  WriteMmio write_;
  std::uint64_t posted_ = 0;
  std::uint64_t consumed_ = 0;  ///< as last read
  bool is_watching_ = false;
  FifoRing<Descriptor> waiting_;
};

}  // namespace rvma
