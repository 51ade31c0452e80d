/// \file
/// A workload as all importers read it: messages, computing, and what waits for what; and the trace made of it. The
/// rule by which messages get mailboxes and dependencies an order is described in docs/reference/import.md.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "workload/import.hpp"

namespace rvma::import_detail {

enum class ImportKind : std::uint8_t { send, receive, compute };

/// A place in one of the sources.
struct ImportPlace {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t source = 0;  ///< index
};

struct ImportOperation {
  ImportKind kind = ImportKind::compute;
  bool any_source = false;  ///< a receive that takes messages from everyone
  bool any_tag = false;     ///< and with every tag
  bool has_start = false;   ///< a send with a start time of its own
  std::uint32_t rank = 0;
  std::uint32_t peer = 0;  ///< destination of a send, source of a receive
  std::uint32_t tag = 0;
  std::uint64_t size = 0;  ///< bytes of a send; room of a receive
  Time time;               ///< duration of a computation; a send does not start before it
  ImportPlace place;
};

struct ImportDependency {
  std::uint32_t before = 0;  ///< operations of one rank
  std::uint32_t after = 0;
  bool start_only = false;  ///< `before` has to have started, not ended
  ImportPlace place;
};

struct ImportGraph {
  std::uint32_t ranks = 0;
  std::vector<ImportOperation> operations;  ///< of a rank in the order of its text
  std::vector<ImportDependency> dependencies;
  std::vector<std::string> sources;  ///< names
  std::vector<std::string> remarks;  ///< lines for the head of the trace

  std::uint32_t add(const ImportOperation& operation) {
    operations.push_back(operation);
    return static_cast<std::uint32_t>(operations.size() - 1);
  }
  Position position(const ImportPlace& place) const {
    return {sources.empty() ? std::string{} : sources[place.source], place.line, place.column};
  }
};

/// Messages of a (source, destination, tag), or of several such triples where a receive does not say which: a mailbox.
struct ImportChannel {
  std::uint32_t rank = 0;  ///< destination
  std::uint64_t mailbox = 0;
  std::uint64_t size = 0;      ///< bytes of its longest message
  std::uint32_t messages = 0;  ///< and buffers
};

/// What the trace is written from.
struct ImportPlan {
  std::vector<ImportChannel> channels;  ///< by rank, then mailbox
  std::vector<std::uint32_t> order;     ///< operations of all ranks; those of a rank in the order of its program
  std::vector<std::uint32_t> channel;   ///< of each operation that sends or receives
  std::vector<std::uint32_t> number;    ///< of each of them, within its channel
  std::vector<std::int64_t> idle_ps;    ///< before each send, to meet its start
};

/// Matches sends and receives and puts everything in order. Mistakes: ranks out of range (nothing else is looked at
/// then), sizes that no rank can hold, sends without a receive and receives without a send, messages longer than their
/// receive, operations that wait for one another.
ImportPlan plan_import(const ImportGraph& graph, Time latency, ImportLog& log);

void write_import(const ImportGraph& graph, const ImportPlan& plan, std::ostream& out);

}  // namespace rvma::import_detail
