/// \file
/// A message by all that tells it from every other one of a run, as a key of hash maps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.hpp"
#include "nic/interfaces.hpp"

namespace rvma {

struct MessageKey {
  std::uint64_t nodes = 0;    ///< source << 32 | destination
  std::uint64_t context = 0;  ///< incarnation << 32 | generation
  std::uint32_t message = 0;

  MessageKey() = default;
  MessageKey(NodeId destination, const MessageRef& ref)
      : nodes(std::uint64_t{ref.source.value()} << 32U | destination.value()),
        context(std::uint64_t{ref.source_incarnation} << 32U | ref.generation),
        message(ref.message.value()) {}

  friend bool operator==(const MessageKey& a, const MessageKey& b) {
    return a.nodes == b.nodes && a.context == b.context && a.message == b.message;
  }
  friend std::size_t hash_value(const MessageKey& key) {
    return static_cast<std::size_t>(mix64(key.nodes ^ mix64(key.context ^ key.message)));
  }
};

}  // namespace rvma
