/// \file
/// The translation table (pid, mailbox) -> on-chip context slot: a cuckoo hash with a small stash, as hardware would do
/// it. Plain C++, no kernel: the golden model of the Verilog core. Everything below is the contract of both.
///
/// **Cycles.** Cycle n is the time from clock edge n to edge n+1; inputs of cycle n are sampled and state changes at
/// edge n+1. A write presented in cycle m is seen by lookups presented in cycles > m, whatever the lookup latency is (a
/// core that reads its memories s cycles after the lookup delays the write ports of copy A and of the stash by s).
///
/// **Places.** Slot s of row r of bank b is place (b * rows + r) * slots + s; stash place t is capacity + t. Each
/// (bank, slot) is one memory of `rows` words with one read and one write port, and there are two copies of it: A is
/// read by the lookup port only, B by commands only, both are written together. The stash is registers, searched whole
/// by both.
///
/// **Entry word**, bit numbers: 0..63 mailbox, 64..79 pid, 80..95 value, 96 valid, 97 parity (even, over all 98 bits).
/// An empty place is all zero. With parity, a word of odd parity is *bad*: it never hits, counts as an empty place, is
/// never moved, is reported once and then cleared (see Faults).
///
/// **Command port**, states (one cycle each unless stated):
///
///     SWEEP -> IDLE -> HASH -> READ -> CHECK -> WRITE.. -> IDLE          FILL -> IDLE, SWEEP -> IDLE
///                       ^                |
///                       +---- PICK <-----+   (insertion into full rows)
///
///   - IDLE: `command_ready` unless a fault is being cleared. Flush goes to SWEEP, load_seed to FILL (or answers `busy`
///     if an entry was inserted and neither erased nor swept since), an unknown operation is answered `bad`.
///   - HASH: the hash memories are read at the ten bytes of the key in hand. READ: the rows of all banks are read from
///     copy B. CHECK: all their slots, and the stash, are compared.
///     The first CHECK of a command ends erase (not_found or -> WRITE), update (likewise), find, and insert if the key
///     `exists`. If a slot of the rows is empty, the one of lowest candidate number, the path is complete: -> WRITE.
///     Else, if the path has max_kicks places already, -> STASH, else -> PICK. Later CHECKs of one insertion look at
///     all banks but the one that the key in hand stands in, in the same manner.
///   - PICK: one candidate slot a cycle is compared with all path registers, beginning at candidate
///     q = ((x >> 16) * n) >> 16 and going up modulo n, where n is the number of candidates and x the walk register
///     after one xorshift32 step (13, 17, 5) on entry to PICK. The first one that is not on the path is appended to it,
///     its key becomes the key in hand, -> HASH. None: -> STASH.
///     Candidates are numbered bank-major; the key in hand's own bank is left out. The walk register starts at the
///     first CHECK: w = 0x9e3779b9; for each bank: w = rotate_left(w, 7) ^ row.
///   - WRITE: one write a cycle to both copies, from the far end of the path: the last key in hand to the empty slot,
///     then each place of the path gets the entry before it (read from copy B one cycle ahead), the first one the new
///     entry. So an entry on the move is in one place at least in every cycle. Erase and update: one write.
///   - STASH: the new entry goes to the lowest free stash place, if any (one cycle of WRITE), else `full` at once, with
///     nothing changed.
///   - SWEEP: `rows` cycles, one row of every memory a cycle; stash and faults are cleared in the first one.
///   - FILL: fill_cycles(); see TabulationHash. After reset, SWEEP and FILL (with the shape's seed) run side by side.
///
/// The answer is a register: it is valid for one cycle, in which the state is IDLE and the next command may be taken.
/// `used` = cycle of the answer - cycle of acceptance:
///
///     | command                                              | used                                       |
///     | ---------------------------------------------------- | ------------------------------------------ |
///     | find; erase, update: not_found; insert: exists       | 4                                          |
///     | erase, update: ok                                    | 5                                          |
///     | insert: ok after k kicks, t_1..t_k tries in PICK     | 5 + 4k + t_1 + .. + t_k (5 + 5k as a rule) |
///     | insert: ok, into the stash, after k kicks            | 5 + 3k + t_1 + .. + t_k + t_last           |
///     | insert: full                                         | 4 + 3k + t_1 + .. + t_k + t_last           |
///     | flush                                                | 1 + rows                                   |
///     | load_seed: ok                                        | 1 + fill_cycles()                          |
///     | load_seed: busy; unknown operation: bad              | 1                                          |
///
///   t_last is n if the walk ended in PICK without a candidate, 0 if it ended at max_kicks.
///
/// **Lookups** are taken in every cycle and never wait. Places hit in the order of their number; after a key was found
/// in more than one place (on the move) both hold the same value. While the table is swept or filled (from the cycle
/// after acceptance to the one before the answer; after reset for reset_cycles()) each lookup misses with `sweeping`.
/// `value` is 0 on a miss.
///
/// **Faults.** A lookup presented in cycle n that reads a bad word (copy A or stash) reports the lowest such place in
/// cycle n + latency; a command that reads one in CHECK (copy B or stash) reports its lowest one in the cycle after
/// that CHECK, at most once a command. Each of the two has one fault register: while it is taken, further reports of
/// its kind are dropped (a bad word that was not reported is found again). In an IDLE cycle a taken register clears its
/// place in both copies, A's before B's, and `command_ready` is low; if the place is written by a command before, it is
/// not cleared. B's register is free after that; A's `latency` cycles later, when no lookup that read the bad word is
/// on its way. The sweep frees both, and drops reports that fall into it. The count of entries, which load_seed looks
/// at, is not lowered by clearing: after a fault the seed can be loaded only after a flush.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "nic/config.hpp"
#include "nic/interfaces.hpp"
#include "nic/translation_table_constants.hpp"

