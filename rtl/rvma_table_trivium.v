// Trivium (De Canniere, Preneel 2005; ISO/IEC 29192-3), 64 steps a cycle. Key bit i is bit i of the seed for i < 64,
// else 0; IV bit i is bit i of Bank.
//
// Bit 0 of a register is its oldest bit (s_93, s_177, s_288), so position p of a register of length n is bit n - p,
// and bit i of a word is the output of step i.
//
// Storage: 288 flip-flops, without reset.
`default_nettype none

module rvma_table_trivium #(
    parameter [63:0] Bank = 0  // number of the bank: each has a stream of its own
) (
    input wire clk_i,

    input  wire        step_i,   // word_o is taken: go on to the next
    input  wire        first_i,  // word_o is the first one after the start from seed_i; else from the state
    input  wire [63:0] seed_i,   // with first_i
    output wire [63:0] word_o    // the present word: of seed_i in the same cycle with first_i, else of the state
);

  localparam LengthA = 93;
  localparam LengthB = 84;
  localparam LengthC = 111;

  function [63:0] reversed;
    input [63:0] bits;
    integer i;
    for (i = 0; i < 64; i = i + 1) reversed[i] = bits[63-i];
  endfunction

  reg [LengthA-1:0] a_q;
  reg [LengthB-1:0] b_q;
  reg [LengthC-1:0] c_q;

  wire [LengthA-1:0] a = first_i ? {reversed(seed_i), {LengthA - 64{1'b0}}} : a_q;
  wire [LengthB-1:0] b = first_i ? {reversed(Bank), {LengthB - 64{1'b0}}} : b_q;
  wire [LengthC-1:0] c = first_i ? {{LengthC - 3{1'b0}}, 3'b111} : c_q;  // s_286 to s_288

  wire [63:0] t1 = a[LengthA-66+:64] ^ a[LengthA-93+:64];
  wire [63:0] t2 = b[LengthB-69+:64] ^ b[LengthB-84+:64];
  wire [63:0] t3 = c[LengthC-66+:64] ^ c[LengthC-111+:64];
  wire [63:0] to_b = t1 ^ (a[LengthA-91+:64] & a[LengthA-92+:64]) ^ b[LengthB-78+:64];
  wire [63:0] to_c = t2 ^ (b[LengthB-82+:64] & b[LengthB-83+:64]) ^ c[LengthC-87+:64];
  wire [63:0] to_a = t3 ^ (c[LengthC-109+:64] & c[LengthC-110+:64]) ^ a[LengthA-69+:64];
  assign word_o = t1 ^ t2 ^ t3;

  always @(posedge clk_i) begin
    if (step_i) begin
      a_q <= {to_a, a[LengthA-1:64]};
      b_q <= {to_b, b[LengthB-1:64]};
      c_q <= {to_c, c[LengthC-1:64]};
    end
  end

endmodule

`default_nettype wire
