#include "nic/translation_table.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <type_traits>

#include "base/error.hpp"
#include "base/int128.hpp"
#include "base/random.hpp"
#include "nic/translation_table_constants.hpp"

namespace rvma {

namespace {

using namespace table_constants;  // NOLINT(google-build-using-namespace): nothing but this table's constants

constexpr unsigned kRestShift = kMailboxBits;  ///< bits of the word beyond it stand in Flip::rest from bit 0 on

/// Offsets of states from the acceptance of a command.
constexpr std::int64_t kFirstCheck = 3;     ///< IDLE, HASH, READ, CHECK
constexpr std::int64_t kHashReadCheck = 3;  ///< from PICK's last cycle to the next CHECK
constexpr std::uint32_t kMostCandidates = TableShape::kMostBanks * TableShape::kMostSlots;
constexpr std::uint32_t kNoBank = TableShape::kMostBanks;

/// 64 steps of Trivium a call. Bit 0 of a register is its oldest bit (s_93, s_177, s_288).
class Trivium {
 public:
  Trivium(std::uint64_t key, std::uint64_t iv) {
    a_ = reversed(key, kLengthA);
    b_ = reversed(iv, kLengthB);
    c_ = 7;  // s_286 .. s_288
  }
  std::uint64_t next() {
    // Taps are numbered within their register, from 1.
    const std::uint64_t t1 = tap(a_, kLengthA, 66) ^ tap(a_, kLengthA, 93);
    const std::uint64_t t2 = tap(b_, kLengthB, 69) ^ tap(b_, kLengthB, 84);
    const std::uint64_t t3 = tap(c_, kLengthC, 66) ^ tap(c_, kLengthC, 111);
    const std::uint64_t to_b = t1 ^ (tap(a_, kLengthA, 91) & tap(a_, kLengthA, 92)) ^ tap(b_, kLengthB, 78);
    const std::uint64_t to_c = t2 ^ (tap(b_, kLengthB, 82) & tap(b_, kLengthB, 83)) ^ tap(c_, kLengthC, 87);
    const std::uint64_t to_a = t3 ^ (tap(c_, kLengthC, 109) & tap(c_, kLengthC, 110)) ^ tap(a_, kLengthA, 69);
    shift_in(a_, kLengthA, to_a);
    shift_in(b_, kLengthB, to_b);
    shift_in(c_, kLengthC, to_c);
    return t1 ^ t2 ^ t3;
  }

 private:
  using Register = detail::uint128;
  static constexpr unsigned kLengthA = 93;
  static constexpr unsigned kLengthB = 84;
  static constexpr unsigned kLengthC = 111;

  /// Register of `length` whose s_(1+i) is bit i of `bits`.
  static Register reversed(std::uint64_t bits, unsigned length) {
    Register result = 0;
    for (unsigned i = 0; i < 64; ++i) result |= Register{(bits >> i) & 1U} << (length - 1 - i);
    return result;
  }
  /// Bit i: what stands at position `tap` in step i.
  static std::uint64_t tap(Register reg, unsigned length, unsigned position) {
    return static_cast<std::uint64_t>(reg >> (length - position));
  }
  static void shift_in(Register& reg, unsigned length, std::uint64_t bits) {
    reg = (reg >> 64U) | (Register{bits} << (length - 64));
  }

