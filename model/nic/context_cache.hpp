/// \file
/// Window contexts between the NIC and host memory: which of a node's windows have their context on chip, and in which
/// slot. The translation table holds a mailbox exactly while its context is on chip.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <systemc>
#include <vector>

#include "base/component.hpp"
#include "host/ring_queue.hpp"
#include "nic/config.hpp"
#include "nic/index_allocator.hpp"
#include "nic/interfaces.hpp"
#include "nic/miss_table.hpp"
#include "nic/replacement.hpp"
#include "nic/translation_table.hpp"
#include "nic/window_store.hpp"

namespace rvma {

/// Bytes of a window context in host memory, and of a bucket of the host-memory table that finds it: one read each.
inline constexpr std::uint32_t kContextBytes = 64;
inline constexpr std::uint32_t kTableBucketBytes = 64;
inline constexpr std::uint64_t kTableBuckets = 1ULL << 24U;

struct ContextCacheStats {
  Counter hits{"messages", "first packets of messages whose window's context was on the NIC"};
  Counter misses{"times", "first packets and calls that waited for a context, or for the answer that there is none"};
  Counter refused{"times",
                  "of these and of others, sent away: nic.windows.misses were outstanding, or no slot was free"};
  Counter fetches{"contexts", "contexts fetched from host memory, for packets and calls"};
  Counter searches{"reads", "buckets of the host-memory table read"};
  Counter unknown{"reads", "of these, for mailboxes that nobody has"};
  Counter evictions{"contexts", "contexts sent away to make room"};
  Counter write_backs{"contexts", "of these, written to host memory: they had changed"};
  Counter read_bytes{"bytes", "bytes read from host memory"};
  Counter written_bytes{"bytes", "bytes written to host memory"};
  TimeSum fetch_ns{"time from a miss to the context on chip, all fetches together"};
  /// Named as in SpilledCacheStats.
  TimeSum waited_in_context_ns{
      "time that packets and calls, each on its own, waited for a context or for the answer "
      "that there is none"};
  Peak outstanding{"fetches", "most searches and fetches under way at once"};
  Peak resident{"contexts", "most contexts on the NIC at once"};
  Peak spilled{"contexts", "most contexts in host memory only at once"};
  Utilisation fetch;
  explicit ContextCacheStats(const Widenings& widened_by = kNotWidened)
      : fetch(WorkKind::operations, "searches and fetches, as many at a time as there may be outstanding", widened_by) {
  }
  BOOST_DESCRIBE_CLASS(ContextCacheStats, (),
                       (hits, misses, refused, fetches, searches, unknown, evictions, write_backs, read_bytes,
                        written_bytes, fetch_ns, waited_in_context_ns, outstanding, resident, spilled, fetch),
                       (), ())
};

/// What the deciding unit asks of the context cache.
class ContextIf : public virtual sc_core::sc_interface {
 public:
  enum class Fetched : std::uint8_t {
    found,    ///< the context is on chip, and stays until unpin()
    unknown,  ///< no window has the mailbox
    no_room   ///< every slot, or every place of the table that it could take, is in use by messages under way
  };
  using Done = std::function<void(Fetched, WindowId)>;

  /// The window whose context lies in the slot that the table named.
  virtual WindowLookup resolve(const LookupResult& answer) const = 0;
  /// The table's answer as it would be now: for a packet that has waited since its own.
  virtual WindowLookup find(Pid pid, Mailbox mailbox) const = 0;
  /// The first packet of a message has met its window on chip, at once or when it had waited.
  virtual void used(WindowId window, bool has_waited) = 0;
  /// A miss says nothing: contexts lie in host memory.
  virtual bool has_spilled() const = 0;
  /// Looks for (pid, mailbox) in host memory and brings its context on chip; joins a search under way. False: too many
  /// are under way.
  virtual bool fetch(Pid pid, Mailbox mailbox, Done done) = 0;
  /// The context stays until unpin(), if it is on chip (true); closing the window takes the pins with it.
  virtual bool pin(WindowId window) = 0;
  virtual void unpin(WindowId window) = 0;
};

/// Contexts of windows with bound messages, of windows that are opening, rewinding or closing, and of catch-all windows
/// stay on chip. Any other may go: its mailbox is erased from the table, then the context is written back (64 B), if it
/// has changed since it came, and the slot filled anew. A miss costs two reads of host memory, one after the other: the
/// bucket of a hash table, and the context.
class ContextCache : public Component, public ContextIf, public DmaClient {
 public:
  sc_core::sc_port<TableCommandIf> table;
  sc_core::sc_port<DmaIf> dma;

  /// `config` and `windows` outlive the unit.
  ContextCache(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, WindowStore& windows);

