/// \file
/// Contracts between the RNIC's units. Who may change what, when: every call names the cycle or time `at` (>= now) at
/// which it takes effect; calls on one interface come with non-decreasing `at`. A unit that is idle hands on at once by
/// annotated time; one that must wait arms its own Wakeup. All units of one RNIC share its clock domain.
///
///     link -> ReceiveParser -> AddressConversion -> PayloadWriter -> CounterUnit -> CompletionWriter -> DMA -> host
///                 |  lookup        |  admit, bind        |  write         |  count        |  completions of gets
///              TableUnit        Delivery, WindowStore   DmaEngine      WindowStore     GetUnit
///     host -> CommandUnit -> Transmit -> Egress -> link            (acknowledgements: Delivery -> Egress)
///                 |  execute    |  read    ^
///            WindowCalls     DmaEngine     |  requests, answers
///                 |  gets                  |
///              GetUnit --------------------+     (accepted requests: AddressConversion -> GetUnit)
///
/// What does not fit on the NIC lies in host memory. AddressConversion's DecisionGate holds packets until it is here:
///
///     ContextCache  (window contexts; tells the TableUnit)    SpilledCache x 4  (buffer descriptors, counters,
///          |  64 B reads and writes                                |             delivery contexts, transmit contexts)
///       DmaEngine                                              DmaEngine
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <boost/describe.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <systemc>
#include <vector>

#include "base/ids.hpp"
#include "base/outcome.hpp"
#include "base/units.hpp"
#include "fabric/packet.hpp"
#include "nic/descriptor.hpp"

