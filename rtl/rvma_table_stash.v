// The stash: registers, searched whole by lookups and by commands in every cycle.
//
// Storage: Stash * WordBits flip-flops, without reset: the sweep after reset clears them.
`default_nettype none
`include "rvma_table_constants.vh"

module rvma_table_stash #(
    parameter Stash = 8,                                        // places: 0 (nothing hits, none is free) to 64
    parameter Protection = `RVMA_TABLE_PROTECTION_PARITY,       // 0 none, 1 parity
    parameter WordBits = `RVMA_TABLE_PARITY_BIT + Protection,    // derived, not to be set; so is the following
    parameter StashBits = Stash > 1 ? $clog2(Stash) : 1
) (
    input wire clk_i,

    input wire                 clear_i,        // clears every place
    input wire                 write_i,        // writes one place; not with clear_i
    input wire [StashBits-1:0] write_index_i,  // with write_i
    input wire [ WordBits-1:0] write_word_i,   // with write_i

    // What follows is of the words as earlier cycles left them, and of the key in the same cycle.
    input  wire [  `RVMA_TABLE_KEY_BITS-1:0] lookup_key_i,
    output wire                              lookup_hit_o,        // a place holds lookup_key_i
    output wire [`RVMA_TABLE_VALUE_BITS-1:0] lookup_value_o,      // of the lowest hit, else 0

    input  wire [  `RVMA_TABLE_KEY_BITS-1:0] command_key_i,
    output wire                              command_hit_o,        // a place holds command_key_i
    output wire [`RVMA_TABLE_VALUE_BITS-1:0] command_value_o,      // of the lowest hit, else 0
    output wire [             StashBits-1:0] command_hit_index_o,  // of the lowest hit, else 0

    output wire                 bad_o,        // a place, whatever its key, has a bad word
    output wire [StashBits-1:0] bad_index_o,  // of the lowest bad word, else 0
    output wire                 free_o,       // a place is free
    output wire [StashBits-1:0] free_index_o  // of the lowest free place, bad ones included, else 0
);

  localparam ValueBits = `RVMA_TABLE_VALUE_BITS;

  generate
    if (Stash == 0) begin : g_none
      // Lint: there is nothing to write or to compare.
      // verilator lint_off UNUSEDSIGNAL
      wire unused_ports = &{1'b0, clk_i, clear_i, write_i, write_index_i, write_word_i, lookup_key_i, command_key_i};
      // verilator lint_on UNUSEDSIGNAL
      assign {lookup_hit_o, command_hit_o, bad_o, free_o} = 4'b0;
      assign lookup_value_o = {ValueBits{1'b0}};
      assign command_value_o = {ValueBits{1'b0}};
      assign command_hit_index_o = {StashBits{1'b0}};
      assign bad_index_o = {StashBits{1'b0}};
      assign free_index_o = {StashBits{1'b0}};
    end else begin : g_stash
      // Public: the test bench flips stored bits.
      reg [Stash*WordBits-1:0] words_q  /* verilator public_flat_rw */;
      wire [Stash-1:0] lookup_hits;
      wire [Stash-1:0] command_hits;
      wire [Stash-1:0] occupied;
      wire [Stash-1:0] bad;
      wire [Stash*ValueBits-1:0] values;

      genvar place;
      for (place = 0; place < Stash; place = place + 1) begin : g_place
        localparam [StashBits-1:0] Place = place;
        always @(posedge clk_i) begin
          if (clear_i) words_q[place*WordBits+:WordBits] <= {WordBits{1'b0}};
          else if (write_i && write_index_i == Place) words_q[place*WordBits+:WordBits] <= write_word_i;
        end
        assign values[place*ValueBits+:ValueBits] = words_q[place*WordBits+`RVMA_TABLE_KEY_BITS+:ValueBits];
        rvma_table_check #(
            .Protection(Protection)
        ) check (
            .word_i(words_q[place*WordBits+:WordBits]),
            .key_i(lookup_key_i),
            .hit_o(lookup_hits[place]),
            .occupied_o(occupied[place]),
            .bad_o(bad[place])
        );
        assign command_hits[place] =
            occupied[place] && words_q[place*WordBits+:`RVMA_TABLE_KEY_BITS] == command_key_i;
      end

      assign lookup_hit_o = |lookup_hits;
      assign command_hit_o = |command_hits;
      assign bad_o = |bad;
      assign free_o = !(&occupied);

      // The lowest of each kind.
      reg [ValueBits-1:0] lookup_value;
      reg [ValueBits-1:0] command_value;
      reg [StashBits-1:0] command_hit_index;
      reg [StashBits-1:0] bad_index;
      reg [StashBits-1:0] free_index;
      integer i;
      always @* begin
        lookup_value = {ValueBits{1'b0}};
        command_value = {ValueBits{1'b0}};
        command_hit_index = {StashBits{1'b0}};
        bad_index = {StashBits{1'b0}};
        free_index = {StashBits{1'b0}};
        for (i = Stash - 1; i >= 0; i = i - 1) begin
          if (lookup_hits[i]) lookup_value = values[i*ValueBits+:ValueBits];
          if (command_hits[i]) command_value = values[i*ValueBits+:ValueBits];
          if (command_hits[i]) command_hit_index = i[StashBits-1:0];
          if (bad[i]) bad_index = i[StashBits-1:0];
          if (!occupied[i]) free_index = i[StashBits-1:0];
        end
      end
      assign lookup_value_o = lookup_value;
      assign command_value_o = command_value;
      assign command_hit_index_o = command_hit_index;
      assign bad_index_o = bad_index;
      assign free_index_o = free_index;
    end
  endgenerate

endmodule

`default_nettype wire
