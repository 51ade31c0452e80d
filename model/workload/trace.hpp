/// \file
/// Traces: text in, checked operations out, in memory that does not grow with the trace's length.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/outcome.hpp"
#include "base/units.hpp"
#include "host/core.hpp"

namespace rvma {

enum class OperationKind : std::uint8_t {
  init_window,
  post_buffer,
  post_one_time_buffer,
  put,
  get,
  wait,
  wait_all,
  inc_epoch,
  get_epoch,
  get_buf_ptrs,
  rewind,
  close_window,
  compute,
  barrier,
  mark_begin,
  mark_end,
  send,
  recv,
};
BOOST_DESCRIBE_ENUM(OperationKind, init_window, post_buffer, post_one_time_buffer, put, get, wait, wait_all, inc_epoch,
                    get_epoch, get_buf_ptrs, rewind, close_window, compute, barrier, mark_begin, mark_end, send, recv)

/// Whether the operation sends bytes of the payload formula, with a seed of its own.
constexpr bool has_payload(OperationKind kind) { return kind == OperationKind::put || kind == OperationKind::send; }

/// A name of the trace as the operation that runs sees it: its number within the rank (dense, by first definition) and
/// the indices of the passes of the loops that contain its definition.
struct NameRef {
  std::uint32_t name = 0;             ///< index into Trace::names(rank)
  std::vector<std::uint64_t> passes;  ///< outermost first; empty outside loops
  bool restarted = false;             ///< of the rank's restart block, whose names are its own
  friend bool operator==(const NameRef& a, const NameRef& b) {
    return a.name == b.name && a.restarted == b.restarted && a.passes == b.passes;
  }
  friend bool operator<(const NameRef& a, const NameRef& b) {
    return std::tie(a.restarted, a.name, a.passes) < std::tie(b.restarted, b.name, b.passes);
  }
};

/// One operation, resolved: names are numbers, quantities are exact. Which fields count depends on `kind`.
struct Operation {
  OperationKind kind = OperationKind::barrier;
  bool has_name = false;
  NameRef name;                   ///< what this operation defines (`as=`, or the window of init_window)
  std::vector<NameRef> operands;  ///< windows or waited-for names
  /// For each operand (and for `name` where nothing ever uses it): the last time this instance is named anywhere in
  /// the rank's program, so that what it stands for may be forgotten afterwards. Same order as `operands`.
  std::vector<bool> last_use;
  bool name_never_used = false;
  RankId rank;  ///< put, get, send: the destination; recv: the source
  Mailbox mailbox;
  std::uint64_t size = 0;  ///< bytes
  std::uint64_t offset = 0;
  std::uint64_t threshold = 0;
  ThresholdType threshold_type = ThresholdType::bytes;
  Placement placement = Placement::steered;
  std::uint32_t key = 0;
  std::uint64_t align = 64;
  bool has_seed = false;
  std::uint64_t seed = 0;         ///< put without seed=: its index in the rank's unrolled program (filled in)
  std::uint8_t window_flags = 0;  ///< WindowFlag bits
  WaitHow how = WaitHow::mwait;
  std::uint64_t n = 0;
  std::uint32_t tag = 0;  ///< send, recv
  Time duration;
  std::uint64_t place = 0;  ///< of its word in the text, in bytes: see Trace::position()
};

/// With whom a rank's program exchanges messages (send, recv).
struct MessagePeer {
  RankId rank;
  std::uint64_t longest = 0;  ///< bytes of the longest message that comes from there
};

/// A checked trace. Reading happens twice: open() checks all of it and notes where each rank's blocks lie; cursors then
/// read the text again as the ranks advance.
class Trace {
 public:
  /// Opens `path` ("-": stdin, which is spooled; .gz and .zst are unpacked, by content). All mistakes found go to
  /// `errors`, with their position; then the result is null.
  static std::unique_ptr<Trace> open(const std::string& path, ErrorList& errors);
  /// The same from memory; `source` names it in positions.
  static std::unique_ptr<Trace> from_text(std::string_view text, const std::string& source, ErrorList& errors);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  std::uint32_t ranks() const;
  /// Operations of all ranks when unrolled, to size progress; saturates.
  std::uint64_t total_operations() const;
  std::uint64_t total_puts() const;
  /// Trace names of a rank, in order of first definition.
  const std::vector<std::string>& names(RankId rank) const;
  /// "w.3.1": the name as results print it.
  std::string spelling(RankId rank, const NameRef& name) const;
  /// Where the operation stands. Reads the text up to there.
  Position position(const Operation& operation) const;
  /// Warnings found while checking.
  const std::vector<std::string>& warnings() const;

  /// One rank's place in its program.
  class Cursor {
   public:
    virtual ~Cursor() = default;
    /// The next operation, or null at the end. The reference lives until the next call.
    virtual const Operation* next() = 0;
  };
  std::unique_ptr<Cursor> cursor(RankId rank) const;
  /// From the top of the rank's restart block; null if it has none.
  std::unique_ptr<Cursor> restart_cursor(RankId rank) const;
  /// Ranks with a restart block, and where the first one of each stands.
  const std::vector<std::pair<RankId, Position>>& restart_blocks() const;
  /// Whether any rank sends or receives messages.
  bool has_messages() const;
  /// Whether any rank opens a catch-all window.
  bool has_catch_all() const;
  /// Everyone that the rank sends to or is sent to by, in order of rank; no block for a restart has messages.
  const std::vector<MessagePeer>& message_peers(RankId rank) const;

 private:
  Trace();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rvma