  Register a_;
  Register b_;
  Register c_;
};

std::uint32_t words_per_value(std::uint32_t row_bits) { return (kKeyBytes * row_bits + 63) / 64; }

std::uint32_t rotate_left(std::uint32_t x, unsigned by) { return (x << by) | (x >> (32 - by)); }

std::uint32_t xorshift32(std::uint32_t x) {
  x ^= x << kWalkShifts[0];
  x ^= x >> kWalkShifts[1];
  x ^= x << kWalkShifts[2];
  return x;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------- shape

TableShape TableShape::from(const TableConfig& config) {
  TableShape shape;
  shape.banks = config.banks;
  shape.rows = config.rows;
  shape.slots = config.slots;
  shape.stash = config.stash;
  shape.max_kicks = config.max_kicks;
  shape.latency = static_cast<std::uint32_t>(config.latency->count());
  shape.seed = config.seed;
  return shape;
}

bool TableShape::same_core(const TableShape& other) const {
  const auto fields = [](const TableShape& shape) {
    return std::tie(shape.banks, shape.rows, shape.slots, shape.stash, shape.max_kicks, shape.latency,
                    shape.protection);
  };
  return fields(*this) == fields(other);
}

std::uint32_t TableShape::row_bits() const {
  std::uint32_t bits = 0;
  while ((1U << bits) < rows) ++bits;
  return bits;
}

std::uint32_t TableShape::fill_cycles() const {
  return kWarmUpWords + kRoundKeyWords + kByteValues * words_per_value(row_bits());
}

std::uint32_t TableShape::reset_cycles() const { return std::max(rows, fill_cycles()); }

// -------------------------------------------------------------------------------------------------------------- hash

TabulationHash::TabulationHash(const TableShape& shape)
    : banks_(shape.banks), row_bits_(shape.row_bits()), stride_(shape.banks <= 4 ? 4 : TableShape::kMostBanks) {
  load(shape.seed);
}

void TabulationHash::load(std::uint64_t seed) {
  // Contents of tables that are in use somewhere.
  static std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::weak_ptr<const Filled>> in_use;
  std::weak_ptr<const Filled>& known = in_use[{banks_, row_bits_, seed}];
  filled_ = known.lock();
  if (filled_) return;
  filled_ = std::make_shared<const Filled>(fill(seed));
  known = filled_;
}

TabulationHash::Filled TabulationHash::fill(std::uint64_t seed) const {
  Filled filled;
  filled.memory.resize(std::size_t{kKeyBytes} * kByteValues * stride_);
  const std::uint32_t words = words_per_value(row_bits_);
  const std::uint64_t mask = (std::uint64_t{1} << row_bits_) - 1;
  std::array<std::uint64_t, 5> bits{};  // one word more than is used, so that a row number may be read across two
  for (std::uint32_t bank = 0; bank < banks_; ++bank) {
    Trivium generator{seed, bank};
    for (unsigned i = 0; i < kWarmUpWords; ++i) generator.next();
    for (std::uint32_t i = 0; i < kRoundKeyWords; ++i) bits[i] = generator.next();
    if (bank == 0) {
      for (unsigned i = 0; i < kRounds * kLanes; ++i) {
        filled.round_keys[i / kLanes][i % kLanes] = static_cast<std::uint16_t>(bits[i / 4] >> (16 * (i % 4)));
      }
    }
    for (std::uint32_t value = 0; value < kByteValues; ++value) {
      for (std::uint32_t i = 0; i < words; ++i) bits[i] = generator.next();
      for (std::uint32_t byte = 0; byte < kKeyBytes; ++byte) {
        const std::uint32_t first = byte * row_bits_;
        const detail::uint128 pair = bits[first / 64] | (detail::uint128{bits[first / 64 + 1]} << 64U);
        filled.memory[(std::size_t{byte} * kByteValues + value) * stride_ + bank] =
            static_cast<std::uint32_t>(static_cast<std::uint64_t>(pair >> (first % 64)) & mask);
      }
    }
  }
  return filled;
}

TabulationHash::Lanes TabulationHash::mix(TableKey key) const {
  const std::uint64_t mailbox = key.mailbox.value();
  std::array<std::uint32_t, kLanes> x{};
  for (unsigned lane = 0; lane < 4; ++lane) x[lane] = static_cast<std::uint32_t>(mailbox >> (16 * lane)) & 0xffffU;
  x[4] = key.pid.value();
  for (const Lanes& round_key : filled_->round_keys) {
    for (unsigned lane = 0; lane < kLanes; ++lane) x[lane] ^= round_key[lane];
    // Ascon's S-box on all columns at once.
    x[0] ^= x[4];
    x[4] ^= x[3];
    x[2] ^= x[1];
    const std::array<std::uint32_t, kLanes> y = x;
    for (unsigned lane = 0; lane < kLanes; ++lane) x[lane] ^= ~y[(lane + 1) % kLanes] & y[(lane + 2) % kLanes];
    x[1] ^= x[0];
    x[0] ^= x[4];
    x[3] ^= x[2];
    x[2] = ~x[2];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      x[lane] &= 0xffffU;
      x[lane] = ((x[lane] << kLaneRotations[lane]) | (x[lane] >> (kLaneBits - kLaneRotations[lane]))) & 0xffffU;
    }
  }
  Lanes lanes{};
  for (unsigned lane = 0; lane < kLanes; ++lane) lanes[lane] = static_cast<std::uint16_t>(x[lane]);
  return lanes;
}

TabulationHash::Rows TabulationHash::rows_of(TableKey key) const {
  const Lanes lanes = mix(key);
  Rows rows{};
  const auto tabulate = [&](auto stride) {
    for (unsigned byte = 0; byte < kKeyBytes; ++byte) {
      const unsigned value = (lanes[byte / 2] >> (8 * (byte % 2))) & 0xffU;
      const std::uint32_t* words = filled_->memory.data() + (byte * kByteValues + value) * std::size_t{stride};
      for (std::uint32_t bank = 0; bank < stride; ++bank) rows[bank] ^= words[bank];
    }
  };
  if (stride_ == 4) {
    tabulate(std::integral_constant<std::uint32_t, 4>{});
  } else {
    tabulate(std::integral_constant<std::uint32_t, TableShape::kMostBanks>{});
  }
  return rows;
}

// ------------------------------------------------------------------------------------------------------------- table

TranslationTable::TranslationTable(const TableShape& shape)
    : shape_(shape),
      hash_(shape),
      words_(shape.capacity() + shape.stash),
      idle_from_(shape.reset_cycles()),
      sweep_until_(shape.reset_cycles()) {
  RVMA_ASSERT(shape.banks >= 2 && shape.banks <= TableShape::kMostBanks, "translation table: banks");
  RVMA_ASSERT(shape.slots >= 1 && shape.slots <= TableShape::kMostSlots, "translation table: slots");
  RVMA_ASSERT(shape.rows >= 4 && shape.rows <= (1U << TableShape::kMostRowBits) && (shape.rows & (shape.rows - 1)) == 0,
              "translation table: rows");
  RVMA_ASSERT(shape.stash <= TableShape::kMostStash, "translation table: stash");
  RVMA_ASSERT(shape.max_kicks <= TableShape::kMostKicks, "translation table: max_kicks");
  RVMA_ASSERT(shape.latency >= 1 && shape.latency <= 3, "translation table: latency");
}

TableOutputs TranslationTable::outputs() const {
  TableOutputs outputs;
  const InFlight& due = in_flight_[static_cast<std::size_t>(cycle_ & 3)];
  outputs.lookup_valid = due.valid;
  if (due.valid) outputs.lookup = due.result;
  outputs.answer_valid = answer_due_ && cycle_ == idle_from_;
  if (outputs.answer_valid) outputs.answer = answer_;
  for (const FaultReport& report : reports_) {
    (report.copy == TableCopy::a ? outputs.lookup_fault : outputs.command_fault) = {true, report.place};
  }
  outputs.command_ready = command_ready();
  return outputs;
}

TableOutputs TranslationTable::step(const TableInputs& inputs) {
  // 1. Registered outputs: answers of earlier cycles. Each is valid for one cycle.
  const TableOutputs outputs = this->outputs();
  in_flight_[static_cast<std::size_t>(cycle_ & 3)].valid = false;
  if (outputs.answer_valid) answer_due_ = false;
  reports_.clear();

  // 2. Inputs: a lookup sees the state before any command of this cycle.
  if (inputs.lookup_valid) {
    in_flight_[static_cast<std::size_t>((cycle_ + shape_.latency) & 3)] = {true, lookup(inputs.lookup_key)};
  }
  if (inputs.command_valid && outputs.command_ready) start(inputs.command);

  // 3. The edge.
  advance_to(Cycles{cycle_ + 1});
  return outputs;
}

LookupResult TranslationTable::lookup(TableKey key) {
  LookupResult result;
  if (sweeping()) {
    result.sweeping = true;
    return result;
  }
  const TabulationHash::Rows& rows = rows_of_lookup(key);
  if (flips_.empty()) return lookup_good(key, rows);
  return lookup_checked(key, rows);
}

const TabulationHash::Rows& TranslationTable::rows_of_lookup(TableKey key) {
  HashedKey& hashed = hashed_[mix64(key.mailbox.value() ^ key.pid.value()) % hashed_.size()];
  if (!hashed.valid || !(hashed.key == key)) hashed = {true, key, hash_.rows_of(key)};
  return hashed.rows;
}

/// No stored bit is wrong: only the key has to be compared.
LookupResult TranslationTable::lookup_good(TableKey key, const TabulationHash::Rows& rows) const {
  const auto result_of = [](const Entry& entry) {
    LookupResult result;
    result.hit = true;
    result.slot = SlotId{entry.value};
    return result;
  };
  for (std::uint32_t bank = 0; bank < shape_.banks; ++bank) {
    const std::uint32_t row = bank_place(bank, rows[bank], 0);
    for (std::uint32_t slot = 0; slot < shape_.slots; ++slot) {
      const Entry& entry = words_[row + slot];
      if (entry.valid && entry.key() == key) return result_of(entry);
    }
  }
  if (stash_valid_ == 0) return {};
  for (std::uint32_t i = 0; i < shape_.stash; ++i) {
    const Entry& entry = words_[shape_.capacity() + i];
    if (entry.valid && entry.key() == key) return result_of(entry);
  }
  return {};
}

LookupResult TranslationTable::lookup_checked(TableKey key, const TabulationHash::Rows& rows) {
  LookupResult result;
  bool bad_seen = false;
  std::uint32_t bad_place = 0;
  const auto check = [&](std::uint32_t place) {
    const Word read = word(TableCopy::a, place);
    if (read.bad && !bad_seen) {
      bad_seen = true;
      bad_place = place;
    }
    if (!result.hit && read.holds(key)) {
      result.hit = true;
      result.slot = SlotId{read.entry.value};
    }
  };
  for (std::uint32_t bank = 0; bank < shape_.banks; ++bank) {
    const std::uint32_t first = bank_place(bank, rows[bank], 0);
    for (std::uint32_t slot = 0; slot < shape_.slots; ++slot) check(first + slot);
  }
  for (std::uint32_t i = 0; i < shape_.stash; ++i) check(shape_.capacity() + i);
  if (bad_seen) detections_.push_back({cycle_ + shape_.latency, bad_place});
  return result;
}

bool TranslationTable::clearing() const {
  const auto wants = [this](const FaultRegister& fault) {
    return fault.taken && fault.needs_clearing && fault.since <= cycle_;
  };
  return idle() && (wants(fault_a_) || wants(fault_b_));
}

bool TranslationTable::command_ready() const { return idle() && !clearing(); }

Cycles TranslationTable::ready_cycle() const {
  if (!idle()) return Cycles{idle_from_};
  return Cycles{clearing() ? cycle_ + 1 : cycle_};
}

// ---------------------------------------------------------------------------------------------------------- commands

TranslationTable::Started TranslationTable::start(const TableCommand& command) {
  RVMA_ASSERT(command_ready(), "translation table: a command was started while the table is not ready");
  writes_.clear();
  next_write_ = 0;

  Started started;
  const auto answer = [&started](TableStatus status, std::int64_t used) {
    started.answer.status = status;
    started.answer.used = Cycles{used};
  };
  const TableKey key{command.pid, command.mailbox};
  switch (command.operation) {
    case TableOperation::flush:
      started = plan_sweep();
      break;
    case TableOperation::load_seed:
      started = plan_load_seed(command.seed);
      break;
    case TableOperation::insert: {
      const Search search = first_check(key);
      if (search.found) {
        answer(TableStatus::exists, kFirstCheck + 1);
      } else {
        started = plan_insert(command, search);
      }
      break;
    }
    case TableOperation::find:
    case TableOperation::erase:
    case TableOperation::update: {
      const Search search = first_check(key);
      if (!search.found) {
        answer(TableStatus::not_found, kFirstCheck + 1);
      } else if (command.operation == TableOperation::find) {
        answer(TableStatus::ok, kFirstCheck + 1);
        started.answer.slot = SlotId{search.found_entry.value};
      } else {
        const bool erases = command.operation == TableOperation::erase;
        Entry entry = search.found_entry;
        entry.value = command.slot.value();
        plan_write(kFirstCheck + 1, search.found_place, erases ? Entry{} : entry);
        if (erases) --entries_;
        answer(TableStatus::ok, kFirstCheck + 2);
        started.answer.in_stash = search.found_place >= shape_.capacity();
      }
      break;
    }
    default:
      answer(TableStatus::bad, 1);
      break;
  }
  idle_from_ = cycle_ + started.answer.used.count();
  started.answer_cycle = Cycles{idle_from_};
  answer_ = started.answer;
  answer_due_ = true;
  return started;
}

TranslationTable::Started TranslationTable::plan_sweep() {
  Started started;
  started.answer.used = Cycles{1 + std::int64_t{shape_.rows}};
  sweep_pending_ = true;
  sweep_loads_seed_ = false;
  sweep_from_ = cycle_ + 1;
  sweep_until_ = sweep_from_ + shape_.rows;
  entries_ = 0;
  return started;
}

TranslationTable::Started TranslationTable::plan_load_seed(std::uint64_t seed) {
  Started started;
  if (entries_ != 0) {
    started.answer.status = TableStatus::busy;
    started.answer.used = Cycles{1};
    return started;
  }
  started.answer.used = Cycles{1 + std::int64_t{shape_.fill_cycles()}};
  sweep_pending_ = true;
  sweep_loads_seed_ = true;
  next_seed_ = seed;
  sweep_from_ = cycle_ + 1;
  sweep_until_ = sweep_from_ + shape_.fill_cycles();
  return started;
}

TranslationTable::Search TranslationTable::first_check(TableKey key) {
  Search search;
  search.offset = kFirstCheck;
  search.rows = hash_.rows_of(key);
  const auto check = [&](std::uint32_t place) {
    const Word read = word(TableCopy::b, place);
    if (read.bad) command_reads_bad(place, search.offset);
    if (!search.found && read.holds(key)) {
      search.found = true;
      search.found_place = place;
      search.found_entry = read.entry;
    }
    if (!search.has_empty && !read.occupied() && place < shape_.capacity()) {
      search.has_empty = true;
      search.empty_place = place;
    }
  };
  for (std::uint32_t bank = 0; bank < shape_.banks; ++bank) {
    const std::uint32_t first = bank_place(bank, search.rows[bank], 0);
    for (std::uint32_t slot = 0; slot < shape_.slots; ++slot) check(first + slot);
  }
  for (std::uint32_t i = 0; i < shape_.stash; ++i) check(shape_.capacity() + i);
  return search;
}

TranslationTable::Started TranslationTable::plan_insert(const TableCommand& command, const Search& first) {
  const Entry entry{command.mailbox.value(), command.pid.value(), command.slot.value(), true};
  std::uint32_t walk = kWalkStart;
  for (std::uint32_t bank = 0; bank < shape_.banks; ++bank) walk = rotate_left(walk, kWalkRotation) ^ first.rows[bank];

  // 1. Search, read-only: a path of distinct places that ends in an empty one.
  Search search = first;
  Entry in_hand = entry;
  std::uint32_t bank_in_hand = kNoBank;
  path_.clear();
  while (!search.has_empty) {
    if (path_.size() == shape_.max_kicks) return plan_full(entry, search.offset);
    std::uint32_t tries = 0;
    std::uint32_t place = 0;
    const bool picked = pick(search, bank_in_hand, walk, tries, place);
    search.offset += tries;
    if (!picked) return plan_full(entry, search.offset);
    path_.push_back(place);
    in_hand = word(TableCopy::b, place).entry;
    bank_in_hand = place / (shape_.rows * shape_.slots);
    search.offset += kHashReadCheck;
    search.rows = hash_.rows_of(in_hand.key());
    find_empty(search, bank_in_hand);
  }

  // 2. Move from the far end; each write fills the hole or covers an entry that was copied the cycle before.
  Started started;
  started.answer.kicks = static_cast<std::uint32_t>(path_.size());
  std::uint32_t hole = search.empty_place;
  std::int64_t offset = search.offset;
  for (std::size_t i = path_.size(); i-- > 0;) {
    plan_write(++offset, hole, word(TableCopy::b, path_[i]).entry);
    hole = path_[i];
  }
  plan_write(++offset, hole, entry);
  started.answer.used = Cycles{offset + 1};
  ++entries_;
  return started;
}

/// No path: the stash, or nothing at all.
TranslationTable::Started TranslationTable::plan_full(const Entry& entry, std::int64_t offset) {
  Started started;
  for (std::uint32_t i = 0; i < shape_.stash; ++i) {
    const std::uint32_t place = shape_.capacity() + i;
    if (word(TableCopy::b, place).occupied()) continue;
    plan_write(offset + 1, place, entry);
    started.answer.used = Cycles{offset + 2};
    started.answer.in_stash = true;
    ++entries_;
    return started;
  }
  started.answer.status = TableStatus::full;
  started.answer.used = Cycles{offset + 1};
  return started;
}

bool TranslationTable::pick(const Search& search, std::uint32_t bank_in_hand, std::uint32_t& walk, std::uint32_t& tries,
                            std::uint32_t& place) const {
  // 1. The candidates, bank-major without the bank in hand.
  std::array<std::uint32_t, kMostCandidates> candidates{};
  std::uint32_t count = 0;
  for (std::uint32_t bank = 0; bank < shape_.banks; ++bank) {
    if (bank == bank_in_hand) continue;
    for (std::uint32_t slot = 0; slot < shape_.slots; ++slot) {
      candidates[count++] = bank_place(bank, search.rows[bank], slot);
    }
  }
  // 2. From a pseudo-random one on, the first that is not on the path.
  walk = xorshift32(walk);
  const std::uint32_t first = ((walk >> 16U) * count) >> 16U;
  for (tries = 1; tries <= count; ++tries) {
    place = candidates[(first + tries - 1) % count];
    if (std::find(path_.begin(), path_.end(), place) == path_.end()) return true;
  }
  tries = count;
  return false;
}

void TranslationTable::find_empty(Search& search, std::uint32_t bank_in_hand) {
  search.has_empty = false;
  for (std::uint32_t bank = 0; bank < shape_.banks; ++bank) {
    if (bank == bank_in_hand) continue;
    for (std::uint32_t slot = 0; slot < shape_.slots; ++slot) {
      const std::uint32_t place = bank_place(bank, search.rows[bank], slot);
      const Word read = word(TableCopy::b, place);
      if (read.bad) command_reads_bad(place, search.offset);
      if (!search.has_empty && !read.occupied()) {
        search.has_empty = true;
        search.empty_place = place;
      }
    }
  }
}

void TranslationTable::plan_write(std::int64_t offset, std::uint32_t place, const Entry& entry) {
  writes_.push_back({cycle_ + offset, place, entry});
}

void TranslationTable::command_reads_bad(std::uint32_t place, std::int64_t check_offset) {
  if (fault_b_.taken) return;
  fault_b_.taken = true;
  fault_b_.needs_clearing = true;
  fault_b_.place = place;
  fault_b_.since = cycle_ + check_offset + 1;
}

// -------------------------------------------------------------------------------------------------------------- time

void TranslationTable::advance_to(Cycles cycle) {
  const std::int64_t target = cycle.count();
  RVMA_ASSERT(target >= cycle_, "translation table: time runs backwards");
  while (cycle_ < target) {
    if (fault_activity()) {
      pass_cycle();
      continue;
    }
    // Nothing but planned writes can happen: go there at once.
    apply_writes_before(target);
    cycle_ = target;
    if (sweep_pending_ && sweep_from_ <= cycle_) begin_sweep();
  }
}

/// One cycle with a fault being handled.
void TranslationTable::pass_cycle() {
  // 1. The write ports: the running command's, or clearing in IDLE, A's place first.
  if (clearing()) {
    const FaultRegister& first =
        fault_a_.taken && fault_a_.needs_clearing && fault_a_.since <= cycle_ ? fault_a_ : fault_b_;
    apply({cycle_, first.place, Entry{}});
  } else {
    apply_writes_before(cycle_ + 1);
  }
  // 2. Registers that are done with become free.
  if (fault_a_.taken && !fault_a_.needs_clearing && fault_a_.until <= cycle_) fault_a_.taken = false;
  if (fault_b_.taken && !fault_b_.needs_clearing) fault_b_.taken = false;
  // 3. The edge.
  ++cycle_;
  if (sweep_pending_ && sweep_from_ <= cycle_) begin_sweep();
  process_detections();
}

void TranslationTable::process_detections() {
  if (fault_b_.taken && fault_b_.since == cycle_) reports_.push_back({Cycles{cycle_}, TableCopy::b, fault_b_.place});
  if (detections_.empty() || detections_.front().due != cycle_) return;
  const std::uint32_t place = detections_.front().place;
  detections_.erase(detections_.begin());
  if (fault_a_.taken || (sweeping() && !sweep_loads_seed_)) return;
  reports_.push_back({Cycles{cycle_}, TableCopy::a, place});
  fault_a_.taken = true;
  fault_a_.place = place;
  fault_a_.since = cycle_ + 1;
  // The place may have been written while the lookup was on its way: then what stands there now is good.
  std::int64_t written = 0;
  fault_a_.needs_clearing = !place_written_since(place, cycle_ - shape_.latency, written);
  fault_a_.until = written + shape_.latency;
}

void TranslationTable::apply_writes_before(std::int64_t cycle) {
  while (next_write_ < writes_.size() && writes_[next_write_].cycle < cycle) apply(writes_[next_write_++]);
}

void TranslationTable::apply(const Write& write) {
  store(write.place, write.entry);
  recent_writes_[recent_index_++ % recent_writes_.size()] = write;
  if (fault_a_.taken && fault_a_.place == write.place) {
    fault_a_.needs_clearing = false;
    fault_a_.until = write.cycle + shape_.latency;
  }
  if (fault_b_.taken && fault_b_.place == write.place) fault_b_.needs_clearing = false;
}

bool TranslationTable::place_written_since(std::uint32_t place, std::int64_t cycle, std::int64_t& when) const {
  bool found = false;
  for (std::size_t i = 0; i < std::min(recent_index_, recent_writes_.size()); ++i) {
    const Write& write = recent_writes_[i];
    if (write.place != place || write.cycle < cycle) continue;
    when = found ? std::max(when, write.cycle) : write.cycle;
    found = true;
  }
  return found;
}

void TranslationTable::begin_sweep() {
  sweep_pending_ = false;
  if (sweep_loads_seed_) {
    hash_.load(next_seed_);
    hashed_.fill({});
    return;
  }
  words_.clear();
  stash_valid_ = 0;
  flips_.clear();
  fault_a_ = {};
  fault_b_ = {};
}

void TranslationTable::store(std::uint32_t place, const Entry& entry) {
  if (place >= shape_.capacity()) {
    stash_valid_ = stash_valid_ - (words_[place].valid ? 1U : 0U) + (entry.valid ? 1U : 0U);
  }
  words_.set(place, entry);
  if (!flips_.empty()) flips_.erase(place);
}

// ------------------------------------------------------------------------------------------------------------- words

const TranslationTable::Entry TranslationTable::Entries::kEmpty{};

TranslationTable::Entries::Entries(const Entries& other) : Entries(other.size_) {
  for (std::size_t place = 0; place < size_; ++place) set(place, other[place]);
}

void TranslationTable::Entries::set(std::size_t place, const Entry& entry) {
  std::unique_ptr<Entry[]>& part = parts_[place / kPart];
  if (!part) {
    if (entry == kEmpty) return;
    part = std::make_unique<Entry[]>(kPart);
  }
  part[place % kPart] = entry;
}

void TranslationTable::Entries::clear() {
  for (std::unique_ptr<Entry[]>& part : parts_) part.reset();
}

TranslationTable::Word TranslationTable::word(TableCopy copy, std::uint32_t place) const {
  if (flips_.empty()) return {words_[place], false};
  return flipped_word(copy, place);
}

TranslationTable::Word TranslationTable::flipped_word(TableCopy copy, std::uint32_t place) const {
  Word result{words_[place], false};
  const auto found = flips_.find(place);
  if (found == flips_.end()) return result;
  // The field of each bit, as the entry word lays them out.
  const std::size_t index = flips_of(copy, place);
  const auto& [mailbox, rest] = found->second.bits[index];
  const auto field = [high = rest](unsigned bit) { return high >> (bit - kRestShift); };
  result.entry.mailbox ^= mailbox;
  result.entry.pid = static_cast<std::uint16_t>(result.entry.pid ^ rest);
  result.entry.value = static_cast<std::uint16_t>(result.entry.value ^ field(kKeyBits));
  if ((field(kValidBit) & 1U) != 0) result.entry.valid = !result.entry.valid;
  result.bad = shape_.protection == EntryProtection::parity && found->second.odd[index];
  return result;
}

void TranslationTable::corrupt(TableCopy copy, std::uint32_t place, std::uint32_t bit) {
  RVMA_ASSERT(idle() && !sweep_pending_, "translation table: corrupted while a command runs");
  RVMA_ASSERT(place < words_.size(), "translation table: no such place");
  const std::uint32_t bits = shape_.protection == EntryProtection::parity ? kParityBit + 1 : kParityBit;
  RVMA_ASSERT(bit < bits, "translation table: no such bit");
  Flips& flips = flips_[place];
  const std::size_t index = flips_of(copy, place);
  flips.bits[index][bit / 64] ^= std::uint64_t{1} << (bit % 64);
  flips.odd[index] = !flips.odd[index];
}

TableWord TranslationTable::stored(TableCopy copy, std::uint32_t place) const {
  RVMA_ASSERT(place < words_.size(), "translation table: no such place");
  const Entry& entry = words_[place];
  const auto rest = [](unsigned bit) { return bit - kRestShift; };
  std::uint64_t high = std::uint64_t{entry.pid} | std::uint64_t{entry.value} << rest(kKeyBits) |
                       std::uint64_t{entry.valid ? 1U : 0U} << rest(kValidBit);
  if (shape_.protection == EntryProtection::parity) {
    std::uint64_t folded = entry.mailbox ^ high;
    for (unsigned by = 32; by != 0; by /= 2) folded ^= folded >> by;
    high |= (folded & 1U) << rest(kParityBit);
  }
  TableWord word{entry.mailbox, high};
  const auto found = flips_.find(place);
  if (found != flips_.end()) {
    const TableWord& bits = found->second.bits[flips_of(copy, place)];
    for (std::size_t i = 0; i < word.size(); ++i) word[i] ^= bits[i];
  }
  return word;
}

std::vector<TranslationTable::FaultReport> TranslationTable::take_faults() {
  std::vector<FaultReport> reports;
  reports.swap(reports_);
  return reports;
}

std::uint32_t TranslationTable::stash_used() const {
  std::uint32_t used = 0;
  for (std::uint32_t i = 0; i < shape_.stash; ++i) {
    if (word(TableCopy::b, shape_.capacity() + i).occupied()) ++used;
  }
  return used;
}

bool TranslationTable::same_contents(const TranslationTable& other) const {
  if (words_.size() != other.words_.size()) return false;
  for (std::uint32_t place = 0; place < words_.size(); ++place) {
    const Word mine = word(TableCopy::b, place);
    const Word theirs = other.word(TableCopy::b, place);
    if (mine.bad != theirs.bad || !(mine.entry == theirs.entry)) return false;
  }
  return true;
}

}  // namespace rvma
