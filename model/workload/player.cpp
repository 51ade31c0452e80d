#include "workload/player.hpp"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <systemc>
#include <utility>

#include "base/error.hpp"
#include "base/value_text.hpp"
#include "host/ring_queue.hpp"
#include "workload/message_layer.hpp"
#include "workload/name_map.hpp"
#include "workload/payload_pattern.hpp"

namespace rvma {
namespace {

/// What a put or get holds until it has ended and nothing names it.
struct OpenPut {
  VirtualAddress memory;
  bool has_memory = false;
  CompletionPointer completion;
};

/// A posted buffer, from its post until its memory is given back.
struct LiveBuffer {
  VirtualAddress head;
  CompletionPointer completion;
  bool named = false;    ///< something that follows in the program names it
  bool is_lent = false;  ///< its memory has a label, and outlives it
  bool is_over = false;  ///< another buffer has that memory now
};

/// Live buffers in order of posting: those of one mailbox, all of one-time windows, or all that were not posted.
struct BufferQueue {
  RingQueue<LiveBuffer, 4> live;
  std::uint64_t first = 0;  ///< ordinal of live.front()
};

/// Where a named buffer is: ordinals do not move when older buffers go.
struct BufferName {
  BufferQueue* queue = nullptr;
  std::uint64_t ordinal = 0;
  CompletionPointer completion;
};

enum class WaitsFor : std::uint8_t { nothing, name, put, message, barrier, calls };

}  // namespace

/// Out of band and free: releases everybody when all ranks that still run have come.
class Barrier {
 public:
  explicit Barrier(std::uint32_t ranks) : running_(ranks), release_("barrier_release") {}

  /// `layer`: serves other ranks meanwhile; may be null.
  void arrive(Core& core, MessageLayer* layer) {
    ++arrived_;
    if (release_if_complete()) return;
    // A rank that comes back at once must not be woken by the release of the barrier before.
    const std::uint64_t meeting = meetings_;
    if (layer != nullptr) return layer->serve_until([&] { return meetings_ != meeting; }, release_);
    while (meetings_ == meeting) core.block_on(release_);
  }
  void leave() {
    --running_;
    if (arrived_ > 0) release_if_complete();
  }
  /// A rank that crashed while it waited here.
  void drop() {
    --arrived_;
    leave();
  }
  void join() { ++running_; }

 private:
  bool release_if_complete() {
    if (arrived_ < running_) return false;
    arrived_ = 0;
    ++meetings_;
    release_.notify(sc_core::SC_ZERO_TIME);
    return true;
  }

  std::uint32_t running_;
  std::uint32_t arrived_ = 0;
  std::uint64_t meetings_ = 0;  ///< that have taken place
  sc_core::sc_event release_;
};

/// Stops all programs for good, in the middle of whatever they do.
class Brake {
 public:
  Brake() : never_("stopped") {}

  void check(Core& core) {
    if (!asked || !asked()) return;
    stop(core);
  }
  void fail(Core& core, Error error) {
    if (!mistake) mistake = std::move(error);
    stop(core);
  }

  std::function<bool()> asked;
  std::optional<Error> mistake;

 private:
  [[noreturn]] void stop(Core& core) {
    sc_core::sc_pause();
    for (;;) core.block_on(never_);
  }

  sc_core::sc_event never_;  ///< nobody notifies it
};

namespace {

/// One rank at work.
class RankPlayer {
 public:
  RankPlayer(RankId rank, std::unique_ptr<Trace::Cursor> cursor, const Trace& trace, const WorkloadConfig& config,
             std::uint32_t history, const std::vector<RankHome>& homes, const std::vector<PlayerObserver*>& observers,
             Barrier& barrier, Brake& brake, MessageBoard* board)
      : rank_(rank),
        cursor_(std::move(cursor)),
        trace_(trace),
        with_bytes_(config.payload.get() == PayloadMode::bytes),
        history_(history),
        homes_(homes),
        home_(homes[rank.index()]),
        driver_(*home_.driver),
        observers_(observers),
        barrier_(barrier),
        brake_(brake),
        board_(board) {
    if (board != nullptr) layer_ = std::make_unique<MessageLayer>(*board, trace, rank, homes, observers);
  }

