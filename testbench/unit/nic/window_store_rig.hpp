/// \file
/// A window store driven as the RNIC's units drive it, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "nic/window_store.hpp"

namespace rvma::test {

inline constexpr std::uint64_t kMtu = 64;
inline constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
inline const NodeId kSource{7};
inline const Pid kPid{3};
inline const Mailbox kMailbox{0xbeef000000000000ULL};

inline NicConfig small_config() {
  NicConfig config;
  config.mtu = Bytes{kMtu};
  config.windows.on_chip = 4;
  config.windows.spill = false;
  config.buffers.on_chip = 16;
  config.buffers.spill = false;
  config.counters.on_chip = 8;
  config.counters.spill = false;
  config.binding.on_chip = 8;
  config.history = 4;
  config.closed_memory = 2;
  return config;
}

struct WindowSpec {
  std::uint64_t threshold = 256;
  ThresholdType type = ThresholdType::bytes;
  Placement placement = Placement::steered;
  std::uint32_t key = 0;
  std::uint8_t flags = 0;
};

inline Descriptor init_call(Mailbox mailbox, const WindowSpec& spec) {
  Descriptor call;
  call.opcode = Opcode::init_window;
  call.mailbox = mailbox;
  call.threshold = spec.threshold;
  call.threshold_type = spec.type;
  call.placement = spec.placement;
  call.key = spec.key;
  call.window_flags = spec.flags;
  return call;
}

inline Descriptor post_call(std::uint64_t size, std::uint64_t number) {
  Descriptor call;
  call.opcode = Opcode::post_buffer;
  call.length = size;
  call.local = VirtualAddress{0x10000 * number};
  call.completion = PhysicalAddress{16 * number};
  return call;
}

/// One message as its sender cuts it.
struct Message {
  NodeId source = kSource;
  DataHeader header;

  std::uint32_t packets() const {
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (header.message_length + kMtu - 1) / kMtu));
  }
  DataHeader packet(std::uint32_t index) const {
    DataHeader cut = header;
    cut.packet_index = index;
    cut.payload_length = static_cast<std::uint16_t>(std::min(kMtu, header.message_length - index * kMtu));
    return cut;
  }
};

inline Message message(std::uint64_t length, std::uint64_t offset = 0, std::uint32_t key = 0,
                       Mailbox mailbox = kMailbox) {
  static std::uint32_t next_id = 0;
  Message made;
  made.header.destination_pid = kPid;
  made.header.source_pid = Pid{1};
  made.header.mailbox = mailbox;
  made.header.key = key;
  made.header.message = MessageId{next_id++};
  made.header.message_length = length;
  made.header.offset = offset;
  return made;
}

/// A store with one window, driven as the RNIC's units drive it.
class Rig {
 public:
  explicit Rig(const WindowSpec& spec = {}, const NicConfig& config = small_config()) : store(config) {
    window = open(kMailbox, spec);
  }

  WindowId open(Mailbox mailbox, const WindowSpec& spec) {
    const auto allocated = store.allocate_window(init_call(mailbox, spec), kPid);
    EXPECT_EQ(allocated.status, Status::ok);
    store.open_window(allocated.window);
    return allocated.window;
  }
  BufferId post(std::uint64_t size) { return post_to(window, size); }
  BufferId post_to(WindowId to, std::uint64_t size) {
    const auto posted = store.post_buffer(to, post_call(size, ++posts));
    EXPECT_EQ(posted.status, Status::ok);
    return posted.buffer;
  }
  BindAnswer bind(const Message& what, std::uint32_t index = 0) { return bind_at(window, what, index); }
  BindAnswer bind_at(WindowId hit, const Message& what, std::uint32_t index = 0) {
    return store.bind(what.source, what.packet(index), WindowLookup{true, hit, false});
  }
  std::optional<BufferPlace> place(const BindAnswer& bound, const Message& what, std::uint32_t index) {
    BufferPlace where;
    if (!store.place(bound.place.binding, what.source, what.packet(index), where)) return std::nullopt;
    return where;
  }
  static PlacedPacket placed(const BufferPlace& where, const Message& what, std::uint32_t index) {
    PlacedPacket packet;
    packet.buffer = where.buffer;
    packet.binding = where.binding;
    packet.has_binding = where.has_binding;
    packet.payload_length = what.packet(index).payload_length;
    return packet;
  }
  bool count(const BufferPlace& where, const Message& what, std::uint32_t index = 0) {
    return store.count(placed(where, what, index));
  }
  /// Binds, places and counts a whole message, packets in order.
  BindAnswer deliver(const Message& what) {
    const BindAnswer bound = bind(what);
    if (bound.outcome != Outcome::pending) return bound;
    std::vector<BufferPlace> places{bound.place};
    for (std::uint32_t k = 1; k < what.packets(); ++k) places.push_back(place(bound, what, k).value());
    for (std::uint32_t k = 0; k < what.packets(); ++k) EXPECT_EQ(count(places[k], what, k), k + 1 == what.packets());
    return bound;
  }
  std::vector<Completion> completions() {
    std::vector<Completion> out;
    store.take_completions(out);
    return out;
  }
  Outcome outcome(const Message& what) { return bind(what).outcome; }

  WindowStore store;
  WindowId window;
  std::uint64_t posts = 0;
};

}  // namespace rvma::test
