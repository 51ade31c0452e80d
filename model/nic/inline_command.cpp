#include "nic/inline_command.hpp"

namespace rvma {

InlineCommand::InlineCommand(Descriptor descriptor, MemoryIf& memory, std::uint64_t page_bytes,
                             std::uint64_t most_bytes) {
  descriptor.payload_follows = sends_local_memory(descriptor.opcode) && descriptor.single_page &&
                               descriptor.length > 0 && descriptor.length <= most_bytes;
  const DescriptorBytes bytes = encode(descriptor);
  bytes_.assign(bytes.begin(), bytes.end());
  if (!descriptor.payload_follows) return;
  const std::uint64_t in_page = descriptor.local.value() % page_bytes;
  bytes_.resize(kDescriptorBytes + descriptor.length);
  memory.read(PhysicalAddress{descriptor.page_list.value() + in_page}, bytes_.data() + kDescriptorBytes,
              descriptor.length);
}

}  // namespace rvma
