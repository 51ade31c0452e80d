// Stands for rvma_table_hash in proofs. The watched key has the rows that abstract_fill.v hands out, the same ones in
// both instances; any other key has any rows, even other ones in each cycle. Every function of keys to rows behaves
// like that, so what is proved holds for every hash and seed; and since the watched key is any key, for every key.
`default_nettype none
`include "rvma_table_constants.vh"

module rvma_table_hash #(
    parameter Banks = 4,
    parameter RowBits = 9,
    parameter Asynchronous = 0
) (
    input wire clk_i,

    input wire [`RVMA_TABLE_ROUNDS * `RVMA_TABLE_KEY_BITS-1:0] round_keys_i,
    input wire                                                 fill_i,
    input wire [                                          7:0] fill_value_i,
    input wire [    Banks * `RVMA_TABLE_KEY_BYTES * RowBits-1:0] fill_rows_i,

    input  wire                            read_i,
    input  wire [`RVMA_TABLE_KEY_BITS-1:0] key_i,
    output wire [       Banks*RowBits-1:0] rows_o
);

  localparam Width = Banks * RowBits;

  wire [`RVMA_TABLE_KEY_BITS-1:0] key;
  generate
    if (Asynchronous == 1) begin : g_asynchronous
      assign key = key_i;
    end else begin : g_synchronous
      reg [`RVMA_TABLE_KEY_BITS-1:0] key_q;
      always @(posedge clk_i) begin
        if (read_i) key_q <= key_i;
      end
      assign key = key_q;
    end
  endgenerate

`ifdef FORMAL_CONCRETE_HASH
  assign rows_o = key[Width-1:0];
`else
  (* anyseq *) wire [Width-1:0] others_rows;
  assign rows_o = key == round_keys_i[`RVMA_TABLE_KEY_BITS-1:0] ? fill_rows_i[Width-1:0] : others_rows;
`endif

endmodule

`default_nettype wire
