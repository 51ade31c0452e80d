// Prints rtl/rvma_table_constants.vh from the constants and default shape of the C++ table.
#include <cstdio>

#include "nic/translation_table.hpp"
#include "nic/translation_table_constants.hpp"

namespace rvma {

namespace {

using namespace table_constants;  // NOLINT(google-build-using-namespace): all of them are printed

void section(const char* comment) { std::printf("\n// %s\n", comment); }

void define(const char* name, unsigned long long value) { std::printf("`define RVMA_TABLE_%s %llu\n", name, value); }

void define_code(const char* name, unsigned bits, unsigned value) {
  std::printf("`define RVMA_TABLE_%s %u'd%u\n", name, bits, value);
}

void entry_word() {
  section("Entry word, from bit 0 on: mailbox, pid (together the key), value, valid, parity.");
  define("MAILBOX_BITS", kMailboxBits);
  define("PID_BITS", kPidBits);
  define("KEY_BITS", kKeyBits);
  define("VALUE_BITS", kValueBits);
  define("VALID_BIT", kValidBit);
  define("PARITY_BIT", kParityBit);
}

void hash() {
  section("Hash.");
  define("LANE_BITS", kLaneBits);
  define("ROUNDS", kRounds);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    std::printf("`define RVMA_TABLE_LANE_ROTATION_%u %u\n", lane, kLaneRotations[lane]);
  }
  define("KEY_BYTES", kKeyBytes);
  define("BYTE_VALUES", kByteValues);
  section("Filling of the hash memories, in words of 64 bits.");
  define("WARM_UP_WORDS", kWarmUpWords);
  define("ROUND_KEY_WORDS", kRoundKeyWords);
}

void walk() {
  section("Walk of an insertion.");
  std::printf("`define RVMA_TABLE_WALK_START 32'h%08x\n", kWalkStart);
  define("WALK_ROTATION", kWalkRotation);
  define("WALK_SHIFT_LEFT_1", kWalkShifts[0]);
  define("WALK_SHIFT_RIGHT", kWalkShifts[1]);
  define("WALK_SHIFT_LEFT_2", kWalkShifts[2]);
}

void codes() {
  section("Operations; the codes above them are unknown.");
  define("OPERATION_BITS", kOperationBits);
  const auto operation = [](const char* name, TableOperation value) { define_code(name, kOperationBits, code(value)); };
  operation("INSERT", TableOperation::insert);
  operation("ERASE", TableOperation::erase);
  operation("UPDATE", TableOperation::update);
  operation("FIND", TableOperation::find);
  operation("FLUSH", TableOperation::flush);
  operation("LOAD_SEED", TableOperation::load_seed);
  section("Statuses.");
  define("STATUS_BITS", kStatusBits);
  const auto status = [](const char* name, TableStatus value) { define_code(name, kStatusBits, code(value)); };
  status("OK", TableStatus::ok);
  status("EXISTS", TableStatus::exists);
  status("NOT_FOUND", TableStatus::not_found);
  status("FULL", TableStatus::full);
  status("BUSY", TableStatus::busy);
  status("BAD", TableStatus::bad);
}

void shape() {
  section("Default shape and its limits.");
  const TableShape shape;
  define("BANKS", shape.banks);
  define("ROWS", shape.rows);
  define("SLOTS", shape.slots);
  define("STASH", shape.stash);
  define("MAX_KICKS", shape.max_kicks);
  define("LATENCY", shape.latency);
  define("PROTECTION_NONE", static_cast<unsigned>(EntryProtection::none));
  define("PROTECTION_PARITY", static_cast<unsigned>(EntryProtection::parity));
  define("PROTECTION", static_cast<unsigned>(shape.protection));
  define("MOST_BANKS", TableShape::kMostBanks);
  define("MOST_SLOTS", TableShape::kMostSlots);
  define("MOST_ROWS", 1ULL << TableShape::kMostRowBits);
  define("MOST_STASH", TableShape::kMostStash);
  define("MOST_KICKS", TableShape::kMostKicks);
}

void cycles() {
  section("Cycles of a filling, and the most that an answer can tell.");
  std::puts(
      "`define RVMA_TABLE_FILL_CYCLES(Rows) \\\n"
      "    (`RVMA_TABLE_WARM_UP_WORDS + `RVMA_TABLE_ROUND_KEY_WORDS + \\\n"
      "     `RVMA_TABLE_BYTE_VALUES * ((`RVMA_TABLE_KEY_BYTES * $clog2(Rows) + 63) / 64))\n"
      "`define RVMA_TABLE_INSERT_CYCLES(Banks, Slots, MaxKicks) \\\n"
      "    (5 + 4 * (MaxKicks) + (Banks) * (Slots) * ((MaxKicks) + 1))\n"
      "`define RVMA_TABLE_GREATER(a, b) ((a) > (b) ? (a) : (b))\n"
      "`define RVMA_TABLE_MOST_USED(Banks, Rows, Slots, MaxKicks) \\\n"
      "    `RVMA_TABLE_GREATER(`RVMA_TABLE_INSERT_CYCLES(Banks, Slots, MaxKicks), \\\n"
      "                        `RVMA_TABLE_GREATER(1 + (Rows), 1 + `RVMA_TABLE_FILL_CYCLES(Rows)))");
}

void print_constants() {
  std::puts(
      "// Made by rtl_generate_constants from model/nic/translation_table_constants.hpp and translation_table.hpp: do\n"
      "// not edit; build the target rtl_constants after a change there.\n"
      "`ifndef RVMA_TABLE_CONSTANTS_VH\n"
      "`define RVMA_TABLE_CONSTANTS_VH");
  entry_word();
  hash();
  walk();
  codes();
  shape();
  cycles();
  std::puts("\n`endif");
}

}  // namespace

}  // namespace rvma

/// The SystemC library, which the table's headers bring in, wants one.
int sc_main(int, char**) { return 0; }

int main() {
  rvma::print_constants();
  return 0;
}
