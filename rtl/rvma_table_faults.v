// Fault registers: one for bad words that lookups read (copy A), one for those that commands read (copy B).
//
// A register that is free takes and reports a bad word; while it is taken, others of its kind are dropped. Its place is
// cleared in a cycle in which no command runs, A's before B's, unless it is written before. B's register is free after
// that. A's stays taken for Latency cycles more: lookups that read the bad word are still on their way. A place that
// was written while the lookup that read it was on its way is good already.
//
// Storage: 2 * LocationBits + 6 flip-flops, none without protection.
`default_nettype none
`include "rvma_table_constants.vh"

module rvma_table_faults #(
    parameter Latency = 2,                                 // of lookups, 1 to 3
    parameter Protection = `RVMA_TABLE_PROTECTION_PARITY,  // 0 none (nothing is bad, all outputs 0), 1 parity
    parameter LocationBits = 13                            // of a place, see rvma_table_command
) (
    input wire clk_i,
    input wire rst_ni,

    input wire                    lookup_bad_i,       // in the cycle of the lookup's answer
    input wire [LocationBits-1:0] lookup_location_i,  // with lookup_bad_i
    input wire                    command_bad_i,      // in the cycle of CHECK
    input wire [LocationBits-1:0] command_location_i, // with command_bad_i
    input wire                    sweep_i,            // rows are swept: frees both, drops reports

    // Element k: the write of k cycles ago, to one place (rows that are swept are sweep_i's).
    input wire [               Latency:0] writes_i,
    input wire [(Latency+1)*LocationBits-1:0] write_locations_i,  // with writes_i[k]

    output wire                    clear_o,           // a place waits to be cleared in an idle cycle
    output wire [LocationBits-1:0] clear_location_o,  // with clear_o

    output wire                    lookup_fault_o,            // in the cycle of the lookup's answer
    output wire [LocationBits-1:0] lookup_fault_location_o,   // with lookup_fault_o
    output wire                    command_fault_o,           // in the cycle after CHECK
    output wire [LocationBits-1:0] command_fault_location_o   // with command_fault_o
);

  generate
    if (Protection == `RVMA_TABLE_PROTECTION_PARITY) begin : g_faults
      // Lint: 0 to 2.
      // verilator lint_off WIDTH
      localparam [1:0] LastWait = Latency - 1;
      // verilator lint_on WIDTH

      // -- Copy A.
      reg a_taken_q, a_taken_d;
      reg a_waits_q, a_waits_d;  // for its place to be cleared or written
      reg [1:0] a_timer_q, a_timer_d;  // cycles that it stays taken after that, this one excluded
      reg [LocationBits-1:0] a_location_q;

      wire a_takes = lookup_bad_i && !a_taken_q && !sweep_i;
      wire a_written = writes_i[0] && write_locations_i[LocationBits-1:0] == a_location_q;

      // The last write since the lookup was presented to the place that it found bad.
      reg rewritten;
      reg [1:0] rewritten_ago;
      integer k;
      always @* begin
        rewritten = 1'b0;
        rewritten_ago = 2'd0;
        for (k = Latency; k >= 0; k = k - 1) begin
          if (writes_i[k] && write_locations_i[k*LocationBits+:LocationBits] == lookup_location_i) begin
            rewritten = 1'b1;
            rewritten_ago = k[1:0];
          end
        end
      end

      always @* begin
        a_taken_d = a_taken_q;
        a_waits_d = a_waits_q;
        a_timer_d = a_timer_q;
        if (sweep_i) begin
          a_taken_d = 1'b0;
        end else if (a_takes) begin
          a_taken_d = !rewritten || rewritten_ago != LastWait + 2'd1;
          a_waits_d = !rewritten;
          a_timer_d = LastWait - rewritten_ago;
        end else if (a_written) begin
          a_waits_d = 1'b0;
          a_timer_d = LastWait;
        end else if (!a_waits_q) begin
          a_taken_d = a_taken_q && a_timer_q != 2'd0;
          a_timer_d = a_timer_q - 2'd1;
        end
      end

      // -- Copy B.
      reg b_taken_q, b_taken_d;
      reg b_report_q;
      reg [LocationBits-1:0] b_location_q;

      wire b_takes = command_bad_i && !b_taken_q;
      wire b_written = writes_i[0] && write_locations_i[LocationBits-1:0] == b_location_q;

      always @* begin
        b_taken_d = b_taken_q;
        if (b_takes) b_taken_d = 1'b1;
        else if (b_written) b_taken_d = 1'b0;
        if (sweep_i) b_taken_d = 1'b0;
      end

      always @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) begin
          a_taken_q  <= 1'b0;
          b_taken_q  <= 1'b0;
          b_report_q <= 1'b0;
        end else begin
          a_taken_q  <= a_taken_d;
          b_taken_q  <= b_taken_d;
          b_report_q <= b_takes;
        end
      end
      always @(posedge clk_i) begin
        a_waits_q <= a_waits_d;
        a_timer_q <= a_timer_d;
        if (a_takes) a_location_q <= lookup_location_i;
        if (b_takes) b_location_q <= command_location_i;
      end

      wire a_clears = a_taken_q && a_waits_q;
      assign clear_o = a_clears || b_taken_q;
      assign clear_location_o = a_clears ? a_location_q : b_location_q;
      assign lookup_fault_o = a_takes;
      assign lookup_fault_location_o = lookup_location_i;
      assign command_fault_o = b_report_q;
      assign command_fault_location_o = b_location_q;
    end else begin : g_none
      // Lint: without protection nothing is bad.
      // verilator lint_off UNUSEDSIGNAL
      wire unused_ports = &{
        1'b0, clk_i, rst_ni, lookup_bad_i, lookup_location_i, command_bad_i, command_location_i, sweep_i, writes_i,
        write_locations_i
      };
      // verilator lint_on UNUSEDSIGNAL
      assign {clear_o, lookup_fault_o, command_fault_o} = 3'b0;
      assign clear_location_o = {LocationBits{1'b0}};
      assign lookup_fault_location_o = {LocationBits{1'b0}};
      assign command_fault_location_o = {LocationBits{1'b0}};
    end
  endgenerate

endmodule

`default_nettype wire
