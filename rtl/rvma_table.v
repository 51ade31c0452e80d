// Translation table: (pid, mailbox) -> context slot. A keyed cuckoo hash of Banks x Rows x Slots places and a stash.
//
// Lookups: one a cycle, answered Latency cycles later, never stalled. Commands: valid/ready, one at a time; each answer
// is valid for one cycle. The exact cycles of everything, the layout of words and the numbering of places are stated in
// model/nic/translation_table.hpp, whose class gives the same outputs in the same cycles; docs/reference/units/
// translation-table-rtl.md tells how to use the core.
//
// After reset the core sweeps its memories and fills its hash from reset_seed_i; meanwhile lookups miss with
// lookup_sweeping_o, and commands wait.
//
// Storage, w = log2(Rows), d = 97 + Protection bits of a stored word, b = log2(Banks) rounded up + w + bits of a slot
// (log2(Slots) rounded up, at least 1) = bits of a place in the banks:
//   block RAM   2 * Banks * Slots memories of Rows x d bits, and 2 * 10 of 256 x (Banks * w) bits, each of one read and
//               one write port; with Latency 1, ten of the latter are read asynchronously (look-up-table RAM)
//   flip-flops  Stash * d, MaxKicks * (1 + b), Banks * (288 + 64 * (words - 1)) + 320 of
//               generators (words = 10 * w / 64 rounded up), round keys and seed, about 1000 in pipelines and
//               registers
`default_nettype none
`include "rvma_table_constants.vh"

