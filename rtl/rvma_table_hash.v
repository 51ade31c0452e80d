// Keyed hash of a key to a row of every bank: mixing rounds, then byte tabulation. Each byte of the mixed key has a
// memory of its own, whose words hold the row numbers of all banks; a bank's row is the XOR of its ten numbers.
//
// Asynchronous = 0: rows_o belongs to the key that was presented with the last read_i in an earlier cycle.
// Asynchronous = 1: rows_o follows key_i in the same cycle (look-up-table RAM).
//
// A read that meets fill_i gives what is not defined: keys are hashed before or after a filling, not during it.
//
// Storage: 10 * 256 * Banks * RowBits bits of memory, in ten memories of 256 words.
`default_nettype none
`include "rvma_table_constants.vh"

module rvma_table_hash #(
    parameter Banks = 4,        // 2 to 8
    parameter RowBits = 9,      // of a row number: 2 to 20
    parameter Asynchronous = 0  // 0 or 1: see above
) (
    input wire clk_i,

    input wire [`RVMA_TABLE_ROUNDS * `RVMA_TABLE_KEY_BITS-1:0] round_keys_i,  // while key_i is to be hashed
    input wire                                                 fill_i,        // write one word of each memory
    input wire [                                          7:0] fill_value_i,  // with fill_i: the byte value
    input wire [    Banks * `RVMA_TABLE_KEY_BYTES * RowBits-1:0] fill_rows_i,   // with fill_i: bank, then byte

    input  wire                            read_i,  // not looked at if Asynchronous
    input  wire [`RVMA_TABLE_KEY_BITS-1:0] key_i,   // with read_i, or if Asynchronous: {pid, mailbox}
    output reg  [       Banks*RowBits-1:0] rows_o   // bank 0 lowest
);

  localparam KeyBytes = `RVMA_TABLE_KEY_BYTES;
  localparam Width = Banks * RowBits;

  wire [`RVMA_TABLE_KEY_BITS-1:0] mixed;
  rvma_table_mix mix (
      .key_i(key_i),
      .round_keys_i(round_keys_i),
      .mixed_o(mixed)
  );

  wire [KeyBytes*Width-1:0] words;
  genvar byte_index, bank;
  generate
    for (byte_index = 0; byte_index < KeyBytes; byte_index = byte_index + 1) begin : g_byte
      wire [Width-1:0] fill_word;
      for (bank = 0; bank < Banks; bank = bank + 1) begin : g_bank
        assign fill_word[bank*RowBits+:RowBits] = fill_rows_i[(bank*KeyBytes+byte_index)*RowBits+:RowBits];
      end
      rvma_table_memory #(
          .Words(`RVMA_TABLE_BYTE_VALUES),
          .Width(Width),
          .Asynchronous(Asynchronous)
      ) memory (
          .clk_i(clk_i),
          .write_i(fill_i),
          .write_address_i(fill_value_i),
          .write_data_i(fill_word),
          .read_i(read_i),
          .read_address_i(mixed[byte_index*8+:8]),
          .read_data_o(words[byte_index*Width+:Width])
      );
    end
  endgenerate

  integer i;
  always @* begin
    rows_o = {Width{1'b0}};
    for (i = 0; i < KeyBytes; i = i + 1) rows_o = rows_o ^ words[i*Width+:Width];
  end

endmodule

`default_nettype wire
