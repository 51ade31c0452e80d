/// \file
/// What the software of an RDMA NIC sees of it beside its MMIO pages.
#pragma once

#include <cstdint>
#include <functional>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "nic/descriptor.hpp"
#include "nic/interfaces.hpp"
#include "rdma/rdma_state.hpp"

namespace rvma {

class RdmaNicIf {
 public:
  virtual ~RdmaNicIf() = default;
  /// See CommandUnit::set_ring().
  virtual void set_ring(Pid pid, PhysicalAddress base, std::uint32_t entries, PhysicalAddress consumed_word) = 0;
  /// See CompletionQueueWriter::set_queue().
  virtual void set_completion_queue(Pid pid, PhysicalAddress base, std::uint32_t entries) = 0;
  /// A call before the simulation starts.
  virtual void prepare(const Descriptor& call, Pid pid) = 0;

  /// A packet of a write or a read's answer, as its payload enters the posted channel: bytes [offset, + bytes) of the
  /// message. For checks; nothing in the model depends on it.
  struct Placed {
    RdmaState::Placing message;
    std::uint64_t offset = 0;
    const PlacedPacket* packet = nullptr;
    Time at;
  };
  virtual void on_placed(std::function<void(const Placed&)> placed) = 0;
};

}  // namespace rvma
