// The places on an insertion's path, the newest first, all compared at once.
//
// Storage: MaxKicks * (1 + PlaceBits) flip-flops; only the valid bits are reset.
`default_nettype none

module rvma_table_path #(
    parameter MaxKicks = 32,  // most places: 0 to 256; with 0, always empty and full
    parameter PlaceBits = 12  // of {bank, row, slot}; no number of a place, as rvma_table's PlaceBits are
) (
    input wire clk_i,
    input wire rst_ni,

    input wire                 clear_i,  // empties it; goes before push_i and pop_i
    input wire                 push_i,   // place_i becomes the newest; not with pop_i or full_o
    input wire                 pop_i,    // drops the newest; nothing happens if empty_o
    input wire [PlaceBits-1:0] place_i,  // with push_i to be pushed; always to be looked for

    output wire                 contains_o,     // place_i of this cycle is on the path
    output wire                 empty_o,
    output wire                 full_o,         // MaxKicks places
    output wire [PlaceBits-1:0] newest_o,       // unless empty_o
    output wire                 has_second_o,   // two places or more
    output wire [PlaceBits-1:0] second_o        // with has_second_o: the one before the newest
);

  generate
    if (MaxKicks == 0) begin : g_none
      // Lint: no place is ever on the path.
      // verilator lint_off UNUSEDSIGNAL
      wire unused_ports = &{1'b0, clk_i, rst_ni, clear_i, push_i, pop_i, place_i};
      // verilator lint_on UNUSEDSIGNAL
      assign {contains_o, has_second_o} = 2'b00;
      assign {empty_o, full_o} = 2'b11;
      assign newest_o = {PlaceBits{1'b0}};
      assign second_o = {PlaceBits{1'b0}};
    end else begin : g_path
      reg [MaxKicks-1:0] valid_q;
      reg [MaxKicks*PlaceBits-1:0] places_q;

      always @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) valid_q <= {MaxKicks{1'b0}};
        else if (clear_i) valid_q <= {MaxKicks{1'b0}};
        else if (push_i) begin
          valid_q <= valid_q << 1;
          valid_q[0] <= 1'b1;
        end else if (pop_i) valid_q <= valid_q >> 1;
      end
      always @(posedge clk_i) begin
        if (push_i) begin
          places_q <= places_q << PlaceBits;
          places_q[PlaceBits-1:0] <= place_i;
        end else if (pop_i) begin
          places_q <= places_q >> PlaceBits;
        end
      end

      wire [MaxKicks-1:0] equal;
      genvar i;
      for (i = 0; i < MaxKicks; i = i + 1) begin : g_place
        assign equal[i] = valid_q[i] && places_q[i*PlaceBits+:PlaceBits] == place_i;
      end

      assign contains_o = |equal;
      assign empty_o = !valid_q[0];
      assign full_o = valid_q[MaxKicks-1];
      assign newest_o = places_q[PlaceBits-1:0];
      if (MaxKicks > 1) begin : g_second
        assign has_second_o = valid_q[1];
        assign second_o = places_q[PlaceBits+:PlaceBits];
      end else begin : g_no_second
        assign has_second_o = 1'b0;
        assign second_o = {PlaceBits{1'b0}};
      end
    end
  endgenerate

endmodule

`default_nettype wire
