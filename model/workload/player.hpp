/// \file
/// Plays a trace: one program a rank over the driver's calls, as any user program would make them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/outcome.hpp"
#include "base/units.hpp"
#include "driver/driver.hpp"
#include "workload/config.hpp"
#include "workload/trace.hpp"

namespace rvma {

/// No run is longer: beyond, the times of what is under way would leave the range of Time. 100 days.
inline constexpr Time kLongestRun = Time::from_ps(8'640'000'000'000'000'000);

/// A put or get as the program issued it.
struct PutIssue {
  RankId rank;
  NodeId node;  ///< of the rank
  OperationKind kind = OperationKind::put;
  const NameRef* name = nullptr;  ///< null: unnamed
  RankId destination;
  NodeId destination_node;
  Pid destination_pid;
  Mailbox mailbox;
  std::uint64_t size = 0;    ///< bytes
  std::uint64_t offset = 0;  ///< bytes
  std::uint32_t key = 0;
  std::uint64_t seed = 0;  ///< of the payload formula
  Pid pid;                 ///< of the rank
  VirtualAddress memory;   ///< source of a put, destination of a get; none if `size` is 0
  PhysicalAddress word;    ///< local completion word: names the put among its node's open ones
  Time at;
};

/// A buffer as the program posts it (before the NIC answers).
struct BufferPost {
  RankId rank;
  NodeId node;
  Pid pid;
  const NameRef* window = nullptr;  ///< null for a one-time window
  const NameRef* name = nullptr;    ///< null: unnamed
  Mailbox mailbox;
  VirtualAddress head;
  std::uint64_t size = 0;  ///< bytes
  bool has_seed = false;   ///< the buffer starts with the payload formula of `seed`, otherwise with zeros
  std::uint64_t seed = 0;
  PhysicalAddress word;  ///< the completion pointer: names the buffer among its node's live ones
  Time at;
  bool is_layers = false;  ///< posted by the message layer, not by the program
};

/// A message of the message layer, sent or received.
struct MessageIssue {
  RankId rank;
  OperationKind kind = OperationKind::send;  ///< send or recv
  const NameRef* name = nullptr;             ///< null: unnamed
  RankId peer;
  std::uint32_t tag = 0;
  std::uint64_t size = 0;    ///< bytes; recv: of the buffer
  std::uint64_t seed = 0;    ///< send: of the payload formula
  std::uint64_t number = 0;  ///< of the rank's messages, sent and received, from 0
  Time at;
};
struct MessageEnd {
  RankId rank;
  NodeId node;
  Pid pid;
  std::uint64_t number = 0;  ///< as issued
  bool rendezvous = false;
  Status status = Status::ok;     ///< bad_argument: the message is longer than the receiver's buffer
  Outcome outcome = Outcome::ok;  ///< of the puts that carried it
  std::uint64_t size = 0;         ///< bytes of the message
  VirtualAddress memory;          ///< recv: where it lies; valid during the call
  Time at;
};

/// Sees what programs do. All times are now.
class PlayerObserver {
 public:
  virtual ~PlayerObserver() = default;
  virtual void put_issued(const PutIssue& /*put*/) {}
  virtual void post_issued(const BufferPost& /*post*/) {}
  /// The driver itself refused the put, get or post that was just issued: no NIC will ever hear of it.
  virtual void put_failed(NodeId /*node*/, PhysicalAddress /*word*/, Status /*status*/, Time /*at*/) {}
  virtual void post_failed(NodeId /*node*/, PhysicalAddress /*word*/, Status /*status*/, Time /*at*/) {}
  /// A core that waited knows that `word` of `node` is written.
  virtual void wait_seen(NodeId /*node*/, PhysicalAddress /*word*/, Time /*at*/) {}
  /// No later wait will name this buffer: its completion row has no seen_ns unless it has one by now.
  virtual void buffer_unnamed(NodeId /*node*/, PhysicalAddress /*word*/) {}
  /// The buffer's memory is about to be given back; afterwards its word may name another.
  virtual void buffer_freed(NodeId /*node*/, PhysicalAddress /*word*/) {}
  /// The put has ended and its word is about to be recycled.
  virtual void put_freed(NodeId /*node*/, PhysicalAddress /*word*/) {}
  /// A call returned: a row of calls.csv. `value`: decimal text, or empty.
  virtual void call_returned(RankId /*rank*/, OperationKind /*op*/, const NameRef* /*window*/, Status /*status*/,
                             const std::string& /*value*/, Time /*at*/) {}
  virtual void message_issued(const MessageIssue& /*message*/) {}
  virtual void message_ended(const MessageEnd& /*message*/) {}
  virtual void marked(RankId /*rank*/, bool /*begin*/, Time /*at*/) {}
  virtual void operation_done(RankId /*rank*/) {}
};

/// Where a rank lives and what it needs; owned by the platform.
struct RankHome {
  NodeId node;
  Pid pid;
  Driver* driver = nullptr;
};

class Player {
 public:
  /// `homes[r]` is rank r's. The trace, homes and observers outlive the player.
  Player(const Trace& trace, const WorkloadConfig& config, std::uint32_t history, std::vector<RankHome> homes,
         std::vector<PlayerObserver*> observers);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  /// The program of one rank, to run in its core's thread.
  void play(RankId rank);
  /// The rank's program was ended by the loss of power: it leaves the barriers, and waits for nothing.
  void crashed(RankId rank);
  /// Whether the rank has a program to run after a restart.
  bool has_restart(RankId rank) const;
  /// That program, over `driver`, to run in its core's thread; the rank takes part in barriers again. The same one each
  /// time.
  void prepare_restart(RankId rank, Driver& driver);

  /// `asked` is called often, also within operations that simulate nothing for long. Once it says true, programs stand
  /// still for good and the simulation is paused (sc_pause).
  void on_interruption(std::function<bool()> asked);
  /// A mistake that showed only when the trace was played; its program stands still for good, the simulation is paused.
  const std::optional<Error>& mistake() const;

  std::uint32_t ranks_finished() const;
  /// "FILE:LINE:COLUMN: error: rank 3 waits for b0.2", one for each rank that has neither ended nor crashed; without a
  /// place beyond the first twenty, and where the program is over and only messages are missing.
  std::vector<std::string> waiting() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rvma
