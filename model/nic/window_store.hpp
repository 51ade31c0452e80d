/// \file
/// Windows, buckets, bindings and counters: everything that is decided about a window, as plain C++ with no time in it.
/// The one place where decisions are made: each packet and call is wholly before or after any other, in the order in
/// which the RNIC's units call these functions.
#pragma once

#include <boost/container/static_vector.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/outcome.hpp"
#include "base/stats.hpp"
#include "fabric/packet.hpp"
#include "nic/closed_memory.hpp"
#include "nic/config.hpp"
#include "nic/descriptor.hpp"
#include "nic/interfaces.hpp"

namespace rvma {

/// Whether a packet is cut as its own header says: byte k x mtu of the message onwards, every packet but the last `mtu`
/// bytes long, a message of length 0 one packet. A packet that is not changes nothing, whichever arrives first.
bool is_well_cut(const DataHeader& header, std::uint64_t mtu);

/// Where a bound packet's payload goes, relative to its buffer.
struct BufferPlace {
  BufferId buffer;
  std::uint64_t offset = 0;  ///< of the packet's first byte within the buffer
  bool has_binding = false;  ///< the message has an entry (more than one packet)
  std::uint32_t binding = 0;
};

/// Answer to the first packet of a message.
struct BindAnswer {
  Outcome outcome = Outcome::pending;  ///< pending: bound, see `place`; else refused
  /// The packet is not well cut (outcome is then `bounds`): ignore this packet, its message stays unseen.
  bool malformed = false;
  bool unidentified = false;  ///< refused before mailbox and key were known: anybody can cause it
  BufferPlace place;
  WindowId window;
  Epoch epoch;
  std::uint64_t message_offset = 0;  ///< of the message's first byte within the buffer
  bool has_record = false;           ///< a catch-all window: a record stands right before the message
  bool retired = false;              ///< this binding (or a managed misfit) retired `retired_buffer`
  BufferId retired_buffer;
  Epoch retired_epoch;
  /// A managed misfit retired `retired_buffer`, and the message filled the next one (place.buffer, epoch) as well.
  bool retired_next = false;
};

/// Bytes of the record that precedes each message in a catch-all window: source rank, mailbox, length and message id,
/// four 8-byte little-endian words. Record and payload are one unit for fit, threshold and length.
inline constexpr std::uint32_t kRecordBytes = 32;

/// What a posted buffer needs for page translation and completion.
struct BufferDescriptor {
  Pid pid;
  VirtualAddress head;
  std::uint64_t size = 0;
  PhysicalAddress page_list;
  bool single_page = false;
  PhysicalAddress word;
  /// Number of this posting, from 1, never used again: page translations cached for an earlier buffer of the same id
  /// or page list cannot be mistaken for this one's.
  std::uint64_t posting = 0;
};

/// Answer to a get's request.
struct ReadAnswer {
  Outcome outcome = Outcome::pending;  ///< pending: `buffer` may be read; else refused
  bool malformed = false;              ///< as in BindAnswer
  bool unidentified = false;           ///< as in BindAnswer
  WindowId window;
  BufferId buffer;
};

/// Who keeps book of what lies on the NIC and what in host memory. Told within the store's calls; must not call back.
class StoreListener {
 public:
  virtual ~StoreListener() = default;
  /// A buffer was posted, or came back by a rewind. `is_active`: the next message binds to it.
  virtual void descriptor_added(BufferId buffer, bool is_active) = 0;
  virtual void descriptor_removed(BufferId buffer) = 0;
  /// The next message of its window binds to the buffer: the one before it has retired.
  virtual void buffer_is_next(BufferId buffer) = 0;
  /// The buffer's counter is in use: its first message was bound.
  virtual void counter_added(BufferId buffer) = 0;
  virtual void counter_changed(BufferId buffer) = 0;
  /// Its epoch completes: the counter is read.
  virtual void counter_ends(BufferId buffer) = 0;
  virtual void counter_removed(BufferId buffer) = 0;
  /// The window's context has changed: its bucket, its epochs, its state.
  virtual void window_changed(WindowId window) = 0;
};

/// Levels and events of the store; the refusals are counted where they are made (address conversion).
struct WindowStoreStats {
  Peak windows_peak{"windows", "most window contexts in use at a time"};
  Peak buffers_peak{"buffers", "most posted buffers not completed at a time"};
  Peak counters_peak{"counters", "most buffers with a counter at a time"};
  Peak bindings_peak{"bindings", "most messages with a binding entry at a time"};
  Counter windows_opened{"windows", "windows opened, one-time windows included"};
  Counter windows_released{"windows", "windows closed and their context freed"};
  Counter buffers_posted{"buffers", "buffers posted"};
  Counter buffers_returned{"buffers", "buffers that went back without completion"};
  Counter messages_bound{"messages", "messages bound to a buffer"};
  Counter messages_caught{"messages", "messages bound to a catch-all window, with a record each"};
  Counter messages_counted{"messages", "messages counted whole"};
  Counter messages_cut_off{"messages",
                           "bound messages cut off: their sender restarted, gave up or fell silent, or by a rewind"};
  Counter epochs_retired{"epochs", "buffers retired, by threshold, misfit or call"};
  Counter epochs_completed{"epochs", "epochs whose completion became due"};
  Counter windows_rewound{"calls", "times that a window was rewound"};
  Counter epochs_rewound{"epochs", "completed epochs that a rewind took back"};
  BOOST_DESCRIBE_CLASS(WindowStoreStats, (),
                       (windows_peak, buffers_peak, counters_peak, bindings_peak, windows_opened, windows_released,
                        buffers_posted, buffers_returned, messages_bound, messages_caught, messages_counted,
                        messages_cut_off, epochs_retired, epochs_completed, windows_rewound, epochs_rewound),
                       (), ())
};

/// Of the binding entries, a unit of their own: they do not spill.
struct BindingStats {
  Counter refused{"messages", "messages refused busy, because all entries were taken"};
  BOOST_DESCRIBE_CLASS(BindingStats, (), (refused), (), ())
};

/// Capacities are those of the configuration: windows, buffers and counters have no limit here but where they may not
/// spill to host memory (then on_chip of them); bindings are on_chip. What does not fit is answered `full` (calls) or
/// `busy` (messages). What lies where, and what it costs, is the business of the caches (StoreListener, needs_...()).
class WindowStore {
 public:
  /// `config` is read here only; nothing refers to it later.
  explicit WindowStore(const NicConfig& config);
  ~WindowStore();
  /// A copy decides from now on as the original would, and calls the same functions; it has no listener.
  WindowStore(const WindowStore& other);
  WindowStore& operator=(const WindowStore&) = delete;

