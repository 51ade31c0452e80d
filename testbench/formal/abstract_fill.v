// Stands for rvma_table_fill in proofs: a filling takes any time. Instead of round keys and row numbers it hands out
// the watched key, which is any key and stays the same, and that key's rows, which are any rows and change only during
// a filling. abstract_hash.v makes rows of them.
//
// With FORMAL_CONCRETE_HASH, for covers, the rows are low bits of the key: one fixed function.
`default_nettype none
`include "rvma_table_constants.vh"

module rvma_table_fill #(
    parameter Banks = 4,
    parameter RowBits = 9
) (
    input wire clk_i,
    input wire rst_ni,

    input wire [63:0] reset_seed_i,
    input wire        start_i,
    input wire [63:0] seed_i,

    output wire busy_o,
    output wire last_o,

    output wire [`RVMA_TABLE_ROUNDS * `RVMA_TABLE_KEY_BITS-1:0] round_keys_o,
    output wire                                                 fill_o,
    output wire [                                          7:0] fill_value_o,
    output wire [    Banks * `RVMA_TABLE_KEY_BYTES * RowBits-1:0] fill_rows_o
);

  localparam Width = Banks * RowBits;

  (* anyconst *) wire [`RVMA_TABLE_KEY_BITS-1:0] watched_key;
  (* anyseq *) wire last;
  (* anyseq *) wire [Width-1:0] new_rows;

  reg busy_q;
  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) busy_q <= 1'b1;
    else if (start_i) busy_q <= 1'b1;
    else if (last_o) busy_q <= 1'b0;
  end

`ifdef FORMAL_CONCRETE_HASH
  wire [Width-1:0] watched_rows = watched_key[Width-1:0];
`else
  reg [Width-1:0] rows_q;
  always @(posedge clk_i) begin
    if (busy_q) rows_q <= new_rows;
  end
  wire [Width-1:0] watched_rows = rows_q;
`endif

  assign busy_o = busy_q;
  assign last_o = busy_q && last;
  assign fill_o = 1'b0;
  assign fill_value_o = 8'd0;
  assign round_keys_o = {{(`RVMA_TABLE_ROUNDS - 1) * `RVMA_TABLE_KEY_BITS{1'b0}}, watched_key};
  assign fill_rows_o = {{(`RVMA_TABLE_KEY_BYTES - 1) * Width{1'b0}}, watched_rows};

endmodule

`default_nettype wire
