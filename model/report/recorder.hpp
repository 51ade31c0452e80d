/// \file
/// Turns what a run reports into results: totals, latency distributions, the stage breakdown and the three CSV files,
/// in memory that does not grow with the run.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <iosfwd>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "base/stats.hpp"
#include "driver/driver.hpp"
#include "fabric/interfaces.hpp"
#include "nic/observer.hpp"
#include "report/put_registry.hpp"
#include "report/rate_series.hpp"
#include "workload/player.hpp"

namespace rvma {

inline constexpr std::size_t kOutcomes = 11;

/// What a run did, added up. Packets and messages are those of puts; acknowledgements are counted apart.
struct RunTotals {
  std::uint64_t puts = 0;
  std::uint64_t messages_opened = 0;
  std::uint64_t gets_accepted = 0;       ///< requests of gets, each of them a message that is answered
  std::uint64_t messages_delivered = 0;  ///< counted whole at the receiver
  std::uint64_t bytes_delivered = 0;     ///< of those messages
  std::uint64_t completions = 0;
  std::uint64_t puts_failed = 0;  ///< of `puts`: refused by the driver itself, so that no NIC heard of them
  std::array<std::uint64_t, kOutcomes> ended{};    ///< puts by Outcome; [unfinished] at the end of the run
  std::array<std::uint64_t, kOutcomes> refused{};  ///< messages by Outcome (each retry is one)
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_delivered = 0;  ///< placed in memory, or counted if empty
  std::uint64_t packets_duplicate = 0;
  std::uint64_t packets_resent = 0;  ///< of those sent: not the first sending of their number
  std::uint64_t packets_lost = 0;    ///< by the fabric
  std::uint64_t packets_copied = 0;  ///< by the fabric: arrived once more than they were sent
  std::uint64_t packets_corrupt = 0;
  std::uint64_t packets_ignored = 0;  ///< stale, closed or contradicting: changed nothing
  std::uint64_t acknowledgements_sent = 0;
  std::uint64_t acknowledgements_lost = 0;  ///< by the fabric
  std::uint64_t wire_bytes_sent = 0;        ///< data packets, with every header, preamble and gap
};

/// Time between consecutive stages, added over the samples of put_to_completion.
struct StageBreakdown {
  std::uint64_t samples = 0;
  std::array<Time, kStages> sums{};  ///< [s]: from the stage before s to s; [issued] is 0
  /// Mean of each stage in ps, rounded so that the parts add up exactly to the rounded mean of the total.
  std::array<Time, kStages> means() const;
};

/// Rows of one instant of the simulation, put into the order of their ranks: what the kernel runs first in an instant
/// means nothing, and differs between models of one unit.
class InstantRows {
 public:
  void add(std::ostream& out, RankId rank, std::string row);
  void flush(std::ostream& out);

 private:
  Time instant_;
  std::vector<std::pair<RankId, std::string>> rows_;
};

class RunRecorder : public NicObserver, public PlayerObserver, public DriverObserver {
 public:
  struct Files {
    std::ostream* completions = nullptr;
    std::ostream* puts = nullptr;
    std::ostream* calls = nullptr;
  };
  /// `read_buffer(node, pid, head, bytes, out)` copies a buffer's bytes; null: crc32 is `-`. `wake_at` asks for a call
  /// of settle() at a time; null if no file is written.
  using ReadBuffer = std::function<void(NodeId, Pid, VirtualAddress, std::uint64_t, std::vector<std::uint8_t>&)>;
  RunRecorder(const Trace& trace, PutRegistry& registry, Files files, ReadBuffer read_buffer,
              std::function<void(Time)> wake_at);
  ~RunRecorder() override;

  /// Writes the rows whose completions are visible by `now`.
  void settle(Time now);
  /// Writes everything that is left, unfinished puts included.
  void finish(Time now, const FabricLosses& losses = {});

  const RunTotals& totals() const { return totals_; }
  const Histogram& put_to_completion() const { return put_to_completion_; }
  const Histogram& put_to_seen() const { return put_to_seen_; }
  const Histogram& put_to_ack() const { return put_to_ack_; }
  const StageBreakdown& breakdown() const { return breakdown_; }
  /// Delivered payload bytes over time (whole run).
  const RateSeries& delivered() const { return delivered_; }
  /// The measured region: its bytes, wire bytes (up to the last count) and time (first issue to last count). Without
  /// marks: the whole run.
  struct Region {
    std::uint64_t payload_bytes = 0;
    std::uint64_t wire_bytes = 0;
    std::uint64_t messages = 0;
    Time first = Time::max();
    Time last;
    Time ended;  ///< of the last put: refused ones keep units busy behind the last count
    Time active() const { return first.is_never() ? Time::zero() : std::max({first, last, ended}) - first; }
    Time duration() const { return first.is_never() || last < first ? Time::zero() : last - first; }
  };
  const Region& region() const { return region_; }
  bool has_marks() const { return has_marks_; }
  std::uint64_t operations() const { return operations_; }
  /// One line for each operation without a counterpart (refused puts, unfilled buffers), the first few, and how many.
  const std::vector<std::string>& unmatched() const { return unmatched_; }
  std::uint64_t unmatched_count() const { return unmatched_count_; }

