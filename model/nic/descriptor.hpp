/// \file
/// The command descriptor: 64 bytes that a driver writes to a command queue (or to the NIC directly) for every call.
/// Little endian, in host memory or in an MMIO write exactly as laid out here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/ids.hpp"
#include "base/outcome.hpp"

namespace rvma {

inline constexpr std::size_t kDescriptorBytes = 64;
using DescriptorBytes = std::array<std::uint8_t, kDescriptorBytes>;

enum class Opcode : std::uint8_t {
  init_window = 1,
  post_buffer,
  post_one_time_buffer,
  put,
  get,
  inc_epoch,
  get_epoch,
  get_buf_ptrs,
  rewind,
  close_window,
  arm_interrupt,
  // Of the RDMA baseline's NIC (rdma/rdma_nic.hpp).
  rdma_write,
  rdma_write_immediate,
  rdma_send,
  rdma_read,
  rdma_post_receive,
  rdma_create_queue_pair,
  rdma_register,
  rdma_deregister,
};
/// What an RDMA queue pair sends: handed to transmit as a put is.
constexpr bool is_work_request(Opcode opcode) { return opcode >= Opcode::rdma_write && opcode <= Opcode::rdma_read; }
/// Whether the call's payload is local memory of its own process.
constexpr bool sends_local_memory(Opcode opcode) {
  return opcode == Opcode::put || (is_work_request(opcode) && opcode != Opcode::rdma_read);
}
constexpr bool is_rdma(Opcode opcode) { return opcode >= Opcode::rdma_write; }

/// Flags of init_window.
enum WindowFlag : std::uint8_t {
  kWindowReadable = 1,
  kWindowCatchAll = 2,
  kWindowAnswer = 64,    ///< a get's window for its answer: the NIC's own, no descriptor may have it
  kWindowInterrupt = 4,  ///< every completion of the window also interrupts the owner's core
};

/// Decoded form. Which fields count depends on `opcode`; the others are 0. Addresses are physical: the driver (the
/// kernel part of it) has translated and pinned them, as for any RNIC. None of them ever reaches the wire.
struct Descriptor {
  Opcode opcode = Opcode::put;
  std::uint8_t window_flags = 0;
  ThresholdType threshold_type = ThresholdType::bytes;
  Placement placement = Placement::steered;
  std::uint32_t key = 0;
  Mailbox mailbox;              ///< put: the destination's; window calls: the window's
  std::uint64_t threshold = 0;  ///< bytes or ops; arm_interrupt, get_buf_ptrs, rewind: n
  std::uint64_t offset = 0;     ///< put: within the destination buffer
  std::uint64_t length = 0;     ///< put: of the message; post: of the buffer
  /// Head of the local buffer: put: source; post: the buffer, as the host's virtual address (what completion reports).
  VirtualAddress local;
  /// put and post: physical address of the first byte of an array of 8-byte physical page addresses, one for each
  /// host.page that the local buffer touches, in order.
  PhysicalAddress page_list;
  /// The local buffer lies within one page: `page_list` is that page's physical address itself, nothing is fetched.
  bool single_page = false;
  /// put, RDMA writes and sends: `length` bytes of payload follow the descriptor in the same MMIO write.
  bool payload_follows = false;
  /// 16-byte aligned word pair. put: (outcome, bytes); post: the buffer's completion pointer; arm_interrupt: the word.
  PhysicalAddress completion;
  /// 16-byte aligned (status, value) of the call itself; 0: no answer wanted (puts).
  PhysicalAddress response;
  NodeId destination_node;
  Pid destination_pid;
};
// RDMA work requests: `mailbox` the remote address, `key` the remote key, `offset` (queue pair << 32 | immediate),
// `completion` a number of the software's choice, a multiple of 16, that its completion entry names (0: no entry is
// wanted); a read has the key of the local region in `page_list`. post_receive: `local`, `length`, `page_list` the
// buffer, `completion` as before. create_queue_pair: `key` its number, `mailbox` (peer's node << 32 | its number
// there). register: `key` the region's key, `local`, `length`, `page_list` its memory; deregister: `key`.

/// Layout (byte offsets): 0 opcode, 1 flags (window flags; bit 5: payload_follows; bit 7: single_page), 2 threshold
/// type, 3 placement, 4 key, 8 mailbox, 16 threshold or offset, 24 length, 32 local, 40 page_list, 48 completion, 56
/// response or (put, get) destination node (4 bytes) and pid (2 bytes). descriptor.cpp is the one definition of it.
DescriptorBytes encode(const Descriptor& descriptor);
/// Empty if the bytes are no descriptor (unknown opcode or enumerator, misaligned word, reserved bits set).
std::optional<Descriptor> decode_descriptor(const DescriptorBytes& bytes);

/// MMIO map of the RNIC: one 4 KiB page a process. Offset 0: doorbell (8-byte tail index of the ring in host memory);
/// offset 64: window for an inline descriptor of 64 bytes and the payload behind it, written in one burst.
inline constexpr std::uint64_t kMmioPageBytes = 4096;
inline constexpr std::uint64_t kDoorbellOffset = 0;
inline constexpr std::uint64_t kInlineOffset = 64;

}  // namespace rvma