namespace rvma {

enum class EntryProtection : std::uint8_t { none, parity };

/// Parameters of the core, as in hardware.
struct TableShape {
  static constexpr std::uint32_t kMostBanks = 8;
  static constexpr std::uint32_t kMostSlots = 4;
  static constexpr std::uint32_t kMostRowBits = 20;
  static constexpr std::uint32_t kMostStash = 64;
  static constexpr std::uint32_t kMostKicks = 256;

  std::uint32_t banks = 4;       ///< 2..8
  std::uint32_t rows = 512;      ///< of a bank; a power of two, 4..2^20
  std::uint32_t slots = 2;       ///< of a row, 1..4
  std::uint32_t stash = 8;       ///< 0..64
  std::uint32_t max_kicks = 32;  ///< 0..256
  std::uint32_t latency = 2;     ///< cycles from a lookup to its answer, 1..3
  EntryProtection protection = EntryProtection::parity;
  std::uint64_t seed = 1;

  static TableShape from(const TableConfig& config);
  /// Whether the same hardware serves both: all but the seed is equal.
  bool same_core(const TableShape& other) const;
  /// Places in banks; the stash is not counted.
  std::uint32_t capacity() const { return banks * rows * slots; }
  std::uint32_t row_bits() const;
  /// Cycles of loading a seed: 22 for the generators' start, then for each of the 256 byte values as many as there are
  /// 64-bit words in ten row numbers.
  std::uint32_t fill_cycles() const;
  /// Cycles from reset to the first command: max(rows, fill_cycles()).
  std::uint32_t reset_cycles() const;
};

struct TableKey {
  Pid pid;
  Mailbox mailbox;
  friend bool operator==(TableKey a, TableKey b) { return a.mailbox == b.mailbox && a.pid == b.pid; }
};

/// Keyed hash of a key to a row of each bank, in two parts.
///
/// 1. Three mixing rounds, a keyed permutation of the 80 bits. State: five lanes of 16 bits, lanes 0..3 the mailbox
/// (low
///    bits first), lane 4 the pid. A round XORs its round key to the lanes, applies Ascon's 5-bit S-box to each of the
///    16 columns (bit c of lanes 0..4 = x0..x4), and rotates lane i left by {0, 1, 5, 8, 11}[i]. Byte tabulation alone
///    is linear on a set of keys that take only two values in each byte; these rounds leave no such set to be met by
///    chance.
/// 2. Byte tabulation: row in bank b = XOR over the ten bytes j of the mixed key (byte 2i, 2i+1: low and high half of
///    lane i) of memory[b][j][byte].
///
/// Filling: bank b has a Trivium generator (De Canniere, Preneel 2005; ISO/IEC 29192-3) with key bit i = s_(1+i) = bit
/// i of the seed for i < 64, else 0, and IV bit i = s_(94+i) = bit i of b. It is clocked 64 steps a cycle, bit i of a
/// word being the output of step i; the first 18 words are dropped. The next four, joined with the first one lowest,
/// are in bank 0 the round keys (lane i of round r: bits 16 * (5r + i) and up) and dropped in the others. Then for each
/// byte value v from 0 up, ceil(10 * row_bits / 64) words are joined, the first one lowest, and memory[b][j][v] = bits
/// j * row_bits .. + row_bits - 1 of it.
class TabulationHash {
 public:
  explicit TabulationHash(const TableShape& shape);
  void load(std::uint64_t seed);

