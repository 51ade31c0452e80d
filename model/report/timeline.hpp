/// \file
/// What each unit of each node did with which message, and when: a run as slices of time, for `rvma run --timeline`.
/// timeline_writer.hpp writes it. Everything is taken from what NICs report anyway, so a run is the same with it.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "nic/observer.hpp"
#include "report/put_registry.hpp"
#include "workload/trace.hpp"

namespace rvma {

/// A put or get of which something is drawn.
struct TimelineMessage {
  std::uint64_t number = 0;  ///< of all puts and gets of the run, by issue
  OperationKind kind = OperationKind::put;
  std::string name;  ///< as the trace spells it; may be empty
  RankId rank;
  RankId destination;
  NodeId node;  ///< of the issuer
  Mailbox mailbox;
  std::uint64_t size = 0;  ///< bytes
  Time issued;
  Time ended = Time::max();  ///< at the issuer's NIC
  Outcome outcome = Outcome::unfinished;
  std::uint32_t tries = 0;
  std::uint32_t packets = 0;  ///< drawn so far; the last one is the one that the flow follows
  Time placed;                ///< the last packet entered the posted channel
  Time counted;
  std::uint32_t end_slice = ~std::uint32_t{0};  ///< of the completion that tells of it
};

/// The stay of a packet or a message in a unit: the unit of stage s holds it from the end of the stage before to that
/// of its own.
struct TimelineSlice {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  Time entered;
  Time left;
  NodeId node;                    ///< whose unit it is
  std::uint32_t message = kNone;  ///< index; none: a completion that a call made due
  std::uint32_t packet = kNone;   ///< of its message, counted as they were drawn; none: the whole message
  std::uint32_t sequence = 0;     ///< of the packet
  std::uint32_t bytes = 0;        ///< of its payload
  std::uint32_t epoch = kNone;    ///< index; of a completion
  Pid pid;                        ///< of the core; Stage::doorbell only
  Stage stage = Stage::issued;
};

struct TimelineEpoch {
  Mailbox mailbox;
  Epoch number;
  std::uint64_t length = 0;  ///< bytes
};

/// Something that takes no time.
struct TimelineInstant {
  Time at;
  NodeId node;
  Stage stage = Stage::issued;  ///< of the unit where it happens; issued: the whole node
  std::string what;
  std::uint32_t message = TimelineSlice::kNone;
};

class Timeline : public NicObserver {
 public:
  struct Options {
    Time from;
    Time to = Time::max();          ///< what overlaps [from, to) is drawn
    std::uint64_t sample = 1;       ///< every so manieth put or get
    std::uint64_t limit = 200'000;  ///< most events in the file, names of tracks and notes apart
  };
  /// Events that stand for one message, and for one slice where its unit has a counter.
  static constexpr std::uint64_t kMessageEvents = 7;
  static constexpr std::uint64_t kCountedSliceEvents = 3;
  static bool has_counter(Stage stage);

  /// `registry` hears everything before this does. All outlive it.
  Timeline(const Options& options, PutRegistry& registry, const Trace& trace);

  const Options& options() const { return options_; }
  const std::vector<TimelineMessage>& messages() const { return messages_; }
  const std::vector<TimelineSlice>& slices() const { return slices_; }
  const std::vector<TimelineEpoch>& epochs() const { return epochs_; }
  const std::vector<TimelineInstant>& instants() const { return instants_; }
  /// The limit was reached: nothing later is drawn.
  bool is_full() const { return !full_at_.is_never(); }
  Time full_at() const { return full_at_; }
  std::uint64_t dropped_events() const { return dropped_; }

  void put_ended(NodeId node, PhysicalAddress put, Outcome outcome, std::uint32_t tries, Time at) override;
  void get_opened(NodeId node, Pid pid, WindowId slot, BufferId buffer, const Descriptor& window, Time at) override;
  void packet_ignored(NodeId node, const Packet& packet, const char* why, Time at) override;
  void message_refused(NodeId node, const MessageRef& message, Outcome reason, Time at) override;
  void packet_placed(NodeId node, const PlacedPacket& packet, std::uint64_t buffer_offset, Time at) override;
  void message_counted(NodeId node, const MessageRef& message, BufferId buffer, Time at) override;
  void completion_written(NodeId node, const Completion& completion, Time at, Time visible) override;
  void buffer_posted(NodeId node, Pid pid, WindowId slot, BufferId buffer, const Descriptor& call, Time at) override;
  void window_rewound(NodeId node, WindowId slot, Epoch epoch, const std::vector<RewoundBuffer>& buffers,
                      Time at) override;
  void node_crashed(NodeId node, Time at) override;
  void node_restarted(NodeId node, std::uint32_t incarnation, Time at) override;
  /// Puts that have not ended: what is known of them is drawn.
  void finish(Time now);

 private:
  struct WordKey {
    std::uint32_t node = 0;
    std::uint64_t word = 0;
    friend bool operator==(const WordKey& a, const WordKey& b) { return a.node == b.node && a.word == b.word; }
  };
  struct WordHash {
    std::size_t operator()(const WordKey& key) const;
  };
  static constexpr std::uint32_t kNone = TimelineSlice::kNone;

  bool is_sampled(const PutRecord& put) const { return put.number % options_.sample == 0; }
  bool overlaps(Time entered, Time left) const { return left > options_.from && entered < options_.to; }
  /// Pays for `events`; false: there is no room for them, or for anything later.
  bool pay(std::uint64_t events, Time at);
  /// Index of the message; kNone: there is no room for it.
  std::uint32_t message_of(const PutRecord& put, Time at);
  /// Draws the slice if it lasts, lies in the window and has room. Its index, or kNone.
  std::uint32_t draw(const TimelineSlice& slice);
  void note(NodeId node, Stage stage, const PutRecord* put, std::string what, Time at);
  void set_word(NodeId node, BufferId buffer, PhysicalAddress word);

  const Options options_;
  PutRegistry& registry_;
  const Trace& trace_;
  std::vector<TimelineMessage> messages_;
  std::vector<TimelineSlice> slices_;
  std::vector<TimelineEpoch> epochs_;
  std::vector<TimelineInstant> instants_;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> index_of_;  ///< of messages, by number
  std::vector<std::vector<PhysicalAddress>> words_;                   ///< completion pointers, by node, by buffer
  /// Messages that were counted into the buffer with this completion pointer since its last completion.
  boost::unordered_flat_map<WordKey, std::vector<std::uint32_t>, WordHash> counted_;
  std::uint64_t used_ = 0;
  std::uint64_t dropped_ = 0;
  Time full_at_ = Time::max();
};

}  // namespace rvma