  void run() {
    if (!cursor_) cursor_ = trace_.cursor(rank_);
    open_layer();
    while (const Operation* operation = cursor_->next()) {
      brake_.check(driver_.core());
      current_ = operation;
      execute(*operation);
      current_ = nullptr;
      tell([&](PlayerObserver& observer) { observer.operation_done(rank_); });
    }
    cursor_.reset();
    if (layer_) {
      waits_for_ = WaitsFor::message;
      layer_->wait_all(WaitHow::mwait);
    }
    barrier_.leave();
    finished_ = true;
    if (layer_) layer_->finish();
  }
  /// Its thread is gone.
  void crash() {
    if (finished_) return;
    if (waits_for_ == WaitsFor::barrier) {
      barrier_.drop();
    } else {
      barrier_.leave();
    }
    finished_ = true;
    if (layer_) layer_->gone();
  }

  bool finished() const { return finished_; }
  /// What it is at; null: its program is over, but for messages.
  const Operation* current() const { return current_; }
  std::string waits_for() const {
    switch (waits_for_) {
      case WaitsFor::name:
        return trace_.spelling(rank_, waited_name_);
      case WaitsFor::put:
        return "a put";
      case WaitsFor::message:
        return "a message";
      case WaitsFor::barrier:
        return "the barrier";
      case WaitsFor::calls:
        return "the answer of a call";
      case WaitsFor::nothing:
        break;
    }
    return "the answer of a call";
  }

 private:
  template <class Call>
  void tell(Call&& call) {
    for (PlayerObserver* observer : observers_) call(*observer);
  }
  static Time now() { return SimContext::now(); }

  void execute(const Operation& operation) {
    switch (operation.kind) {
      case OperationKind::init_window:
        return init_window(operation);
      case OperationKind::post_buffer:
      case OperationKind::post_one_time_buffer:
        return post(operation);
      case OperationKind::put:
      case OperationKind::get:
        return put(operation);
      case OperationKind::wait:
        return wait(operation);
      case OperationKind::wait_all:
        return wait_all(operation.how);
      case OperationKind::inc_epoch:
      case OperationKind::get_epoch:
      case OperationKind::get_buf_ptrs:
      case OperationKind::rewind:
      case OperationKind::close_window:
        return window_call(operation);
      case OperationKind::compute:
        return compute(operation);
      case OperationKind::barrier:
        return meet();
      case OperationKind::send:
        return layer_->send(operation);
      case OperationKind::recv:
        return layer_->receive(operation);
      case OperationKind::mark_begin:
      case OperationKind::mark_end:
        if (board_ != nullptr) board_->marked(rank_, operation.kind == OperationKind::mark_begin);
        return tell([&](PlayerObserver& observer) {
          observer.marked(rank_, operation.kind == OperationKind::mark_begin, now());
        });
    }
  }

  void call_row(const Operation& operation, const NameRef* window, Status status, const std::string& value) {
    tell(
        [&](PlayerObserver& observer) { observer.call_returned(rank_, operation.kind, window, status, value, now()); });
  }

  void compute(const Operation& operation) {
    const Time left = std::max(Time::zero(), kLongestRun - now());
    driver_.core().compute(std::min(operation.duration, left));
    if (operation.duration <= left) return;
    brake_.fail(driver_.core(),
                Error{trace_.position(operation),
                      "simulated time passes " + to_string(kLongestRun) + " here, the longest that a run may last",
                      "expected shorter times or fewer passes"});
  }

  void init_window(const Operation& operation) {
    Window window;
    const Status status = driver_.init_window(operation.mailbox, operation.threshold, operation.threshold_type,
                                              operation.placement, operation.key, operation.window_flags, window);
    windows_[operation.name] = window;
    call_row(operation, &operation.name, status, "");
  }

