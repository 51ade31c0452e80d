#include "nic/context_cache.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"

namespace rvma {
namespace {

/// Pause until a call that found every slot in use asks again.
constexpr std::int64_t kRetryNs = 1000;

/// Tags of reads: of the bucket, or of the context.
constexpr std::uint64_t tag_of(std::uint32_t index, bool is_context) {
  return (std::uint64_t{index} << 1U) | (is_context ? 1U : 0U);
}

}  // namespace

ContextCache::ContextCache(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config,
                           WindowStore& windows)
    : Component(name, context, config.clock),
      table("table"),
      dma("dma"),
      windows_(windows),
      may_spill_(config.windows.spill),
      table_(TableShape::from(config.table)),
      patience_(config.reliability.idle.get() * 2),
      most_fetches_(config.windows.misses),
      policy_(make_replacement(config.windows.policy, Random(context.seed(), path()))),
      free_slots_(config.windows.on_chip),
      stats_(*config.windows.widened_by),
      retry_(*this, "retry", [this] { retry_calls(); }) {
  context.stats().add(path(), stats_);
  context.stats().add_level(path(), "outstanding", stats_.outstanding,
                            [this]() -> std::uint64_t { return misses_.size(); });
}

void ContextCache::set_area(PhysicalAddress contexts, PhysicalAddress buckets) {
  context_area_ = contexts;
  bucket_area_ = buckets;
}

PhysicalAddress ContextCache::context_address(WindowId window) const {
  return PhysicalAddress{context_area_.value() + std::uint64_t{kContextBytes} * window.value()};
}

ContextCache::Residency& ContextCache::residency(WindowId window) {
  while (residencies_.size() <= window.index()) residencies_.emplace_back();
  return residencies_[window.index()];
}

bool ContextCache::is_resident(WindowId window) const {
  return window.index() < residencies_.size() && residencies_[window.index()].place == Place::resident;
}

// --------------------------------------------------------------------------------------------------------------- slots

bool ContextCache::take_slot(SlotId& slot) {
  if (!free_slots_.available()) {
    const auto victim = victim_of([](SlotId /*any*/) { return true; });
    if (!victim) return false;
    evict(*victim, current_cycle());
  }
  slot = SlotId{static_cast<std::uint16_t>(free_slots_.take())};
  while (slots_.size() <= slot.index()) slots_.emplace_back();
  slots_[slot.index()] = Slot{};
  return true;
}

template <class May>
std::optional<SlotId> ContextCache::victim_of(May may_go) {
  const auto victim = policy_->victim([this, &may_go](std::uint32_t place) {
    const Slot& candidate = slots_[place];
    return candidate.filled && candidate.pins == 0 && windows_.may_leave(candidate.window) &&
           may_go(SlotId{static_cast<std::uint16_t>(place)});
  });
  if (victim == ReplacementPolicy::kNone) return std::nullopt;
  return SlotId{static_cast<std::uint16_t>(victim)};
}

/// Whatever the table's insertion tries, the key's own places and the stash are full. Entries in the stash stay where
/// they are, so one of them makes room for certain. If all of those have to stay, one that shares a row with the key
/// may stand in the key's place: where insertions have moved an entry to, only the table knows.
bool ContextCache::clear_the_way(const MailboxKey& key) {
  if (const auto victim = victim_of([this](SlotId slot) { return slots_[slot.index()].in_stash; })) {
    evict(*victim, current_cycle());
    return true;
  }
  if (!hash_) hash_.emplace(table_);
  const TabulationHash::Rows wanted = hash_->rows_of({key.pid, key.mailbox});
  const auto victim = victim_of([this, &wanted](SlotId slot) {
    const MailboxKey other = windows_.key_of(slots_[slot.index()].window);
    const TabulationHash::Rows rows = hash_->rows_of({other.pid, other.mailbox});
    for (std::uint32_t bank = 0; bank < table_.banks; ++bank) {
      if (rows[bank] == wanted[bank]) return true;
    }
    return false;
  });
  if (!victim) return false;
  // Every slot's key goes through the hash, one a cycle, and the table waits for the command.
  evict(*victim, current_cycle() + Cycles{static_cast<std::int64_t>(slots_.size())});
  return true;
}

/// The slot is free for the next command to the table, which executes them in order. Whoever finds the mailbox there
/// until then finds a slot that is not this window's any more.
void ContextCache::evict(SlotId slot, Cycles at) {
  const WindowId window = slots_[slot.index()].window;
  const MailboxKey key = windows_.key_of(window);
  residency(window).place = Place::spilled;
  stats_.spilled.observe(++spilled_);
  ++stats_.evictions;
  TableCommand erase;
  erase.operation = TableOperation::erase;
  erase.pid = key.pid;
  erase.mailbox = key.mailbox;
  table->command(erase, at, [](const TableAnswer& answer) {
    RVMA_ASSERT(answer.status == TableStatus::ok, "a resident window's mailbox is in the table");
  });
  if (slots_[slot.index()].changed) {
    ++stats_.write_backs;
    DmaWrite write;
    write.to.add(context_address(window), kContextBytes);
    stats_.written_bytes += kContextBytes;
    dma->write(std::move(write), *this, now());
  }
  policy_->freed(slot.value());
  give_back(slot);
  --resident_;
}

void ContextCache::give_back(SlotId slot) {
  slots_[slot.index()] = Slot{};
  free_slots_.give_back(slot.value());
}

void ContextCache::enter(WindowId window, const MailboxKey& key, SlotId slot, bool is_new, bool has_cleared,
                         const std::function<void(TableStatus)>& done) {
  TableCommand insert;
  insert.operation = TableOperation::insert;
  insert.pid = key.pid;
  insert.mailbox = key.mailbox;
  insert.slot = slot;
  const auto told = [this, window, key, slot, is_new, has_cleared, done](const TableAnswer& answer) {
    if (answer.status == TableStatus::ok) {
      slots_[slot.index()].window = window;
      slots_[slot.index()].filled = true;
      slots_[slot.index()].changed = is_new;
      slots_[slot.index()].in_stash = answer.in_stash;
      Residency& here = residency(window);
      here.place = Place::resident;
      here.slot = slot;
      policy_->filled(slot.value());
      stats_.resident.observe(++resident_);
      if (has_cleared) thin_out(slot);
      done(answer.status);
      return;
    }
    RVMA_ASSERT(answer.status == TableStatus::full || answer.status == TableStatus::busy,
                "the table holds exactly the mailboxes of resident contexts");
    if (answer.status == TableStatus::full && may_spill_ && clear_the_way(key)) {
      enter(window, key, slot, is_new, true, done);
      return;
    }
    give_back(slot);
    done(answer.status);
  };
  table->command(insert, current_cycle(), told);
}

void ContextCache::thin_out(SlotId newest) {
  if (const auto victim = victim_of([newest](SlotId slot) { return !(slot == newest); })) {
    evict(*victim, current_cycle());
  }
}

// --------------------------------------------------------------------------------------------------------------- calls

void ContextCache::install(WindowId window, Pid pid, Mailbox mailbox, const std::function<void(TableStatus)>& done) {
  const MailboxKey key{pid, mailbox};
  if (!try_install(window, key, now(), done)) wait_to_install(window, key, now(), done);
}

bool ContextCache::try_install(WindowId window, const MailboxKey& key, Time since,
                               const std::function<void(TableStatus)>& done) {
  SlotId slot;
  if (!take_slot(slot)) return false;
  residency(window).place = Place::moving;
  enter(window, key, slot, true, false, [this, window, key, since, done](TableStatus status) {
    if (status == TableStatus::ok) {
      done(status);
      return;
    }
    residency(window).place = Place::nowhere;
    if (status == TableStatus::full) {
      wait_to_install(window, key, since, done);
    } else {
      done(status);
    }
  });
  return true;
}

void ContextCache::wait_to_install(WindowId window, const MailboxKey& key, Time since,
                                   const std::function<void(TableStatus)>& done) {
  if (!may_spill_) {
    done(TableStatus::full);
    return;
  }
  wait_for_room({since, [this, window, key, since, done] { return try_install(window, key, since, done); },
                 [done] { done(TableStatus::full); }});
}

void ContextCache::remove(WindowId window, Pid pid, Mailbox mailbox, std::function<void()> done) {
  const Residency here = residency(window);
  RVMA_ASSERT(here.place == Place::resident, "a window that closes is on chip");
  TableCommand erase;
  erase.operation = TableOperation::erase;
  erase.pid = pid;
  erase.mailbox = mailbox;
  table->command(erase, current_cycle(), [this, window, here, done = std::move(done)](const TableAnswer& answer) {
    RVMA_ASSERT(answer.status == TableStatus::ok, "an open window's mailbox is in the table");
    residency(window) = Residency{};
    policy_->freed(here.slot.value());
    give_back(here.slot);
    --resident_;
    done();
  });
}

void ContextCache::acquire(WindowId window, Pid pid, Mailbox mailbox, const std::function<void(bool)>& done) {
  try_acquire(window, {pid, mailbox}, now(), done);
}

void ContextCache::try_acquire(WindowId window, const MailboxKey& key, Time since,
                               const std::function<void(bool)>& done) {
  const auto told = [this, window, key, since, done](Fetched outcome, WindowId found) {
    // It may have closed meanwhile, and another may have its mailbox: the call looks again.
    if (outcome != Fetched::no_room) {
      done(true);
      if (outcome == Fetched::found) unpin(found);
      return;
    }
    wait_for_room({since,
                   [this, window, key, since, done] {
                     if (is_resident(window)) {
                       done(true);
                     } else {
                       try_acquire(window, key, since, done);
                     }
                     return true;
                   },
                   [done] { done(false); }});
  };
  if (!fetch(key.pid, key.mailbox, told)) told(Fetched::no_room, window);
}

void ContextCache::wait_for_room(WaitingCall call) {
  calls_.push_back(std::move(call));
  retry_.at(now() + Time::from_ns(kRetryNs));
}

void ContextCache::retry_calls() {
  // Each asks once: what still finds no room waits again, behind the others.
  for (std::size_t left = calls_.size(); left > 0; --left) {
    WaitingCall call = std::move(calls_.front());
    calls_.pop_front();
    if (now() - call.since > patience_) {
      call.give_up();
    } else if (!call.try_again()) {
      calls_.push_back(std::move(call));
    }
  }
  if (!calls_.empty()) retry_.at(now() + Time::from_ns(kRetryNs));
}

// ------------------------------------------------------------------------------------------------------------- packets

WindowLookup ContextCache::resolve(const LookupResult& answer) const {
  WindowLookup lookup{false, {}, answer.sweeping};
  if (!answer.hit || answer.slot.index() >= slots_.size()) return lookup;
  const Slot& slot = slots_[answer.slot.index()];
  lookup.hit = slot.filled;
  lookup.window = slot.window;
  return lookup;
}

WindowLookup ContextCache::find(Pid pid, Mailbox mailbox) const {
  const WindowStore::WindowAnswer found = windows_.locate(pid, mailbox);
  return {found.status == Status::ok && is_resident(found.window), found.window, false};
}

void ContextCache::changed(WindowId window) {
  if (is_resident(window)) slots_[residencies_[window.index()].slot.index()].changed = true;
}

void ContextCache::used(WindowId window, bool has_waited) {
  if (!is_resident(window)) return;
  if (!has_waited) ++stats_.hits;
  policy_->used(residencies_[window.index()].slot.value());
}

bool ContextCache::fetch(Pid pid, Mailbox mailbox, Done done) {
  const MailboxKey key{pid, mailbox};
  Index index = misses_.find(key);
  const bool is_new = index == Misses::kNone;
  if (is_new && misses_.size() >= most_fetches_) {
    ++stats_.refused;
    return false;
  }
  ++stats_.misses;
  if (is_new) index = misses_.open(key, now());
  misses_[index].waiting.push_back({now(), std::move(done)});
  if (!is_new) return true;
  stats_.outstanding.observe(misses_.size());
  ++stats_.searches;
  const std::uint64_t hash = mix64(key.mailbox.value() ^ (std::uint64_t{key.pid.value()} << 48U));
  read(PhysicalAddress{bucket_area_.value() + kTableBucketBytes * (hash % kTableBuckets)}, kTableBucketBytes,
       tag_of(index, false));
  return true;
}

bool ContextCache::pin(WindowId window) {
  if (!is_resident(window)) return false;
  ++slots_[residencies_[window.index()].slot.index()].pins;
  return true;
}

void ContextCache::unpin(WindowId window) {
  // A window that has closed meanwhile has taken its pins with it.
  if (!is_resident(window)) return;
  std::uint32_t& pins = slots_[residencies_[window.index()].slot.index()].pins;
  if (pins > 0) --pins;
}

void ContextCache::read(PhysicalAddress address, std::uint32_t bytes, std::uint64_t tag) {
  DmaRead from_host;
  from_host.from.add(address, bytes);
  from_host.tag = tag;
  stats_.read_bytes += bytes;
  dma->read(std::move(from_host), *this, now());
}

void ContextCache::dma_read_done(std::uint64_t tag) {
  const auto index = static_cast<Index>(tag >> 1U);
  if ((tag & 1U) != 0) {
    arrived(index);
  } else {
    searched(index);
  }
}

/// The bucket tells where the context lies, if there is one.
void ContextCache::searched(Index index) {
  const MailboxKey key = misses_[index].key;
  const WindowStore::WindowAnswer found = windows_.locate(key.pid, key.mailbox);
  if (found.status != Status::ok) {
    ++stats_.unknown;
    finish(index, Fetched::unknown, {});
    return;
  }
  if (is_resident(found.window)) {
    finish(index, Fetched::found, found.window);
    return;
  }
  if (residency(found.window).place != Place::spilled) {
    finish(index, Fetched::no_room, {});
    return;
  }
  if (index >= found_.size()) found_.resize(index + std::size_t{1});
  found_[index] = found.window;
  ++stats_.fetches;
  read(context_address(found.window), kContextBytes, tag_of(index, true));
}

void ContextCache::arrived(Index index) {
  const WindowId window = found_[index];
  SlotId slot;
  if (!take_slot(slot)) {
    finish(index, Fetched::no_room, {});
    return;
  }
  residency(window).place = Place::moving;
  --spilled_;
  enter(window, misses_[index].key, slot, false, false, [this, index, window](TableStatus status) {
    if (status != TableStatus::ok) {
      residency(window).place = Place::spilled;
      ++spilled_;
      finish(index, Fetched::no_room, {});
      return;
    }
    stats_.fetch_ns += now() - misses_[index].since;
    finish(index, Fetched::found, window);
  });
}

void ContextCache::finish(Index index, Fetched outcome, WindowId window) {
  stats_.fetch.occupy(Time::from_ps((now() - misses_[index].since).ps() / most_fetches_), 1);
  const std::vector<Waiter> waiting = misses_.close(index);
  if (outcome == Fetched::no_room) stats_.refused += waiting.size();
  // All of them are pinned before the first one goes on and unpins.
  if (outcome == Fetched::found) {
    slots_[residency(window).slot.index()].pins += static_cast<std::uint32_t>(waiting.size());
  }
  for (const Waiter& waiter : waiting) {
    stats_.waited_in_context_ns += now() - waiter.since;
    waiter.done(outcome, window);
  }
}

void ContextCache::dma_written(std::uint64_t /*tag*/, Time /*entered*/, Time /*visible*/) {}

}  // namespace rvma