  using Rows = std::array<std::uint32_t, TableShape::kMostBanks>;
  /// Rows of all banks; elements beyond the last bank are 0.
  Rows rows_of(TableKey key) const;

 private:
  using Lanes = std::array<std::uint16_t, table_constants::kLanes>;
  Lanes mix(TableKey key) const;

  std::uint32_t banks_;
  std::uint32_t row_bits_;
  std::uint32_t stride_;  ///< banks rounded up to 4 or 8
  /// What a filling makes. It follows from shape and seed alone, so tables that agree in both share it: a thousand NICs
  /// with one seed keep it once.
  struct Filled {
    std::array<Lanes, table_constants::kRounds> round_keys{};
    std::vector<std::uint32_t> memory;  ///< [byte][value][bank]
  };
  Filled fill(std::uint64_t seed) const;
  std::shared_ptr<const Filled> filled_;
};

/// Bits of an entry word: bit i is bit i % 64 of element i / 64.
using TableWord = std::array<std::uint64_t, 2>;

/// Which of the two copies of the memories.
enum class TableCopy : std::uint8_t { a, b };

struct TableFault {
  bool valid = false;
  std::uint32_t place = 0;
};

/// Ports of the core, one cycle's worth.
struct TableInputs {
  bool lookup_valid = false;
  TableKey lookup_key;
  bool command_valid = false;
  TableCommand command;
};
struct TableOutputs {
  bool lookup_valid = false;
  LookupResult lookup;
  bool command_ready = false;
  bool answer_valid = false;
  TableAnswer answer;
  TableFault lookup_fault;   ///< copy A
  TableFault command_fault;  ///< copy B
};

class TranslationTable {
 public:
  /// The shape must be legal (asserted). Cycle 0 is the first one after reset.
  explicit TranslationTable(const TableShape& shape);

  const TableShape& shape() const { return shape_; }
  /// The cycle that comes next: all edges up to its beginning have happened.
  Cycles cycle() const { return Cycles{cycle_}; }

  // -- Clocked use: one call a cycle.
  /// Outputs of cycle(): none depends on its inputs.
  TableOutputs outputs() const;
  /// Outputs of cycle(), given its inputs; then goes on to the next cycle.
  TableOutputs step(const TableInputs& inputs);

  // -- Use by events: idle cycles cost nothing. The calls name no cycle: they act in cycle().
  /// Lets the cycles before `cycle` pass without inputs. `cycle` not before cycle().
  void advance_to(Cycles cycle);
  /// A lookup presented in cycle() (one a cycle); its answer is valid `latency` cycles later.
  LookupResult lookup(TableKey key);
  /// Whether a command presented in cycle() would be taken.
  bool command_ready() const;
  /// The earliest cycle, not before cycle(), in which a command can be taken if no fault intervenes.
  Cycles ready_cycle() const;
  struct Started {
    TableAnswer answer;
    Cycles answer_cycle;
  };
  /// Takes a command in cycle(); needs command_ready(). Its writes happen as cycles pass.
  Started start(const TableCommand& command);

