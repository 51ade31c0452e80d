/// \file
/// A structure of the NIC that may have more entries than places: the others lie in host memory. Which entry is where,
/// and what it costs to bring one back; what an entry contains is its owner's business.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/component.hpp"
#include "nic/cache_places.hpp"
#include "nic/config.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "nic/miss_table.hpp"
#include "nic/spill_area.hpp"

namespace rvma {

/// `waited_in_STAGE_ns`: by this name the report finds out what a stage of a message's way waited for (report/limits).
struct SpilledCacheStats {
  Counter hits{"times", "entries that were on the NIC when they were needed"};
  Counter misses{"times", "entries that were not, and were waited for"};
  Counter refused{"messages", "messages refused busy, because all reads were outstanding"};
  Counter fetches{"entries", "entries read from host memory, ahead of time or not"};
  Counter ahead{"entries", "of these, read before anybody waited for them"};
  Counter spilled_at_once{"entries", "new entries written to host memory, because no place was free"};
  Counter evictions{"entries", "entries that made room for others"};
  Counter write_backs{"entries", "of these, written to host memory: they had changed"};
  Counter read_bytes{"bytes", "bytes read from host memory"};
  Counter written_bytes{"bytes", "bytes written to host memory"};
  TimeSum waited_in_window_ns{"time that a packet to be cut waited for an entry"};
  TimeSum waited_in_context_ns{"time that arrived packets, each on its own, waited for entries before their decision"};
  TimeSum waited_in_count_ns{"time that placed packets, each on its own, waited for an entry to be counted"};
  TimeSum waited_otherwise_ns{"time that calls, acknowledgements and timers, each on its own, waited for an entry"};
  Peak outstanding{"reads", "most entries being read at once"};
  Peak resident{"entries", "most entries on the NIC at once"};
  Peak spilled{"entries", "most entries in host memory only at once"};
  Utilisation fetch;
  explicit SpilledCacheStats(const Widenings& widened_by = kNotWidened)
      : fetch(WorkKind::operations, "reads of entries, as many at a time as there may be outstanding", widened_by) {}
  BOOST_DESCRIBE_CLASS(SpilledCacheStats, (),
                       (hits, misses, refused, fetches, ahead, spilled_at_once, evictions, write_backs, read_bytes,
                        written_bytes, waited_in_window_ns, waited_in_context_ns, waited_in_count_ns,
                        waited_otherwise_ns, outstanding, resident, spilled, fetch),
                       (), ())
};

/// Entries are numbered densely by their owner. As long as they are no more than places, nothing costs anything.
///
/// An entry that is missed is read (its head; then, if the owner says that it is longer, the rest) and takes a free
/// place, or that of an entry which the policy names; if that one has changed since it was last in host memory, it is
/// written back. Nothing is ever held in place: whoever has waited for an entry has got it, whatever happens to its
/// place afterwards, so every wait ends, however few places there are. At most `misses` entries are read at a time;
/// other reads wait for their turn.
class SpilledCache : public DmaClient {
 public:
  using Key = std::uint32_t;

  /// `path`: of the statistics. `head_bytes`: of an entry, all of it unless set_rest() was called. `config` is read
  /// here only.
  SpilledCache(SimContext& context, const std::string& path, const SpillConfig& config, std::uint32_t head_bytes);
  SpilledCache(const SpilledCache&) = delete;
  SpilledCache& operator=(const SpilledCache&) = delete;

  /// Set-up. The engine that reads and writes; outlives the cache.
  void connect(DmaIf& dma) { dma_ = &dma; }
  /// Where the host has memory for the entries.
  void set_area(const SpillArea::Region& area);
  /// Bytes of an entry behind its head, now.
  void set_rest(std::function<std::uint32_t(Key)> rest) { rest_ = std::move(rest); }

  /// Without spilling: another entry would find no place.
  bool is_full() const { return !may_spill_ && !places_.has_free(); }
  /// Entries lie in host memory only.
  bool has_spilled() const { return spilled_ > 0; }
  bool is_on_chip(Key key) const;

  // -- Entries come and go
  enum class Birth : std::uint8_t {
    on_chip,    ///< needed at once: another entry makes room
    if_it_fits  ///< needed later: takes a free place, else is written to host memory
  };
  void add(Key key, Birth birth = Birth::on_chip);
  /// The entry is no more; neither read nor written. Who waits for it is told nevertheless.
  void remove(Key key);

  // -- and are used
  /// Whether the entry is on the NIC, where it then counts as used.
  bool lookup(Key key);
  /// Its contents have changed. If it left the NIC since it was looked up, it is written to host memory.
  void changed(Key key);
  /// A read of the entry would start at once, or is under way.
  bool may_fetch(Key key) const { return misses_.find(key) != Misses::kNone || outstanding_ < most_reads_; }
  void refused() { ++stats_.refused; }
  enum class Wait : std::uint8_t { to_send, to_decide, to_count, other };
  /// The entry, which lookup() did not find, is read; `done` runs when it is here, behind those who asked before.
  void fetch(Key key, Wait wait, std::function<void()> done);
  /// The entry will be needed soon, or is needed by something that does not wait for it.
  void prefetch(Key key);

  void dma_written(std::uint64_t tag, Time entered, Time visible) override;
  void dma_read_done(std::uint64_t tag) override;

  const SpilledCacheStats& stats() const { return stats_; }

 private:
  using Place = CachePlaces::Place;
  static constexpr Place kNowhere = ~Place{0};  ///< no such entry
  static constexpr Place kInHostMemory = kNowhere - 1;
  struct Waiter {
    Wait wait = Wait::to_send;
    Time since;
    std::function<void()> done;
  };
  using Misses = MissTable<Key, Waiter>;
  struct OnChip {
    Key key = 0;
    bool changed = false;
  };

  Place& place_of(Key key);
  bool exists(Key key) const { return key < where_.size() && where_[key] != kNowhere; }
  void spill(Key key);
  void fill(Key key, bool changed);
  std::uint32_t bytes_of(Key key) const { return head_bytes_ + (rest_ ? rest_(key) : 0); }
  void ask(Misses::Index index);
  void start(Misses::Index index);
  void read(std::uint64_t offset, std::uint32_t bytes, Misses::Index index);
  void write(Key key);
  TimeSum& waited_in(Wait wait);

  std::uint32_t head_bytes_;
  bool may_spill_;
  std::uint32_t most_reads_;
  DmaIf* dma_ = nullptr;
  SpillArea::Region area_;
  std::function<std::uint32_t(Key)> rest_;
  CachePlaces places_;
  std::vector<OnChip> on_chip_;  ///< by place
  std::vector<Place> where_;     ///< by entry
  std::uint32_t spilled_ = 0;
  Misses misses_;
  FifoRing<Misses::Index> queue_;  ///< of misses whose read has not started
  std::uint32_t outstanding_ = 0;
  SpilledCacheStats stats_;
};

}  // namespace rvma
