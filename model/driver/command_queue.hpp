/// \file
/// The way of descriptors from one process to its NIC: written to the NIC at once, or to a ring in host memory with a
/// doorbell; never more than `nic.command.depth` that the NIC has not consumed.
#pragma once

#include <cstdint>

#include "host/address_space.hpp"
#include "host/core.hpp"
#include "nic/config.hpp"
#include "nic/descriptor.hpp"

namespace rvma {

class CommandQueue {
 public:
  CommandQueue(Core& core, FrameAllocator& frames, PhysicalAddress consumed_word, const CommandConfig& config,
               std::uint64_t page_bytes);

  /// Waits for room, by mwait on the consumed word, then posts.
  void post(const Descriptor& descriptor);
  /// 0 in inline mode.
  PhysicalAddress ring_base() const { return ring_; }
  PhysicalAddress consumed_word() const { return consumed_word_; }

 private:
  void wait_for_room();

  Core& core_;
  bool is_ring_;
  std::uint64_t inline_payload_bytes_;
  std::uint64_t page_bytes_;
  std::uint64_t depth_;
  std::uint64_t mmio_page_;  ///< device address of the process's page
  PhysicalAddress ring_;
  PhysicalAddress consumed_word_;
  std::uint64_t posted_ = 0;
  std::uint64_t consumed_ = 0;  ///< as last read
};

}  // namespace rvma