  void post(const Operation& operation) {
    const bool one_time = operation.kind == OperationKind::post_one_time_buffer;
    Window window{operation.mailbox};
    const NameRef* window_name = nullptr;
    if (!one_time) {
      window = windows_.at(operation.operands[0]);
      window_name = &operation.operands[0];
    }
    // What the driver will refuse never reaches the NIC, so it is in nobody's history.
    const bool is_dead = driver_.status_of(window) != Status::ok;
    BufferQueue& buffers = one_time ? one_time_buffers_ : is_dead ? dead_buffers_ : queue_of(window.mailbox);
    free_old_buffers(buffers, one_time || is_dead ? 0 : history_);

    // 1. Memory: zeros, or the payload formula.
    LiveBuffer buffer;
    buffer.is_lent = operation.n != 0;
    buffer.head =
        buffer.is_lent ? labelled_memory(operation) : driver_.space().allocate(operation.size, operation.align);
    if (operation.has_seed && with_bytes_) fill(buffer.head, operation.size, operation.seed);
    buffer.completion = driver_.allocate_completion();
    buffer.named = operation.has_name && !operation.name_never_used;
    tell([&](PlayerObserver& observer) {
      observer.post_issued({rank_, home_.node, home_.pid, window_name, operation.has_name ? &operation.name : nullptr,
                            window.mailbox, buffer.head, operation.size, operation.has_seed, operation.seed,
                            buffer.completion.address, now()});
    });

    // 2. Remember it under its name, before the driver may let time pass.
    if (buffer.named) {
      names_[operation.name] = BufferName{&buffers, buffers.first + buffers.live.size(), buffer.completion};
    } else {
      tell([&](PlayerObserver& observer) { observer.buffer_unnamed(home_.node, buffer.completion.address); });
    }
    if (buffer.is_lent) labelled_[operation.n].last = BufferName{&buffers, buffers.first + buffers.live.size(), {}};
    buffers.live.push_back(buffer);

    // 3. Post. A late failure of the NIC is told by the driver's observer.
    const Status status =
        one_time ? driver_.post_one_time_buffer(window.mailbox, operation.threshold, operation.threshold_type,
                                                operation.key, buffer.head, operation.size, buffer.completion)
                 : driver_.post_buffer(window, buffer.head, operation.size, buffer.completion);
    if (status == Status::ok) return;
    call_row(operation, window_name, status, "");
    tell([&](PlayerObserver& observer) { observer.post_failed(home_.node, buffer.completion.address, status, now()); });
  }

  void put(const Operation& operation) {
    const bool is_get = operation.kind == OperationKind::get;
    reap_unnamed_puts();
    OpenPut open;
    if (operation.size > 0) {
      open.memory = driver_.space().allocate(operation.size, source_alignment(operation.size));
      open.has_memory = true;
      if (!is_get && with_bytes_) fill(open.memory, operation.size, operation.seed);
    }
    open.completion = driver_.allocate_completion();
    const RankHome& destination = homes_[operation.rank.index()];
    tell([&](PlayerObserver& observer) {
      observer.put_issued({rank_, home_.node, operation.kind, operation.has_name ? &operation.name : nullptr,
                           operation.rank, destination.node, destination.pid, operation.mailbox, operation.size,
                           operation.offset, operation.key, operation.seed, home_.pid, open.memory,
                           open.completion.address, now()});
    });
    if (operation.has_name && !operation.name_never_used) {
      named_puts_[operation.name] = open;
    } else {
      unnamed_puts_.push_back(open);
    }
    const DestinationRank to{destination.node, destination.pid};
    const Status status = is_get ? driver_.get(to, operation.mailbox, operation.offset, operation.size, open.memory,
                                               operation.key, open.completion)
                                 : driver_.put(to, operation.mailbox, operation.offset, open.memory, operation.size,
                                               operation.key, open.completion);
    if (status == Status::ok) return;
    call_row(operation, nullptr, status, "");
    tell([&](PlayerObserver& observer) { observer.put_failed(home_.node, open.completion.address, status, now()); });
  }

  void wait(const Operation& operation) {
    for (std::size_t i = 0; i < operation.operands.size(); ++i) {
      const NameRef& name = operation.operands[i];
      waited_name_ = name;
      waits_for_ = WaitsFor::name;
      if (layer_ && layer_->knows(name)) {
        layer_->wait(name, operation.how, operation.last_use[i]);
      } else if (const auto found = named_puts_.find(name); found != named_puts_.end()) {
        driver_.wait(found->second.completion, operation.how);
        if (operation.last_use[i]) {
          const OpenPut done = found->second;
          named_puts_.erase(name);
          free_put(done);
        }
      } else {
        wait_for_buffer(name, operation.how, operation.last_use[i]);
      }
      waits_for_ = WaitsFor::nothing;
    }
  }

  void wait_for_buffer(const NameRef& name, WaitHow how, bool last_use) {
    const auto found = names_.find(name);
    RVMA_ASSERT(found != names_.end(), "the trace checker let an unknown name pass");
    const BufferName buffer = found->second;
    const WaitAnswer answer = driver_.wait(buffer.completion, how);
    if (answer.status == Status::ok) {
      tell([&](PlayerObserver& observer) { observer.wait_seen(home_.node, buffer.completion.address, answer.seen); });
    }
    if (!last_use) return;
    names_.erase(name);
    buffer.queue->live[static_cast<std::size_t>(buffer.ordinal - buffer.queue->first)].named = false;
    tell([&](PlayerObserver& observer) { observer.buffer_unnamed(home_.node, buffer.completion.address); });
  }

