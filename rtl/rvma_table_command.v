// Command port and its state machine: searches copy B, plans moves, and makes every write of the table.
//
//     SWEEP -> IDLE -> HASH -> READ -> CHECK -> WRITE.. -> IDLE
//                       ^                |
//                       +---- PICK <-----+   (insertion into full rows)
//
// One cycle each, but: SWEEP until rows are swept and hash memories filled; PICK until a candidate is found that is not
// on the path; WRITE once for each move and once for the new entry. Loading a seed is spent in SWEEP too.
//
// An insertion's search is read-only. Its moves begin at the far end: the entry in hand goes to the empty place, then
// each place of the path gets the entry before it, read one cycle ahead, and the first one the new entry.
//
// Places are written {0, bank, row, slot} or {1, zeros, place of the stash}, LocationBits in all.
//
// Storage: ten memories of 256 x (Banks * RowBits) bits for the hash, Banks * Slots of Rows x WordBits for entries
// (copy B). Flip-flops: MaxKicks * (1 + bits of a place in the banks) for the path, 32 of the walk, 99 of the command
// (key, value, operation), WordBits of the entry in hand, Banks * RowBits of its rows, LocationBits of the next place
// to be written, 32 + UsedBits + KicksBits + RowBits of counters, about 40 of state and answer.
`default_nettype none
`include "rvma_table_constants.vh"

