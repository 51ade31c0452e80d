// Pseudo-random start of each PICK of an insertion: a register that begins from the rows of the new key, with one step
// of xorshift32 for each PICK, scaled to the number of candidates. It is one step ahead of the search.
//
// Storage: 32 flip-flops, without reset.
`default_nettype none
`include "rvma_table_constants.vh"

module rvma_table_walk #(
    parameter Banks = 4,    // 2 to 8
    parameter Slots = 2,    // of a row: 1 to 4
    parameter RowBits = 9,  // of a row number: 2 to 20
    parameter CandidateBits = $clog2(Banks * Slots)  // derived, not to be set
) (
    input wire clk_i,

    input wire                     begin_i,  // take rows_i
    input wire [Banks*RowBits-1:0] rows_i,   // with begin_i; bank 0 lowest
    input wire                     step_i,   // go on to the next PICK's; not with begin_i

    input  wire                     first_i,  // choose among all banks, else among all but one
    output wire [CandidateBits-1:0] start_o   // from the cycle after begin_i or step_i on: number of a candidate
);

  // Lint: at most 32.
  // verilator lint_off WIDTH
  localparam [5:0] All = Banks * Slots;
  localparam [5:0] AllButOneBank = (Banks - 1) * Slots;
  // verilator lint_on WIDTH

  function [31:0] xorshift;
    input [31:0] x;
    reg [31:0] y;
    begin
      y = x ^ (x << `RVMA_TABLE_WALK_SHIFT_LEFT_1);
      y = y ^ (y >> `RVMA_TABLE_WALK_SHIFT_RIGHT);
      xorshift = y ^ (y << `RVMA_TABLE_WALK_SHIFT_LEFT_2);
    end
  endfunction

  reg [31:0] folded;
  integer bank;
  always @* begin
    folded = `RVMA_TABLE_WALK_START;
    for (bank = 0; bank < Banks; bank = bank + 1) begin
      folded = {folded[31-`RVMA_TABLE_WALK_ROTATION:0], folded[31:32-`RVMA_TABLE_WALK_ROTATION]};
      folded[RowBits-1:0] = folded[RowBits-1:0] ^ rows_i[bank*RowBits+:RowBits];
    end
  end

  reg [31:0] walk_q;
  always @(posedge clk_i) begin
    if (begin_i) walk_q <= xorshift(folded);
    else if (step_i) walk_q <= xorshift(walk_q);
  end

  // Lint: the integer part of the product is all that is needed.
  // verilator lint_off UNUSEDSIGNAL
  wire [21:0] scaled = {6'd0, walk_q[31:16]} * {16'd0, first_i ? All : AllButOneBank};
  // verilator lint_on UNUSEDSIGNAL
  assign start_o = scaled[16+:CandidateBits];

endmodule

`default_nettype wire