  void wait_all(WaitHow how) {
    waits_for_ = WaitsFor::put;
    while (!unnamed_puts_.empty()) {
      const OpenPut open = unnamed_puts_.front();
      driver_.wait(open.completion, how);
      unnamed_puts_.pop_front();
      free_put(open);
    }
    for (const auto& [name, open] : named_puts_in_order()) {
      waited_name_ = name;
      waits_for_ = WaitsFor::name;
      driver_.wait(open.completion, how);
    }
    if (layer_) {
      waits_for_ = WaitsFor::message;
      layer_->wait_all(how);
    }
    waits_for_ = WaitsFor::nothing;
  }

  std::vector<std::pair<NameRef, OpenPut>> named_puts_in_order() const {
    std::vector<std::pair<NameRef, OpenPut>> all(named_puts_.begin(), named_puts_.end());
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return all;
  }

  void window_call(const Operation& operation) {
    const NameRef& name = operation.operands[0];
    const Window window = windows_.at(name);
    Status status = Status::ok;
    std::string value;
    waits_for_ = WaitsFor::calls;
    switch (operation.kind) {
      case OperationKind::inc_epoch:
        status = driver_.inc_epoch(window);
        break;
      case OperationKind::get_epoch: {
        std::uint64_t completed = 0;
        status = driver_.get_epoch(window, completed);
        if (status == Status::ok) value = std::to_string(completed);
        break;
      }
      case OperationKind::get_buf_ptrs: {
        std::vector<CompletedBufferInfo> buffers;
        status = driver_.get_buf_ptrs(window, operation.n, buffers);
        for (const CompletedBufferInfo& buffer : buffers) {
          if (!value.empty()) value += ' ';
          value += std::to_string(buffer.epoch.value()) + ":" + std::to_string(buffer.length);
        }
        break;
      }
      case OperationKind::rewind: {
        std::uint64_t epoch = 0;
        status = driver_.rewind(window, operation.n, epoch);
        if (status == Status::ok) value = std::to_string(epoch);
        break;
      }
      default:
        status = driver_.close_window(window);
        break;
    }
    waits_for_ = WaitsFor::nothing;
    call_row(operation, &name, status, value);
  }

  void meet() {
    waits_for_ = WaitsFor::calls;
    driver_.wait_calls_executed();
    waits_for_ = WaitsFor::barrier;
    barrier_.arrive(driver_.core(), layer_.get());
    waits_for_ = WaitsFor::nothing;
  }

  /// What a library does when it is initialised: nobody's program begins before all are ready.
  void open_layer() {
    if (!layer_) return;
    if (const Status status = layer_->open(); status != Status::ok) {
      brake_.fail(driver_.core(),
                  Error{Position{"rvma", 0, 0},
                        "rank " + std::to_string(rank_.value()) +
                            " has no room for the windows of its messages: " + ValueText<Status>::print(status),
                        "expected fewer windows, fewer workload.messages.slots or more nic.windows"});
    }
    meet();
  }

  /// Sources of a page or more start at a page border, as an allocator of large buffers would place them.
  std::uint64_t source_alignment(std::uint64_t size) const {
    const std::uint64_t page = driver_.space().page_bytes();
    return size >= page ? page : 64;
  }

  void fill(VirtualAddress head, std::uint64_t size, std::uint64_t seed) {
    AddressSpace& space = driver_.space();
    const std::uint64_t page = space.page_bytes();
    constexpr std::uint64_t kBytesBetweenChecks = 1024 * 1024;
    std::uint64_t next_check = kBytesBetweenChecks;
    for (std::uint64_t done = 0; done < size;) {
      if (done >= next_check) {
        brake_.check(driver_.core());
        next_check += kBytesBetweenChecks;
      }
      const VirtualAddress at{head.value() + done};
      const bool whole_page = at.value() % page == 0 && size - done >= page;
      if (const std::uint8_t* bytes = whole_page ? pattern_run(seed, done, page) : nullptr) {
        space.map_constant(at, bytes);
        done += page;
        continue;
      }
      // Up to the next page border, so that the whole pages behind it are seen.
      const PatternPiece piece = pattern_piece(seed, done, std::min(size - done, page - at.value() % page));
      space.write(at, piece.data, piece.bytes);
      done += piece.bytes;
    }
  }