namespace rvma {

// ---------------------------------------------------------------------------------------------- translation table

struct LookupResult {
  bool hit = false;
  SlotId slot;
  /// The table is being swept after reset or flush: a miss means `busy`, never `no_mailbox`.
  bool sweeping = false;
};

/// A table answer as the window store takes it: the window whose context lay in the slot, if it still does.
struct WindowLookup {
  bool hit = false;
  WindowId window;
  /// The window cannot be known now: a miss means `busy`, never `no_mailbox`.
  bool sweeping = false;
};

class TableLookupIf : public virtual sc_core::sc_interface {
 public:
  /// Presents (pid, mailbox) to the lookup port in cycle `at`; at most one a cycle. Sees the table as all clock edges
  /// before `at` left it.
  virtual void lookup(Pid pid, Mailbox mailbox, Cycles at) = 0;
  /// Answer of the oldest lookup that was not taken yet; legal from its cycle + latency() on.
  virtual LookupResult take() = 0;
  virtual Cycles latency() const = 0;
};

enum class TableOperation : std::uint8_t { insert, erase, update, find, flush, load_seed };
BOOST_DESCRIBE_ENUM(TableOperation, insert, erase, update, find, flush, load_seed)
enum class TableStatus : std::uint8_t { ok, exists, not_found, full, busy, bad };
BOOST_DESCRIBE_ENUM(TableStatus, ok, exists, not_found, full, busy, bad)

struct TableCommand {
  TableOperation operation = TableOperation::find;
  Pid pid;
  Mailbox mailbox;
  SlotId slot;             ///< insert, update
  std::uint64_t seed = 0;  ///< load_seed
};
struct TableAnswer {
  TableStatus status = TableStatus::ok;
  SlotId slot;              ///< find
  Cycles used;              ///< cycles from acceptance to answer
  std::uint32_t kicks = 0;  ///< entries moved by an insertion that succeeded
  bool in_stash = false;    ///< what insert, erase or update has written stands in the stash
};

class TableCommandIf : public virtual sc_core::sc_interface {
 public:
  /// Queues a command from cycle `at` on; `done` runs at the cycle in which its answer is valid. In order.
  virtual void command(const TableCommand& command, Cycles at, std::function<void(const TableAnswer&)> done) = 0;
};

// ---------------------------------------------------------------------------------------------- out of the parser

/// Takes parsed acknowledgements (the transmit half of the packet-delivery contexts).
class AckSinkIf : public virtual sc_core::sc_interface {
 public:
  /// `packet` is an acknowledgement, parsed and with a good checksum at `at`.
  virtual void acknowledgement(PacketPtr packet, Time at) = 0;
};

/// Takes parsed data packets.
class AddressConversionIf : public virtual sc_core::sc_interface {
 public:
  /// `packet` is a data packet with a good checksum; its lookup has been presented to the table, and can be taken at
  /// cycle `ready` (increasing from call to call).
  virtual void convert(PacketPtr packet, Cycles ready) = 0;
};

// ------------------------------------------------------------------------------------- delivery contexts (receive)

/// Incarnation of messages that software numbers itself, on a NIC that knows none (RDMA): no NIC has it.
inline constexpr std::uint32_t kNoIncarnation = ~std::uint32_t{0};

/// Names one message at its receiver.
struct MessageRef {
  NodeId source;
  std::uint32_t source_incarnation = 0;
  std::uint32_t generation = 0;
  MessageId message;
};

enum class MessageState : std::uint8_t { unseen, bound, refused, done };

/// The receive half of the packet-delivery contexts. Duplicates and messages that have ended stop here, before any
/// counter. Never waits for the transmit path: acknowledgements are pending bits.
class DeliveryIf : public virtual sc_core::sc_interface {
 public:
  enum class Verdict : std::uint8_t {
    fresh,      ///< first copy of this packet: go on with `state`
    duplicate,  ///< acknowledged again, changes nothing
    stale,      ///< older incarnation or generation, or addressed to another one: dropped
    closed      ///< fresh sequence number of a message id that has ended: acknowledged, changes nothing
  };
  struct Admission {
    Verdict verdict = Verdict::fresh;
    MessageState state = MessageState::unseen;
    std::uint32_t binding = 0;  ///< if state is bound: the entry given to bind()
  };
  /// First step of every data packet, at its decision cycle. A fresh packet *must* be followed by dispose().
  virtual Admission admit(const Packet& packet) = 0;
  /// Whether admit() would find the packet the first of its message, or of its context. Changes nothing.
  virtual bool is_first(const Packet& packet) = 0;
  /// The unseen message is bound; `binding` is its entry in the binding store (multi-packet messages only).
  virtual void bind(const MessageRef& message, std::uint32_t binding) = 0;
  /// The unseen message is refused, and with it all its packets to come. Needs no allocation.
  virtual void refuse(const MessageRef& message, Outcome reason, Time at) = 0;
  /// `busy`, decided before mailbox and key were looked at: anybody can cause it, so that with `nic.nack` off it does
  /// not tell a stranger that somebody is here.
  virtual void refuse_unidentified(const MessageRef& message, Time at) { refuse(message, Outcome::busy, at); }
  /// The packet was placed (its write has entered the posted channel at `at`) or refused: acknowledge its number.
  virtual void dispose(const MessageRef& message, std::uint32_t sequence, Time at) = 0;
  /// The bound (or single-packet) message has been counted whole: its outcome is `ok`.
  virtual void end(const MessageRef& message, Time at) = 0;
  /// The bound message of the source's latest context was cut off by a call: it ends `stale`, as its packets to come
  /// do.
  virtual void withdraw(NodeId source, MessageId message, Time at) = 0;
};

/// Where the receive half's contexts lie, of which only some are on the NIC.
class ReceiveContextsIf : public virtual sc_core::sc_interface {
 public:
  /// The context of the packet's source is on the NIC, or it has none yet; if so, it counts as used.
  virtual bool has_context(const Packet& packet) = 0;
  /// has_context() said no: `done` runs when it is there.
  virtual void fetch_context(const Packet& packet, std::function<void()> done) = 0;
  /// The entry in the binding store of the packet's message, if admit() would find it bound. Changes nothing.
  virtual std::optional<std::uint32_t> binding_of(const Packet& packet) = 0;
};

/// Where bound messages are cut off (address conversion: the one deciding place).
class CutOffIf : public virtual sc_core::sc_interface {
 public:
  /// The message of binding entry `binding` will never be whole: its sender has restarted, given up or fallen silent.
  virtual void cut_off(const MessageRef& message, std::uint32_t binding, Time at) = 0;
};

// ------------------------------------------------------------------------------------------------------------- DMA

/// A contiguous piece of physical memory.
struct Segment {
  PhysicalAddress address;
  std::uint32_t bytes = 0;
};
/// What one transfer touches: a packet of at most 32 KiB lies in at most 9 pages of 4 KiB or more, and most lie in one
/// or two, which need no memory of their own.
struct SegmentList {
  boost::container::small_vector<Segment, 2> segments;
  void add(PhysicalAddress address, std::uint32_t bytes) { segments.push_back(Segment{address, bytes}); }
  std::uint32_t count() const { return static_cast<std::uint32_t>(segments.size()); }
  std::uint32_t total_bytes() const {
    std::uint32_t total = 0;
    for (const Segment& segment : segments) total += segment.bytes;
    return total;
  }
};

struct DmaWrite {
  SegmentList to;
  PayloadRef payload;  ///< bytes from `payload_offset` on; null: `word` (or no bytes in timing-only runs)
  std::uint32_t payload_offset = 0;
  std::array<std::uint64_t, 2> word{};  ///< 16 bytes, little endian, if `is_word`
  bool is_word = false;
  bool relaxed_ordering = false;  ///< payload may be passed; a completion or answer may not pass anything
  std::uint64_t tag = 0;
};
struct DmaRead {
  SegmentList from;
  PayloadRef into;  ///< null in timing-only runs
  std::uint32_t into_offset = 0;
  std::uint64_t tag = 0;
};

/// A unit that uses the DMA engine.
class DmaClient {
 public:
  virtual ~DmaClient() = default;
  /// The last burst of write `tag` has entered the posted channel at `entered`, and is visible at `visible` (never if
  /// the target does not tell). May be called from within DmaIf::write, with a time in the future.
  virtual void dma_written(std::uint64_t tag, Time entered, Time visible) = 0;
  /// All bytes of read `tag` are in its buffer; called at that time.
  virtual void dma_read_done(std::uint64_t tag) = 0;
};

/// One DMA engine an RNIC; writes of all clients form one posted channel, in call order.
class DmaIf : public virtual sc_core::sc_interface {
 public:
  /// Queues a write that may start at `at`.
  virtual void write(DmaWrite write, DmaClient& client, Time at) = 0;
  /// Time from which the write queue has room for another packet; Time::max(): not known yet, see on_write_room().
  virtual Time write_room_at() = 0;
  /// Adds a callback that runs whenever room appears after write_room_at() said "never".
  virtual void on_write_room(std::function<void()> room) = 0;
  /// Queues a read that may start at `at`; unlimited queue, a bounded number outstanding.
  virtual void read(DmaRead read, DmaClient& client, Time at) = 0;
};

// --------------------------------------------------------------------------------------- receive path after binding

/// A bound packet on its way to memory and to the counters.
struct PlacedPacket {
  MessageRef message;
  std::uint32_t sequence = 0;
  BufferId buffer;
  std::uint32_t binding = 0;
  bool has_binding = false;  ///< false: single-packet message
  bool is_record = false;    ///< the record of a message in a catch-all window: nothing to acknowledge, no credit
  std::uint32_t payload_length = 0;
  PayloadRef payload;
  StageTimes left{};
  std::uint64_t buffer_offset = 0;  ///< of the packet's first byte within the buffer
  std::uint32_t wire_bytes = 0;     ///< input buffer that it gives back once it is in the posted channel
};

class PayloadWriterIf : public virtual sc_core::sc_interface {
 public:
  /// Writes the payload to `to`, then disposes of the packet and counts it. Zero-length packets pass straight on.
  virtual void place(PlacedPacket packet, const SegmentList& to, Cycles at) = 0;
};

class CounterIf : public virtual sc_core::sc_interface {
 public:
  /// Counts a packet whose write entered the posted channel at `at`.
  virtual void count(PlacedPacket packet, Time at) = 0;
  /// Time from which the unit takes another packet: the next count() is not for an earlier one. Zero: it always does.
  virtual Time room_at() const { return Time::zero(); }
};

/// A buffer that a rewind has brought back to its window's bucket, under a number that may be new.
struct RewoundBuffer {
  BufferId buffer;
  PhysicalAddress word;  ///< its completion pointer
};

/// One finished epoch, to be told to the host.
struct Completion {
  WindowId window;
  BufferId buffer;
  Pid pid;
  Mailbox mailbox;
  Epoch epoch;
  VirtualAddress head;
  std::uint64_t length = 0;
  PhysicalAddress word;  ///< the completion pointer
  bool interrupt = false;
  bool is_answer = false;  ///< of a get: the get unit writes the word
  StageTimes left{};       ///< of the packet that completed it; all zero if a call did
};

class CompletionWriterIf : public virtual sc_core::sc_interface {
 public:
  /// Writes the completion word from cycle `at` on, strictly ordered, in call order.
  virtual void complete(const Completion& completion, Cycles at) = 0;
};

// ------------------------------------------------------------------------------------------------------ host calls

struct CallAnswer {
  Status status = Status::ok;
  std::uint64_t value = 0;
};

/// Every window call (not put, get, arm_interrupt) as the command unit hands it on.
class WindowCallsIf : public virtual sc_core::sc_interface {
 public:
  /// Executes at cycle `at`. `done` runs when the call is answered, at once or later (table insertion, close): calls of
  /// one process are handed over one after another, each after the answer of the one before.
  virtual void execute(const Descriptor& call, Pid pid, Cycles at, std::function<void(const CallAnswer&)> done) = 0;
};

/// What transmit sends: a put of the host, one half of a get (get_unit.hpp), or a message of the RDMA baseline.
enum class Purpose : std::uint8_t { put, get_request, get_answer, rdma };

/// From the command unit, or from the get unit, to transmit.
struct PutRequest {
  Descriptor descriptor;
  PayloadRef payload;  ///< that came with the descriptor; null: it lies in the host's memory
  Pid pid;
  Time doorbell;  ///< when the descriptor (or the doorbell that announced it) reached the NIC
  Purpose purpose = Purpose::put;
  // Of a request: what it asks for, and which get it belongs to.
  GetAsk ask;
  std::uint32_t job = 0;
  std::uint32_t uses = 0;
  RdmaHeader rdma;
  // Of an answer: whose bytes it reads.
  WindowId window;
  BufferId buffer;
  std::uint64_t posting = 0;
};
class TransmitIf : public virtual sc_core::sc_interface {
 public:
  /// Takes the put if there is room in the open-put table; false: keep it, on_room() will be called.
  virtual bool submit(const PutRequest& put, Cycles at) = 0;
  virtual void on_room(std::function<void()> room) = 0;
};

/// Takes accepted requests of gets.
class GetServeIf : public virtual sc_core::sc_interface {
 public:
  /// The request reads `buffer` of the window in `slot`, within its bounds. False: no room, refuse it `busy`.
  virtual bool serve(NodeId source, const DataHeader& request, WindowId slot, BufferId buffer) = 0;
};

/// What transmit tells of requests and answers and of RDMA messages, instead of writing a completion word.
class GetSinkIf : public virtual sc_core::sc_interface {
 public:
  virtual void ended(const PutRequest& request, Outcome outcome, std::uint32_t tries, Time at) = 0;
  /// The memory that the answer reads still belongs to its window. Otherwise nothing of it may be sent.
  virtual bool may_read(const PutRequest& answer) = 0;
};

}  // namespace rvma
