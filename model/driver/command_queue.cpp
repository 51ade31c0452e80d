#include "driver/command_queue.hpp"

#include <array>

#include "nic/inline_command.hpp"

namespace rvma {

CommandQueue::CommandQueue(Core& core, FrameAllocator& frames, PhysicalAddress consumed_word,
                           const CommandConfig& config, std::uint64_t page_bytes)
    : core_(core),
      is_ring_(config.mode == CommandMode::ring),
      inline_payload_bytes_(config.inline_payload->count()),
      page_bytes_(page_bytes),
      depth_(config.depth),
      mmio_page_(kMmioPageBytes * core.pid().value()),
      consumed_word_(consumed_word) {
  if (is_ring_) ring_ = frames.allocate_contiguous(depth_ * kDescriptorBytes);
}

void CommandQueue::post(const Descriptor& descriptor) {
  wait_for_room();
  if (!is_ring_) {
    const InlineCommand command(descriptor, core_.memory(), page_bytes_, inline_payload_bytes_);
    core_.mmio_write(mmio_page_ + kInlineOffset, command.data(), command.size());
    ++posted_;
    return;
  }
  const DescriptorBytes bytes = encode(descriptor);
  const std::uint64_t slot = posted_ % depth_;
  core_.memory().write(PhysicalAddress{ring_.value() + slot * kDescriptorBytes}, bytes.data(), kDescriptorBytes);
  ++posted_;
  std::array<std::uint8_t, 8> tail{};
  for (unsigned i = 0; i < tail.size(); ++i) tail.at(i) = static_cast<std::uint8_t>(posted_ >> (8 * i));
  core_.mmio_write(mmio_page_ + kDoorbellOffset, tail.data(), static_cast<std::uint32_t>(tail.size()));
}

void CommandQueue::wait_for_room() {
  while (posted_ - consumed_ >= depth_) {
    const std::uint64_t now_consumed = core_.load64(consumed_word_);
    if (now_consumed == consumed_) core_.wait_change(consumed_word_, consumed_);
    consumed_ = core_.load64(consumed_word_);
  }
}

}  // namespace rvma