  // PlayerObserver
  void put_issued(const PutIssue& put) override;
  void post_issued(const BufferPost& post) override;
  void put_failed(NodeId node, PhysicalAddress word, Status status, Time at) override;
  void post_failed(NodeId node, PhysicalAddress word, Status status, Time at) override;
  void wait_seen(NodeId node, PhysicalAddress word, Time at) override;
  void buffer_unnamed(NodeId node, PhysicalAddress word) override;
  void buffer_freed(NodeId node, PhysicalAddress word) override;
  void call_returned(RankId rank, OperationKind op, const NameRef* window, Status status, const std::string& value,
                     Time at) override;
  void marked(RankId rank, bool begin, Time at) override;
  void operation_done(RankId rank) override;
  // DriverObserver: posts answer late; their failures are rows too.
  void call_answered(RankId rank, const Descriptor& call, Status status, std::uint64_t value, Time at) override;
  // NicObserver
  void message_opened(NodeId node, PhysicalAddress put, NodeId destination, const MessageRef& message,
                      Time at) override;
  void put_ended(NodeId node, PhysicalAddress put, Outcome outcome, std::uint32_t tries, Time at) override;
  void get_accepted(NodeId node, const MessageRef& request, BufferId buffer, Time at) override;
  void answer_opened(NodeId node, NodeId destination, Pid pid, Mailbox mailbox, const MessageRef& message,
                     Time at) override;
  void packet_sent(NodeId node, const Packet& packet, Time at) override;
  void packet_ignored(NodeId node, const Packet& packet, const char* why, Time at) override;
  void message_refused(NodeId node, const MessageRef& message, Outcome reason, Time at) override;
  void packet_placed(NodeId node, const PlacedPacket& packet, std::uint64_t buffer_offset, Time at) override;
  void record_placed(NodeId node, const PlacedPacket& packet, std::uint64_t buffer_offset, Time at) override;
  void message_counted(NodeId node, const MessageRef& message, BufferId buffer, Time at) override;
  void node_crashed(NodeId node, Time at) override;
  void window_rewound(NodeId node, WindowId slot, Epoch epoch, const std::vector<RewoundBuffer>& buffers,
                      Time at) override;
  void completion_written(NodeId node, const Completion& completion, Time at, Time visible) override;
  void buffer_posted(NodeId node, Pid pid, WindowId slot, BufferId buffer, const Descriptor& call, Time at) override;

 private:
  struct Row;
  struct BufferRecord;
  struct WordKey {
    std::uint32_t node = 0;
    std::uint64_t word = 0;
    friend bool operator==(const WordKey& a, const WordKey& b) { return a.node == b.node && a.word == b.word; }
  };
  struct WordHash {
    std::size_t operator()(const WordKey& key) const;
  };
  /// Of the message that was last counted into a buffer. Messages are counted in the order of their last packets.
  struct LastCounted {
    PhysicalAddress word;  ///< the buffer's; 0: no buffer has the id
    StageTimes left{};     ///< of its last packet
    Time issued;
    Time counted;
    bool measured = false;
    bool valid = false;
  };
  struct Later {
    bool operator()(const std::shared_ptr<Row>& a, const std::shared_ptr<Row>& b) const;
  };

  std::string spell(RankId rank, bool has_name, const NameRef& name) const;
  LastCounted& last_counted(NodeId node, BufferId buffer);
  void take_number(NodeId node, BufferId buffer, PhysicalAddress word);
  LastCounted take_last_counted(NodeId node, const Completion& completion);
  /// When the put was issued whose delivery completed the epoch; never: no sample.
  Time sample_completion(NodeId node, const Completion& completion, Time at, Time visible);
  void write_ready_rows();
  void write_row(const Row& row);
  /// Of the buffer's bytes; with `numbers` at these offsets, in order, as zeros.
  std::string checksum(const Row& row, const std::vector<std::uint64_t>& numbers);
  void write_put(const PutRecord& put, const char* status, Time ack, std::uint32_t tries);
  std::string put_row(const PutRecord& put, const char* status, Time ack, std::uint32_t tries) const;
  void note_unmatched(std::string line);
  bool is_measured(RankId rank) const;

  const Trace& trace_;
  bool has_catch_all_;  ///< the trace: then completions.csv has another column
  PutRegistry& registry_;
  Files files_;
  ReadBuffer read_buffer_;
  std::function<void(Time)> wake_at_;

  InstantRows put_rows_;
  InstantRows call_rows_;
  RunTotals totals_;
  Histogram put_to_completion_{"put issued to the completion word of its epoch visible; one sample an epoch"};
  Histogram put_to_seen_{
      "put issued to when the core that waits for its epoch knows; of the samples before, those waited for"};
  Histogram put_to_ack_{"put issued to its end at the sender's NIC; puts that ended ok"};
  StageBreakdown breakdown_;
  RateSeries delivered_;
  Region region_;
  std::uint64_t wire_bytes_ = 0;  ///< of the region's packets so far
  bool has_marks_ = false;
  std::vector<bool> inside_mark_;
  std::uint64_t operations_ = 0;

  boost::unordered_flat_map<WordKey, std::unique_ptr<BufferRecord>, WordHash> buffers_;
  std::vector<std::vector<LastCounted>> last_counted_;  ///< by node, by buffer id
  /// Of buffers whose id went to another before their completion was told.
  boost::unordered_flat_map<WordKey, LastCounted, WordHash> displaced_;
  std::vector<NodeId> homes_;  ///< by rank that has posted
  std::priority_queue<std::shared_ptr<Row>, std::vector<std::shared_ptr<Row>>, Later> invisible_;
  std::deque<std::shared_ptr<Row>> rows_;
  std::vector<std::uint8_t> scratch_;
  std::vector<std::string> unmatched_;
  std::uint64_t unmatched_count_ = 0;
};

}  // namespace rvma
