#include "nic/descriptor.hpp"

namespace rvma {
namespace {

constexpr std::size_t kOpcodeAt = 0;
constexpr std::size_t kFlagsAt = 1;
constexpr std::size_t kThresholdTypeAt = 2;
constexpr std::size_t kPlacementAt = 3;
constexpr std::size_t kKeyAt = 4;
constexpr std::size_t kMailboxAt = 8;
constexpr std::size_t kThresholdOrOffsetAt = 16;
constexpr std::size_t kLengthAt = 24;
constexpr std::size_t kLocalAt = 32;
constexpr std::size_t kPageListAt = 40;
constexpr std::size_t kCompletionAt = 48;
constexpr std::size_t kResponseAt = 56;
constexpr std::size_t kDestinationNodeAt = 56;
constexpr std::size_t kDestinationPidAt = 60;
constexpr std::size_t kReservedAt = 62;  ///< of put and get, to the end

constexpr std::uint8_t kWindowFlags = kWindowReadable | kWindowCatchAll | kWindowInterrupt;
constexpr std::uint8_t kPayloadFlag = 0x20;
constexpr std::uint8_t kSinglePageFlag = 0x80;
constexpr std::uint64_t kWordAlignment = 16;

template <class Integer>
void store(DescriptorBytes& bytes, std::size_t at, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i) bytes.at(at + i) = static_cast<std::uint8_t>(value >> (8 * i));
}

template <class Integer>
Integer load(const DescriptorBytes& bytes, std::size_t at) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    value = static_cast<Integer>(value | (static_cast<Integer>(bytes.at(at + i)) << (8 * i)));
  }
  return value;
}

bool is_opcode(std::uint8_t code) {
  return code >= static_cast<std::uint8_t>(Opcode::init_window) &&
         code <= static_cast<std::uint8_t>(Opcode::rdma_deregister);
}

/// Puts, gets and work requests name a destination where other calls name the word for their answer.
bool has_destination(Opcode opcode) {
  return opcode == Opcode::put || opcode == Opcode::get || is_work_request(opcode);
}

}  // namespace

DescriptorBytes encode(const Descriptor& descriptor) {
  DescriptorBytes bytes{};
  const bool remote = has_destination(descriptor.opcode);
  const unsigned flags = descriptor.window_flags | (descriptor.single_page ? unsigned{kSinglePageFlag} : 0U) |
                         (descriptor.payload_follows ? unsigned{kPayloadFlag} : 0U);
  store(bytes, kOpcodeAt, static_cast<std::uint8_t>(descriptor.opcode));
  store(bytes, kFlagsAt, static_cast<std::uint8_t>(flags));
  store(bytes, kThresholdTypeAt, static_cast<std::uint8_t>(descriptor.threshold_type));
  store(bytes, kPlacementAt, static_cast<std::uint8_t>(descriptor.placement));
  store(bytes, kKeyAt, descriptor.key);
  store(bytes, kMailboxAt, descriptor.mailbox.value());
  store(bytes, kThresholdOrOffsetAt, remote ? descriptor.offset : descriptor.threshold);
  store(bytes, kLengthAt, descriptor.length);
  store(bytes, kLocalAt, descriptor.local.value());
  store(bytes, kPageListAt, descriptor.page_list.value());
  store(bytes, kCompletionAt, descriptor.completion.value());
  if (remote) {
    store(bytes, kDestinationNodeAt, descriptor.destination_node.value());
    store(bytes, kDestinationPidAt, descriptor.destination_pid.value());
  } else {
    store(bytes, kResponseAt, descriptor.response.value());
  }
  return bytes;
}

std::optional<Descriptor> decode_descriptor(const DescriptorBytes& bytes) {
  // 1. Enumerators and reserved bits.
  const auto code = load<std::uint8_t>(bytes, kOpcodeAt);
  const auto flags = load<std::uint8_t>(bytes, kFlagsAt);
  const auto type = load<std::uint8_t>(bytes, kThresholdTypeAt);
  const auto placement = load<std::uint8_t>(bytes, kPlacementAt);
  if (!is_opcode(code)) return std::nullopt;
  if ((flags & ~(unsigned{kWindowFlags} | unsigned{kSinglePageFlag} | unsigned{kPayloadFlag})) != 0) {
    return std::nullopt;
  }
  if (type > static_cast<std::uint8_t>(ThresholdType::ops)) return std::nullopt;
  if (placement > static_cast<std::uint8_t>(Placement::managed)) return std::nullopt;

  // 2. Fields that every call has.
  Descriptor descriptor;
  descriptor.opcode = static_cast<Opcode>(code);
  descriptor.window_flags = flags & kWindowFlags;
  descriptor.single_page = (flags & kSinglePageFlag) != 0;
  descriptor.payload_follows = (flags & kPayloadFlag) != 0;
  if (descriptor.payload_follows && !sends_local_memory(descriptor.opcode)) return std::nullopt;
  descriptor.threshold_type = static_cast<ThresholdType>(type);
  descriptor.placement = static_cast<Placement>(placement);
  descriptor.key = load<std::uint32_t>(bytes, kKeyAt);
  descriptor.mailbox = Mailbox{load<std::uint64_t>(bytes, kMailboxAt)};
  descriptor.length = load<std::uint64_t>(bytes, kLengthAt);
  descriptor.local = VirtualAddress{load<std::uint64_t>(bytes, kLocalAt)};
  descriptor.page_list = PhysicalAddress{load<std::uint64_t>(bytes, kPageListAt)};
  descriptor.completion = PhysicalAddress{load<std::uint64_t>(bytes, kCompletionAt)};
  if (descriptor.completion.value() % kWordAlignment != 0) return std::nullopt;

  // 3. Fields that share their place.
  const auto threshold_or_offset = load<std::uint64_t>(bytes, kThresholdOrOffsetAt);
  if (has_destination(descriptor.opcode)) {
    if (load<std::uint16_t>(bytes, kReservedAt) != 0) return std::nullopt;
    descriptor.offset = threshold_or_offset;
    descriptor.destination_node = NodeId{load<std::uint32_t>(bytes, kDestinationNodeAt)};
    descriptor.destination_pid = Pid{load<std::uint16_t>(bytes, kDestinationPidAt)};
  } else {
    descriptor.threshold = threshold_or_offset;
    descriptor.response = PhysicalAddress{load<std::uint64_t>(bytes, kResponseAt)};
    if (descriptor.response.value() % kWordAlignment != 0) return std::nullopt;
  }
  return descriptor;
}

}  // namespace rvma