  struct FaultReport {
    Cycles cycle;
    TableCopy copy = TableCopy::a;
    std::uint32_t place = 0;
  };
  /// Reports since the last call, in order of their cycle.
  std::vector<FaultReport> take_faults();

  // -- What the table holds now (all edges before cycle()).
  /// Entries inserted and not erased or swept; a command counts from its acceptance on.
  std::uint32_t entries() const { return entries_; }
  std::uint32_t stash_used() const;

  /// Test hook: flips a bit of the stored word at `place` in one copy (the stash has but one). Only while no command
  /// runs and the table is not swept.
  void corrupt(TableCopy copy, std::uint32_t place, std::uint32_t bit);
  /// Test hook: a word with its parity bit, if it has one.
  TableWord stored(TableCopy copy, std::uint32_t place) const;
  /// Test hook: all words as commands read them, to compare states.
  bool same_contents(const TranslationTable& other) const;

 private:
  /// The entry word without its parity bit, which is derived: only flips can make it wrong.
  struct Entry {
    std::uint64_t mailbox = 0;
    std::uint16_t pid = 0;
    std::uint16_t value = 0;
    bool valid = false;
    TableKey key() const { return {Pid{pid}, Mailbox{mailbox}}; }
    friend bool operator==(const Entry& a, const Entry& b) {
      return a.mailbox == b.mailbox && a.pid == b.pid && a.value == b.value && a.valid == b.valid;
    }
  };
  /// The entries of a memory, of which only the parts that were written to take space: an empty table is small.
  class Entries {
   public:
    explicit Entries(std::size_t size) : size_(size), parts_((size + kPart - 1) / kPart) {}
    Entries(const Entries& other);
    Entries(Entries&&) = default;
    Entries& operator=(const Entries& other) { return *this = Entries(other); }
    Entries& operator=(Entries&&) = default;
    ~Entries() = default;
    std::size_t size() const { return size_; }
    const Entry& operator[](std::size_t place) const {
      const std::unique_ptr<Entry[]>& part = parts_[place / kPart];
      return part ? part[place % kPart] : kEmpty;
    }
    void set(std::size_t place, const Entry& entry);
    void clear();

   private:
    static constexpr std::size_t kPart = 32;
    static const Entry kEmpty;
    std::size_t size_;
    std::vector<std::unique_ptr<Entry[]>> parts_;
  };
  struct Word {
    Entry entry;
    bool bad = false;
    bool occupied() const { return entry.valid && !bad; }
    bool holds(TableKey key) const { return occupied() && entry.key() == key; }
  };
  /// Bits of a place's word that corrupt() has turned, by copy; of the stash's, those of copy A alone count.
  struct Flips {
    std::array<TableWord, 2> bits{};
    std::array<bool, 2> odd{};
  };
  struct Write {
    std::int64_t cycle = 0;
    std::uint32_t place = 0;
    Entry entry;
  };
  struct FaultRegister {
    bool taken = false;
    bool needs_clearing = false;
    std::uint32_t place = 0;
    std::int64_t since = 0;  ///< first cycle in which it acts
    std::int64_t until = 0;  ///< last cycle in which it is taken, once nothing needs clearing
  };
  struct Detection {
    std::int64_t due = 0;
    std::uint32_t place = 0;
  };
  /// The command's walk through its states: `offset` counts cycles from acceptance to the state in hand.
  struct Search {
    std::int64_t offset = 0;
    bool found = false;
    std::uint32_t found_place = 0;
    Entry found_entry;
    bool has_empty = false;
    std::uint32_t empty_place = 0;
    TabulationHash::Rows rows{};
  };