  /// Gives back what puts that have ended and that nothing names hold. Looks at few each time, yet keeps up: every put
  /// frees up to two, and one that is stuck is passed over.
  void reap_unnamed_puts() {
    for (int looked = 0; looked < 2 && !unnamed_puts_.empty(); ++looked) {
      const OpenPut open = unnamed_puts_.front();
      unnamed_puts_.pop_front();
      if (is_written(open.completion)) {
        free_put(open);
      } else {
        unnamed_puts_.push_back(open);
        // The oldest is still open: most often all behind it are, too. Rotate on, but no further this time.
        break;
      }
    }
  }

  bool is_written(CompletionPointer completion) { return driver_.test(completion); }

  void free_put(const OpenPut& open) {
    tell([&](PlayerObserver& observer) { observer.put_freed(home_.node, open.completion.address); });
    if (open.has_memory) driver_.space().free(open.memory);
    driver_.free_completion(open.completion);
  }

  BufferQueue& queue_of(Mailbox mailbox) {
    std::unique_ptr<BufferQueue>& queue = mailboxes_[mailbox.value()];
    if (!queue) queue = std::make_unique<BufferQueue>();
    return *queue;
  }

  /// Memory that the program posts again and again: as good as new each time, at the same address.
  VirtualAddress labelled_memory(const Operation& operation) {
    Labelled& memory = labelled_[operation.n];
    if (memory.size == 0) {
      memory.size = operation.size;
      memory.head = driver_.space().allocate(operation.size, operation.align);
      return memory.head;
    }
    BufferQueue& queue = *memory.last.queue;
    // Its buffer may have been given up long ago.
    if (memory.last.ordinal >= queue.first) {
      LiveBuffer& before = queue.live[static_cast<std::size_t>(memory.last.ordinal - queue.first)];
      if (memory.size != operation.size || !driver_.test(before.completion)) {
        brake_.fail(driver_.core(),
                    Error{trace_.position(operation),
                          "memory " + std::to_string(operation.n) +
                              (memory.size != operation.size ? " has another size" : " is still posted"),
                          "expected " + (memory.size != operation.size ? to_string(Bytes{memory.size})
                                                                       : std::string("its buffer to be complete"))});
      }
      before.is_over = true;
      tell([&](PlayerObserver& observer) { observer.buffer_freed(home_.node, before.completion.address); });
    }
    if (with_bytes_) {
      const std::vector<std::uint8_t> zeros(std::min<std::uint64_t>(memory.size, driver_.space().page_bytes()));
      for (std::uint64_t done = 0; done < memory.size; done += zeros.size()) {
        driver_.space().write(VirtualAddress{memory.head.value() + done}, zeros.data(),
                              std::min<std::uint64_t>(zeros.size(), memory.size - done));
      }
    }
    return memory.head;
  }

  /// A buffer's memory goes once it is completed, out of the NIC's history and no longer named.
  void free_old_buffers(BufferQueue& buffers, std::uint32_t history) {
    while (buffers.live.size() > history) {
      const LiveBuffer oldest = buffers.live.front();
      // Completions appear in order of posting: if the one `history` later is complete, the oldest is out of history.
      if (oldest.named || !driver_.test(buffers.live[history].completion) || !driver_.test(oldest.completion)) return;
      if (!oldest.is_over) {
        tell([&](PlayerObserver& observer) { observer.buffer_freed(home_.node, oldest.completion.address); });
      }
      if (!oldest.is_lent) driver_.space().free(oldest.head);
      driver_.free_completion(oldest.completion);
      buffers.live.pop_front();
      ++buffers.first;
    }
  }

  RankId rank_;
  std::unique_ptr<Trace::Cursor> cursor_;
  const Trace& trace_;
  bool with_bytes_;
  std::uint32_t history_;
  const std::vector<RankHome>& homes_;
  const RankHome& home_;
  Driver& driver_;
  const std::vector<PlayerObserver*>& observers_;
  Barrier& barrier_;
  Brake& brake_;
  MessageBoard* board_;  ///< null: nobody sends messages
  std::unique_ptr<MessageLayer> layer_;

