/// \file
/// What the RDMA baseline's NIC knows and decides, as plain C++ with no time in it: queue pairs, memory regions, posted
/// receives, and the messages that are arriving. The RDMA counterpart of WindowStore.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/outcome.hpp"
#include "base/slot_table.hpp"
#include "fabric/packet.hpp"
#include "nic/descriptor.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/page_translator.hpp"

namespace rvma {

/// What an entry of a completion queue tells.
enum class CqeKind : std::uint8_t { none, sent, received, written, read };
BOOST_DESCRIBE_ENUM(CqeKind, none, sent, received, written, read)

/// An entry of a completion queue: 16 bytes, two little-endian words, in this order: kind (8 bits), outcome (8), 0
/// (16), immediate (32) | id (64).
struct Cqe {
  CqeKind kind = CqeKind::none;
  Outcome outcome = Outcome::ok;
  std::uint32_t immediate = 0;
  std::uint64_t id = 0;  ///< `completion` of the work request, or of the posted receive that was used up
  friend bool operator==(const Cqe& a, const Cqe& b) {
    return a.kind == b.kind && a.outcome == b.outcome && a.immediate == b.immediate && a.id == b.id;
  }
};
inline constexpr std::uint32_t kCqeBytes = 16;
struct CqeWords {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};
CqeWords encode(const Cqe& cqe);
Cqe decode_cqe(const CqeWords& words);

/// Entry of a completion queue that is due, and whose.
struct DueCqe {
  Pid pid;
  Cqe cqe;
};

class RdmaState {
 public:
  using Index = std::uint32_t;
  /// Queue pairs with this bit talk to everybody, each at the same number plus the process of the destination: software
  /// that sets connections up meets there. Their requests name the destination, and nothing is said of their order.
  static constexpr std::uint32_t kManagement = 0x8000'0000;

  /// `mtu`: bytes. `tracks_order`: a message is signalled when it and all before it on its queue pair are whole;
  /// otherwise when its last packet has been placed, whatever is missing; but the answer to a read, whose length the
  /// asker knows, when it is whole.
  RdmaState(std::uint64_t mtu, bool tracks_order);

  // -- Calls
  /// Regions belong to nobody. Errors: exists, bad_argument (length 0).
  Status register_region(const Descriptor& call);
  /// Errors: bad_argument (no such region). Packets on their way through the NIC still land.
  Status deregister_region(std::uint32_t key);
  /// Errors: exists.
  Status create_queue_pair(const Descriptor& call, Pid pid);
  /// Errors: bad_argument (length 0).
  Status post_receive(const Descriptor& call, Pid pid);

  bool has_queue_pair(std::uint32_t number) const { return queue_pairs_.contains(number); }
  bool has_region(std::uint32_t key) const { return regions_.contains(key); }
  std::size_t queue_pairs() const { return queue_pairs_.size(); }
  std::size_t regions() const { return regions_.size(); }

  // -- Sender
  struct Route {
    NodeId peer;
    std::uint32_t queue_pair = 0;  ///< its number at the peer
  };
  /// `request`: of a management queue pair, whose destination it names.
  Route route_of(std::uint32_t queue_pair, const Descriptor& request) const;
  Pid owner_of(std::uint32_t queue_pair) const;

  // -- Receiver
  struct Opened {
    Outcome outcome = Outcome::pending;  ///< pending: go on with `message`; else refused
    bool malformed = false;              ///< ignore the packet
    Index message = 0;
    std::vector<DueCqe> due;  ///< entries that waited for messages which are refused now
  };
  /// A message's first packet, of the sender's context `generation`. With a new one the sender has given up all that it
  /// had open, and numbers the messages of each queue pair from 0 again. Entries that waited for what never comes are
  /// appended to `due`.
  void hear(NodeId source, std::uint32_t generation, std::vector<DueCqe>& due);
  /// First packet of a message that was heard. Refusals: no_mailbox (no such queue pair, or it belongs to another
  /// peer), bad_key (no such region), bounds, no_buffer (no receive is posted, or an earlier message of the queue pair
  /// has been refused so: the sender asks again).
  Opened open(NodeId source, const DataHeader& header);
  /// Whether a later packet agrees with its message.
  bool agrees(Index message, const DataHeader& header) const;
  /// Where the packet's payload goes.
  const TranslatedRegion& region_of(Index message) const;
  std::uint64_t offset_of(Index message, const DataHeader& header) const;  ///< of the packet, in that region
  /// The packet, which agrees with its message, is on its way to memory.
  void placing(Index message, const DataHeader& header);
  std::uint32_t queue_pair_of(Index message) const { return messages_[message].rdma.queue_pair; }
  bool tracks_order() const { return tracks_order_; }

