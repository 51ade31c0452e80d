/// \file
/// Contracts of the host: physical memory whose contents change at exact times without an event each.
#pragma once

#include <cstdint>
#include <functional>
#include <systemc>
#include <tlm>

#include "base/ids.hpp"
#include "base/units.hpp"

namespace rvma {

/// A burst on the DMA socket: what PCIe needs to know beyond the generic payload. Attached by the DMA engine to each
/// transaction; a target that does not know it treats every write as strictly ordered.
///
/// It may be a member of the initiator's pooled transaction: set_extension() once, reset() for each use. free(), which
/// the payload's destructor calls, leaves it to its owner (so it must outlive the payload, or be cleared from it); only
/// clones (deep_copy_from) belong to their payload.
struct BurstExtension : tlm::tlm_extension<BurstExtension> {
  /// May be passed by later writes (payload). A write without it becomes visible after all earlier ones.
  bool relaxed_ordering = false;
  /// Set by a PCIe target: when the write is visible in memory (bursts that return TLM_COMPLETED only).
  Time visible = Time::max();
  /// Bytes are not carried (workload.payload = none); the data pointer is null.
  bool timing_only = false;

  BurstExtension() = default;
  BurstExtension(const BurstExtension&) = delete;
  BurstExtension& operator=(const BurstExtension&) = delete;
  ~BurstExtension() override = default;

  void reset() {
    relaxed_ordering = false;
    visible = Time::max();
    timing_only = false;
  }
  tlm_extension_base* clone() const override {
    auto* copy = new BurstExtension;
    copy->copy_from(*this);
    copy->is_clone_ = true;
    return copy;
  }
  void copy_from(const tlm_extension_base& other) override {
    const auto& burst = static_cast<const BurstExtension&>(other);
    relaxed_ordering = burst.relaxed_ordering;
    visible = burst.visible;
    timing_only = burst.timing_only;
  }
  void free() override {
    if (is_clone_) delete this;
  }

 private:
  bool is_clone_ = false;
};

/// Host physical memory. Every access first applies the posted writes that are due, so an observer sees exactly what
/// is visible at the time of its access.
class MemoryIf {
 public:
  virtual ~MemoryIf() = default;
  virtual void read(PhysicalAddress address, void* to, std::uint64_t bytes) = 0;
  virtual void write(PhysicalAddress address, const void* from, std::uint64_t bytes) = 0;
  /// Writes zeros; memory that was never written needs none to hold them.
  virtual void zero(PhysicalAddress address, std::uint64_t bytes) = 0;
  /// A DMA write that becomes visible, whole and at once, at `visible` (>= now). The transaction is acquired until
  /// then; its data must stay unchanged as long as it is referenced.
  virtual void post(tlm::tlm_generic_payload& write, Time visible) = 0;
  /// Calls `changed` once, at the time at which a write to [address, address + bytes) becomes visible; the returned
  /// handle cancels it. This is the monitor that mwait and polling share: it costs no activation until it fires.
  virtual std::uint64_t watch(PhysicalAddress address, std::uint64_t bytes, std::function<void()> changed) = 0;
  virtual void unwatch(std::uint64_t handle) = 0;
};

/// Address map of a host as its RNIC sees it. RAM starts at 0; an inbound write to the interrupt window is an MSI.
inline constexpr std::uint64_t kInterruptWindow = 0xfee0'0000'0000'0000ULL;

/// Physical address whose write interrupts core `pid`.
constexpr PhysicalAddress interrupt_address(Pid pid) { return PhysicalAddress{kInterruptWindow + 16ULL * pid.value()}; }

}  // namespace rvma
