// Holds memory against what the scoreboard knows of it.
#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <cstring>

#include "report/scoreboard.hpp"
#include "report/scoreboard_shadow.hpp"

namespace rvma {
namespace {

/// Buffers are read so much at a time, however large they are.
constexpr std::uint64_t kPieceBytes = 256 * kShadowPage;

}  // namespace

void Scoreboard::settle(Time now) {
  while (!pending_.empty() && pending_.top().visible <= now) {
    const PendingCheck check = pending_.top();
    pending_.pop();
    check_visible(check);
  }
}

void Scoreboard::check_visible(const PendingCheck& check) {
  ShadowBuffer& buffer = *check.buffer;
  const auto where = [&] {
    return fmt::format("node {}: buffer at {:#x} of epoch {}", buffer.node.value(), buffer.head.value(),
                       buffer.epoch.value());
  };
  expect(host_.load64(buffer.node, buffer.word) == buffer.head.value() &&
             host_.load64(buffer.node, PhysicalAddress{buffer.word.value() + 8}) == check.length,
         check.visible, [&] { return where() + ": the completion word is not (head, length)"; });
  compare_memory(buffer, check.visible);
  if (with_bytes_) checked_bytes_ += buffer.size;
  buffer.checked = true;
  buffer.pages.clear();
  buffer.pages.shrink_to_fit();
  buffer.written.clear();
  buffer.written.shrink_to_fit();
  ++checked_completions_;
}

/// A run that was stopped leaves writes in the posted channel: the byte may still be what it was before. Where puts
/// have written over one another, that is any of them.
bool Scoreboard::may_be_on_its_way(const ShadowBuffer& buffer, std::uint64_t offset, std::uint8_t found) const {
  if (drained_) return false;
  if (buffer.has_overlaps) return true;
  std::uint8_t first = 0;
  buffer.initial(&first, offset, 1);
  return found == first;
}

/// The first byte of [from, from + bytes), held in memory_, that is not what it must be; `bytes` if there is none.
std::uint64_t Scoreboard::right_bytes(const ShadowBuffer& buffer, std::uint64_t from, std::uint64_t bytes,
                                      std::uint8_t& wanted_byte) const {
  std::uint8_t untouched[kShadowPage];
  for (std::uint64_t done = 0; done < bytes; done += kShadowPage) {
    const std::uint64_t part = std::min(kShadowPage, bytes - done);
    const std::uint64_t page = (from + done) / kShadowPage;
    const std::uint8_t* wanted = untouched;
    if (!buffer.pages.empty() && buffer.pages[page]) {
      wanted = buffer.pages[page].get();
    } else {
      buffer.initial(untouched, from + done, part);
    }
    const std::uint8_t* const found = memory_.data() + done;
    if (std::memcmp(wanted, found, part) == 0) continue;
    for (std::uint64_t i = 0; i < part; ++i) {
      if (wanted[i] == found[i] || may_be_on_its_way(buffer, from + done + i, found[i])) continue;
      wanted_byte = wanted[i];
      return done + i;
    }
  }
  return bytes;
}

void Scoreboard::compare_memory(ShadowBuffer& buffer, Time at) {
  if (!with_bytes_) return;
  std::uint32_t checksum = 0;
  bool is_right = true;
  for (std::uint64_t from = 0; from < buffer.size; from += kPieceBytes) {
    const std::uint64_t bytes = std::min(kPieceBytes, buffer.size - from);
    host_.read(buffer.node, buffer.pid, VirtualAddress{buffer.head.value() + from}, bytes, memory_);
    checksum = libdeflate_crc32(checksum, memory_.data(), bytes);
    if (buffer.checked || !is_right) continue;
    std::uint8_t wanted = 0;
    const std::uint64_t right = right_bytes(buffer, from, bytes, wanted);
    is_right = right == bytes;
    expect(is_right, at, [&] {
      return fmt::format("node {}: buffer at {:#x} of epoch {}: byte {} is {:#04x}, expected {:#04x}",
                         buffer.node.value(), buffer.head.value(), buffer.epoch.value(), from + right, memory_[right],
                         wanted);
    });
  }
  if (!buffer.checked) {
    buffer.checksum = checksum;
    return;
  }
  expect(checksum == buffer.checksum, at, [&] {
    return fmt::format("node {}: buffer at {:#x} of epoch {} changed after its completion", buffer.node.value(),
                       buffer.head.value(), buffer.epoch.value());
  });
}

/// The buffer is to be filled anew: what it holds now, which was found right, is what it starts from.
void Scoreboard::take_base(ShadowBuffer& buffer) {
  buffer.has_overlaps = true;
  if (!with_bytes_ || !buffer.checked) return;
  std::uint8_t untouched[kShadowPage];
  for (std::uint64_t from = 0; from < buffer.size; from += kShadowPage) {
    const std::uint64_t bytes = std::min(kShadowPage, buffer.size - from);
    host_.read(buffer.node, buffer.pid, VirtualAddress{buffer.head.value() + from}, bytes, memory_);
    buffer.initial(untouched, from, bytes);
    if (std::memcmp(untouched, memory_.data(), bytes) == 0) continue;
    std::memcpy(buffer.page(from / kShadowPage), memory_.data(), bytes);
  }
}

}  // namespace rvma
