// The writes of the last cycles. Lookups read their memories some cycles after they are presented, and must not see
// what was written since: copy A and the stash are written from here.
//
// Storage: Delays * (2 + LocationBits + WordBits) flip-flops, reset only where they say that there is a write; words
// that nobody uses are left out by synthesis.
`default_nettype none

module rvma_table_write_delay #(
    parameter Delays = 2,         // cycles that a write is kept for: 1 to 3, the lookups' latency
    parameter LocationBits = 13,  // of a place, see rvma_table_command
    parameter WordBits = 98       // of a stored word
) (
    input wire clk_i,
    input wire rst_ni,

    input wire                    write_i,      // a write to one place
    input wire                    write_all_i,  // .. or to a row of every memory
    input wire [LocationBits-1:0] location_i,   // with write_i or write_all_i
    input wire [    WordBits-1:0] word_i,       // with write_i or write_all_i

    // Element k: the inputs of k cycles ago, element 0 those of this cycle. Locations and words are valid with the
    // element of writes_o or writes_all_o.
    output wire [               Delays:0] writes_o,
    output wire [               Delays:0] writes_all_o,
    output wire [(Delays+1)*LocationBits-1:0] locations_o,
    output wire [    (Delays+1)*WordBits-1:0] words_o
);

  reg [Delays-1:0] writes_q;
  reg [Delays-1:0] writes_all_q;
  reg [Delays*LocationBits-1:0] locations_q;
  reg [Delays*WordBits-1:0] words_q;

  assign writes_o = {writes_q, write_i};
  assign writes_all_o = {writes_all_q, write_all_i};
  assign locations_o = {locations_q, location_i};
  assign words_o = {words_q, word_i};

  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writes_q <= {Delays{1'b0}};
      writes_all_q <= {Delays{1'b0}};
    end else begin
      writes_q <= writes_o[Delays-1:0];
      writes_all_q <= writes_all_o[Delays-1:0];
    end
  end

  always @(posedge clk_i) begin
    locations_q <= locations_o[Delays*LocationBits-1:0];
    words_q <= words_o[Delays*WordBits-1:0];
  end

endmodule

`default_nettype wire
