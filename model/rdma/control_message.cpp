#include "rdma/control_message.hpp"

#include <cstddef>

namespace rvma {
namespace {

template <class Integer>
void store(ControlBytes& bytes, std::size_t at, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i) bytes.at(at + i) = static_cast<std::uint8_t>(value >> (8 * i));
}
template <class Integer>
Integer load(const ControlBytes& bytes, std::size_t at) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    value = static_cast<Integer>(value | (static_cast<Integer>(bytes.at(at + i)) << (8 * i)));
  }
  return value;
}

}  // namespace

ControlBytes encode(const ControlMessage& message) {
  ControlBytes bytes{};
  store(bytes, 0, static_cast<std::uint8_t>(message.kind));
  store(bytes, 1, static_cast<std::uint8_t>(message.outcome));
  store(bytes, 2, static_cast<std::uint8_t>(message.is_managed));
  store(bytes, 3, static_cast<std::uint8_t>(message.does_not_suit));
  store(bytes, 4, message.rank);
  store(bytes, 8, message.request);
  store(bytes, 12, message.ticket);
  store(bytes, 16, message.key);
  store(bytes, 20, message.message);
  store(bytes, 24, message.mailbox);
  store(bytes, 32, message.offset);
  store(bytes, 40, message.length);
  store(bytes, 48, message.least);
  store(bytes, 56, message.era);
  store(bytes, 60, message.sequence);
  return bytes;
}

ControlMessage decode_control(const ControlBytes& bytes) {
  ControlMessage message;
  message.kind = static_cast<ControlKind>(load<std::uint8_t>(bytes, 0));
  message.outcome = static_cast<Outcome>(load<std::uint8_t>(bytes, 1));
  message.is_managed = load<std::uint8_t>(bytes, 2) != 0;
  message.does_not_suit = load<std::uint8_t>(bytes, 3) != 0;
  message.rank = load<std::uint32_t>(bytes, 4);
  message.request = load<std::uint32_t>(bytes, 8);
  message.ticket = load<std::uint32_t>(bytes, 12);
  message.key = load<std::uint32_t>(bytes, 16);
  message.message = load<std::uint32_t>(bytes, 20);
  message.mailbox = load<std::uint64_t>(bytes, 24);
  message.offset = load<std::uint64_t>(bytes, 32);
  message.length = load<std::uint64_t>(bytes, 40);
  message.least = load<std::uint64_t>(bytes, 48);
  message.era = load<std::uint32_t>(bytes, 56);
  message.sequence = load<std::uint32_t>(bytes, 60);
  return message;
}

}  // namespace rvma
