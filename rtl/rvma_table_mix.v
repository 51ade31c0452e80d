// Three keyed mixing rounds over the 80 bits of a key: the first part of the hash, a permutation that is not linear.
// State: five lanes of 16 bits, lanes 0 to 3 the mailbox (low bits first), lane 4 the pid. A round XORs its round key,
// applies Ascon's S-box to each of the 16 columns, and rotates each lane to the left by an amount of its own.
//
// Combinational, no storage.
`default_nettype none
`include "rvma_table_constants.vh"

module rvma_table_mix (
    input  wire [                    `RVMA_TABLE_KEY_BITS-1:0] key_i,         // {pid, mailbox}
    input  wire [`RVMA_TABLE_ROUNDS * `RVMA_TABLE_KEY_BITS-1:0] round_keys_i,  // with key_i; the first round's lowest
    output reg  [                    `RVMA_TABLE_KEY_BITS-1:0] mixed_o        // in the same cycle
);

  localparam KeyBits = `RVMA_TABLE_KEY_BITS;
  localparam LaneBits = `RVMA_TABLE_LANE_BITS;

  function [LaneBits-1:0] rotate_left;
    input [LaneBits-1:0] lane;
    input integer by;
    rotate_left = (lane << by) | (lane >> (LaneBits - by));
  endfunction

  reg [LaneBits-1:0] x0, x1, x2, x3, x4;
  reg [LaneBits-1:0] y0, y1, y2, y3, y4;
  integer round;

  always @* begin
    {x4, x3, x2, x1, x0} = key_i;
    {y4, y3, y2, y1, y0} = key_i;
    for (round = 0; round < `RVMA_TABLE_ROUNDS; round = round + 1) begin
      {x4, x3, x2, x1, x0} = {x4, x3, x2, x1, x0} ^ round_keys_i[round*KeyBits+:KeyBits];
      x0 = x0 ^ x4;
      x4 = x4 ^ x3;
      x2 = x2 ^ x1;
      y0 = x0 ^ (~x1 & x2);
      y1 = x1 ^ (~x2 & x3);
      y2 = x2 ^ (~x3 & x4);
      y3 = x3 ^ (~x4 & x0);
      y4 = x4 ^ (~x0 & x1);
      y1 = y1 ^ y0;
      y0 = y0 ^ y4;
      y3 = y3 ^ y2;
      y2 = ~y2;
      x0 = rotate_left(y0, `RVMA_TABLE_LANE_ROTATION_0);
      x1 = rotate_left(y1, `RVMA_TABLE_LANE_ROTATION_1);
      x2 = rotate_left(y2, `RVMA_TABLE_LANE_ROTATION_2);
      x3 = rotate_left(y3, `RVMA_TABLE_LANE_ROTATION_3);
      x4 = rotate_left(y4, `RVMA_TABLE_LANE_ROTATION_4);
    end
    mixed_o = {x4, x3, x2, x1, x0};
  end

endmodule

`default_nettype wire
