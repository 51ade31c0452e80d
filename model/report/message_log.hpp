/// \file
/// Messages of the message layer as results and checks see them: a row of messages.csv for each, and whether every
/// receive has got the bytes of the send that it must match.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "report/recorder.hpp"
#include "workload/player.hpp"

namespace rvma {

class MessageLog : public PlayerObserver {
 public:
  /// A failed check.
  using Fail = std::function<void(Time at, const std::string& what)>;
  /// `out` null: no rows. `read` copies a process's memory; null: the run has no payload. `fail` null: no checks.
  MessageLog(const Trace& trace, std::ostream* out, RunRecorder::ReadBuffer read, Fail fail);

  /// Writes what is left, messages that have not ended included.
  void finish();

  void message_issued(const MessageIssue& message) override;
  void message_ended(const MessageEnd& end) override;

 private:
  struct Open {
    MessageIssue issue;
    NameRef name;
    std::uint64_t ordinal = 0;  ///< recv: which of its channel's
  };
  /// Messages of a tag from one rank to another: the n-th receive has to get the n-th send.
  struct Channel {
    std::uint64_t sends = 0;
    std::uint64_t receives = 0;
  };
  struct Key {
    std::uint64_t ranks = 0;  ///< source << 32 | destination
    std::uint64_t place = 0;  ///< tag << 32 | ordinal; or of a rank's messages
    friend bool operator==(const Key& a, const Key& b) { return a.ranks == b.ranks && a.place == b.place; }
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Sent {
    std::uint64_t size = 0;  ///< bytes
    std::uint64_t seed = 0;
  };
  static Key channel_of(const MessageIssue& message);
  void check(const Open& open, const MessageEnd& end);
  std::string row(const Open& open, const char* protocol, const std::string& status, Time at, const std::string& crc);

  const Trace& trace_;
  std::ostream* out_;
  RunRecorder::ReadBuffer read_;
  Fail fail_;
  InstantRows rows_;
  boost::unordered_flat_map<Key, Open, Hash> open_;  ///< by rank and number
  boost::unordered_flat_map<Key, Channel, Hash> channels_;
  boost::unordered_flat_map<Key, Sent, Hash> sent_;  ///< not received yet
  std::vector<std::uint8_t> bytes_;
};

}  // namespace rvma