  Word word(TableCopy copy, std::uint32_t place) const;
  Word flipped_word(TableCopy copy, std::uint32_t place) const;
  /// Index in Flips of what `copy` holds at `place`.
  std::size_t flips_of(TableCopy copy, std::uint32_t place) const {
    return copy == TableCopy::a || place >= shape_.capacity() ? 0 : 1;
  }
  std::uint32_t bank_place(std::uint32_t bank, std::uint32_t row, std::uint32_t slot) const {
    return (bank * shape_.rows + row) * shape_.slots + slot;
  }
  /// Rows of a key that is looked up: from memory if it was looked up lately, which saves the simulation the hashing.
  const TabulationHash::Rows& rows_of_lookup(TableKey key);
  LookupResult lookup_good(TableKey key, const TabulationHash::Rows& rows) const;
  LookupResult lookup_checked(TableKey key, const TabulationHash::Rows& rows);
  bool sweeping() const { return cycle_ >= sweep_from_ && cycle_ < sweep_until_; }
  bool idle() const { return cycle_ >= idle_from_; }
  bool clearing() const;
  bool fault_activity() const { return !detections_.empty() || fault_a_.taken || fault_b_.taken; }

  // Commands: each plans its writes from `cycle_` on and returns its answer.
  Started plan_sweep();
  Started plan_load_seed(std::uint64_t seed);
  Started plan_insert(const TableCommand& command, const Search& search);
  Started plan_full(const Entry& entry, std::int64_t offset);
  Search first_check(TableKey key);
  bool pick(const Search& search, std::uint32_t bank_in_hand, std::uint32_t& walk, std::uint32_t& tries,
            std::uint32_t& place) const;
  void find_empty(Search& search, std::uint32_t bank_in_hand);
  void plan_write(std::int64_t offset, std::uint32_t place, const Entry& entry);
  void command_reads_bad(std::uint32_t place, std::int64_t check_offset);

  // Time.
  void pass_cycle();
  void apply_writes_before(std::int64_t cycle);
  void apply(const Write& write);
  void begin_sweep();
  void process_detections();
  void store(std::uint32_t place, const Entry& entry);
  bool place_written_since(std::uint32_t place, std::int64_t cycle, std::int64_t& when) const;

  TableShape shape_;
  TabulationHash hash_;
  struct HashedKey {
    bool valid = false;
    TableKey key;
    TabulationHash::Rows rows{};
  };
  std::array<HashedKey, 16> hashed_{};
  Entries words_;                                   ///< banks, then stash; both copies hold this but for `flips_`
  std::unordered_map<std::uint32_t, Flips> flips_;  ///< by place
  std::uint32_t entries_ = 0;
  std::uint32_t stash_valid_ = 0;  ///< valid bits in the stash, flips aside

  std::int64_t cycle_ = 0;
  // The command that runs, or the last one.
  std::int64_t idle_from_;     ///< cycle of its answer, or end of reset
  std::vector<Write> writes_;  ///< of the running command, in order of their cycle
  std::size_t next_write_ = 0;
  std::vector<std::uint32_t> path_;
  bool answer_due_ = false;  ///< an answer is to come (for step())
  TableAnswer answer_;
  // Sweep or fill: begins when `sweep_from_` does.
  std::int64_t sweep_from_ = 0;
  std::int64_t sweep_until_;
  bool sweep_pending_ = false;
  bool sweep_loads_seed_ = false;
  std::uint64_t next_seed_ = 0;
  // Faults.
  std::vector<Detection> detections_;
  FaultRegister fault_a_;
  FaultRegister fault_b_;
  std::vector<FaultReport> reports_;
  std::array<Write, 4> recent_writes_;
  std::size_t recent_index_ = 0;
  // Lookups on their way to the output of step(), by the cycle of their answer modulo 4.
  struct InFlight {
    bool valid = false;
    LookupResult result;
  };
  std::array<InFlight, 4> in_flight_{};
};

}  // namespace rvma
