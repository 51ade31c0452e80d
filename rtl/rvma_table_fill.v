// Fills the hash memories from a seed: one Trivium generator a bank, one word of 64 bits of each a cycle. The first
// words are dropped, the next four of bank 0 are the round keys, then each byte value takes WordsPerValue words, the
// first one lowest, and is written in the cycle of the last one.
//
// A filling takes 18 + 4 + 256 * WordsPerValue cycles; one with reset_seed_i begins in the first cycle after reset.
//
// Storage: Banks * (288 + 64 * (WordsPerValue - 1)) + 240 + 64 + 16 flip-flops.
`default_nettype none
`include "rvma_table_constants.vh"

module rvma_table_fill #(
    parameter Banks = 4,   // 2 to 8
    parameter RowBits = 9  // of a row number: 2 to 20
) (
    input wire clk_i,
    input wire rst_ni,

    input wire [63:0] reset_seed_i,  // stable in the first cycle after reset
    input wire        start_i,       // begin in the next cycle, with seed_i; not while busy_o
    input wire [63:0] seed_i,        // with start_i

    output wire busy_o,  // keys and memories are not to be used; from the first cycle after reset on
    output wire last_o,  // with busy_o: the last cycle of it

    output reg  [`RVMA_TABLE_ROUNDS * `RVMA_TABLE_KEY_BITS-1:0] round_keys_o,  // unless busy_o: first round lowest
    output wire                                                 fill_o,        // write one word of each hash memory
    output wire [                                          7:0] fill_value_o,  // with fill_o: the address
    output wire [    Banks * `RVMA_TABLE_KEY_BYTES * RowBits-1:0] fill_rows_o    // with fill_o: by bank, then byte
);

  localparam RowsBits = `RVMA_TABLE_KEY_BYTES * RowBits;  // row numbers of one byte value in one bank
  localparam WordsPerValue = (RowsBits + 63) / 64;
  localparam Before = `RVMA_TABLE_WARM_UP_WORDS + `RVMA_TABLE_ROUND_KEY_WORDS;
  localparam KeyBits = `RVMA_TABLE_ROUNDS * `RVMA_TABLE_KEY_BITS;
  localparam [4:0] FirstKeyWord = `RVMA_TABLE_WARM_UP_WORDS;
  localparam [4:0] LastBefore = Before - 1;
  // Lint: 0 to 3.
  // verilator lint_off WIDTH
  localparam [1:0] LastWord = WordsPerValue - 1;
  // verilator lint_on WIDTH

  // -- Sequence.
  reg        busy_q;
  reg        first_q;   // the generators start anew
  reg        reset_q;   // .. from reset_seed_i
  reg [63:0] seed_q;
  reg        before_q;  // words before those of the memories
  reg [ 4:0] count_q;   // of them
  reg [ 7:0] value_q;
  reg [ 1:0] word_q;    // of the value

  assign busy_o = busy_q;
  assign fill_o = busy_q && !before_q && word_q == LastWord;
  assign fill_value_o = value_q;
  assign last_o = fill_o && value_q == 8'hff;

  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q <= 1'b1;
      first_q <= 1'b1;
      reset_q <= 1'b1;
      before_q <= 1'b1;
      count_q <= 5'd0;
      value_q <= 8'd0;
      word_q <= 2'd0;
    end else if (start_i) begin
      busy_q <= 1'b1;
      first_q <= 1'b1;
      before_q <= 1'b1;
      count_q <= 5'd0;
    end else if (busy_q) begin
      first_q <= 1'b0;
      reset_q <= 1'b0;
      if (before_q) begin
        count_q  <= count_q + 5'd1;
        before_q <= count_q != LastBefore;
      end else if (!fill_o) begin
        word_q <= word_q + 2'd1;
      end else begin
        word_q  <= 2'd0;
        value_q <= value_q + 8'd1;  // ends at 0
        busy_q  <= !last_o;
      end
    end
  end

  always @(posedge clk_i) begin
    if (start_i) seed_q <= seed_i;
  end

  // -- Generators.
  // Lint: where a value takes one word, that may have more bits than are needed.
  // verilator lint_off UNUSEDSIGNAL
  wire [64*Banks-1:0] words;
  // verilator lint_on UNUSEDSIGNAL
  genvar bank;
  generate
    for (bank = 0; bank < Banks; bank = bank + 1) begin : g_bank
      rvma_table_trivium #(
          .Bank(bank)
      ) generator (
          .clk_i(clk_i),
          .step_i(busy_q),
          .first_i(first_q),
          .seed_i(reset_q ? reset_seed_i : seed_q),
          .word_o(words[64*bank+:64])
      );

      if (WordsPerValue == 1) begin : g_one
        assign fill_rows_o[bank*RowsBits+:RowsBits] = words[64*bank+:RowsBits];
      end else begin : g_more
        localparam BufferBits = 64 * (WordsPerValue - 1);
        reg [BufferBits-1:0] buffer_q;
        // Lint: the last word of a value has more bits than are needed.
        // verilator lint_off UNUSEDSIGNAL
        wire [BufferBits+63:0] joined = {words[64*bank+:64], buffer_q};
        // verilator lint_on UNUSEDSIGNAL
        always @(posedge clk_i) begin
          if (busy_q) buffer_q <= joined[BufferBits+63:64];
        end
        assign fill_rows_o[bank*RowsBits+:RowsBits] = joined[RowsBits-1:0];
      end
    end
  endgenerate

  // -- Round keys.
  genvar key_word;
  generate
    for (key_word = 0; key_word < `RVMA_TABLE_ROUND_KEY_WORDS; key_word = key_word + 1) begin : g_round_keys
      localparam Width = 64 * (key_word + 1) <= KeyBits ? 64 : KeyBits - 64 * key_word;
      localparam [4:0] Count = FirstKeyWord + key_word;
      always @(posedge clk_i) begin
        if (busy_q && before_q && count_q == Count) round_keys_o[64*key_word+:Width] <= words[Width-1:0];
      end
    end
  endgenerate

endmodule

`default_nettype wire