module rvma_table #(
    parameter Banks = `RVMA_TABLE_BANKS,            // hash banks, each with a row for a key: 2 to 8
    parameter Rows = `RVMA_TABLE_ROWS,              // of a bank: a power of two, 4 to 2^20
    parameter Slots = `RVMA_TABLE_SLOTS,            // entries of a row: 1 to 4
    parameter Stash = `RVMA_TABLE_STASH,            // entries of the fully searched stash: 0 to 64
    parameter MaxKicks = `RVMA_TABLE_MAX_KICKS,     // most entries that an insertion moves: 0 to 256
    parameter Latency = `RVMA_TABLE_LATENCY,        // cycles from a lookup to its answer: 1 to 3
    parameter Protection = `RVMA_TABLE_PROTECTION,  // of entries: 0 none, 1 parity
    // Derived, not to be set: widths of the numbers of places (of the banks and, after them, of the stash), of cycles
    // and of moves.
    parameter PlaceBits = $clog2(Banks * Rows * Slots + Stash),
    parameter UsedBits = $clog2(`RVMA_TABLE_MOST_USED(Banks, Rows, Slots, MaxKicks) + 1),
    parameter KicksBits = MaxKicks > 0 ? $clog2(MaxKicks + 1) : 1
) (
    input wire clk_i,
    input wire rst_ni,  // asynchronous; released in step with clk_i

    input wire [63:0] reset_seed_i,  // stable in the first cycle after reset, not looked at later

    // Lookup port.
    input  wire                              lookup_valid_i,     // a lookup in each cycle in which it is high
    input  wire [  `RVMA_TABLE_PID_BITS-1:0] lookup_pid_i,       // with lookup_valid_i
    input  wire [`RVMA_TABLE_MAILBOX_BITS-1:0] lookup_mailbox_i,   // with lookup_valid_i
    output wire                              lookup_valid_o,     // Latency cycles after lookup_valid_i
    output wire                              lookup_hit_o,       // with lookup_valid_o
    output wire [`RVMA_TABLE_VALUE_BITS-1:0] lookup_slot_o,      // with lookup_hit_o, else 0
    output wire                              lookup_sweeping_o,  // with lookup_valid_o: no hit, as the table is swept

    // Command port.
    input  wire                                  command_valid_i,      // taken if ready too; may be withdrawn before
    output wire                                  command_ready_o,      // not dependent on command_valid_i
    input  wire [`RVMA_TABLE_OPERATION_BITS-1:0] command_operation_i,  // with command_valid_i
    input  wire [      `RVMA_TABLE_PID_BITS-1:0] command_pid_i,        // .. and insert, erase, update, find
    input  wire [  `RVMA_TABLE_MAILBOX_BITS-1:0] command_mailbox_i,    // .. and insert, erase, update, find
    input  wire [    `RVMA_TABLE_VALUE_BITS-1:0] command_slot_i,       // .. and insert, update
    input  wire [                          63:0] command_seed_i,       // .. and load_seed

    output wire                               answer_valid_o,   // one cycle
    output wire [`RVMA_TABLE_STATUS_BITS-1:0] answer_status_o,  // with answer_valid_o
    output wire [ `RVMA_TABLE_VALUE_BITS-1:0] answer_slot_o,    // with answer_valid_o: of a find that is ok, else 0
    output wire [               UsedBits-1:0] answer_used_o,    // with answer_valid_o: cycles since acceptance
    output wire [              KicksBits-1:0] answer_kicks_o,   // with answer_valid_o: entries that an insert moved
    output wire                               answer_in_stash_o,  // with answer_valid_o: what was written is there

    // Bad words, by the number of their place.
    output wire                 lookup_fault_valid_o,   // read by the lookup that is answered in this cycle
    output wire [PlaceBits-1:0] lookup_fault_place_o,   // with lookup_fault_valid_o
    output wire                 command_fault_valid_o,  // read by a command in the cycle before
    output wire [PlaceBits-1:0] command_fault_place_o   // with command_fault_valid_o
);

  // ----------------------------------------------------------------------------------------------- legal parameters
  // No module has these names: an illegal value stops every tool with the message in it.
  generate
    if (Banks < 2 || Banks > `RVMA_TABLE_MOST_BANKS) begin : g_banks
      rvma_table_error_banks_must_be_2_to_8 illegal ();
    end
    if (Rows < 4 || Rows > `RVMA_TABLE_MOST_ROWS || (Rows & (Rows - 1)) != 0) begin : g_rows
      rvma_table_error_rows_must_be_a_power_of_two_from_4_to_1048576 illegal ();
    end
    if (Slots < 1 || Slots > `RVMA_TABLE_MOST_SLOTS) begin : g_slots
      rvma_table_error_slots_must_be_1_to_4 illegal ();
    end
    if (Stash < 0 || Stash > `RVMA_TABLE_MOST_STASH) begin : g_stash_places
      rvma_table_error_stash_must_be_0_to_64 illegal ();
    end
    if (MaxKicks < 0 || MaxKicks > `RVMA_TABLE_MOST_KICKS) begin : g_max_kicks
      rvma_table_error_max_kicks_must_be_0_to_256 illegal ();
    end
    if (Latency < 1 || Latency > 3) begin : g_latency
      rvma_table_error_latency_must_be_1_to_3 illegal ();
    end
    if (Protection != `RVMA_TABLE_PROTECTION_NONE && Protection != `RVMA_TABLE_PROTECTION_PARITY) begin : g_protection
      rvma_table_error_protection_must_be_0_or_1 illegal ();
    end
    if (PlaceBits != $clog2(Banks * Rows * Slots + Stash) ||
        UsedBits != $clog2(`RVMA_TABLE_MOST_USED(Banks, Rows, Slots, MaxKicks) + 1) ||
        KicksBits != (MaxKicks > 0 ? $clog2(MaxKicks + 1) : 1)) begin : g_derived
      rvma_table_error_derived_parameters_must_not_be_set illegal ();
    end
  endgenerate

  // ---------------------------------------------------------------------------------------------------- dimensions
  localparam KeyBits = `RVMA_TABLE_KEY_BITS;
  localparam WordBits = `RVMA_TABLE_PARITY_BIT + Protection;
  localparam BankBits = $clog2(Banks);
  localparam RowBits = $clog2(Rows);
  localparam SlotBits = Slots > 1 ? $clog2(Slots) : 1;
  localparam StashBits = Stash > 1 ? $clog2(Stash) : 1;
  localparam IndexBits = BankBits + RowBits + SlotBits > StashBits ? BankBits + RowBits + SlotBits : StashBits;
  localparam LocationBits = 1 + IndexBits;  // {0, bank, row, slot} or {1, place of the stash}
  localparam ReadDelay = Latency == 1 ? 0 : 1;

  function [PlaceBits-1:0] place_number;
    // Lint: bits between the fields; a number has fewer than 32 bits.
    // verilator lint_off UNUSEDSIGNAL
    input [LocationBits-1:0] location;
    integer number;
    // verilator lint_on UNUSEDSIGNAL
    begin
      if (location[LocationBits-1]) begin
        number = Banks * Rows * Slots + {{32 - StashBits{1'b0}}, location[StashBits-1:0]};
      end else begin
        number = {{32 - BankBits - RowBits{1'b0}}, location[SlotBits+:BankBits+RowBits]} * Slots +
            {{32 - SlotBits{1'b0}}, location[SlotBits-1:0]};
      end
      place_number = number[PlaceBits-1:0];
    end
  endfunction

  // ---------------------------------------------------------------------------------------------------------- fill
  wire fill_start;
  wire fill_busy;
  wire fill_last;
  wire [`RVMA_TABLE_ROUNDS*KeyBits-1:0] round_keys;
  wire fill;
  wire [7:0] fill_value;
  wire [Banks*`RVMA_TABLE_KEY_BYTES*RowBits-1:0] fill_rows;

  rvma_table_fill #(
      .Banks(Banks),
      .RowBits(RowBits)
  ) filler (
      .clk_i(clk_i),
      .rst_ni(rst_ni),
      .reset_seed_i(reset_seed_i),
      .start_i(fill_start),
      .seed_i(command_seed_i),
      .busy_o(fill_busy),
      .last_o(fill_last),
      .round_keys_o(round_keys),
      .fill_o(fill),
      .fill_value_o(fill_value),
      .fill_rows_o(fill_rows)
  );

  // ------------------------------------------------------------------------------------------------------ commands
  wire sweeping;
  wire sweep_rows;
  wire write;
  wire write_all;
  wire [LocationBits-1:0] write_location;
  wire [WordBits-1:0] write_word;

  wire [KeyBits-1:0] command_stash_key;
  wire command_stash_hit;
  wire [`RVMA_TABLE_VALUE_BITS-1:0] command_stash_value;
  wire [StashBits-1:0] command_stash_index;
  wire stash_bad;
  wire [StashBits-1:0] stash_bad_index;
  wire stash_free;
  wire [StashBits-1:0] stash_free_index;

  wire command_bad;
  wire [LocationBits-1:0] command_bad_location;
  wire clear;
  wire [LocationBits-1:0] clear_location;

  rvma_table_command #(
      .Banks(Banks),
      .Rows(Rows),
      .Slots(Slots),
      .Stash(Stash),
      .MaxKicks(MaxKicks),
      .Protection(Protection),
      .LocationBits(LocationBits),
      .UsedBits(UsedBits)
  ) commands (
      .clk_i(clk_i),
      .rst_ni(rst_ni),
      .valid_i(command_valid_i),
      .operation_i(command_operation_i),
      .key_i({command_pid_i, command_mailbox_i}),
      .value_i(command_slot_i),
      .ready_o(command_ready_o),
      .answer_valid_o(answer_valid_o),
      .answer_status_o(answer_status_o),
      .answer_value_o(answer_slot_o),
      .answer_used_o(answer_used_o),
      .answer_kicks_o(answer_kicks_o),
      .answer_in_stash_o(answer_in_stash_o),
      .sweeping_o(sweeping),
      .sweep_rows_o(sweep_rows),
      .fill_start_o(fill_start),
      .fill_busy_i(fill_busy),
      .fill_last_i(fill_last),
      .round_keys_i(round_keys),
      .fill_i(fill),
      .fill_value_i(fill_value),
      .fill_rows_i(fill_rows),
      .write_o(write),
      .write_all_o(write_all),
      .write_location_o(write_location),
      .write_word_o(write_word),
      .stash_key_o(command_stash_key),
      .stash_hit_i(command_stash_hit),
      .stash_value_i(command_stash_value),
      .stash_hit_index_i(command_stash_index),
      .stash_bad_i(stash_bad),
      .stash_bad_index_i(stash_bad_index),
      .stash_free_i(stash_free),
      .stash_free_index_i(stash_free_index),
      .bad_o(command_bad),
      .bad_location_o(command_bad_location),
      .clear_i(clear),
      .clear_location_i(clear_location)
  );

  // -------------------------------------------------------------------------------------------------- late writes
  wire [Latency:0] writes;
  wire [(Latency+1)*LocationBits-1:0] write_locations;
  // Lint: only two of the words are used, one of them in the stash.
  // verilator lint_off UNUSEDSIGNAL
  wire [Latency:0] writes_all;
  wire [(Latency+1)*WordBits-1:0] write_words;
  // verilator lint_on UNUSEDSIGNAL

  rvma_table_write_delay #(
      .Delays(Latency),
      .LocationBits(LocationBits),
      .WordBits(WordBits)
  ) delay (
      .clk_i(clk_i),
      .rst_ni(rst_ni),
      .write_i(write),
      .write_all_i(write_all),
      .location_i(write_location),
      .word_i(write_word),
      .writes_o(writes),
      .writes_all_o(writes_all),
      .locations_o(write_locations),
      .words_o(write_words)
  );

  // --------------------------------------------------------------------------------------------------------- stash
  wire [LocationBits-1:0] stash_write_location = write_locations[ReadDelay*LocationBits+:LocationBits];
  wire [KeyBits-1:0] lookup_stash_key;
  wire lookup_stash_hit;
  wire [`RVMA_TABLE_VALUE_BITS-1:0] lookup_stash_value;

  rvma_table_stash #(
      .Stash(Stash),
      .Protection(Protection)
  ) stash (
      .clk_i(clk_i),
      .clear_i(writes_all[ReadDelay] && stash_write_location[SlotBits+:RowBits] == {RowBits{1'b0}}),
      .write_i(writes[ReadDelay] && stash_write_location[LocationBits-1]),
      .write_index_i(stash_write_location[StashBits-1:0]),
      .write_word_i(write_words[ReadDelay*WordBits+:WordBits]),
      .lookup_key_i(lookup_stash_key),
      .lookup_hit_o(lookup_stash_hit),
      .lookup_value_o(lookup_stash_value),
      .command_key_i(command_stash_key),
      .command_hit_o(command_stash_hit),
      .command_value_o(command_stash_value),
      .command_hit_index_o(command_stash_index),
      .bad_o(stash_bad),
      .bad_index_o(stash_bad_index),
      .free_o(stash_free),
      .free_index_o(stash_free_index)
  );

  // ------------------------------------------------------------------------------------------------------- lookups
  wire [LocationBits-1:0] bank_write_location = write_locations[(ReadDelay+1)*LocationBits+:LocationBits];
  wire lookup_bad;
  wire [LocationBits-1:0] lookup_bad_location;

  rvma_table_lookup #(
      .Banks(Banks),
      .Rows(Rows),
      .Slots(Slots),
      .Stash(Stash),
      .Latency(Latency),
      .Protection(Protection),
      .LocationBits(LocationBits)
  ) lookups (
      .clk_i(clk_i),
      .rst_ni(rst_ni),
      .valid_i(lookup_valid_i),
      .key_i({lookup_pid_i, lookup_mailbox_i}),
      .sweeping_i(sweeping),
      .valid_o(lookup_valid_o),
      .hit_o(lookup_hit_o),
      .value_o(lookup_slot_o),
      .sweeping_o(lookup_sweeping_o),
      .bad_o(lookup_bad),
      .bad_location_o(lookup_bad_location),
      .round_keys_i(round_keys),
      .fill_i(fill),
      .fill_value_i(fill_value),
      .fill_rows_i(fill_rows),
      .write_i(writes[ReadDelay+1] && !bank_write_location[LocationBits-1]),
      .write_all_i(writes_all[ReadDelay+1]),
      .write_bank_i(bank_write_location[SlotBits+RowBits+:BankBits]),
      .write_row_i(bank_write_location[SlotBits+:RowBits]),
      .write_slot_i(bank_write_location[SlotBits-1:0]),
      .write_word_i(write_words[(ReadDelay+1)*WordBits+:WordBits]),
      .stash_key_o(lookup_stash_key),
      .stash_hit_i(lookup_stash_hit),
      .stash_value_i(lookup_stash_value),
      .stash_bad_i(stash_bad),
      .stash_bad_index_i(stash_bad_index)
  );

  // -------------------------------------------------------------------------------------------------------- faults
  wire [LocationBits-1:0] lookup_fault_location;
  wire [LocationBits-1:0] command_fault_location;

  rvma_table_faults #(
      .Latency(Latency),
      .Protection(Protection),
      .LocationBits(LocationBits)
  ) faults (
      .clk_i(clk_i),
      .rst_ni(rst_ni),
      .lookup_bad_i(lookup_bad),
      .lookup_location_i(lookup_bad_location),
      .command_bad_i(command_bad),
      .command_location_i(command_bad_location),
      .sweep_i(sweep_rows),
      .writes_i(writes),
      .write_locations_i(write_locations),
      .clear_o(clear),
      .clear_location_o(clear_location),
      .lookup_fault_o(lookup_fault_valid_o),
      .lookup_fault_location_o(lookup_fault_location),
      .command_fault_o(command_fault_valid_o),
      .command_fault_location_o(command_fault_location)
  );

  assign lookup_fault_place_o = place_number(lookup_fault_location);
  assign command_fault_place_o = place_number(command_fault_location);

endmodule

`default_nettype wire
