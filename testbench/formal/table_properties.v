// Properties of the translation table, around the core with abstract_*.v in place of its hash, its filling and its
// memories.
//
// A shadow follows one watched key, which is any key, through the ports alone. `cut` names the cycles between commands;
// `between_*` say what the core's registers and memories hold then. There are two proofs, of the same assertions:
//
//   FromReset = 1   the first cycle is reset, of any state; then DEPTH cycles.
//   FromReset = 0   the first cycle is any cut, of which all assertions are assumed: one step of an induction over
//                   commands. If DEPTH covers the longest command and Latency, each cycle after reset lies in such a
//                   step, and so the assertions hold for ever. That commands end is asserted.
//
// Only = n asserts property n alone (0: all), to show that it fails for a wrong core; from 100 on, situations that are
// to be reached.
`default_nettype none
`include "rvma_table_constants.vh"

`define CHECK(label, property, condition) \
  always @* if (rst_ni) begin \
    if (assuming) assume (condition); \
    else if (Only == 0 || Only == property) label: assert (condition); \
  end
// One situation as an assertion that fails when it is reached, or all of them as covers.
`define REACH(label, number, situation) \
  always @* if (rst_ni && !assuming) begin \
    if (Only == number) reach_``label: assert (!(situation)); \
    if (Only == 100) cover_``label: cover (situation); \
  end

