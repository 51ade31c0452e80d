/// \file
/// What software writes to the NIC for one call: the descriptor and, if it is short, the payload behind it.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>

#include "host/interfaces.hpp"
#include "nic/descriptor.hpp"

namespace rvma {

class InlineCommand {
 public:
  /// Payload of up to `most_bytes` (nic.command.inline_payload) within one page of `page_bytes` is read from `memory`
  /// now, and its memory free from then on.
  InlineCommand(Descriptor descriptor, MemoryIf& memory, std::uint64_t page_bytes, std::uint64_t most_bytes);

  const std::uint8_t* data() const { return bytes_.data(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(bytes_.size()); }

 private:
  boost::container::small_vector<std::uint8_t, kDescriptorBytes> bytes_;
};

}  // namespace rvma
