#include "nic/on_chip_bytes.hpp"

#include "nic/spill_area.hpp"

namespace rvma {
namespace {

/// docs/reference/units/translation-table.md, cost of the hardware; what lies in registers is left out.
std::uint64_t table_bytes(const TableConfig& table) {
  constexpr std::uint64_t kEntryBits = 98;
  std::uint64_t row_bits = 0;
  while ((std::uint64_t{1} << row_bits) < table.rows.get()) ++row_bits;
  const std::uint64_t entries = std::uint64_t{table.banks} * table.rows * table.slots;
  const std::uint64_t hash_bits = std::uint64_t{table.banks} * 10 * 256 * row_bits;
  return 2 * (entries * kEntryBits + hash_bits) / 8;
}

}  // namespace

OnChipBytes on_chip_bytes(const NicConfig& config) {
  constexpr std::uint64_t kTranslationBytes = 8;  // a physical page number and its flags
  const SpillArea entries = SpillArea::at({}, config);
  OnChipBytes bytes;
  bytes.translation_table = table_bytes(config.table);
  bytes.windows =
      std::uint64_t{config.windows.on_chip} * (kWindowHardwareBytes + kHistoryHardwareBytes * config.history);
  bytes.buffers = config.buffers.on_chip * kBufferHardwareBytes;
  bytes.counters = config.counters.on_chip * kCounterHardwareBytes;
  bytes.bindings = config.binding.on_chip * binding_hardware_bytes(config.reliability.window);
  bytes.peers = config.peers.on_chip * (entries.receive_contexts.stride + entries.transmit_contexts.stride);
  bytes.page_cache = config.page_cache.on_chip * kTranslationBytes;
  bytes.receive_buffer = config.receive.buffer->count();
  bytes.inline_payload = config.transmit.open_puts * config.command.inline_payload->count();
  bytes.transmit_buffer = config.transmit.buffer->count();
  return bytes;
}

}  // namespace rvma
