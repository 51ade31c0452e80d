// Lookup pipeline: copy A of hash memories and banks. One lookup a cycle, never stalled; the answer is valid Latency
// cycles later.
//
//     Latency | cycle n              | n + 1               | n + 2         | n + 3
//     1       | hash, rows to memory | compare, answer     |               |
//     2       | hash                 | rows to memory      | compare, answer
//     3       | hash                 | rows to memory      | compare       | select, answer
//
// Rows go to memory ReadDelay = 0 (latency 1) or 1 cycles after the lookup was presented; it must see exactly the
// writes of the cycles before n. The banks are written ReadDelay + 1 cycles late, and the one write that is seen
// already but not yet stored when the row is read is forwarded: what the memory gives at a collision does not matter.
// The stash is compared in the cycle in which the rows go to memory, and is written ReadDelay cycles late.
//
// Places are written {0, bank, row, slot} or {1, zeros, place of the stash}, LocationBits in all.
//
// Storage: ten memories of 256 x (Banks * RowBits) bits for the hash (asynchronous for latency 1), Banks * Slots of
// Rows x WordBits for entries (copy A). Flip-flops: 80 + 2 for each of the first ReadDelay + 1 steps, 17 of the stash's
// result, WordBits + Banks * Slots of the forwarded write; with Protection also Banks * RowBits + StashBits + 1.
// Latency 3 adds 17 * (Banks * Slots + 1) + 2, and with Protection Banks * (RowBits + Slots) + StashBits + 1.
`default_nettype none
`include "rvma_table_constants.vh"