  NameMap<Window> windows_;
  NameMap<BufferName> names_;
  NameMap<OpenPut> named_puts_;
  RingQueue<OpenPut, 4> unnamed_puts_;
  boost::unordered_flat_map<std::uint64_t, std::unique_ptr<BufferQueue>> mailboxes_;
  struct Labelled {
    VirtualAddress head;
    std::uint64_t size = 0;  ///< bytes
    BufferName last;         ///< buffer that has it
  };
  boost::unordered_flat_map<std::uint64_t, Labelled> labelled_;  ///< by label
  BufferQueue one_time_buffers_;
  BufferQueue dead_buffers_;  ///< whose post the driver refused

  bool finished_ = false;
  const Operation* current_ = nullptr;
  WaitsFor waits_for_ = WaitsFor::nothing;
  NameRef waited_name_;
};

}  // namespace

struct Player::Impl {
  const Trace& trace;
  const WorkloadConfig& config;
  std::uint32_t history;
  std::vector<RankHome> homes;
  std::vector<PlayerObserver*> observers;
  Barrier barrier;
  Brake brake;
  std::unique_ptr<MessageBoard> board;             ///< null: nobody sends messages
  std::vector<std::unique_ptr<RankPlayer>> ranks;  ///< the present program of each
  std::vector<std::unique_ptr<RankPlayer>> dead;

  Impl(const Trace& the_trace, const WorkloadConfig& the_config, std::uint32_t the_history,
       std::vector<RankHome> the_homes, std::vector<PlayerObserver*> the_observers)
      : trace(the_trace),
        config(the_config),
        history(the_history),
        homes(std::move(the_homes)),
        observers(std::move(the_observers)),
        barrier(static_cast<std::uint32_t>(homes.size())) {
    if (trace.has_messages()) {
      board = std::make_unique<MessageBoard>(config, trace.ranks());
      homes.front().driver->core().context().stats().add("messages", board->stats());
    }
    ranks.reserve(homes.size());
    for (std::uint32_t rank = 0; rank < homes.size(); ++rank) {
      ranks.push_back(make(RankId{rank}, nullptr));
    }
  }
  /// `cursor` null: the rank's program from its beginning.
  std::unique_ptr<RankPlayer> make(RankId rank, std::unique_ptr<Trace::Cursor> cursor) {
    MessageBoard* const messages = cursor == nullptr ? board.get() : nullptr;
    return std::make_unique<RankPlayer>(rank, std::move(cursor), trace, config, history, homes, observers, barrier,
                                        brake, messages);
  }
};

Player::Player(const Trace& trace, const WorkloadConfig& config, std::uint32_t history, std::vector<RankHome> homes,
               std::vector<PlayerObserver*> observers)
    : impl_(std::make_unique<Impl>(trace, config, history, std::move(homes), std::move(observers))) {}

Player::~Player() = default;

void Player::play(RankId rank) { impl_->ranks[rank.index()]->run(); }

void Player::crashed(RankId rank) { impl_->ranks[rank.index()]->crash(); }

bool Player::has_restart(RankId rank) const {
  const auto& blocks = impl_->trace.restart_blocks();
  return std::any_of(blocks.begin(), blocks.end(), [&](const auto& block) { return block.first == rank; });
}

void Player::prepare_restart(RankId rank, Driver& driver) {
  impl_->homes[rank.index()].driver = &driver;
  std::unique_ptr<RankPlayer>& player = impl_->ranks[rank.index()];
  impl_->dead.push_back(std::move(player));
  impl_->barrier.join();
  player = impl_->make(rank, impl_->trace.restart_cursor(rank));
}

void Player::on_interruption(std::function<bool()> asked) { impl_->brake.asked = std::move(asked); }

const std::optional<Error>& Player::mistake() const { return impl_->brake.mistake; }

std::uint32_t Player::ranks_finished() const {
  return static_cast<std::uint32_t>(
      std::count_if(impl_->ranks.begin(), impl_->ranks.end(), [](const auto& rank) { return rank->finished(); }));
}

std::vector<std::string> Player::waiting() const {
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < impl_->ranks.size(); ++rank) {
    const RankPlayer& player = *impl_->ranks[rank];
    if (player.finished()) continue;
    const std::string what = "rank " + std::to_string(rank) + " waits for " + player.waits_for();
    // Each place is searched for from the beginning of the text: the first ones tell what is wrong.
    const bool has_place = player.current() != nullptr && lines.size() < ErrorList::kShown;
    lines.push_back(has_place ? Error{impl_->trace.position(*player.current()), what}.to_string() : what);
  }
  return lines;
}

}  // namespace rvma