  struct Counted {
    bool whole = false;  ///< the message has ended
    NodeId source;
    MessageId id;
  };
  /// The packet's bytes are in the posted channel. Entries that are due then are appended to `due`.
  Counted count(Index message, std::uint64_t payload_offset, std::uint32_t payload_length, std::vector<DueCqe>& due);
  /// The message will never be whole: those behind it on its queue pair no longer wait for it.
  void cut_off(Index message, std::vector<DueCqe>& due);

  /// A read: the region's bytes that its answer carries. Refusals as in open(); `answer` as transmit takes it, but for
  /// destination and purpose.
  Outcome read(NodeId source, const DataHeader& header, Descriptor& answer, std::uint64_t page_bytes) const;
  /// A read is under way at the asker; its number travels as the immediate. `id` comes back with its completion.
  std::uint32_t open_read(Pid pid, std::uint64_t id);
  /// Ends a read that gets no answer; false: it has ended.
  bool end_read(std::uint32_t read, Pid& pid, std::uint64_t& id);

  bool is_reading(std::uint32_t read) const;
  std::size_t open_reads() const { return reads_.taken(); }
  /// `answered` runs whenever a read has its answer.
  void on_read_answered(std::function<void()> answered) { read_answered_ = std::move(answered); }

  /// What checks want to know of a message that is being placed.
  struct Placing {
    NodeId source;
    Pid pid;  ///< of the queue pair
    RdmaOperation operation = RdmaOperation::none;
    std::uint32_t immediate = 0;
    std::uint32_t key = 0;  ///< of the region
    std::uint64_t length = 0;
    std::uint64_t base = 0;  ///< of the message, in its region
  };
  Placing placing_of(Index message) const;

 private:
  struct QueuePair {
    Pid pid;
    Route route;
    // Places in the order of all its messages, of whatever generation.
    std::uint64_t first = 0;                               ///< place of the present generation's message 0
    std::uint64_t next_whole = 0;                          ///< messages of the peer before this one have been signalled
    std::map<std::uint64_t, std::vector<DueCqe>> waiting;  ///< whole, but not all before them
    std::set<std::uint64_t> not_ready;                     ///< of messages that were refused for want of a receive
  };
  struct Receive {
    TranslatedRegion memory;
    std::uint64_t id = 0;
  };
  struct Message {
    bool open = false;
    bool cut = false;
    Pid pid;
    NodeId source;
    MessageId id;
    RdmaHeader rdma;
    std::uint64_t order = 0;  ///< number in its queue pair and generation
    std::uint64_t place = 0;  ///< in the order of its queue pair
    std::uint64_t length = 0;
    std::uint64_t address = 0;
    std::uint32_t key = 0;
    TranslatedRegion memory;
    std::uint64_t base = 0;          ///< of the message in `memory`
    std::uint64_t missing = 0;       ///< bytes not counted
    std::uint32_t on_their_way = 0;  ///< packets
    bool has_receive = false;
    Receive receive;  ///< that it uses up
    bool signalled = false;
    std::vector<bool> seen;  ///< packets on their way or counted, of a message of more than one
  };
  struct Read {
    bool open = false;
    std::uint16_t uses = 0;  ///< of this entry: tells a late answer to an earlier read apart
    Pid pid;
    std::uint64_t id = 0;
  };

  Outcome locate(const DataHeader& header, Message& message);
  void begin_anew(QueuePair& queue_pair, std::uint32_t number, std::vector<DueCqe>& due);
  bool may_take_receive(const QueuePair& queue_pair, std::uint64_t place) const;
  Outcome take_receive(Pid pid, Message& message);
  void signal(Message& message, std::vector<DueCqe>& due);
  static void pass(QueuePair& queue_pair, std::uint64_t place, std::vector<DueCqe> own, std::vector<DueCqe>& due);
  static void tell_waiting(QueuePair& queue_pair, std::vector<DueCqe>& due);
  bool cqe_of(const Message& message, DueCqe& due);
  void release(Index index);

  std::uint64_t mtu_;
  bool tracks_order_;
  std::uint64_t postings_ = 0;
  boost::unordered_flat_map<std::uint32_t, TranslatedRegion> regions_;
  boost::unordered_flat_map<std::uint32_t, std::unique_ptr<QueuePair>> queue_pairs_;
  boost::unordered_flat_map<NodeId, std::uint32_t> generations_;  ///< of the peers' contexts
  boost::unordered_flat_map<std::uint16_t, std::unique_ptr<FifoRing<Receive>>> receives_;
  SlotTable<Message> messages_;
  SlotTable<Read> reads_;
  std::function<void()> read_answered_;
};

}  // namespace rvma