module rvma_table_lookup #(
    parameter Banks = 4,  // these six as of rvma_table
    parameter Rows = 512,
    parameter Slots = 2,
    parameter Stash = 8,
    parameter Latency = 2,
    parameter Protection = `RVMA_TABLE_PROTECTION_PARITY,
    parameter LocationBits = 13,  // of a place: 1 + the longer of {bank, row, slot} and the place of the stash
    parameter WordBits = `RVMA_TABLE_PARITY_BIT + Protection,  // derived, not to be set; so are the following
    parameter BankBits = $clog2(Banks),
    parameter RowBits = $clog2(Rows),
    parameter SlotBits = Slots > 1 ? $clog2(Slots) : 1,
    parameter StashBits = Stash > 1 ? $clog2(Stash) : 1
) (
    input wire clk_i,
    input wire rst_ni,

    input wire                            valid_i,     // a lookup in each cycle in which it is high
    input wire [`RVMA_TABLE_KEY_BITS-1:0] key_i,       // with valid_i: {pid, mailbox}
    input wire                            sweeping_i,  // with valid_i: this lookup misses

    output wire                              valid_o,     // valid_i of Latency cycles ago
    output wire                              hit_o,       // with valid_o, else 0
    output wire [`RVMA_TABLE_VALUE_BITS-1:0] value_o,     // with hit_o, else 0
    output wire                              sweeping_o,  // with valid_o: no hit, as sweeping_i was high; else 0
    output wire                              bad_o,       // with valid_o: it read a bad word; else 0
    output wire [          LocationBits-1:0] bad_location_o,  // with bad_o: the lowest one

    // Hash memories: the ports of rvma_table_fill.
    input wire [`RVMA_TABLE_ROUNDS * `RVMA_TABLE_KEY_BITS-1:0] round_keys_i,  // with valid_i, unless sweeping_i
    input wire                                                 fill_i,        // write one byte value's row numbers
    input wire [                                          7:0] fill_value_i,  // with fill_i: the byte value
    input wire [    Banks * `RVMA_TABLE_KEY_BYTES * RowBits-1:0] fill_rows_i,   // with fill_i: bank, then byte

    // Banks: writes, already ReadDelay + 1 cycles late; those of the stash are left out.
    input wire                write_i,       // writes one word
    input wire                write_all_i,   // writes a row of every memory; not with write_i
    input wire [BankBits-1:0] write_bank_i,  // with write_i
    input wire [ RowBits-1:0] write_row_i,   // with write_i or write_all_i
    input wire [SlotBits-1:0] write_slot_i,  // with write_i
    input wire [WordBits-1:0] write_word_i,  // with write_i or write_all_i

    // Stash, compared with stash_key_o in the same cycle.
    output wire [  `RVMA_TABLE_KEY_BITS-1:0] stash_key_o,       // of the lookup whose rows are known
    input  wire                              stash_hit_i,       // a place holds the key
    input  wire [`RVMA_TABLE_VALUE_BITS-1:0] stash_value_i,     // with stash_hit_i, else 0
    input  wire                              stash_bad_i,       // a place, whatever its key, has a bad word
    input  wire [             StashBits-1:0] stash_bad_index_i  // with stash_bad_i: the lowest such
);

  localparam KeyBits = `RVMA_TABLE_KEY_BITS;
  localparam ValueBits = `RVMA_TABLE_VALUE_BITS;
  localparam Places = Banks * Slots;

  // -- Hash: the lookup as it is when its rows are known.
  wire hashed_valid;
  wire hashed_sweeping;
  wire [KeyBits-1:0] hashed_key;
  wire [Banks*RowBits-1:0] hashed_rows;

  rvma_table_hash #(
      .Banks(Banks),
      .RowBits(RowBits),
      .Asynchronous(Latency == 1 ? 1 : 0)
  ) hash (
      .clk_i(clk_i),
      .round_keys_i(round_keys_i),
      .fill_i(fill_i),
      .fill_value_i(fill_value_i),
      .fill_rows_i(fill_rows_i),
      .read_i(valid_i),
      .key_i(key_i),
      .rows_o(hashed_rows)
  );

  generate
    if (Latency == 1) begin : g_hash_same_cycle
      assign hashed_valid = valid_i;
      assign hashed_sweeping = sweeping_i;
      assign hashed_key = key_i;
    end else begin : g_hash_next_cycle
      reg valid_q;
      reg sweeping_q;
      reg [KeyBits-1:0] key_q;
      always @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) valid_q <= 1'b0;
        else valid_q <= valid_i;
      end
      always @(posedge clk_i) begin
        if (valid_i) begin
          sweeping_q <= sweeping_i;
          key_q <= key_i;
        end
      end
      assign hashed_valid = valid_q;
      assign hashed_sweeping = sweeping_q;
      assign hashed_key = key_q;
    end
  endgenerate

  assign stash_key_o = hashed_key;

  // -- Read.
  reg read_valid_q;
  reg read_sweeping_q;
  reg [KeyBits-1:0] read_key_q;
  reg read_stash_hit_q;
  reg [ValueBits-1:0] read_stash_value_q;

  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) read_valid_q <= 1'b0;
    else read_valid_q <= hashed_valid;
  end

  always @(posedge clk_i) begin
    if (hashed_valid) begin
      read_sweeping_q <= hashed_sweeping;
      read_key_q <= hashed_key;
      read_stash_hit_q <= stash_hit_i;
      read_stash_value_q <= stash_value_i;
    end
  end

  wire [Places*WordBits-1:0] memory_words;

  rvma_table_banks #(
      .Banks(Banks),
      .Rows(Rows),
      .Slots(Slots),
      .WordBits(WordBits)
  ) banks (
      .clk_i(clk_i),
      .write_i(write_i),
      .write_all_i(write_all_i),
      .write_bank_i(write_bank_i),
      .write_row_i(write_row_i),
      .write_slot_i(write_slot_i),
      .write_word_i(write_word_i),
      .read_i(hashed_valid),
      .read_rows_i(hashed_rows),
      .words_o(memory_words)
  );

  // -- Compare, with the write that met the read put in.
  reg [WordBits-1:0] forward_word_q;
  always @(posedge clk_i) begin
    if (hashed_valid) forward_word_q <= write_word_i;
  end

  wire [Places-1:0] hits;
  wire [Places-1:0] bad;
  wire [Places*ValueBits-1:0] values;

  genvar bank, slot;
  generate
    for (bank = 0; bank < Banks; bank = bank + 1) begin : g_bank
      localparam [BankBits-1:0] Bank = bank;
      wire meets = write_row_i == hashed_rows[bank*RowBits+:RowBits];
      for (slot = 0; slot < Slots; slot = slot + 1) begin : g_slot
        localparam [SlotBits-1:0] Slot = slot;
        localparam Place = bank * Slots + slot;
        reg forward_q;
        always @(posedge clk_i) begin
          if (hashed_valid) begin
            forward_q <= meets && (write_all_i || (write_i && write_bank_i == Bank && write_slot_i == Slot));
          end
        end
        wire [WordBits-1:0] word = forward_q ? forward_word_q : memory_words[Place*WordBits+:WordBits];
        // Lint: a lookup does not care for empty places.
        // verilator lint_off PINCONNECTEMPTY
        rvma_table_check #(
            .Protection(Protection)
        ) check (
            .word_i(word),
            .key_i(read_key_q),
            .hit_o(hits[Place]),
            .occupied_o(),
            .bad_o(bad[Place])
        );
        // verilator lint_on PINCONNECTEMPTY
        assign values[Place*ValueBits+:ValueBits] = word[KeyBits+:ValueBits];
      end
    end
  endgenerate

  // -- Select, in the same cycle or the next one.
  wire select_valid;
  wire select_sweeping;
  wire [Places:0] select_hits;  // the stash highest
  wire [(Places+1)*ValueBits-1:0] select_values;

  generate
    if (Latency == 3) begin : g_select_next_cycle
      reg valid_q;
      reg sweeping_q;
      reg [Places:0] hits_q;
      reg [(Places+1)*ValueBits-1:0] values_q;
      always @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) valid_q <= 1'b0;
        else valid_q <= read_valid_q;
      end
      always @(posedge clk_i) begin
        if (read_valid_q) begin
          sweeping_q <= read_sweeping_q;
          hits_q <= {read_stash_hit_q, hits};
          values_q <= {read_stash_value_q, values};
        end
      end
      assign select_valid = valid_q;
      assign select_sweeping = sweeping_q;
      assign select_hits = hits_q;
      assign select_values = values_q;
    end else begin : g_select_same_cycle
      assign select_valid = read_valid_q;
      assign select_sweeping = read_sweeping_q;
      assign select_hits = {read_stash_hit_q, hits};
      assign select_values = {read_stash_value_q, values};
    end
  endgenerate

  wire good = select_valid && !select_sweeping;
  wire [Places:0] lowest_hit = select_hits & (~select_hits + {{Places{1'b0}}, 1'b1});

  reg [ValueBits-1:0] value;
  integer i;
  always @* begin
    value = {ValueBits{1'b0}};
    for (i = 0; i <= Places; i = i + 1) begin
      value = value | (select_values[i*ValueBits+:ValueBits] & {ValueBits{lowest_hit[i]}});
    end
  end

  assign valid_o = select_valid;
  assign sweeping_o = select_valid && select_sweeping;
  assign hit_o = good && |select_hits;
  assign value_o = value & {ValueBits{good}};

  // -- Bad words: the lowest place of those read.
  generate
    if (Protection == `RVMA_TABLE_PROTECTION_PARITY) begin : g_bad
      reg read_stash_bad_q;
      reg [StashBits-1:0] read_stash_bad_index_q;
      reg [Banks*RowBits-1:0] read_rows_q;
      always @(posedge clk_i) begin
        if (hashed_valid) begin
          read_stash_bad_q <= stash_bad_i;
          read_stash_bad_index_q <= stash_bad_index_i;
          read_rows_q <= hashed_rows;
        end
      end

      wire [Places:0] select_bad;
      wire [StashBits-1:0] select_stash_bad_index;
      wire [Banks*RowBits-1:0] select_rows;
      if (Latency == 3) begin : g_next_cycle
        reg [Places:0] bad_q;
        reg [StashBits-1:0] stash_bad_index_q;
        reg [Banks*RowBits-1:0] rows_q;
        always @(posedge clk_i) begin
          if (read_valid_q) begin
            bad_q <= {read_stash_bad_q, bad};
            stash_bad_index_q <= read_stash_bad_index_q;
            rows_q <= read_rows_q;
          end
        end
        assign select_bad = bad_q;
        assign select_stash_bad_index = stash_bad_index_q;
        assign select_rows = rows_q;
      end else begin : g_same_cycle
        assign select_bad = {read_stash_bad_q, bad};
        assign select_stash_bad_index = read_stash_bad_index_q;
        assign select_rows = read_rows_q;
      end

      reg [LocationBits-1:0] location;
      integer b, s;
      always @* begin
        location = {LocationBits{1'b0}};
        location[LocationBits-1] = 1'b1;
        location[StashBits-1:0] = select_stash_bad_index;
        for (b = Banks - 1; b >= 0; b = b - 1) begin
          for (s = Slots - 1; s >= 0; s = s - 1) begin
            if (select_bad[b*Slots+s]) begin
              location = {LocationBits{1'b0}};
              location[BankBits+RowBits+SlotBits-1:0] = {
                b[BankBits-1:0], select_rows[b*RowBits+:RowBits], s[SlotBits-1:0]
              };
            end
          end
        end
      end
      assign bad_o = good && |select_bad;
      assign bad_location_o = location;
    end else begin : g_no_bad
      // Lint: without protection nothing is bad.
      // verilator lint_off UNUSEDSIGNAL
      wire unused_bad = &{1'b0, bad, stash_bad_i, stash_bad_index_i};
      // verilator lint_on UNUSEDSIGNAL
      assign bad_o = 1'b0;
      assign bad_location_o = {LocationBits{1'b0}};
    end
  endgenerate

endmodule

`default_nettype wire
