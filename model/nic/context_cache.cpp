#include "nic/context_cache.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"

namespace rvma {
namespace {

/// Where the driver has given the NIC memory of its own: beyond all frames of the host. Contents are the window store's
/// business; here counts that the bytes travel.
constexpr std::uint64_t kContextArea = 0x4000'0000'0000ULL;
constexpr std::uint64_t kTableArea = 0x5000'0000'0000ULL;
constexpr std::uint64_t kBuckets = 1ULL << 24U;
/// Contexts that are sent away, at most, until the table takes another entry.
constexpr unsigned kMostTries = 8;
/// Pause until a call that found every slot in use asks again.
constexpr std::int64_t kRetryNs = 1000;

std::uint64_t context_address(WindowId window) { return kContextArea + std::uint64_t{kContextBytes} * window.value(); }
std::uint64_t bucket_address(const MailboxKey& key) {
  return kTableArea +
         kTableBucketBytes * (mix64(key.mailbox.value() ^ (std::uint64_t{key.pid.value()} << 48U)) % kBuckets);
}

}  // namespace

ContextCache::ContextCache(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config,
                           WindowStore& windows)
    : Component(name, context, config.clock),
      table("table"),
      dma("dma"),
      windows_(windows),
      may_spill_(config.windows.spill),
      patience_(config.reliability.idle.get() * 2),
      most_fetches_(config.windows.misses),
      policy_(make_replacement(config.windows.policy, Random(context.seed(), path()))),
      free_slots_(config.windows.on_chip),
      retry_(*this, "retry", [this] { retry_calls(); }) {
  context.stats().add(path(), stats_);
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
  if (!free_slots_.available() && !evict_one()) return false;
  slot = SlotId{static_cast<std::uint16_t>(free_slots_.take())};
  while (slots_.size() <= slot.index()) slots_.emplace_back();
  slots_[slot.index()] = Slot{};
  return true;
}

bool ContextCache::evict_one() {
  const auto victim = policy_->victim([this](std::uint32_t place) {
    const Slot& candidate = slots_[place];
    return candidate.filled && candidate.pins == 0 && windows_.may_leave(candidate.window);
  });
  if (victim == ReplacementPolicy::kNone) return false;
  evict(SlotId{static_cast<std::uint16_t>(victim)});
  return true;
}

/// The slot is free for the next command to the table, which executes them in order. Whoever finds the mailbox there
/// until then finds a slot that is not this window's any more.
void ContextCache::evict(SlotId slot) {
  const WindowId window = slots_[slot.index()].window;
  const MailboxKey key = windows_.key_of(window);
  residency(window).place = Place::spilled;
  stats_.spilled.observe(++spilled_);
  ++stats_.evictions;
  TableCommand erase;
  erase.operation = TableOperation::erase;
  erase.pid = key.pid;
  erase.mailbox = key.mailbox;
  table->command(erase, current_cycle(), [](const TableAnswer& answer) {
    RVMA_ASSERT(answer.status == TableStatus::ok, "a resident window's mailbox is in the table");
  });
  DmaWrite write;
  write.to.add(PhysicalAddress{context_address(window)}, kContextBytes);
  stats_.written_bytes += kContextBytes;
  dma->write(std::move(write), *this, now());
  policy_->freed(slot.value());
  give_back(slot);
  --resident_;
}

void ContextCache::give_back(SlotId slot) {
  slots_[slot.index()] = Slot{};
  free_slots_.give_back(slot.value());
}

void ContextCache::enter(WindowId window, const MailboxKey& key, SlotId slot, unsigned tries,
                         const std::function<void(TableStatus)>& done) {
  TableCommand insert;
  insert.operation = TableOperation::insert;
  insert.pid = key.pid;
  insert.mailbox = key.mailbox;
  insert.slot = slot;
  table->command(insert, current_cycle(), [this, window, key, slot, tries, done](const TableAnswer& answer) {
    if (answer.status == TableStatus::ok) {
      slots_[slot.index()].window = window;
      slots_[slot.index()].filled = true;
      Residency& here = residency(window);
      here.place = Place::resident;
      here.slot = slot;
      policy_->filled(slot.value());
      stats_.resident.observe(++resident_);
      done(answer.status);
      return;
    }
    RVMA_ASSERT(answer.status == TableStatus::full || answer.status == TableStatus::busy,
                "the table holds exactly the mailboxes of resident contexts");
    // The hash functions find no place: another context's entry may be in the way.
    if (answer.status == TableStatus::full && may_spill_ && tries < kMostTries && evict_one()) {
      enter(window, key, slot, tries + 1, done);
      return;
    }
    give_back(slot);
    done(answer.status);
  });
}

// --------------------------------------------------------------------------------------------------------------- calls

void ContextCache::install(WindowId window, Pid pid, Mailbox mailbox, const std::function<void(TableStatus)>& done) {
  const MailboxKey key{pid, mailbox};
  if (try_install(window, key, done)) return;
  if (!may_spill_) {
    done(TableStatus::full);
    return;
  }
  wait_for_room({now(), [this, window, key, done] { return try_install(window, key, done); },
                 [done] { done(TableStatus::full); }});
}

bool ContextCache::try_install(WindowId window, const MailboxKey& key, const std::function<void(TableStatus)>& done) {
  SlotId slot;
  if (!take_slot(slot)) return false;
  residency(window).place = Place::moving;
  enter(window, key, slot, 0, [this, window, done](TableStatus status) {
    if (status != TableStatus::ok) residency(window).place = Place::nowhere;
    done(status);
  });
  return true;
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
  lookup.slot = slot.window;
  return lookup;
}

void ContextCache::used(WindowId window, bool has_waited) {
  if (!is_resident(window)) return;
  if (!has_waited) ++stats_.hits;
  policy_->used(residencies_[window.index()].slot.value());
}

bool ContextCache::fetch(Pid pid, Mailbox mailbox, Done done) {
  const MailboxKey key{pid, mailbox};
  const auto under_way = fetching_.find(key);
  if (under_way != fetching_.end()) {
    ++stats_.misses;
    fetches_[under_way->second].waiting.push_back(std::move(done));
    return true;
  }
  const auto place = std::find_if(fetches_.begin(), fetches_.end(), [](const Fetch& fetch) { return !fetch.busy; });
  if (place == fetches_.end() && fetches_.size() >= most_fetches_) {
    ++stats_.refused;
    return false;
  }
  ++stats_.misses;
  const auto index = static_cast<Index>(place - fetches_.begin());
  if (place == fetches_.end()) fetches_.emplace_back();
  Fetch& started = fetches_[index];
  started = Fetch{};
  started.busy = true;
  started.key = key;
  started.since = now();
  started.waiting.push_back(std::move(done));
  fetching_.emplace(key, index);
  stats_.outstanding.observe(fetching_.size());
  ++stats_.searches;
  read(bucket_address(key), kTableBucketBytes, index);
  return true;
}

void ContextCache::unpin(WindowId window) {
  RVMA_ASSERT(is_resident(window), "a pinned context stays");
  --slots_[residencies_[window.index()].slot.index()].pins;
}

void ContextCache::read(std::uint64_t address, std::uint32_t bytes, std::uint64_t tag) {
  DmaRead from_host;
  from_host.from.add(PhysicalAddress{address}, bytes);
  from_host.tag = tag;
  stats_.read_bytes += bytes;
  dma->read(std::move(from_host), *this, now());
}

void ContextCache::dma_read_done(std::uint64_t tag) {
  const auto index = static_cast<Index>(tag);
  if (fetches_[index].has_context) {
    arrived(index);
  } else {
    searched(index);
  }
}

/// The bucket tells where the context lies, if there is one.
void ContextCache::searched(Index index) {
  Fetch& fetch = fetches_[index];
  const WindowStore::SlotAnswer window = windows_.locate(fetch.key.pid, fetch.key.mailbox);
  if (window.status != Status::ok) {
    ++stats_.unknown;
    finish(index, Fetched::unknown, {});
    return;
  }
  fetch.window = window.slot;
  if (is_resident(fetch.window)) {
    finish(index, Fetched::found, fetch.window);
    return;
  }
  if (residency(fetch.window).place != Place::spilled) {
    finish(index, Fetched::no_room, {});
    return;
  }
  fetch.has_context = true;
  ++stats_.fetches;
  read(context_address(fetch.window), kContextBytes, index);
}

void ContextCache::arrived(Index index) {
  const WindowId window = fetches_[index].window;
  SlotId slot;
  if (!take_slot(slot)) {
    finish(index, Fetched::no_room, {});
    return;
  }
  residency(window).place = Place::moving;
  --spilled_;
  enter(window, fetches_[index].key, slot, 0, [this, index, window](TableStatus status) {
    if (status != TableStatus::ok) {
      residency(window).place = Place::spilled;
      ++spilled_;
      finish(index, Fetched::no_room, {});
      return;
    }
    stats_.fetch_ns += now() - fetches_[index].since;
    finish(index, Fetched::found, window);
  });
}

void ContextCache::finish(Index index, Fetched outcome, WindowId window) {
  Fetch& fetch = fetches_[index];
  const std::vector<Done> waiting = std::move(fetch.waiting);
  fetching_.erase(fetch.key);
  fetch = Fetch{};
  if (outcome == Fetched::no_room) stats_.refused += waiting.size();
  // All of them are pinned before the first one goes on and unpins.
  if (outcome == Fetched::found) {
    slots_[residency(window).slot.index()].pins += static_cast<std::uint32_t>(waiting.size());
  }
  for (const Done& done : waiting) done(outcome, window);
}

void ContextCache::dma_written(std::uint64_t /*tag*/, Time /*entered*/, Time /*visible*/) {}

}  // namespace rvma