  struct WindowAnswer {
    Status status = Status::ok;
    WindowId window;
  };
  struct PostAnswer {
    Status status = Status::ok;
    BufferId buffer;
  };
  struct CompletedBuffer {
    VirtualAddress head;
    std::uint64_t length = 0;
    Epoch epoch;
  };
  struct Expired {
    WindowId window;
    Pid pid;
    Mailbox mailbox;
  };

  // -- Calls (semantics 2 and 5). Table commands are the caller's job: a slot is allocated, inserted, then opened.
  /// Reserves a context slot for init_window or post_one_time_buffer. Errors, the first that applies: bad_argument
  /// (threshold 0; one-time: size 0, or a catch-all), exists (the mailbox, or the process's catch-all window), full. A
  /// mailbox whose window is closing still exists. A catch-all window is managed, whatever the call says.
  WindowAnswer allocate_window(const Descriptor& call, Pid pid);
  /// The table knows the slot now: the window is open, and its mailbox no longer remembered as closed.
  void open_window(WindowId slot);
  /// The table refused the insertion: slot and buffers posted to it are free again.
  void abandon_window(WindowId slot);
  /// Window of (pid, mailbox) as calls see it. Errors: closed (closing, or remembered as closed), no_window.
  WindowAnswer find_window(Pid pid, Mailbox mailbox) const;

