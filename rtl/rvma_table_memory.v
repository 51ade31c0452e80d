// Memory of one write and one read port, written so that synthesis infers block RAM.
//
// The two ports may meet at one address. What is read then is not defined here: users see to it themselves (hence
// no_rw_check, which spares synthesis from adding logic). Simulations define RVMA_TABLE_SPOIL_COLLISIONS: such a read
// gives the complement of the word, so that a user who relies on it is found.
//
// Storage: Words * Width bits, not initialised. Asynchronous = 1 needs look-up-table RAM.
`default_nettype none

module rvma_table_memory #(
    parameter Words = 512,       // a power of two
    parameter Width = 98,        // bits of a word
    parameter Asynchronous = 0,  // 1: data follow the address in the same cycle, read_i is not used
    parameter AddressBits = $clog2(Words)  // derived, not to be set
) (
    input wire clk_i,

    input wire                   write_i,
    input wire [AddressBits-1:0] write_address_i,  // with write_i
    input wire [      Width-1:0] write_data_i,     // with write_i

    input  wire                   read_i,          // data are held until the next one
    input  wire [AddressBits-1:0] read_address_i,  // with read_i, or if Asynchronous
    output wire [      Width-1:0] read_data_o      // from the cycle after read_i on; if Asynchronous, in the same cycle
);

  // Public: the test bench flips stored bits.
  (* no_rw_check *)
  reg [Width-1:0] words_q[0:Words-1]  /* verilator public_flat_rw */;

  always @(posedge clk_i) begin
    if (write_i) words_q[write_address_i] <= write_data_i;
  end

  generate
    if (Asynchronous == 1) begin : g_asynchronous
      // Lint: the port belongs to the other kind.
      // verilator lint_off UNUSEDSIGNAL
      wire unused_read = read_i;
      // verilator lint_on UNUSEDSIGNAL
      assign read_data_o = words_q[read_address_i];
    end else begin : g_synchronous
      reg [Width-1:0] read_data_q;
      always @(posedge clk_i) begin
`ifdef RVMA_TABLE_SPOIL_COLLISIONS
        if (read_i) begin
          read_data_q <= words_q[read_address_i] ^ {Width{write_i && write_address_i == read_address_i}};
        end
`else
        if (read_i) read_data_q <= words_q[read_address_i];
`endif
      end
      assign read_data_o = read_data_q;
    end
  endgenerate

endmodule

`default_nettype wire