  // -- Calls. `done` may run within the call. Those that find every slot in use, or every place of the table
  // for their mailbox, wait, but for no longer than bound
  // messages can last (twice nic.reliability.idle).
  /// A window that was allocated gets a slot and its entry in the table; status full or busy: neither.
  void install(WindowId window, Pid pid, Mailbox mailbox, const std::function<void(TableStatus)>& done);
  /// The window has closed or expired: its entry leaves the table, its slot is free.
  void remove(WindowId window, Pid pid, Mailbox mailbox, std::function<void()> done);
  bool is_resident(WindowId window) const;
  /// Brings a window's context on chip; not to be called if it is resident. `done(false)`: there was no room.
  void acquire(WindowId window, Pid pid, Mailbox mailbox, const std::function<void(bool)>& done);

  /// Set-up: where the host has memory for contexts (kContextBytes each) and for the table that finds them.
  void set_area(PhysicalAddress contexts, PhysicalAddress buckets);
  /// The window's context is not as it was when it came.
  void changed(WindowId window);

  WindowLookup resolve(const LookupResult& answer) const override;
  WindowLookup find(Pid pid, Mailbox mailbox) const override;
  void used(WindowId window, bool has_waited) override;
  bool has_spilled() const override { return spilled_ > 0; }
  bool fetch(Pid pid, Mailbox mailbox, Done done) override;
  bool pin(WindowId window) override;
  void unpin(WindowId window) override;

  void dma_written(std::uint64_t tag, Time entered, Time visible) override;
  void dma_read_done(std::uint64_t tag) override;

  const ContextCacheStats& stats() const { return stats_; }

 private:
  enum class Place : std::uint8_t { nowhere, moving, resident, spilled };
  struct Residency {
    Place place = Place::nowhere;
    SlotId slot;
  };
  struct Slot {
    WindowId window;
    bool filled = false;  ///< the table knows it
    bool changed = false;
    bool in_stash = false;  ///< its entry: it stands there until it is erased
    std::uint32_t pins = 0;
  };
  struct Waiter {
    Time since;
    Done done;
  };
  /// Searches of host memory, and the fetches that follow them.
  using Misses = MissTable<MailboxKey, Waiter>;
  using Index = Misses::Index;
  struct WaitingCall {
    Time since;
    std::function<bool()> try_again;  ///< false: still no room
    std::function<void()> give_up;
  };

  Residency& residency(WindowId window);
  /// A slot that holds nothing: a free one, or one whose context is sent away. False: every context has to stay.
  bool take_slot(SlotId& slot);
  /// The slot that the policy names among those whose context may leave and that `may_go`.
  template <class May>
  std::optional<SlotId> victim_of(May may_go);
  /// The mailbox leaves the table by a command that is not to run before cycle `at`.
  void evict(SlotId slot, Cycles at);
  void give_back(SlotId slot);
  /// Tells the table; where it has no place for the key, contexts that are in its way are sent away. `full`: all of
  /// them have to stay.
  void enter(WindowId window, const MailboxKey& key, SlotId slot, bool is_new, bool has_cleared,
             const std::function<void(TableStatus)>& done);
  /// Sends a context away that is, or may be, in the key's way. False: each of them has to stay.
  bool clear_the_way(const MailboxKey& key);
  /// Sends one more away, that the policy would: a table so full that the next insertion fails as well costs more than
  /// the context is worth.
  void thin_out(SlotId newest);
  PhysicalAddress context_address(WindowId window) const;
  void read(PhysicalAddress address, std::uint32_t bytes, std::uint64_t tag);
  void searched(Index index);
  void arrived(Index index);
  void finish(Index index, Fetched outcome, WindowId window);
  bool try_install(WindowId window, const MailboxKey& key, Time since, const std::function<void(TableStatus)>& done);
  void wait_to_install(WindowId window, const MailboxKey& key, Time since,
                       const std::function<void(TableStatus)>& done);
  void try_acquire(WindowId window, const MailboxKey& key, Time since, const std::function<void(bool)>& done);
  void wait_for_room(WaitingCall call);
  void retry_calls();

  WindowStore& windows_;
  bool may_spill_;
  TableShape table_;
  std::optional<TabulationHash> hash_;  ///< the table's, once it is needed
  Time patience_;
  std::uint32_t most_fetches_;
  std::unique_ptr<ReplacementPolicy> policy_;
  IndexAllocator free_slots_;
  std::vector<Slot> slots_;
  std::deque<Residency> residencies_;  ///< by window
  Misses misses_;
  std::vector<WindowId> found_;  ///< by miss: the window whose context is being read
  PhysicalAddress context_area_;
  PhysicalAddress bucket_area_;
  RingQueue<WaitingCall> calls_;  ///< that found no slot or place, or too many fetches under way
  std::uint32_t resident_ = 0;
  std::uint32_t spilled_ = 0;
  ContextCacheStats stats_;
  Wakeup retry_;
};

}  // namespace rvma
