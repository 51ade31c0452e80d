/// \file
/// The host driver model: the calls of RVMA as a rank's program makes them. One Driver a rank; all calls are made from
/// the rank's own thread and take simulated time. rvma.h wraps the same calls in the paper's spelling, for C.
///
/// A call that goes to the NIC costs Core::spend_issue(), and waits where `nic.command.depth` descriptors are
/// unconsumed. No call aborts: each returns a Status. Names of arguments are the field's: a *mailbox* is a 64-bit
/// virtual address, unique per process, and the only address that a sender knows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/ids.hpp"
#include "base/outcome.hpp"
#include "host/address_space.hpp"
#include "host/core.hpp"
#include "nic/config.hpp"
#include "nic/descriptor.hpp"

namespace rvma {

/// Receiver's handle on a window. One that init_window() gave stands for the window that it opened and no other: once
/// that is closed, calls answer `closed`, whatever the mailbox holds by then; where it failed, they answer `no_window`.
/// A handle made of a mailbox alone names whatever window the mailbox has (one-time windows have no other).
struct Window {
  static constexpr std::uint64_t kByMailbox = 0;
  static constexpr std::uint64_t kNeverOpened = ~std::uint64_t{0};
  Mailbox mailbox;
  std::uint64_t opening = kByMailbox;  ///< which of the process's init_window() calls that succeeded, from 1
};

/// A 16-byte completion word in host memory: zero until the NIC writes it.
/// Buffers: (buffer head, bytes delivered). Puts and gets: (Outcome, bytes).
struct CompletionPointer {
  PhysicalAddress address;
};

struct WaitAnswer {
  Status status = Status::ok;  ///< closed: the buffer was returned by close_window; else as the late post answered
  std::uint64_t first = 0;     ///< head, or outcome
  std::uint64_t second = 0;    ///< bytes
  Time seen;                   ///< when the core knew
};

struct CompletedBufferInfo {
  VirtualAddress head;
  std::uint64_t length = 0;
  Epoch epoch;
};

/// Sees each call of a rank with its answer; for results and checks.
class DriverObserver {
 public:
  virtual ~DriverObserver() = default;
  /// Before the descriptor goes to the NIC.
  virtual void call_issued(RankId /*rank*/, const Descriptor& /*call*/, Time /*at*/) {}
  /// The answer was written by the NIC (posts: possibly long after the call returned to the program).
  virtual void call_answered(RankId /*rank*/, const Descriptor& /*call*/, Status /*status*/, std::uint64_t /*value*/,
                             Time /*at*/) {}
};

struct DestinationRank {
  NodeId node;
  Pid pid;
};

class Driver {
 public:
  Driver(RankId rank, Core& core, AddressSpace& space, FrameAllocator& frames, const NicConfig& nic,
         DriverObserver* observer);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  RankId rank() const;
  Core& core();
  AddressSpace& space();

  /// Threshold in bytes or ops, > 0. `flags`: WindowFlag bits. `window` is set whatever the answer.
  Status init_window(Mailbox mailbox, std::uint64_t threshold, ThresholdType type, Placement placement,
                     std::uint32_t key, std::uint8_t flags, Window& window);
  /// Does not wait: a refusal by the NIC is answered late; wait() and test() on the completion then end with its
  /// status, and the observer is told. `completion` is set to 0 first.
  Status post_buffer(Window window, VirtualAddress buffer, std::uint64_t size, CompletionPointer completion);
  Status post_one_time_buffer(Mailbox mailbox, std::uint64_t threshold, ThresholdType type, std::uint32_t key,
                              VirtualAddress buffer, std::uint64_t size, CompletionPointer completion);
  /// Does not wait. `completion` receives (outcome, bytes) when the put has ended.
  Status put(DestinationRank destination, Mailbox mailbox, std::uint64_t offset, VirtualAddress source,
             std::uint64_t length, std::uint32_t key, CompletionPointer completion);
  /// Does not wait. Reads `length` bytes at `offset` of the active buffer of a readable window into `buffer`;
  /// `completion` receives (outcome, bytes) when they are there, or the get has ended otherwise.
  Status get(DestinationRank destination, Mailbox mailbox, std::uint64_t offset, std::uint64_t length,
             VirtualAddress buffer, std::uint32_t key, CompletionPointer completion);
  Status inc_epoch(Window window);
  Status get_epoch(Window window, std::uint64_t& completed);
  Status get_buf_ptrs(Window window, std::uint64_t n, std::vector<CompletedBufferInfo>& buffers);
  /// The last `n` completed buffers, and all that had messages, are filled anew: their words are 0, a wait on them
  /// waits anew, `epoch` is that of the first. `history` if a buffer is not remembered, was posted again (the same
  /// address), or its completion was freed or used for something else since.
  Status rewind(Window window, std::uint64_t n, std::uint64_t& epoch);
  Status close_window(Window window);
  /// What the driver itself knows of a handle: ok (the NIC decides), closed or no_window. Takes no time.
  Status status_of(Window window) const;

  WaitAnswer wait(CompletionPointer completion, WaitHow how);
  /// Whether the word is written (or the buffer returned, or its post refused); never blocks and takes no time.
  bool test(CompletionPointer completion);
  /// Waits until the NIC has executed every earlier call of this rank, puts and gets excepted.
  void wait_calls_executed();
  /// Takes the answers that are written by now, as every call does first; for a run that has ended.
  void take_answers();

  /// 16-byte words for completions, recycled; zeroed on allocation. Free one only when its put has ended or its buffer
  /// has completed or come back; the word of a buffer that is still posted is kept, since the NIC may yet write to it.
  CompletionPointer allocate_completion();
  void free_completion(CompletionPointer completion);

  /// For the platform, which tells the NIC: the command ring (nic.command.depth descriptors; address 0 in inline mode)
  /// and the 16-byte word to which the NIC writes how many descriptors it has consumed.
  PhysicalAddress ring_base() const;
  PhysicalAddress consumed_word() const;

  /// A finished run asks what a blocked rank waits for.
  bool waiting_for(CompletionPointer& completion) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rvma
