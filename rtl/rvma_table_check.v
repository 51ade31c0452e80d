// Judges one stored word against a key. A word of odd parity is bad: it never hits and counts as an empty place.
//
// Combinational, no storage.
`default_nettype none
`include "rvma_table_constants.vh"

module rvma_table_check #(
    parameter Protection = `RVMA_TABLE_PROTECTION_PARITY,     // 0 none (no word is bad), 1 parity
    parameter WordBits = `RVMA_TABLE_PARITY_BIT + Protection  // derived, not to be set
) (
    // Lint: the value is not looked at without parity.
    // verilator lint_off UNUSEDSIGNAL
    input  wire [            WordBits-1:0] word_i,  // as stored: {parity with Protection, valid, value, key}
    // verilator lint_on UNUSEDSIGNAL
    input  wire [`RVMA_TABLE_KEY_BITS-1:0] key_i,       // {pid, mailbox}
    // Of word_i and key_i in the same cycle.
    output wire                            hit_o,       // an entry, and of this key
    output wire                            occupied_o,  // an entry of any key
    output wire                            bad_o        // of odd parity
);

  generate
    if (Protection == `RVMA_TABLE_PROTECTION_PARITY) begin : g_parity
      assign bad_o = ^word_i;
    end else begin : g_none
      assign bad_o = 1'b0;
    end
  endgenerate

  assign occupied_o = word_i[`RVMA_TABLE_VALID_BIT] && !bad_o;
  assign hit_o = occupied_o && word_i[`RVMA_TABLE_KEY_BITS-1:0] == key_i;

endmodule

`default_nettype wire