  // -- Where contexts lie is the context cache's business; it asks these.
  /// Window that has the mailbox, in whatever state; no_window.
  WindowAnswer locate(Pid pid, Mailbox mailbox) const;
  MailboxKey key_of(WindowId slot) const;
  /// Nothing is under way that needs the context: it may go to host memory.
  bool may_leave(WindowId slot) const;
  bool is_closed(Pid pid, Mailbox mailbox) const;

  /// Appends to the bucket of an open window, or of an allocated one that is not open yet. Errors: bad_argument (size
  /// 0, or a second buffer for a one-time window), full.
  PostAnswer post_buffer(WindowId slot, const Descriptor& call);
  /// Retires the active buffer; its completion (now or later) comes out of take_completions(). Errors: no_buffer.
  Status inc_epoch(WindowId slot, BufferId& retired, Epoch& epoch);
  /// Epochs whose completion is due: never behind a completion word that the host can see.
  std::uint64_t completed_epochs(WindowId slot) const;
  /// The last `n` completed epochs, newest first, appended to `out`; `history` if n exceeds what is remembered.
  Status completed_buffers(WindowId slot, std::uint64_t n, std::vector<CompletedBuffer>& out) const;
  /// From now on the mailbox refuses `closed`. Appended to `returned`, in bucket order: the active and the unused
  /// buffers, which go back without completion (the active one's descriptor stays until its bound messages have ended).
  /// `drained` runs when all bound messages have ended (perhaps at once), its last act within the call that ended them;
  /// then erase the table entry and release_window().
  void begin_close(WindowId slot, std::vector<BufferId>& returned, std::function<void()> drained);
  void release_window(WindowId slot);

  /// A message that a rewind has cut off: its later packets are `stale`.
  struct CutMessage {
    NodeId source;
    MessageId message;
  };
  struct RewindAnswer {
    Status status = Status::ok;
    bool drained = false;             ///< nothing is on its way to the window's buffers: `drained` will not be called
    std::vector<CutMessage> cut_off;  ///< those with a binding entry, in order of entries
  };
  /// The last `n` completed buffers, the retired ones and the active one return to the front of the bucket in this
  /// order, empty, and every message that is bound to one of them and not counted whole is cut off. From now on the
  /// window refuses `busy`. `drained` runs when nothing of what was bound is on its way to memory any more; then zero
  /// the words of rewound_buffers() and finish_rewind(). Errors, without a trace: history (n exceeds what is
  /// remembered, or an epoch before `oldest` would come again), full (no descriptors for n buffers).
  RewindAnswer begin_rewind(WindowId slot, std::uint64_t n, Epoch oldest, std::function<void()> drained);
  /// What came back, front first; valid until finish_rewind().
  void rewound_buffers(WindowId slot, std::vector<RewoundBuffer>& out) const;
  /// The words are zero again: the window takes messages. Returns the epoch of the buffer at its front.
  Epoch finish_rewind(WindowId slot);

  /// One-time windows whose buffer has completed: erase their table entry, then release_window(). Appended to `out`;
  /// empties the list. Their mailbox can be initialised again at once, in another slot: erase first, then insert.
  void take_expired(std::vector<Expired>& out);
  /// `expired` runs at the end of each call that put a window on that list.
  void on_expired(std::function<void()> expired);
  /// Set-up: every message gets an entry, also one of a single packet, so that each can be cut off while it is bound.
  void bind_all();

