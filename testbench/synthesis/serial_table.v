// The translation table with its inputs from one shift register and its outputs through another, so that it fits the
// pins of a small FPGA. Only for place and route.
`default_nettype none
`include "rvma_table_constants.vh"

module serial_table #(
    parameter Banks = 2,
    parameter Rows = 4,
    parameter Slots = 1,
    parameter Stash = 1,
    parameter MaxKicks = 2,
    parameter Latency = 2,
    parameter Protection = 0,
    parameter PlaceBits = $clog2(Banks * Rows * Slots + Stash),
    parameter UsedBits = $clog2(`RVMA_TABLE_MOST_USED(Banks, Rows, Slots, MaxKicks) + 1),
    parameter KicksBits = MaxKicks > 0 ? $clog2(MaxKicks + 1) : 1
) (
    input  wire clk_i,
    input  wire rst_ni,
    input  wire serial_i,
    input  wire load_i,
    output wire serial_o
);

  localparam Keys = `RVMA_TABLE_KEY_BITS;
  localparam Values = `RVMA_TABLE_VALUE_BITS;
  // The key and the seed of a command, and the key of a lookup, share bits: no port is tied to another by that.
  localparam Inputs = 2 + `RVMA_TABLE_OPERATION_BITS + 2 * Keys + Values + 64;
  localparam Outputs = 7 + 2 * Values + `RVMA_TABLE_STATUS_BITS + UsedBits + KicksBits + 2 * PlaceBits + 1;

  reg [Inputs-1:0] inputs_q;
  reg [Outputs-1:0] outputs_q;
  wire [Outputs-1:0] outputs;
  always @(posedge clk_i) begin
    inputs_q <= {inputs_q[Inputs-2:0], serial_i};
    outputs_q <= load_i ? outputs : outputs_q << 1;
  end
  assign serial_o = outputs_q[Outputs-1];

  rvma_table #(
      .Banks(Banks),
      .Rows(Rows),
      .Slots(Slots),
      .Stash(Stash),
      .MaxKicks(MaxKicks),
      .Latency(Latency),
      .Protection(Protection)
  ) table_core (
      .clk_i(clk_i),
      .rst_ni(rst_ni),
      .reset_seed_i(inputs_q[63:0]),
      .command_seed_i(inputs_q[63:0]),
      .lookup_valid_i(inputs_q[64]),
      .command_valid_i(inputs_q[65]),
      .command_operation_i(inputs_q[66+:`RVMA_TABLE_OPERATION_BITS]),
      .command_slot_i(inputs_q[66+`RVMA_TABLE_OPERATION_BITS+:Values]),
      .lookup_pid_i(inputs_q[Inputs-1-:`RVMA_TABLE_PID_BITS]),
      .lookup_mailbox_i(inputs_q[Inputs-1-`RVMA_TABLE_PID_BITS-:`RVMA_TABLE_MAILBOX_BITS]),
      .command_pid_i(inputs_q[Inputs-1-Keys-:`RVMA_TABLE_PID_BITS]),
      .command_mailbox_i(inputs_q[Inputs-1-Keys-`RVMA_TABLE_PID_BITS-:`RVMA_TABLE_MAILBOX_BITS]),
      .lookup_valid_o(outputs[0]),
      .lookup_hit_o(outputs[1]),
      .lookup_sweeping_o(outputs[2]),
      .command_ready_o(outputs[3]),
      .answer_valid_o(outputs[4]),
      .answer_in_stash_o(outputs[5]),
      .lookup_fault_valid_o(outputs[6]),
      .command_fault_valid_o(outputs[7]),
      .lookup_slot_o(outputs[8+:Values]),
      .answer_slot_o(outputs[8+Values+:Values]),
      .answer_status_o(outputs[8+2*Values+:`RVMA_TABLE_STATUS_BITS]),
      .answer_used_o(outputs[8+2*Values+`RVMA_TABLE_STATUS_BITS+:UsedBits]),
      .answer_kicks_o(outputs[8+2*Values+`RVMA_TABLE_STATUS_BITS+UsedBits+:KicksBits]),
      .lookup_fault_place_o(outputs[8+2*Values+`RVMA_TABLE_STATUS_BITS+UsedBits+KicksBits+:PlaceBits]),
      .command_fault_place_o(outputs[Outputs-1-:PlaceBits])
  );

endmodule

`default_nettype wire
