/// \file
/// Executes the window calls of the host: WindowStore decides, the translation table learns and forgets mailboxes.
#pragma once

#include <cstdint>
#include <functional>
#include <systemc>
#include <vector>

#include "base/component.hpp"
#include "nic/config.hpp"
#include "nic/context_cache.hpp"
#include "nic/counter_unit.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "nic/observer.hpp"
#include "nic/spilled_cache.hpp"
#include "nic/window_store.hpp"

namespace rvma {

struct WindowCallsStats {
  Counter calls{"calls", "window calls executed"};
  Counter failed{"calls", "window calls answered with another status than ok"};
  Counter table_refusals{"windows", "windows that the translation table had no place for"};
  Counter expired{"windows", "one-time windows that closed themselves"};
  BOOST_DESCRIBE_CLASS(WindowCallsStats, (), (calls, failed, table_refusals, expired), (), ())
};

/// Statuses by call (`no_window`: the mailbox has no window; `closed`: it had one that is closing or was closed
/// lately):
///
///     init_window           ok exists full bad_argument
///     post_one_time_buffer  ok exists full bad_argument
///     post_buffer           ok full bad_argument no_window closed
///     inc_epoch             ok no_buffer no_window closed
///     get_epoch             ok no_window closed; value: completed epochs
///     get_buf_ptrs          ok history no_window closed; value: entries written
///     close_window          ok no_window closed; answered when its bound messages have ended
///     rewind                ok history full no_window closed; value: epoch of the front buffer after it; answered when
///                           what was on its way to the buffers is visible and their words are zero again
///
/// get_buf_ptrs writes its list to the descriptor's `completion`, physically contiguous: for each epoch, newest first,
/// three 8-byte little-endian words (head, length, epoch); in the posted channel before the call is answered.
///
/// rewind takes `threshold` as n and `length` as the oldest epoch that may come again (the driver knows which buffers
/// were posted anew). It zeroes the words of the n buffers by strictly ordered writes behind all that was written
/// before, and waits for their visibility. With n = 0 one word that is zero anyway is written, to know the rest
/// visible.
///
/// inc_epoch and close_window are answered no earlier than the completion words that they (and what came before) made
/// due start on their way, so a host that has the answer finds the words written.
///
/// Registers WindowStore's statistics with its own. Calls that need the table take its command's time; the others take
/// none of their own here (nic.command.latency covers them). A window is found by the driver's handle without a table
/// access.
class WindowCalls : public Component, public WindowCallsIf, public DmaClient {
 public:
  sc_core::sc_port<CompletionFlushIf> counters;
  sc_core::sc_port<DmaIf> dma;
  sc_core::sc_port<DeliveryIf> delivery;

  /// `windows`, `payloads` and `observers` outlive the unit. Takes the store's on_expired() for itself.
  WindowCalls(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, NodeId node,
              WindowStore& windows, ContextCache& contexts, PayloadPool& payloads, const ObserverList& observers);

  /// Set-up: where descriptors and counters of buffers lie. Without it all are on chip.
  void use_caches(SpilledCache& descriptors, SpilledCache& buffer_counters) {
    descriptors_ = &descriptors;
    counters_of_buffers_ = &buffer_counters;
  }

  void execute(const Descriptor& call, Pid pid, Cycles at, std::function<void(const CallAnswer&)> done) override;

  /// A zeroed word of a rewind; for lists there is nothing to do, answers stand behind them in the posted channel.
  void dma_written(std::uint64_t tag, Time entered, Time visible) override;
  /// Never called: the unit reads nothing.
  void dma_read_done(std::uint64_t tag) override;

  const WindowCallsStats& stats() const { return stats_; }

 private:
  using Done = std::function<void(const CallAnswer&)>;
  struct Pending {
    Descriptor call;
    Pid pid;
    Cycles at;
    Done done;
  };

  struct Delayed {
    Time at;
    Done done;
  };

  /// A rewind from its decision to its answer.
  struct Rewind {
    WindowId window;
    std::uint64_t words = 0;    ///< to be zeroed
    std::uint64_t pending = 0;  ///< of them, not in the posted channel
    Time visible;               ///< of those that are
    bool draining = true;       ///< something is on its way to the buffers
    bool over = false;
    Done done;
  };

  void run();
  void tell_delayed();
  void perform(const Descriptor& call, Pid pid, const Done& done);
  void perform_on_window(const Descriptor& call, Pid pid, const Done& done, bool has_buffer = false);
  /// True: the active buffer's descriptor or counter is being read; the call goes on when they are here.
  bool waits_for_buffer(WindowId window, const Descriptor& call, Pid pid, const Done& done);
  void open(const Descriptor& call, Pid pid, const Done& done);
  void opened(const Descriptor& call, Pid pid, WindowId slot, BufferId buffer, TableStatus status, const Done& done);
  CallAnswer post_buffer(WindowId slot, const Descriptor& call, Pid pid);
  void inc_epoch(WindowId slot, const Done& done);
  CallAnswer get_buf_ptrs(WindowId slot, const Descriptor& call);
  void close(WindowId slot, const Descriptor& call, Pid pid, const Done& done);
  void rewind(WindowId slot, const Descriptor& call, const Done& done);
  void rewind_drained(std::size_t index);
  void finish_rewinds();
  void write_list(PhysicalAddress to, const std::vector<WindowStore::CompletedBuffer>& list);
  void reap();
  void answer(const Done& done, const CallAnswer& what);
  /// Answers `ok` behind all completion words that are due.
  void answer_behind_completions(const Done& done);

  NodeId node_;
  WindowStore& windows_;
  ContextCache& contexts_;
  PayloadPool& payloads_;
  const ObserverList& observers_;
  SpilledCache* descriptors_ = nullptr;
  SpilledCache* counters_of_buffers_ = nullptr;
  FifoRing<Pending> pending_;                  ///< handed over ahead of their cycle
  std::vector<WindowStore::Expired> expired_;  ///< scratch
  FifoRing<Delayed> delayed_;                  ///< answers that wait for completion words
  std::vector<Rewind> rewinds_;                ///< by number; those that are over are used again
  WindowCallsStats stats_;
  Wakeup execute_;
  Wakeup answer_;
  Wakeup rewound_;
};

}  // namespace rvma
