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
#include "nic/descriptor.hpp"
#include "nic/fifo_ring.hpp"

namespace rvma {

class WorkQueue {
 public:
  /// Writes 64 bytes to the NIC's page of a process; they leave the core `delay` from now.
  using WriteMmio = std::function<void(const DescriptorBytes&, Time delay)>;

  /// `depth`: descriptors that the NIC holds (nic.command.depth); it counts the consumed ones at `consumed_word`.
  WorkQueue(MemoryIf& memory, PhysicalAddress consumed_word, std::uint32_t depth, WriteMmio write)
      : memory_(memory), consumed_word_(consumed_word), depth_(depth), write_(std::move(write)) {}
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
  WriteMmio write_;
  std::uint64_t posted_ = 0;
  std::uint64_t consumed_ = 0;  ///< as last read
  bool is_watching_ = false;
  FifoRing<DescriptorBytes> waiting_;
};

}  // namespace rvma
