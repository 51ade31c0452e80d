/// \file
/// libFuzzer target: any bytes as a frame from the network. The decoder must stay within them, and what it accepts must
/// encode to exactly the same bytes. The checksums would keep nearly every mutation out, so each input is also tried
/// with its sums repaired (mutations then reach the RVMA headers).
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "fabric/wire.hpp"

namespace {

void store16(std::uint8_t* at, std::uint32_t value) {
  at[0] = static_cast<std::uint8_t>(value >> 8U);
  at[1] = static_cast<std::uint8_t>(value);
}

std::uint32_t sum16(const std::uint8_t* at, std::size_t count) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<std::uint32_t>(at[i]) << (i % 2 == 0 ? 8U : 0U);
  return sum;
}

std::uint32_t fold(std::uint32_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16U);
  return ~sum & 0xffff;
}

/// Lengths, CRC and checksums as a sender would write them.
void repair(std::vector<std::uint8_t>& frame) {
  if (frame.size() < 66 || frame.size() > 65'549) return;
  std::uint8_t* ip = frame.data() + 14;
  std::uint8_t* udp = frame.data() + 34;
  const std::size_t crc_at = frame.size() - 4;
  store16(ip + 2, static_cast<std::uint32_t>(frame.size() - 14));
  store16(udp + 4, static_cast<std::uint32_t>(frame.size() - 34));
  store16(ip + 10, 0);
  store16(ip + 10, fold(sum16(ip, 20)));
  uLong crc = crc32(0, ip + 12, 8);
  crc = crc32(crc, frame.data() + 42, static_cast<uInt>(crc_at - 42));
  for (unsigned i = 0; i < 4; ++i) frame[crc_at + i] = static_cast<std::uint8_t>(crc >> (24 - 8 * i));
  store16(udp + 6, 0);
  const std::size_t datagram = frame.size() - 34;
  const std::uint32_t checksum =
      fold(sum16(ip + 12, 8) + 17 + static_cast<std::uint32_t>(datagram) + sum16(udp, datagram));
  store16(udp + 6, checksum == 0 ? 0xffff : checksum);
}

void check(const std::vector<std::uint8_t>& frame) {
  const auto decoded = rvma::decode_frame(frame.data(), frame.size());
  if (!decoded) {
    if (decoded.error().offset > frame.size()) std::abort();
    return;
  }
  std::vector<std::uint8_t> again;
  rvma::encode_frame(*decoded, again);
  if (again != frame) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  std::vector<std::uint8_t> frame(bytes, bytes + count);
  check(frame);
  repair(frame);
  check(frame);
  return 0;
}
