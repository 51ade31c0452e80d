/// \file
/// A packet as the model carries it: decoded headers, a shared payload buffer, and the times at which it passed each
/// stage. wire.hpp turns one into bytes and back; sizes on the link always count those bytes.
#pragma once

#include <array>
#include <boost/describe/enum.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.hpp"
#include "base/outcome.hpp"
#include "base/pool.hpp"
#include "base/units.hpp"

namespace rvma {

enum class PacketType : std::uint8_t { data = 1, acknowledgement = 2 };
BOOST_DESCRIBE_ENUM(PacketType, data, acknowledgement)

/// In every packet. `source` and `destination` stand in the network header, whose source the fabric guarantees.
struct TransportHeader {
  PacketType type = PacketType::data;
  NodeId source;
  NodeId destination;
  std::uint32_t source_incarnation = 0;       ///< boot number of the sender's NIC; larger is newer
  std::uint32_t destination_incarnation = 0;  ///< as the sender knows it; 0: not heard yet
  std::uint32_t generation = 0;               ///< of the packet-delivery context
  std::uint32_t sequence = 0;                 ///< of this packet in the context, from 0; 0 in acknowledgements
};

/// What a get's request asks for, and where its answer goes.
struct GetAsk {
  std::uint64_t length = 0;  ///< bytes
  Mailbox mailbox;           ///< of the asker's window for the answer
  std::uint32_t key = 0;     ///< of that window
};

/// What an RDMA message does at its receiver; none: it is RVMA's.
enum class RdmaOperation : std::uint8_t { none, write, write_immediate, send, read, read_answer };
BOOST_DESCRIBE_ENUM(RdmaOperation, none, write, write_immediate, send, read, read_answer)

/// In data packets of the RDMA baseline. Its remote address stands in DataHeader::mailbox, its remote key in
/// DataHeader::key: unlike an RVMA sender, an RDMA sender names its receiver's memory.
struct RdmaHeader {
  RdmaOperation operation = RdmaOperation::none;
  std::uint32_t queue_pair = 0;  ///< at the receiver
  std::uint32_t immediate = 0;   ///< handed to the receiver; of a read and its answer: which read
};

/// In data packets: enough to handle the packet whichever comes first.
struct DataHeader {
  Pid destination_pid;
  Pid source_pid;
  Mailbox mailbox;
  std::uint32_t key = 0;
  MessageId message;
  std::uint16_t open_span = 0;       ///< message - the sender's oldest open message id
  std::uint64_t message_length = 0;  ///< bytes of the whole message
  std::uint64_t offset = 0;          ///< of the put, within its buffer
  std::uint32_t packet_index = 0;    ///< k: this packet starts at byte k x mtu of the message
  std::uint16_t payload_length = 0;  ///< bytes
  bool is_get = false;               ///< a get's request: a message of length 0 that is answered instead of placed
  GetAsk ask;                        ///< of a get's request, and of an RDMA read
  RdmaHeader rdma;
};

/// In acknowledgements: packets by sequence number, messages by outcome. Idempotent; repeated until the sender's
/// oldest open id has passed. For the context in which the *receiver of the acknowledgement* sends.
struct AckHeader {
  std::uint32_t cumulative = 0;          ///< every sequence number below has been disposed of
  std::vector<std::uint64_t> selective;  ///< bit i of word w: number cumulative + 64 w + i as well
  MessageId outcomes_from;               ///< every message id below has ended `ok` or is known to the sender
  std::vector<Outcome> outcomes;         ///< of ids outcomes_from, +1, ...; pending: not ended or not told
  /// 0: an ordinary one. Else it answers a packet that named another incarnation, or none and is not the first: that
  /// packet was not counted, nothing is acknowledged, and the answering NIC was powered on at least age_us - 1 ago.
  std::uint32_t age_us = 0;
};

/// Bytes of a packet, shared by the transfers they are cut into; recycled when the last reference goes.
class PayloadPool;
class Payload {
 public:
  std::uint8_t* data() { return bytes_.get(); }
  const std::uint8_t* data() const { return bytes_.get(); }
  std::uint32_t capacity() const { return capacity_; }

