#include "report/pcapng.hpp"

#include <ostream>

namespace rvma {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0a0d'0d0a;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b'3c4d;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kInterfaceStatistics = 5;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint16_t kLinkTypeEthernet = 1;
constexpr std::size_t kLengthAt = 4;  ///< of a block: its total length, again behind its body

// Codes of options; those of the first group are every block's.
constexpr std::uint16_t kEndOfOptions = 0;
constexpr std::uint16_t kComment = 1;
constexpr std::uint16_t kUserApplication = 4;
constexpr std::uint16_t kInterfaceName = 2;
constexpr std::uint16_t kInterfaceText = 3;
constexpr std::uint16_t kInterfaceIpv4 = 4;
constexpr std::uint16_t kInterfaceMac = 6;
constexpr std::uint16_t kInterfaceSpeed = 8;
constexpr std::uint16_t kTimeResolution = 9;
constexpr std::uint16_t kPacketFlags = 2;
constexpr std::uint16_t kReceived = 4;
constexpr std::uint16_t kDropped = 5;

constexpr std::uint8_t kNanoseconds = 9;  ///< 10^-9 s
constexpr std::uint32_t kBadCrcFlag = 1U << 24U;

}  // namespace

PcapngWriter::PcapngWriter(std::ostream& out, std::string_view program) : out_(out) {
  begin(kSectionHeader);
  put(kByteOrderMagic);
  put(std::uint16_t{1});
  put(std::uint16_t{0});
  put(~std::uint64_t{0});  // length of the section: not said
  option(kUserApplication, program);
  put(std::uint32_t{kEndOfOptions});
  end();
}

void PcapngWriter::declare(const Interface& interface) {
  begin(kInterfaceDescription);
  put(kLinkTypeEthernet);
  put(std::uint16_t{0});
  put(interface.snap_bytes);
  option(kInterfaceName, interface.name);
  option(kInterfaceText, interface.description);
  const auto address = [&](unsigned byte) { return static_cast<std::uint8_t>(interface.ipv4 >> (8 * (3 - byte))); };
  option(kInterfaceIpv4, std::vector<std::uint8_t>{address(0), address(1), address(2), address(3), 255, 0, 0, 0});
  option(kInterfaceMac, std::vector<std::uint8_t>{0x02, 0, address(0), address(1), address(2), address(3)});
  option64(kInterfaceSpeed, interface.bits_per_s);
  option(kTimeResolution, std::vector<std::uint8_t>{kNanoseconds});
  put(std::uint32_t{kEndOfOptions});
  end();
}

void PcapngWriter::write(const Packet& packet) {
  begin(kEnhancedPacket);
  put(packet.interface);
  time(packet.at);
  put(static_cast<std::uint32_t>(packet.kept.size()));
  put(packet.bytes);
  bytes(packet.kept.data(), packet.kept.size());
  if (!packet.comment.empty()) option(kComment, packet.comment);
  put(kPacketFlags);
  put(std::uint16_t{4});
  put(static_cast<std::uint32_t>(packet.direction) | (packet.has_bad_crc ? kBadCrcFlag : 0));
  put(std::uint32_t{kEndOfOptions});
  end();
}

void PcapngWriter::write(std::uint32_t interface, Time at, const Statistics& statistics) {
  begin(kInterfaceStatistics);
  put(interface);
  time(at);
  if (!statistics.comment.empty()) option(kComment, statistics.comment);
  option64(kReceived, statistics.seen);
  option64(kDropped, statistics.dropped);
  put(std::uint32_t{kEndOfOptions});
  end();
}

void PcapngWriter::begin(std::uint32_t type) {
  block_.clear();
  put(type);
  put(std::uint32_t{0});  // its length, which end() knows
}

void PcapngWriter::end() {
  const auto length = static_cast<std::uint32_t>(block_.size() + sizeof(std::uint32_t));
  put(length);
  for (unsigned i = 0; i < 4; ++i) block_[kLengthAt + i] = static_cast<std::uint8_t>(length >> (8 * i));
  out_.write(reinterpret_cast<const char*>(block_.data()), static_cast<std::streamsize>(block_.size()));
}

void PcapngWriter::option(std::uint16_t code, std::string_view text) {
  put(code);
  put(static_cast<std::uint16_t>(text.size()));
  bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

void PcapngWriter::option(std::uint16_t code, const std::vector<std::uint8_t>& value) {
  put(code);
  put(static_cast<std::uint16_t>(value.size()));
  bytes(value.data(), value.size());
}

void PcapngWriter::option64(std::uint16_t code, std::uint64_t value) {
  put(code);
  put(std::uint16_t{8});
  put(value);
}

/// The upper half comes first, whatever the byte order.
void PcapngWriter::time(Time at) {
  const auto ns = static_cast<std::uint64_t>(at.ps() / 1000);
  put(static_cast<std::uint32_t>(ns >> 32U));
  put(static_cast<std::uint32_t>(ns));
}

template <class T>
void PcapngWriter::put(T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    block_.push_back(static_cast<std::uint8_t>(std::uint64_t{value} >> (8 * i)));
  }
}

/// Filled up to a whole number of 32-bit words.
void PcapngWriter::bytes(const std::uint8_t* from, std::size_t count) {
  block_.insert(block_.end(), from, from + count);
  block_.insert(block_.end(), (4 - count % 4) % 4, std::uint8_t{0});
}

}  // namespace rvma
