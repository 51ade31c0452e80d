// Memory that a configuration asks for, against the figures of the units' pages.
#include "nic/on_chip_bytes.hpp"

#include <gtest/gtest.h>

namespace rvma {
namespace {

TEST(OnChipBytes, DefaultsAreThoseOfThePages) {
  const OnChipBytes bytes = on_chip_bytes(NicConfig{});
  EXPECT_EQ(bytes.translation_table, (802'816U + 184'320U) / 8);  // docs/reference/units/translation-table.md
  EXPECT_EQ(bytes.windows, 2048U * (60 + 49 * 16));
  EXPECT_EQ(bytes.buffers, 8192U * 43);
  EXPECT_EQ(bytes.counters, 4096U * 28);
  EXPECT_EQ(bytes.bindings, 4096U * 192);
  EXPECT_EQ(bytes.page_cache, 8192U * 8);
  EXPECT_EQ(bytes.receive_buffer, 256U * 1024);
  EXPECT_EQ(bytes.transmit_buffer, 64U * 1024);
  EXPECT_GT(bytes.peers, 4096U * 2 * 64);
}

TEST(OnChipBytes, EachKeyCounts) {
  const std::uint64_t before = on_chip_bytes(NicConfig{}).total();
  NicConfig config;
  config.windows.on_chip = 2049;
  EXPECT_EQ(on_chip_bytes(config).total(), before + 60 + 49 * 16);
  config.page_cache.on_chip = 8193;
  EXPECT_EQ(on_chip_bytes(config).total(), before + 60 + 49 * 16 + 8);
  config.transmit.buffer = Bytes::kib(65);
  EXPECT_EQ(on_chip_bytes(config).total(), before + 60 + 49 * 16 + 8 + 1024);
  config.command.inline_payload = Bytes{256};
  config.transmit.open_puts = 16;
  EXPECT_EQ(on_chip_bytes(config).total(), before + 60 + 49 * 16 + 8 + 1024 + 16 * 256);
}

}  // namespace
}  // namespace rvma