 private:
  friend class PayloadPool;
  friend void intrusive_ptr_add_ref(Payload* payload) { ++payload->references_; }
  friend void intrusive_ptr_release(Payload* payload);
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::uint32_t capacity_ = 0;
  std::uint32_t references_ = 0;
  std::uint8_t size_class_ = 0;
  PayloadPool* pool_ = nullptr;
};
using PayloadRef = boost::intrusive_ptr<Payload>;

/// Owns all payload buffers of a simulation, of at most one MTU each; must outlive their references. Their sizes are
/// powers of two: much of what NICs read and write is far smaller than a packet.
class PayloadPool {
 public:
  /// `buffer_bytes`: of the largest.
  explicit PayloadPool(std::uint32_t buffer_bytes) : buffer_bytes_(buffer_bytes) {}
  PayloadPool(const PayloadPool&) = delete;
  PayloadPool& operator=(const PayloadPool&) = delete;
  ~PayloadPool() = default;
  /// Holds at least `bytes`, which are at most buffer_bytes().
  PayloadRef acquire(std::uint32_t bytes);
  PayloadRef acquire() { return acquire(buffer_bytes_); }
  std::uint32_t buffer_bytes() const { return buffer_bytes_; }
  std::size_t made() const { return owned_.size(); }
  std::size_t in_use() const { return in_use_; }

 private:
  friend void intrusive_ptr_release(Payload* payload);
  std::uint32_t buffer_bytes_;
  std::size_t in_use_ = 0;
  std::vector<std::unique_ptr<Payload>> owned_;
  /// By the binary logarithm of the size, rounded up, as far as any was made: each node has pools of its own.
  std::vector<std::vector<Payload*>> free_;
};

/// The stages of a put, in order; a packet records when it *left* each. Consecutive differences are the latency
/// breakdown, and add up to the put's total exactly.
enum class Stage : std::uint8_t {
  issued,              ///< the core begins the call (start of the latency)
  doorbell,            ///< the core is done and the descriptor has reached the NIC
  command,             ///< the command unit has decoded it and handed it to transmit
  retry,               ///< its put was refused `no_buffer` or `busy`, and waited to be sent again
  turn,                ///< it is the packet's turn: earlier puts and packets are cut, the transmit buffer has room
  window,              ///< the peer's window has room for it: packets in flight, open messages
  payload_read,        ///< transmit has the payload (DMA read answered)
  transmit,            ///< first bit on the link
  fabric,              ///< last bit at the receiving NIC
  parse,               ///< header parsed, CRC checked, table looked up
  context,             ///< the window's context is on the NIC
  address_conversion,  ///< bound, bounds checked, page translated
  dma_write,           ///< the packet's last write has entered the posted channel
  count,               ///< counted by the counter unit
  completion_write,    ///< the completion word has entered the posted channel
  visible,             ///< the word is visible in memory (end of the latency)
};
BOOST_DESCRIBE_ENUM(Stage, issued, doorbell, command, retry, turn, window, payload_read, transmit, fabric, parse,
                    context, address_conversion, dma_write, count, completion_write, visible)
inline constexpr std::size_t kStages = 16;
using StageTimes = std::array<Time, kStages>;

/// A packet's way through the switches. The link out of a NIC clears it.
struct RouteState {
  static constexpr std::uint32_t kNoDetour = 0xffff'ffff;
  Time entered;                      ///< when its first bit left the NIC
  Time header_arrives;               ///< at the input that it is being delivered to
  std::uint32_t detour = kNoDetour;  ///< place that it passes first (topology.hpp), until it has been there
  std::uint8_t channel = 0;          ///< virtual channel of the buffer that it is in or on its way to
  std::uint8_t hops = 0;             ///< links between switches taken so far
  std::uint8_t global_hops = 0;      ///< those of them between groups, in a dragonfly
};

struct Packet {
  TransportHeader transport;
  DataHeader data;     ///< meaningful if transport.type is data
  AckHeader ack;       ///< meaningful if transport.type is acknowledgement
  PayloadRef payload;  ///< null: no bytes (length 0, acknowledgement, or workload.payload = none)
  /// Bytes that the packet occupies on a link, preamble and gap included (wire.hpp computes it).
  std::uint32_t wire_bytes = 0;
  /// A fault has flipped bits: the CRC check at the receiver will fail.
  bool corrupted = false;
  bool is_resent = false;  ///< not the first sending of its number
  RouteState route;
  StageTimes left{};

  void stamp(Stage stage, Time when) { left[static_cast<std::size_t>(stage)] = when; }
  void recycle();
  /// Makes `copy` another packet with the same contents, payload shared.
  void copy_to(Packet& copy) const;
};
using PacketPool = Pool<Packet>;
using PacketPtr = PacketPool::Handle;

}  // namespace rvma
