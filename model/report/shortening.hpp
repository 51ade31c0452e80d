/// \file
/// Which keys of the configuration the stages of a message's way consist of, so that a report can say what would make
/// it shorter.
#pragma once

#include <array>
#include <boost/describe.hpp>
#include <cstdint>

#include "fabric/packet.hpp"

namespace rvma {

/// How often a message meets the time that a key stands for, within a stage.
enum class Occurs : std::uint8_t { once, each_link, each_switch };
BOOST_DESCRIBE_ENUM(Occurs, once, each_link, each_switch)

struct Shortening {
  Stage stage = Stage::issued;
  const char* key = nullptr;  ///< full path, of a time or a number of cycles
  Occurs occurs = Occurs::once;
};

/// Fixed times only: what a stage takes beyond them is waiting for units, of which `limits` tells.
inline constexpr std::array kShortenings{
    Shortening{Stage::doorbell, "host.core.issue"},
    Shortening{Stage::doorbell, "host.pcie.write_latency"},
    Shortening{Stage::command, "nic.command.latency"},
    Shortening{Stage::payload_read, "host.pcie.read_latency"},
    Shortening{Stage::transmit, "nic.transmit.latency"},
    Shortening{Stage::fabric, "fabric.link.latency", Occurs::each_link},
    Shortening{Stage::fabric, "fabric.switch.latency", Occurs::each_switch},
    Shortening{Stage::parse, "nic.receive.parse_latency"},
    Shortening{Stage::address_conversion, "nic.receive.conversion_latency"},
    Shortening{Stage::dma_write, "nic.dma.latency"},
    Shortening{Stage::count, "nic.counters.latency"},
    Shortening{Stage::completion_write, "nic.completion.latency"},
    Shortening{Stage::visible, "host.pcie.write_latency"},
};

}  // namespace rvma