module rvma_table_command #(
    parameter Banks = 4,  // these six as of rvma_table
    parameter Rows = 512,
    parameter Slots = 2,
    parameter Stash = 8,
    parameter MaxKicks = 32,
    parameter Protection = `RVMA_TABLE_PROTECTION_PARITY,
    parameter LocationBits = 13,  // of a place: 1 + the longer of {bank, row, slot} and the place of the stash
    parameter UsedBits = 10,      // holds the most cycles that a command takes, as rvma_table derives it
    parameter WordBits = `RVMA_TABLE_PARITY_BIT + Protection,  // derived, not to be set; so are the following
    parameter RowBits = $clog2(Rows),
    parameter StashBits = Stash > 1 ? $clog2(Stash) : 1,
    parameter KicksBits = MaxKicks > 0 ? $clog2(MaxKicks + 1) : 1
) (
    input wire clk_i,
    input wire rst_ni,

    // The command: taken in a cycle in which valid_i and ready_o are high. A seed goes to rvma_table_fill directly.
    input  wire                                  valid_i,
    input  wire [`RVMA_TABLE_OPERATION_BITS-1:0] operation_i,  // with valid_i
    input  wire [      `RVMA_TABLE_KEY_BITS-1:0] key_i,        // .. and insert, erase, update, find: {pid, mailbox}
    input  wire [    `RVMA_TABLE_VALUE_BITS-1:0] value_i,      // .. and insert, update
    output wire                                  ready_o,      // follows clear_i in the same cycle, not valid_i

    output wire                               answer_valid_o,     // one cycle a command
    output wire [`RVMA_TABLE_STATUS_BITS-1:0] answer_status_o,    // with answer_valid_o; so are the following
    output wire [ `RVMA_TABLE_VALUE_BITS-1:0] answer_value_o,     // of a find that is ok, else 0
    output wire [               UsedBits-1:0] answer_used_o,      // cycles since acceptance
    output wire [              KicksBits-1:0] answer_kicks_o,     // entries that an insertion moved
    output wire                               answer_in_stash_o,  // what was written is there

    // State of the table.
    output wire sweeping_o,    // lookups of this cycle miss
    output wire sweep_rows_o,  // a row is swept in this cycle; not without sweeping_o
    output wire fill_start_o,  // begin to fill in the next cycle; one cycle, not with fill_busy_i
    input  wire fill_busy_i,   // round keys and hash memories are being filled; not without sweeping_o
    input  wire fill_last_i,   // with fill_busy_i: the last cycle of it

    // Hash memories: the ports of rvma_table_fill.
    input wire [`RVMA_TABLE_ROUNDS * `RVMA_TABLE_KEY_BITS-1:0] round_keys_i,  // unless fill_busy_i
    input wire                                                 fill_i,        // write one byte value's row numbers
    input wire [                                          7:0] fill_value_i,  // with fill_i: the byte value
    input wire [    Banks * `RVMA_TABLE_KEY_BYTES * RowBits-1:0] fill_rows_i,   // with fill_i: bank, then byte

    // The table's one write port, for both copies and the stash.
    output wire                    write_o,           // writes one place
    output wire                    write_all_o,       // clears a row of every memory, with row 0 also the stash
    output wire [LocationBits-1:0] write_location_o,  // with write_o: the place; with write_all_o: {0, 0, row, 0}
    output reg  [    WordBits-1:0] write_word_o,      // with write_o: 0 to clear or erase; with write_all_o: 0

    // Stash, compared with stash_key_o in the same cycle; looked at in CHECK, and in PICK for a free place.
    output wire [  `RVMA_TABLE_KEY_BITS-1:0] stash_key_o,         // of the entry in hand
    input  wire                              stash_hit_i,         // a place holds the key
    input  wire [`RVMA_TABLE_VALUE_BITS-1:0] stash_value_i,       // with stash_hit_i: its value
    input  wire [             StashBits-1:0] stash_hit_index_i,   // with stash_hit_i: the place
    input  wire                              stash_bad_i,         // a place, whatever its key, has a bad word
    input  wire [             StashBits-1:0] stash_bad_index_i,   // with stash_bad_i: the lowest such
    input  wire                              stash_free_i,        // a place is free
    input  wire [             StashBits-1:0] stash_free_index_i,  // with stash_free_i: the lowest such

    // Faults.
    output wire                    bad_o,           // a CHECK reads a bad word
    output wire [LocationBits-1:0] bad_location_o,  // with bad_o: the lowest one
    input  wire                    clear_i,         // a place is to be cleared; done when idle, before commands
    input  wire [LocationBits-1:0] clear_location_i  // with clear_i
);

  localparam KeyBits = `RVMA_TABLE_KEY_BITS;
  localparam ValueBits = `RVMA_TABLE_VALUE_BITS;
  localparam BankBits = $clog2(Banks);
  localparam SlotBits = Slots > 1 ? $clog2(Slots) : 1;
  localparam PlaceBits = BankBits + RowBits + SlotBits;  // of a place in the banks: {bank, row, slot}
  localparam Places = Banks * Slots;
  localparam CandidateBits = $clog2(Places);
  localparam [RowBits-1:0] LastRow = {RowBits{1'b1}};
  // Lint: the values fit by construction.
  // verilator lint_off WIDTH
  localparam [BankBits-1:0] LastBank = Banks - 1;
  localparam [SlotBits-1:0] LastSlot = Slots - 1;
  localparam [CandidateBits:0] All = Places;
  localparam [CandidateBits:0] AllButOneBank = Places - Slots;
  // verilator lint_on WIDTH

  localparam [2:0] StSweep = 3'd0;
  localparam [2:0] StIdle = 3'd1;
  localparam [2:0] StHash = 3'd2;
  localparam [2:0] StRead = 3'd3;
  localparam [2:0] StCheck = 3'd4;
  localparam [2:0] StPick = 3'd5;
  localparam [2:0] StWrite = 3'd6;

  function [LocationBits-1:0] in_banks;
    input [BankBits-1:0] bank;
    input [RowBits-1:0] row;
    input [SlotBits-1:0] slot;
    begin
      in_banks = {LocationBits{1'b0}};
      in_banks[PlaceBits-1:0] = {bank, row, slot};
    end
  endfunction

  function [LocationBits-1:0] in_stash;
    input [StashBits-1:0] index;
    begin
      in_stash = {LocationBits{1'b0}};
      in_stash[LocationBits-1] = 1'b1;
      in_stash[StashBits-1:0] = index;
    end
  endfunction

  // ------------------------------------------------------------------------------------------------------ registers
  reg [2:0] state_q, state_d;

  // The command.
  reg [`RVMA_TABLE_OPERATION_BITS-1:0] operation_q;
  reg [KeyBits-1:0] key_q;
  reg [ValueBits-1:0] value_q;
  // The entry whose key is searched: the new one, then the last one of the path.
  reg [WordBits-1:0] in_hand_q;
  // What WRITE writes next.
  reg [LocationBits-1:0] target_q;
  reg first_write_q;

  reg running_q;  // a command is, not what follows reset
  reg [UsedBits-1:0] used_q;
  reg [KicksBits-1:0] kicks_q;
  reg in_stash_q;  // the write of the cycle before was
  reg [31:0] entries_q;  // as wide as the contract's: faults may leave more counted than there are places

  reg sweep_q;
  reg [RowBits-1:0] sweep_row_q;

  reg answer_valid_q, answer_valid_d;
  reg [`RVMA_TABLE_STATUS_BITS-1:0] answer_status_q, answer_status_d;
  reg [ValueBits-1:0] answer_value_q, answer_value_d;

  wire idle = state_q == StIdle;
  wire take = valid_i && ready_o;
  assign ready_o = idle && !clear_i;

  // ------------------------------------------------------------------------------------------ path and key in hand
  reg path_push;
  reg path_clear;
  wire path_pop = state_q == StWrite;
  wire [PlaceBits-1:0] candidate_place;
  wire on_path;
  wire path_empty;
  wire path_full;
  wire [PlaceBits-1:0] newest;
  wire path_has_second;
  // Lint: only the row is used; its bank and slot are those of the newest place one cycle later.
  // verilator lint_off UNUSEDSIGNAL
  wire [PlaceBits-1:0] second;
  // verilator lint_on UNUSEDSIGNAL

  rvma_table_path #(
      .MaxKicks (MaxKicks),
      .PlaceBits(PlaceBits)
  ) path (
      .clk_i(clk_i),
      .rst_ni(rst_ni),
      .clear_i(path_clear),
      .push_i(path_push),
      .pop_i(path_pop),
      .place_i(candidate_place),
      .contains_o(on_path),
      .empty_o(path_empty),
      .full_o(path_full),
      .newest_o(newest),
      .has_second_o(path_has_second),
      .second_o(second)
  );

  wire [BankBits-1:0] bank_in_hand = newest[PlaceBits-1-:BankBits];  // unless path_empty

  // ----------------------------------------------------------------------------------------------- hash and memories
  wire [Banks*RowBits-1:0] hashed_rows;

  rvma_table_hash #(
      .Banks(Banks),
      .RowBits(RowBits)
  ) hash (
      .clk_i(clk_i),
      .round_keys_i(round_keys_i),
      .fill_i(fill_i),
      .fill_value_i(fill_value_i),
      .fill_rows_i(fill_rows_i),
      .read_i(state_q == StHash),
      .key_i(in_hand_q[KeyBits-1:0]),
      .rows_o(hashed_rows)
  );

  // Rows of the key in hand in READ; in WRITE, of the entry that the next cycle moves.
  wire [Banks*RowBits-1:0] read_rows = state_q == StWrite ? {Banks{second[SlotBits+:RowBits]}} : hashed_rows;
  wire [Places*WordBits-1:0] words;

  rvma_table_banks #(
      .Banks(Banks),
      .Rows(Rows),
      .Slots(Slots),
      .WordBits(WordBits)
  ) banks (
      .clk_i(clk_i),
      .write_i(write_o && !write_location_o[LocationBits-1]),
      .write_all_i(write_all_o),
      .write_bank_i(write_location_o[PlaceBits-1-:BankBits]),
      .write_row_i(write_location_o[SlotBits+:RowBits]),
      .write_slot_i(write_location_o[SlotBits-1:0]),
      .write_word_i(write_word_o),
      .read_i(state_q == StRead || (state_q == StWrite && path_has_second)),
      .read_rows_i(read_rows),
      .words_o(words)
  );

  reg [Banks*RowBits-1:0] rows_q;  // of the key in hand, in CHECK and PICK
  always @(posedge clk_i) begin
    if (state_q == StRead) rows_q <= hashed_rows;
  end

  // ----------------------------------------------------------------------------------------------------------- check
  assign stash_key_o = in_hand_q[KeyBits-1:0];

  wire [Places-1:0] hits;
  wire [Places-1:0] occupied;
  wire [Places-1:0] bad;

  genvar place;
  generate
    for (place = 0; place < Places; place = place + 1) begin : g_check
      rvma_table_check #(
          .Protection(Protection)
      ) check (
          .word_i(words[place*WordBits+:WordBits]),
          .key_i(in_hand_q[KeyBits-1:0]),
          .hit_o(hits[place]),
          .occupied_o(occupied[place]),
          .bad_o(bad[place])
      );
    end
  endgenerate

  // The lowest place of each kind, and what it holds. Once there is a path, its newest place's bank is left out.
  reg bank_hit, bank_empty, bank_bad;
  reg [LocationBits-1:0] hit_location, empty_location, bank_bad_location;
  reg [ValueBits-1:0] bank_value;
  integer b, s;
  always @* begin
    {bank_hit, bank_empty, bank_bad} = 3'b000;
    hit_location = in_stash(stash_hit_index_i);
    empty_location = {LocationBits{1'b0}};
    bank_bad_location = {LocationBits{1'b0}};
    bank_value = {ValueBits{1'b0}};
    for (b = Banks - 1; b >= 0; b = b - 1) begin
      for (s = Slots - 1; s >= 0; s = s - 1) begin
        if (hits[b*Slots+s]) begin
          bank_hit = 1'b1;
          hit_location = in_banks(b[BankBits-1:0], rows_q[b*RowBits+:RowBits], s[SlotBits-1:0]);
          bank_value = words[(b*Slots+s)*WordBits+KeyBits+:ValueBits];
        end
        if (!occupied[b*Slots+s] && (path_empty || bank_in_hand != b[BankBits-1:0])) begin
          bank_empty = 1'b1;
          empty_location = in_banks(b[BankBits-1:0], rows_q[b*RowBits+:RowBits], s[SlotBits-1:0]);
        end
        if (bad[b*Slots+s] && (path_empty || bank_in_hand != b[BankBits-1:0])) begin
          bank_bad = 1'b1;
          bank_bad_location = in_banks(b[BankBits-1:0], rows_q[b*RowBits+:RowBits], s[SlotBits-1:0]);
        end
      end
    end
  end

  wire found = bank_hit || stash_hit_i;
  wire [ValueBits-1:0] found_value = bank_hit ? bank_value : stash_value_i;

  assign bad_o = state_q == StCheck && (bank_bad || (stash_bad_i && path_empty));
  assign bad_location_o = bank_bad ? bank_bad_location : in_stash(stash_bad_index_i);

  // ------------------------------------------------------------------------------------------------------------ pick
  wire [CandidateBits-1:0] start;

  rvma_table_walk #(
      .Banks  (Banks),
      .Slots  (Slots),
      .RowBits(RowBits)
  ) walk (
      .clk_i(clk_i),
      .begin_i(state_q == StRead && path_empty),
      .rows_i(hashed_rows),
      .step_i(state_q == StHash && !path_empty),
      .first_i(path_empty),
      .start_o(start)
  );

  reg [BankBits-1:0] candidate_bank_q, candidate_bank_d;
  reg [SlotBits-1:0] candidate_slot_q, candidate_slot_d;
  reg [CandidateBits:0] tries_left_q;  // after this one

  function [BankBits-1:0] bank_after;
    input [BankBits-1:0] bank;
    bank_after = bank == LastBank ? {BankBits{1'b0}} : bank + 1'b1;
  endfunction

  // Candidate number `start` as bank and slot, without the bank in hand.
  reg [BankBits-1:0] start_bank;
  reg [SlotBits-1:0] start_slot;
  always @* begin
    start_bank = {BankBits{1'b0}};
    start_slot = {SlotBits{1'b0}};
    for (b = 0; b < Banks; b = b + 1) begin
      for (s = 0; s < Slots; s = s + 1) begin
        if ({{32 - CandidateBits{1'b0}}, start} == b * Slots + s) begin
          start_bank = b[BankBits-1:0];
          start_slot = s[SlotBits-1:0];
        end
      end
    end
    if (!path_empty && start_bank >= bank_in_hand) start_bank = bank_after(start_bank);
  end

  wire [BankBits-1:0] bank_above = bank_after(candidate_bank_q);

  always @* begin
    candidate_bank_d = candidate_bank_q;
    candidate_slot_d = candidate_slot_q;
    if (state_q == StCheck) begin
      candidate_bank_d = start_bank;
      candidate_slot_d = start_slot;
    end else if (candidate_slot_q != LastSlot) begin
      candidate_slot_d = candidate_slot_q + 1'b1;
    end else begin
      candidate_slot_d = {SlotBits{1'b0}};
      candidate_bank_d = !path_empty && bank_above == bank_in_hand ? bank_after(bank_above) : bank_above;
    end
  end

  always @(posedge clk_i) begin
    candidate_bank_q <= candidate_bank_d;
    candidate_slot_q <= candidate_slot_d;
    tries_left_q <= (state_q == StCheck ? (path_empty ? All : AllButOneBank) : tries_left_q) - 1'b1;
  end

  wire last_try = tries_left_q == {CandidateBits + 1{1'b0}};
  assign candidate_place = {candidate_bank_q, rows_q[candidate_bank_q*RowBits+:RowBits], candidate_slot_q};

  // The word of a bank and slot as read: the candidate's in PICK, the one to be moved in WRITE.
  wire [BankBits-1:0] word_bank = state_q == StWrite ? newest[PlaceBits-1-:BankBits] : candidate_bank_q;
  wire [SlotBits-1:0] word_slot = state_q == StWrite ? newest[SlotBits-1:0] : candidate_slot_q;
  reg [WordBits-1:0] word;
  always @* begin
    word = {WordBits{1'b0}};
    for (b = 0; b < Banks; b = b + 1) begin
      for (s = 0; s < Slots; s = s + 1) begin
        if (word_bank == b[BankBits-1:0] && word_slot == s[SlotBits-1:0]) begin
          word = words[(b*Slots+s)*WordBits+:WordBits];
        end
      end
    end
  end

  // ----------------------------------------------------------------------------------------------------- new entry
  wire [WordBits-1:0] new_word;
  assign new_word[`RVMA_TABLE_VALID_BIT:0] = {1'b1, value_q, key_q};
  generate
    if (Protection == `RVMA_TABLE_PROTECTION_PARITY) begin : g_parity
      assign new_word[`RVMA_TABLE_PARITY_BIT] = ^{1'b1, value_q, key_q};
    end
  endgenerate

  // ---------------------------------------------------------------------------------------------------- next state
  wire sweep_done = (!sweep_q || sweep_row_q == LastRow) && (!fill_busy_i || fill_last_i);
  wire is_erase = operation_q == `RVMA_TABLE_ERASE;
  wire is_insert = operation_q == `RVMA_TABLE_INSERT;

  // An insertion has found no path to an empty place: the stash, or nothing at all.
  wire gives_up = state_q == StCheck ? is_insert && !(path_empty && found) && !bank_empty && path_full
                                     : state_q == StPick && on_path && last_try;

  reg [LocationBits-1:0] target_d;
  reg start_sweep;
  reg start_fill;

  always @* begin
    state_d = state_q;
    target_d = target_q;
    path_push = 1'b0;
    path_clear = 1'b0;
    start_sweep = 1'b0;
    start_fill = 1'b0;
    answer_valid_d = 1'b0;
    answer_status_d = `RVMA_TABLE_OK;
    answer_value_d = {ValueBits{1'b0}};

    case (state_q)
      StSweep: begin
        if (sweep_done) begin
          state_d = StIdle;
          answer_valid_d = running_q;
        end
      end

      StIdle: begin
        path_clear = 1'b1;
        if (take) begin
          case (operation_i)
            `RVMA_TABLE_INSERT, `RVMA_TABLE_ERASE, `RVMA_TABLE_UPDATE, `RVMA_TABLE_FIND: state_d = StHash;
            `RVMA_TABLE_FLUSH: begin
              state_d = StSweep;
              start_sweep = 1'b1;
            end
            `RVMA_TABLE_LOAD_SEED: begin
              if (entries_q == 32'd0) begin
                state_d = StSweep;
                start_fill = 1'b1;
              end else begin
                answer_valid_d = 1'b1;
                answer_status_d = `RVMA_TABLE_BUSY;
              end
            end
            default: begin
              answer_valid_d = 1'b1;
              answer_status_d = `RVMA_TABLE_BAD;
            end
          endcase
        end
      end

      StHash: state_d = StRead;

      StRead: state_d = StCheck;

      StCheck: begin
        if (!is_insert) begin
          target_d = hit_location;
          if (found && operation_q != `RVMA_TABLE_FIND) begin
            state_d = StWrite;
          end else begin
            state_d = StIdle;
            answer_valid_d = 1'b1;
            answer_status_d = found ? `RVMA_TABLE_OK : `RVMA_TABLE_NOT_FOUND;
            answer_value_d = found_value;
          end
        end else if (path_empty && found) begin
          state_d = StIdle;
          answer_valid_d = 1'b1;
          answer_status_d = `RVMA_TABLE_EXISTS;
        end else if (bank_empty) begin
          state_d = StWrite;
          target_d = empty_location;
        end else if (!path_full) begin
          state_d = StPick;
        end
      end

      StPick: begin
        if (!on_path) begin
          state_d = StHash;
          path_push = 1'b1;
        end
      end

      StWrite: begin
        target_d = in_banks(newest[PlaceBits-1-:BankBits], newest[SlotBits+:RowBits], newest[SlotBits-1:0]);
        if (path_empty) begin
          state_d = StIdle;
          answer_valid_d = 1'b1;
        end
      end

      default: state_d = StIdle;
    endcase
    if (gives_up) begin
      path_clear = 1'b1;
      if (stash_free_i) begin
        state_d = StWrite;
        target_d = in_stash(stash_free_index_i);
      end else begin
        state_d = StIdle;
        answer_valid_d = 1'b1;
        answer_status_d = `RVMA_TABLE_FULL;
      end
    end
  end

  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StSweep;
      running_q <= 1'b0;
      sweep_q <= 1'b1;
      sweep_row_q <= {RowBits{1'b0}};
      entries_q <= 32'd0;
      answer_valid_q <= 1'b0;
    end else begin
      state_q <= state_d;
      answer_valid_q <= answer_valid_d;
      if (take) running_q <= 1'b1;

      if (start_sweep) sweep_q <= 1'b1;
      else if (sweep_row_q == LastRow) sweep_q <= 1'b0;
      if (sweep_q) sweep_row_q <= sweep_row_q + 1'b1;  // ends at 0

      if (start_sweep) entries_q <= 32'd0;
      else if (state_q == StWrite && path_empty && is_insert) entries_q <= entries_q + 32'd1;
      else if (state_q == StWrite && is_erase) entries_q <= entries_q - 32'd1;
    end
  end

  always @(posedge clk_i) begin
    if (take) begin
      operation_q <= operation_i;
      key_q <= key_i;
      value_q <= value_i;
      in_hand_q[KeyBits-1:0] <= key_i;
    end else if (state_q == StPick) begin
      in_hand_q <= word;
    end
    target_q <= target_d;
    first_write_q <= state_q != StWrite;
    if (take) kicks_q <= {KicksBits{1'b0}};
    else if (state_q == StWrite && !path_empty) kicks_q <= kicks_q + 1'b1;
    in_stash_q <= state_q == StWrite && target_q[LocationBits-1];
    used_q <= take ? {{UsedBits - 1{1'b0}}, 1'b1} : used_q + 1'b1;
    answer_status_q <= answer_status_d;
    answer_value_q <= answer_value_d;
  end

  // ----------------------------------------------------------------------------------------------------- write port
  always @* begin
    write_word_o = {WordBits{1'b0}};
    if (state_q == StWrite && !is_erase) begin
      if (path_empty) write_word_o = new_word;
      else if (first_write_q) write_word_o = in_hand_q;
      else write_word_o = word;
    end
  end

  assign write_all_o = sweep_q;
  assign write_o = state_q == StWrite || (idle && clear_i);
  assign write_location_o = sweep_q ? in_banks({BankBits{1'b0}}, sweep_row_q, {SlotBits{1'b0}})
                            : state_q == StWrite ? target_q : clear_location_i;

  // -------------------------------------------------------------------------------------------------------- outputs
  assign answer_valid_o = answer_valid_q;
  assign answer_status_o = answer_status_q;
  assign answer_value_o = answer_value_q;
  assign answer_used_o = used_q;
  assign answer_kicks_o = kicks_q;
  assign answer_in_stash_o = in_stash_q;
  assign sweeping_o = state_q == StSweep;
  assign sweep_rows_o = sweep_q;
  assign fill_start_o = start_fill;

endmodule

`default_nettype wire
