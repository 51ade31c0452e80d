/// \file
/// Hosts of the hostile bench: plain memory whose every byte is accounted for, an RNIC in front of it, and the wire.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "fabric/interfaces.hpp"
#include "fabric/wire.hpp"
#include "nic/rnic.hpp"

namespace rvma::hostile {

using Frame = std::vector<std::uint8_t>;

inline constexpr std::uint64_t kPage = 4096;
inline constexpr std::size_t kMemoryBytes = 1U << 22U;
inline const NodeId kHonest{0};
inline const NodeId kVictim{1};
inline const NodeId kHostile{2};

/// Physical memory from `base` on, filled with a pattern, so that a write anywhere shows.
class PlainMemory : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<PlainMemory> socket{"socket"};
  PlainMemory(const sc_core::sc_module_name& name, std::uint64_t base);

  /// Pages that nobody has yet, not one behind the other.
  std::vector<std::uint64_t> take_pages(std::uint64_t count);
  /// Copies to physical addresses that the host itself writes: the expected image follows.
  void host_write(std::uint64_t address, const std::uint8_t* bytes, std::uint64_t count);
  void host_store64(std::uint64_t address, std::uint64_t value);
  std::uint64_t load64(std::uint64_t address) const;
  std::uint8_t byte(std::uint64_t address) const { return bytes_[address - base_]; }
  /// The RNIC may write what it likes there: nothing is expected.
  void allow(std::uint64_t address, std::uint64_t count);
  void expect_byte(std::uint64_t address, std::uint8_t value) { expected_[address - base_] = value; }
  void expect64(std::uint64_t address, std::uint64_t value);
  /// Bytes that are not as expected, the first as physical address in `first`.
  std::uint64_t wrong(std::uint64_t& first) const;
  std::uint64_t base() const { return base_; }
  std::uint64_t stray_accesses = 0;  ///< beyond the memory, and no interrupt
  std::uint64_t interrupts = 0;

 private:
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay);
  void b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay);
  void access(tlm::tlm_generic_payload& transaction);

  std::uint64_t base_;
  std::uint64_t next_page_ = 0;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint8_t> expected_;
  std::vector<bool> allowed_;
};

/// Where every frame passes: bytes, and nothing else, go from one NIC to another. Delivers in the order of time.
class Wire : public Component {
 public:
  Wire(const sc_core::sc_module_name& name, SimContext& context, PacketPool& packets, PayloadPool& payloads);
  void attach(NodeId node, PacketSinkIf& sink) { sinks_[node.value()] = &sink; }
  /// Where frames to the hostile node go.
  void on_hostile(std::function<void(const Frame&)> seen) { hostile_ = std::move(seen); }
  void on_frame(std::function<void(NodeId from, const Frame&)> seen) { all_ = std::move(seen); }

  /// Out of a NIC: there at `at`.
  void take(NodeId from, const Packet& packet, Time at);
  /// From the hostile node, or a copy that the fabric has made: there at `at`. Bytes that are no frame arrive as a
  /// damaged packet.
  void inject(Frame frame, Time at);
  void at(Time when, std::function<void()> action);
  std::uint64_t not_frames = 0;
  std::uint64_t delivered = 0;

 private:
  void run();
  void arrive(const Frame& frame);

  PacketPool& packets_;
  PayloadPool& payloads_;
  std::map<std::uint32_t, PacketSinkIf*> sinks_;
  std::function<void(const Frame&)> hostile_;
  std::function<void(NodeId, const Frame&)> all_;
  std::multimap<std::int64_t, std::function<void()>> pending_;
  Wakeup wake_;
};

/// 50 GB/s and 40 ns, endless credit, from one NIC to the wire.
class Uplink : public sc_core::sc_object, public LinkIf, public LinkCreditIf {
 public:
  Uplink(const char* name, Wire& wire, NodeId from) : sc_object(name), wire_(wire), from_(from) {}
  Time earliest_start(std::uint32_t wire_bytes, Time not_before) override;
  Time send(PacketPtr packet, Time not_before) override;
  void on_credit(std::function<void()> /*ready*/) override {}
  void return_credit(std::uint32_t /*wire_bytes*/, Time /*at*/) override {}

 private:
  Wire& wire_;
  NodeId from_;
  Time free_at_;
};

/// A host that gives its RNIC descriptors.
class Host : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<Host> cpu{"cpu"};
  Host(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, NodeId id, std::uint64_t base,
       Wire& wire, PacketPool& packets, PayloadPool& payloads, const ObserverList& observers);

  /// A posted buffer, or a source: `bytes` bytes from `skew` bytes within its first page on.
  struct Region {
    VirtualAddress head;
    std::uint64_t bytes = 0;
    PhysicalAddress list;
    std::vector<std::uint64_t> pages;
    std::uint64_t address_of(std::uint64_t offset) const;
  };
  Region make_region(std::uint64_t bytes, std::uint64_t skew);
  /// 16 bytes that hold zeros.
  PhysicalAddress make_word();
  void command(const Descriptor& descriptor);
  PlainMemory memory;
  Rnic rnic;

 private:
  Uplink uplink_;
  std::uint64_t next_head_;
  std::vector<std::uint64_t> word_page_;
  std::uint64_t next_word_ = 0;
};

}  // namespace rvma::hostile