module table_properties #(
    parameter Banks = 2,
    parameter Rows = 4,
    parameter Slots = 1,
    parameter Stash = 1,  // 1 at least
    parameter MaxKicks = 2,
    parameter Latency = 1,
    parameter Protection = 0,
    parameter FromReset = 0,
    parameter Only = 0,
    parameter UsedBits = $clog2(`RVMA_TABLE_MOST_USED(Banks, Rows, Slots, MaxKicks) + 1),
    parameter KicksBits = $clog2(MaxKicks + 1)
) (
    input wire clk_i,
    input wire rst_ni,
    input wire [63:0] reset_seed_i,
    input wire lookup_valid_i,
    input wire [`RVMA_TABLE_PID_BITS-1:0] lookup_pid_i,
    input wire [`RVMA_TABLE_MAILBOX_BITS-1:0] lookup_mailbox_i,
    input wire command_valid_i,
    input wire [`RVMA_TABLE_OPERATION_BITS-1:0] command_operation_i,
    input wire [`RVMA_TABLE_PID_BITS-1:0] command_pid_i,
    input wire [`RVMA_TABLE_MAILBOX_BITS-1:0] command_mailbox_i,
    input wire [`RVMA_TABLE_VALUE_BITS-1:0] command_slot_i,
    input wire [63:0] command_seed_i
);

  localparam KeyBits = `RVMA_TABLE_KEY_BITS;
  localparam ValueBits = `RVMA_TABLE_VALUE_BITS;
  localparam WordBits = `RVMA_TABLE_PARITY_BIT + Protection;
  localparam RowBits = $clog2(Rows);
  localparam BankBits = $clog2(Banks);
  localparam SlotBits = Slots > 1 ? $clog2(Slots) : 1;
  localparam StashBits = Stash > 1 ? $clog2(Stash) : 1;
  localparam IndexBits = BankBits + RowBits + SlotBits > StashBits ? BankBits + RowBits + SlotBits : StashBits;
  localparam LocationBits = 1 + IndexBits;
  localparam Places = Banks * Slots * Rows;  // place (bank * Slots + slot) * Rows + row: here, by memory
  localparam All = Places + Stash;
  localparam LongestInsert = `RVMA_TABLE_INSERT_CYCLES(Banks, Slots, MaxKicks);
  localparam Longest = LongestInsert > 1 + Rows ? LongestInsert : 1 + Rows;

  wire lookup_valid_o;
  wire lookup_hit_o;
  wire [ValueBits-1:0] lookup_slot_o;
  wire lookup_sweeping_o;
  wire command_ready_o;
  wire answer_valid_o;
  wire [`RVMA_TABLE_STATUS_BITS-1:0] answer_status_o;
  wire [ValueBits-1:0] answer_slot_o;
  wire [UsedBits-1:0] answer_used_o;
  wire [KicksBits-1:0] answer_kicks_o;
  wire answer_in_stash_o;
  wire lookup_fault_valid_o;
  wire command_fault_valid_o;

  rvma_table #(
      .Banks(Banks),
      .Rows(Rows),
      .Slots(Slots),
      .Stash(Stash),
      .MaxKicks(MaxKicks),
      .Latency(Latency),
      .Protection(Protection)
  ) core (
      .clk_i(clk_i),
      .rst_ni(rst_ni),
      .reset_seed_i(reset_seed_i),
      .lookup_valid_i(lookup_valid_i),
      .lookup_pid_i(lookup_pid_i),
      .lookup_mailbox_i(lookup_mailbox_i),
      .lookup_valid_o(lookup_valid_o),
      .lookup_hit_o(lookup_hit_o),
      .lookup_slot_o(lookup_slot_o),
      .lookup_sweeping_o(lookup_sweeping_o),
      .command_valid_i(command_valid_i),
      .command_ready_o(command_ready_o),
      .command_operation_i(command_operation_i),
      .command_pid_i(command_pid_i),
      .command_mailbox_i(command_mailbox_i),
      .command_slot_i(command_slot_i),
      .command_seed_i(command_seed_i),
      .answer_valid_o(answer_valid_o),
      .answer_status_o(answer_status_o),
      .answer_slot_o(answer_slot_o),
      .answer_used_o(answer_used_o),
      .answer_kicks_o(answer_kicks_o),
      .answer_in_stash_o(answer_in_stash_o),
      .lookup_fault_valid_o(lookup_fault_valid_o),
      .command_fault_valid_o(command_fault_valid_o)
  );

  // ---------------------------------------------------------------- signals of the core, connected after flattening
  // scripts/formal connects probe_* by name: Yosys' Verilog has no hierarchical names.
  (* keep *) wire [KeyBits-1:0] probe_watched_key;
  (* keep *) wire [Banks*RowBits-1:0] probe_watched_rows;
  (* keep *) wire probe_fill_busy;
  (* keep *) wire [2:0] probe_state;
  (* keep *) wire probe_sweep;
  (* keep *) wire [RowBits-1:0] probe_sweep_row;
  (* keep *) wire [31:0] probe_entries;
  (* keep *) wire probe_running;
  (* keep *) wire probe_clear;
  (* keep *) wire probe_write;
  (* keep *) wire probe_write_all;
  (* keep *) wire [Latency:0] probe_writes;
  (* keep *) wire [Latency:0] probe_writes_all;
  (* keep *) wire [(Latency+1)*LocationBits-1:0] probe_locations;
  (* keep *) wire [(Latency+1)*WordBits-1:0] probe_words;
  (* keep *) wire [Stash*WordBits-1:0] probe_stash;
  (* keep *) wire [Places*WordBits-1:0] probe_a;
  (* keep *) wire [Places*WordBits-1:0] probe_b;

  localparam [2:0] StSweep = 3'd0;
  localparam [2:0] StIdle = 3'd1;
  localparam [2:0] StWrite = 3'd6;

  // ------------------------------------------------------------------------------------------------------- first cycle
  reg first_q = 1'b1;
  always @(posedge clk_i) first_q <= 1'b0;
  wire assuming = first_q && FromReset == 0;
  always @* assume (rst_ni == !(first_q && FromReset == 1));

  // ------------------------------------------------------------------------------------- shadow, seen from the ports
  wire take = command_valid_i && command_ready_o;

  reg starting_q;  // reset's sweep has not ended
  reg running_q;   // a command was taken; its answer ends it
  reg [`RVMA_TABLE_OPERATION_BITS-1:0] operation_q;
  reg watched_q;  // of the watched key
  reg [ValueBits-1:0] new_value_q;
  reg [7:0] age_q;  // cycles since acceptance, up to 255
  reg [1:0] tag_q;  // differs from command to command
  reg wrote_q;      // a memory was written since acceptance
  reg stored_q;     // the watched key is in the table, as of the answers before this cycle
  reg [ValueBits-1:0] value_q;

  wire is_insert = operation_q == `RVMA_TABLE_INSERT;
  wire is_erase = operation_q == `RVMA_TABLE_ERASE;
  wire is_update = operation_q == `RVMA_TABLE_UPDATE;
  wire is_find = operation_q == `RVMA_TABLE_FIND;
  wire is_flush = operation_q == `RVMA_TABLE_FLUSH;
  wire is_load_seed = operation_q == `RVMA_TABLE_LOAD_SEED;
  wire ok = answer_status_o == `RVMA_TABLE_OK;
  wire ends = answer_valid_o && running_q && ok;

  wire starting = starting_q && !command_ready_o;
  wire busy = running_q && !answer_valid_o;
  wire stored = ends && (is_flush || (is_erase && watched_q)) ? 1'b0 : ends && is_insert && watched_q ? 1'b1 : stored_q;
  wire [ValueBits-1:0] value = ends && (is_insert || is_update) && watched_q ? new_value_q : value_q;

  always @(posedge clk_i) begin
    starting_q <= !rst_ni || starting;
    running_q <= rst_ni && (take || busy);
    stored_q <= rst_ni && stored;
    value_q <= value;
    if (take) begin
      operation_q <= command_operation_i;
      watched_q <= {command_pid_i, command_mailbox_i} == probe_watched_key;
      new_value_q <= command_slot_i;
      tag_q <= tag_q + 2'd1;
    end
    age_q <= take ? 8'd1 : age_q + (age_q != 8'd255);
    wrote_q <= !take && (wrote_q || probe_write || probe_write_all);
  end

  // What a lookup of the watched key that is presented in this cycle may see: the table before the command that runs,
  // or after it.
  wire sweeps = starting || (busy && (is_flush || is_load_seed));
  wire changes = busy && watched_q && (is_insert ? !stored : (is_erase || is_update) && stored);
  wire new_stored = changes ? !is_erase : stored;
  wire [ValueBits-1:0] new_value = changes && !is_erase ? new_value_q : value;

  // Lookups on their way; known: presented in the first cycle or later.
  reg [Latency-1:0] known_q = {Latency{1'b0}};
  reg [Latency-1:0] valid_q, match_q, sweeps_q, old_stored_q, new_stored_q, moved_q;
  reg [Latency*ValueBits-1:0] old_value_q, new_values_q;
  reg [Latency*2-1:0] tags_q;
  localparam Top = Latency - 1;
  always @(posedge clk_i) begin
    known_q <= {known_q, 1'b1};
    valid_q <= {valid_q, lookup_valid_i && rst_ni};
    match_q <= {match_q, {lookup_pid_i, lookup_mailbox_i} == probe_watched_key};
    sweeps_q <= {sweeps_q, sweeps};
    old_stored_q <= {old_stored_q, stored};
    new_stored_q <= {new_stored_q, new_stored};
    old_value_q <= {old_value_q, value};
    new_values_q <= {new_values_q, new_value};
    tags_q <= {tags_q, tag_q};
    moved_q <= {moved_q, busy && is_insert && !watched_q && probe_state == StWrite && in_two_places};
  end
  wire answered = known_q[Top] && valid_q[Top];
  wire of_watched = answered && match_q[Top] && !sweeps_q[Top];
  wire [ValueBits-1:0] old_value_top = old_value_q[Top*ValueBits+:ValueBits];
  wire [ValueBits-1:0] new_value_top = new_values_q[Top*ValueBits+:ValueBits];
  wire sees_old = old_stored_q[Top] ? lookup_hit_o && lookup_slot_o == old_value_top : !lookup_hit_o;
  wire sees_new = new_stored_q[Top] ? lookup_hit_o && lookup_slot_o == new_value_top : !lookup_hit_o;

  // ------------------------------------------------------------------------------------------------- 1 no false hit
  `CHECK(p1_no_false_hit, 1, !(of_watched && lookup_hit_o) || old_stored_q[Top] || new_stored_q[Top])
  `CHECK(p1_no_hit_while_swept, 1, !(answered && sweeps_q[Top]) || !lookup_hit_o)
  `CHECK(p1_no_value_without_hit, 1, !answered || lookup_hit_o || lookup_slot_o == {ValueBits{1'b0}})

  // ---------------------------------------------------------------------------- 2 an inserted key is found, always
  `CHECK(p2_found, 2, !(of_watched && old_stored_q[Top] && new_stored_q[Top]) || lookup_hit_o)
  `CHECK(p2_old_or_new_value, 2, !of_watched || sees_old || sees_new)

  // Never new and then old: of two lookups that are presented while one command runs.
  reg seen_new_q = 1'b0;
  reg [1:0] seen_tag_q;
  wire same_command = tags_q[Top*2+:2] == seen_tag_q;
  always @(posedge clk_i) begin
    if (of_watched) begin
      seen_new_q <= !sees_old || (seen_new_q && same_command);
      seen_tag_q <= tags_q[Top*2+:2];
    end
  end
  `CHECK(p2_never_new_then_old, 2, !(of_watched && seen_new_q && same_command) || sees_new)

  // -------------------------------------------------------------------------------------------------- 3 fixed latency
  `CHECK(p3_valid_after_latency, 3, !known_q[Top] || lookup_valid_o == valid_q[Top])
  `CHECK(p3_sweeping, 3, !answered || lookup_sweeping_o == sweeps_q[Top])

  // -------------------------------------------------------------------------------------------------- 4 handshake
  `CHECK(p4_answer_has_a_command, 4, !answer_valid_o || running_q)
  `CHECK(p4_one_command_at_a_time, 4, !command_ready_o || !busy)
  `CHECK(p4_ready_between_commands, 4, busy || starting_q || command_ready_o)
  `CHECK(p4_answer_comes, 4, !busy || is_load_seed || age_q < Longest)
  `CHECK(p4_used, 4, !answer_valid_o || (is_load_seed && ok) || answer_used_o == age_q)

  // ------------------------------------------------------------------------------------------ 5 full changes nothing
  wire full = answer_valid_o && answer_status_o == `RVMA_TABLE_FULL;
  (* anyconst *) wire [7:0] any_place;
  reg [WordBits-1:0] any_a, any_b;
  integer i;
  always @* begin
    any_a = {WordBits{1'b0}};
    any_b = {WordBits{1'b0}};
    for (i = 0; i < All; i = i + 1) begin
      if (any_place == i) begin
        any_a = i < Places ? probe_a[i*WordBits+:WordBits] : probe_stash[(i-Places)*WordBits+:WordBits];
        any_b = i < Places ? probe_b[i*WordBits+:WordBits] : probe_stash[(i-Places)*WordBits+:WordBits];
      end
    end
  end
  // Of copy A and the stash, two cycles after acceptance: writes of the command before arrive late there.
  reg [WordBits-1:0] before_a_q, before_b_q;
  always @(posedge clk_i) begin
    if (age_q == 8'd2) before_a_q <= any_a;
    if (take) before_b_q <= any_b;
  end
  `CHECK(p5_full_writes_nothing, 5, !full || !wrote_q)
  `CHECK(p5_full_changes_no_word, 5, assuming || !full || ((any_place >= Places || any_b == before_b_q) && any_a == before_a_q))
  `CHECK(p5_full_is_of_an_insert, 5, !full || is_insert)

  // --------------------------------------------------------------------------------------- 6 answers of commands
  wire answers = answer_valid_o && running_q && watched_q;
  `CHECK(p6_insert, 6, !(answers && is_insert) || (stored_q ? answer_status_o == `RVMA_TABLE_EXISTS
                                                   : ok || answer_status_o == `RVMA_TABLE_FULL))
  `CHECK(p6_erase_update_find, 6, !(answers && (is_erase || is_update || is_find)) ||
                                  answer_status_o == (stored_q ? `RVMA_TABLE_OK : `RVMA_TABLE_NOT_FOUND))
  `CHECK(p6_value_of_find, 6, !answer_valid_o || (is_find && ok ? !watched_q || answer_slot_o == value_q
                                                  : answer_slot_o == {ValueBits{1'b0}}))
  `CHECK(p6_flush, 6, !(answer_valid_o && is_flush) || ok)
  `CHECK(p6_load_seed, 6, !(answer_valid_o && is_load_seed) ||
                          (stored_q ? answer_status_o == `RVMA_TABLE_BUSY : ok || answer_status_o == `RVMA_TABLE_BUSY))
  `CHECK(p6_unknown, 6, !(answer_valid_o && operation_q > `RVMA_TABLE_LOAD_SEED) || answer_status_o == `RVMA_TABLE_BAD)
  // Lookups that were presented before a step began are the step's before, which went on until they were answered.
  wire of_step_before = FromReset == 0 && !known_q[Top];
  always @* if (rst_ni && of_step_before) assume (!lookup_fault_valid_o);
  `CHECK(p6_no_fault, 6, !lookup_fault_valid_o && !command_fault_valid_o)

  // ------------------------------------------------------------------------------------- 7 between commands
  // What the memories hold once the writes on their way have arrived, oldest first.
  reg [Places*WordBits-1:0] a_then;
  reg [Stash*WordBits-1:0] stash_then;
  localparam LateA = Latency == 1 ? 1 : 2;
  localparam LateStash = Latency == 1 ? 0 : 1;
  integer k, place, number, mask;
  reg stash_written, stash_cleared;
  reg [LocationBits-1:0] location;
  always @* begin
    a_then = probe_a;
    stash_then = probe_stash;
    location = {LocationBits{1'b0}};
    stash_written = 1'b0;
    stash_cleared = 1'b0;
    for (k = LateA; k >= 1; k = k - 1) begin
      location = probe_locations[k*LocationBits+:LocationBits];
      for (place = 0; place < Places; place = place + 1) begin
        number = (place / Rows / Slots << RowBits + SlotBits) + (place % Rows << SlotBits) + place / Rows % Slots;
        if (probe_writes_all[k] ? location[SlotBits+:RowBits] == number[SlotBits+:RowBits]
                                : probe_writes[k] && location == number) begin
          a_then[place*WordBits+:WordBits] = probe_words[k*WordBits+:WordBits];
        end
      end
    end
    for (k = LateStash; k >= 1; k = k - 1) begin
      location = probe_locations[k*LocationBits+:LocationBits];
      for (place = 0; place < Stash; place = place + 1) begin
        number = (1 << LocationBits - 1) + place;
        mask = (1 << LocationBits - 1) + (1 << StashBits) - 1;  // what the stash looks at
        stash_written = probe_writes[k] && (location & mask) == number;
        stash_cleared = probe_writes_all[k] && location[SlotBits+:RowBits] == 0;
        if (stash_cleared || stash_written) begin
          stash_then[place*WordBits+:WordBits] = stash_cleared ? {WordBits{1'b0}} : probe_words[k*WordBits+:WordBits];
        end
      end
    end
  end

  // The watched key's places, and all entries, as commands see them.
  reg [All-1:0] holds;
  reg [All-1:0] at_home;
  reg [All-1:0] right_value;
  reg [All-1:0] parity;
  reg [31:0] entries;
  reg [7:0] copies;
  reg [WordBits-1:0] word;
  always @* begin
    entries = 32'd0;
    copies = 8'd0;
    for (place = 0; place < All; place = place + 1) begin
      word = place < Places ? probe_b[place*WordBits+:WordBits] : stash_then[(place-Places)*WordBits+:WordBits];
      holds[place] = word[`RVMA_TABLE_VALID_BIT] && word[KeyBits-1:0] == probe_watched_key;
      at_home[place] = place >= Places || probe_watched_rows[(place/Rows/Slots%Banks)*RowBits+:RowBits] == place % Rows;
      right_value[place] = word[KeyBits+:ValueBits] == value;
      parity[place] = ^word;
      entries = entries + word[`RVMA_TABLE_VALID_BIT];
      copies = copies + holds[place];
    end
  end
  wire in_two_places = copies > 8'd1;

  wire between = probe_state == StIdle;
  wire filling = probe_state == StSweep && !probe_sweep && probe_fill_busy;
  wire cut = between || filling;
  always @* if (assuming) assume (cut);

  // A step ends with the last answer of the lookups that were presented before its next cut: what follows is another
  // step's. A wrong core gets some cycles more to show what it has lost.
  localparam After = Only == 0 ? Latency : 7;
  reg [2:0] since_q = 3'd0;
  reg [7:0] cycle_q = 8'd0;
  reg cut_q = 1'b0;  // there was one
  always @(posedge clk_i) begin
    if (since_q != 3'd0 || (cut && !first_q)) since_q <= since_q + (since_q != 3'd7);
    cycle_q <= cycle_q + (cycle_q != 8'd255);
    cut_q <= cut_q || cut;
  end
  always @* assume (FromReset == 1 || since_q < After);

  // What makes it an induction: the sweep after reset comes to a cut, and each step ends within the depth of the proof.
  `CHECK(p4_first_cut, 4, FromReset == 0 || cycle_q <= Rows || cut || cut_q)
  `CHECK(p4_step_ends, 4, FromReset == 1 || cycle_q < Longest + After)

  `CHECK(between_control, 7, !cut || (!probe_sweep && probe_sweep_row == 0 && probe_fill_busy == filling))
  `CHECK(between_command, 7, !cut || (filling ? !answer_valid_o && probe_running == running_q &&
                                                (starting_q ? !running_q : running_q && is_load_seed)
                                      : answer_valid_o == running_q && !starting && (probe_running || !running_q)))
  `CHECK(between_copies, 7, !cut || a_then == probe_b)
  `CHECK(between_entries, 7, !cut || (probe_entries == entries && (!filling || entries == 0)))
  `CHECK(between_watched, 7, !cut || (copies == (stored ? 8'd1 : 8'd0) && (holds & ~at_home) == 0 &&
                                      (holds & ~right_value) == 0))
  `CHECK(between_faults, 7, !cut || !probe_clear)
  `CHECK(between_parity, 7, !cut || Protection == 0 || parity == 0)

  // ------------------------------------------------------------------------------------------------ reachable
  `REACH(hit, 101, of_watched && lookup_hit_o)
  `REACH(kick, 102, ends && is_insert && answer_kicks_o != 0)
  `REACH(two_kicks, 103, ends && is_insert && answer_kicks_o == 2)
  `REACH(hit_while_moving, 104, of_watched && lookup_hit_o && moved_q[Top])
  `REACH(in_stash, 105, ends && is_insert && answer_in_stash_o)
  `REACH(full, 106, full)
  `REACH(exists, 107, answer_valid_o && answer_status_o == `RVMA_TABLE_EXISTS)
  `REACH(erased, 108, ends && is_erase && watched_q)
  `REACH(updated, 109, ends && is_update && watched_q && new_value_q != value_q)
  `REACH(busy, 110, answer_valid_o && answer_status_o == `RVMA_TABLE_BUSY)
  `REACH(seed_loaded, 111, ends && is_load_seed)
  `REACH(flushed, 112, ends && is_flush && stored_q)

endmodule

`default_nettype wire
