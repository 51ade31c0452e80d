/// \file
/// Which put a message of the network is: joins what programs issued with what NICs report.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "base/pool.hpp"
#include "nic/observer.hpp"
#include "report/message_key.hpp"
#include "workload/player.hpp"

namespace rvma {

/// One put or get from its issue until it has ended.
struct PutRecord {
  RankId rank;
  NodeId node;
  OperationKind kind = OperationKind::put;
  bool has_name = false;
  NameRef name;
  RankId destination;
  NodeId destination_node;
  Pid destination_pid;
  Mailbox mailbox;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
  std::uint32_t key = 0;
  std::uint64_t seed = 0;
  Pid pid;                ///< of the issuer
  VirtualAddress memory;  ///< source of a put, destination of a get
  PhysicalAddress word;
  Mailbox answer_mailbox;  ///< of a get whose window is open
  std::uint32_t answer_key = 0;
  bool is_answer = false;  ///< what a get's target sends: a put into the asker's window for it, named as the get is
  /// Ended in `timeout`, but what it sent may yet arrive. Another put or get of its node may have its word.
  bool is_given_up = false;
  Time issued;
  std::uint64_t number = 0;  ///< of all puts and gets of the run, by issue; an answer has its get's
  bool measured = false;     ///< issued inside its rank's measured region
  std::uint32_t tries = 0;   ///< messages that it went out as
  bool counted = false;      ///< kept by the scoreboard: its message was counted whole
  bool is_whole = false;     ///< likewise, kept by the registry where puts may end first

  void recycle() {
    has_name = false;
    measured = false;
    is_answer = false;
    is_given_up = false;
    tries = 0;
    counted = false;
    is_whole = false;
    name.passes.clear();
  }
};

/// The first observer of every NIC: the others find in it what a message carries. A record outlives put_ended() until
/// the registry's next event, so that observers behind it still find it; that of a put that ended in `timeout` is found
/// by its message to the end of the run, because the message may yet be bound and counted. So is the answer to a get
/// that ended so: the asker's catch-all window may take it.
class PutRegistry : public NicObserver {
 public:
  /// `may_end_first`: a put may end `ok` before its receiver has counted it (the RDMA baseline); it is found by its
  /// message until then.
  explicit PutRegistry(bool may_end_first = false) : may_end_first_(may_end_first) {}
  PutRecord& issue(const PutIssue& put);
  /// The put whose local completion word this is; null if it has ended.
  PutRecord* find(NodeId node, PhysicalAddress word);
  /// The put that goes out as this message to `destination`; null if it has ended otherwise than in `timeout`.
  PutRecord* find(NodeId destination, const MessageRef& message);
  std::uint64_t issued() const { return issued_; }
  /// Puts that have not ended, in order of issue.
  std::vector<const PutRecord*> open() const;

  void message_opened(NodeId node, PhysicalAddress put, NodeId destination, const MessageRef& message,
                      Time at) override;
  void put_ended(NodeId node, PhysicalAddress put, Outcome outcome, std::uint32_t tries, Time at) override;
  void message_counted(NodeId node, const MessageRef& message, BufferId buffer, Time at) override;
  void get_opened(NodeId node, Pid pid, WindowId slot, BufferId buffer, const Descriptor& window, Time at) override;
  void answer_opened(NodeId node, NodeId destination, Pid pid, Mailbox mailbox, const MessageRef& message,
                     Time at) override;

 private:
  struct WordKey {
    NodeId node;
    std::uint64_t word = 0;
    friend bool operator==(const WordKey& a, const WordKey& b) { return a.node == b.node && a.word == b.word; }
  };
  /// Where an answer goes.
  struct AnswerKey {
    std::uint32_t node = 0;
    std::uint16_t pid = 0;
    std::uint64_t mailbox = 0;
    friend bool operator==(const AnswerKey& a, const AnswerKey& b) {
      return a.node == b.node && a.pid == b.pid && a.mailbox == b.mailbox;
    }
  };
  struct Hash {
    std::size_t operator()(const AnswerKey& key) const;
    std::size_t operator()(const WordKey& key) const;
  };
  struct Entry {
    Pool<PutRecord>::Handle record;
    MessageKey message;  ///< of the latest try
    bool has_message = false;
    // Of a get: its window for the answer, and the answer.
    AnswerKey window;
    bool has_window = false;
    Pool<PutRecord>::Handle answer;
    MessageKey answer_message;
  };
  void forget_answer(Entry& entry);
  void give_up(Entry& entry);
  Pool<PutRecord>::Handle answer_to(const PutRecord& get);
  void bury();

  // Records go back to it: it goes last.
  Pool<PutRecord> pool_;
  boost::unordered_flat_map<WordKey, Entry, Hash> by_word_;
  boost::unordered_flat_map<MessageKey, PutRecord*> by_message_;
  boost::unordered_flat_map<AnswerKey, WordKey, Hash> by_window_;  ///< gets that wait for their answer
  std::vector<Pool<PutRecord>::Handle> given_up_;
  boost::unordered_flat_map<AnswerKey, const PutRecord*, Hash> by_late_window_;  ///< gets that were given up
  const bool may_end_first_;
  boost::unordered_flat_map<MessageKey, Pool<PutRecord>::Handle> uncounted_;  ///< have ended
  MessageKey counted_;  ///< of these, to be forgotten with the next event
  bool has_counted_ = false;
  std::uint64_t issued_ = 0;
  bool has_ended_ = false;
  bool ended_in_doubt_ = false;  ///< `timeout`
  bool ended_ok_ = false;
  WordKey ended_;
};

}  // namespace rvma
