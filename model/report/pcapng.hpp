/// \file
/// Blocks of a pcapng file (draft-ietf-opsawg-pcapng), the capture format of Wireshark. Little endian on every machine.
/// Everything that the format allows and captures of a simulation do not need is left out.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace rvma {

class PcapngWriter {
 public:
  /// Where packets are seen. Time stamps have nanoseconds, Ethernet frames come without preamble and frame check.
  struct Interface {
    std::string name;
    std::string description;
    std::uint32_t ipv4 = 0;        ///< the highest byte is the first of the address; its net has 8 bits
    std::uint32_t snap_bytes = 0;  ///< most bytes of a packet that are kept; 0: no limit
    std::uint64_t bits_per_s = 0;  ///< of its link
  };
  enum class Direction : std::uint8_t { in = 1, out = 2 };
  struct Packet {
    std::uint32_t interface = 0;
    Direction direction = Direction::in;
    Time at;                         ///< rounded down to a nanosecond
    std::uint32_t bytes = 0;         ///< length of the frame
    std::vector<std::uint8_t> kept;  ///< its first bytes
    bool has_bad_crc = false;
    std::string_view comment;  ///< empty: none
  };
  struct Statistics {
    std::uint64_t seen = 0;     ///< packets
    std::uint64_t dropped = 0;  ///< of them, not in the file
    std::string comment;        ///< empty: none
  };

  /// Begins the file; `program` wrote it.
  PcapngWriter(std::ostream& out, std::string_view program);
  /// Interfaces have the numbers 0, 1, .. in the order of their declarations, each before its first packet.
  void declare(const Interface& interface);
  void write(const Packet& packet);
  void write(std::uint32_t interface, Time at, const Statistics& statistics);

 private:
  void begin(std::uint32_t type);
  void option(std::uint16_t code, std::string_view text);
  void option(std::uint16_t code, const std::vector<std::uint8_t>& bytes);
  void option64(std::uint16_t code, std::uint64_t value);
  void time(Time at);
  template <class T>
  void put(T value);
  void bytes(const std::uint8_t* from, std::size_t count);
  void end();

  std::ostream& out_;
  std::vector<std::uint8_t> block_;
};

}  // namespace rvma
