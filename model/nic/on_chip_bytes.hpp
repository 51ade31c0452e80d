/// \file
/// Bytes of memory on the NIC: of its entries, and of all that a configuration asks for.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>

#include "nic/config.hpp"

namespace rvma {

// Entries as hardware would hold them, field by field in docs/reference/units/window-store.md.
inline constexpr std::uint64_t kWindowHardwareBytes = 60;
inline constexpr std::uint64_t kHistoryHardwareBytes = 49;  ///< a retired buffer of a window
inline constexpr std::uint64_t kBufferHardwareBytes = 43;
inline constexpr std::uint64_t kCounterHardwareBytes = 28;
/// A binding, with a bit for each packet that its sender may have in flight.
constexpr std::uint64_t binding_hardware_bytes(std::uint64_t packets) { return 64 + (packets + 7) / 8; }

/// Of one NIC, whether a run uses them or not. Pipelines, queues between units and RDMA's own state are left out.
struct OnChipBytes {
  std::uint64_t translation_table = 0;  ///< both copies of its entries and hash memories
  std::uint64_t windows = 0;            ///< with their histories
  std::uint64_t buffers = 0;
  std::uint64_t counters = 0;
  std::uint64_t bindings = 0;
  std::uint64_t peers = 0;  ///< contexts of both directions, with all that may be in flight
  std::uint64_t page_cache = 0;
  std::uint64_t receive_buffer = 0;
  std::uint64_t transmit_buffer = 0;
  std::uint64_t inline_payload = 0;  ///< of all puts that may be open
  BOOST_DESCRIBE_CLASS(OnChipBytes, (),
                       (translation_table, windows, buffers, counters, bindings, peers, page_cache, receive_buffer,
                        transmit_buffer, inline_payload),
                       (), ())
  std::uint64_t total() const {
    return translation_table + windows + buffers + counters + bindings + peers + page_cache + receive_buffer +
           transmit_buffer + inline_payload;
  }
};

OnChipBytes on_chip_bytes(const NicConfig& config);

}  // namespace rvma