  // -- Packets (semantics 3)
  /// First packet of a message. Refusals in this order: closed, busy (table being swept), no_mailbox; bad_key;
  /// no_buffer; bounds; busy (no free counter or binding entry). A refusal leaves no trace but the one that semantics 3
  /// names: a managed misfit without a next buffer retires the active one (`retired`) and refuses no_buffer.
  /// The context's own (pid, mailbox) is compared with the packet's: a table answer that was overtaken by a close, an
  /// expiry or a reuse of the slot never leads into another mailbox's window; if the mailbox was opened after its
  /// lookup, the answer is `busy`, so that the sender asks again. A message that would be refused no_mailbox goes to
  /// the process's catch-all window, if it has one. There its record is a packet of its own to place() and count(): it
  /// has been placed, and is counted with kRecordBytes.
  BindAnswer bind(NodeId source, const DataHeader& header, const WindowLookup& lookup);
  /// Request of a get. Refusals in this order: closed, busy (table being swept), no_mailbox (a catch-all window is
  /// never read); bad_key, also where the window is not readable; no_buffer; bounds (of the active buffer's size); busy
  /// (being rewound). Nothing is reserved, nothing changes.
  ReadAnswer read(const DataHeader& header, const WindowLookup& lookup) const;
  /// Whether the buffer that read() gave, as posting `posting`, still belongs to the window: posted or remembered.
  bool may_read(WindowId slot, BufferId buffer, std::uint64_t posting) const;
  /// Grows with each packet that is bound or placed in the window.
  std::uint64_t activity(WindowId slot) const;
  /// Cuts off all messages that are bound to the window and not counted; what is on its way lands, and does not count,
  /// but for messages of one packet. For begin_close().
  void cut_off_window(WindowId slot, std::vector<CutMessage>& cut);
  /// Later packet of a bound message. False: it contradicts the binding or was placed already, and changes nothing.
  bool place(std::uint32_t binding, NodeId source, const DataHeader& header, BufferPlace& place);
  struct CutOff {
    WindowId window;
    BufferId buffer;
    Epoch epoch;               ///< of the buffer, if it is retired
    bool retired_now = false;  ///< a managed window: the hole retires the buffer
    bool is_broken = false;    ///< the buffer is retired with a message missing: it never completes by itself
  };
  /// The bound message of this entry will never be whole: its reserved and delivered amounts are taken back, and its
  /// later packets are not its any more. What is on the way to memory already is waited for, and not counted.
  CutOff cut_off(std::uint32_t binding);
  /// Valid while a message is bound to the buffer; the reference stays good as long.
  const BufferDescriptor& buffer(BufferId buffer) const;

  /// Whether counting this packet would count its message whole. A count that does not has no effect that anybody can
  /// see before the one that does, so it may be applied early.
  bool ends_message(const PlacedPacket& packet) const;
  /// The packet's bytes are in the posted channel. True: its message has been counted whole.
  bool count(const PlacedPacket& packet);
  /// Completions that have become due, in epoch order of each window; appended to `out`, empties the list.
  void take_completions(std::vector<Completion>& out);
  /// `due` runs at the end of each call other than count() that made a completion due: inc_epoch, and a bind whose
  /// misfit retired a buffer with nothing left to wait for.
  void on_completion_due(std::function<void()> due);

  // -- What has to be on the NIC
  /// At most one; outlives the store's use. Without one nobody keeps book.
  void on_changes(StoreListener* listener);
  struct Needs {
    WindowId window;
    boost::container::static_vector<BufferId, 2> descriptors;
    boost::container::static_vector<BufferId, 2> counters;
    bool empty() const { return descriptors.empty() && counters.empty(); }
  };
  /// What bind() or, for a get's request, read() would look at; nothing if it would refuse without.
  Needs needs_of_first(const DataHeader& header, const WindowLookup& lookup) const;
  /// What inc_epoch() would look at.
  Needs needs_of_retirement(WindowId window) const;
  /// Whose descriptor place() needs; none if there is no such binding.
  std::optional<BufferId> bound_buffer(std::uint32_t binding) const;

  WindowStoreStats& stats();
  BindingStats& binding_stats();

 private:
  friend struct StateReader;  // of the model check: tells apart what differs inside
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rvma
