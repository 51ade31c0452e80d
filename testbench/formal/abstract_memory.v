// Stands for rvma_table_memory in proofs. The same ports; what is read from a word in the cycle in which it is written
// is anything, as the original's header says, so a proof holds for memories of every kind. The words are plain
// registers, which the properties watch through `words`.
`default_nettype none

module rvma_table_memory #(
    parameter Words = 512,
    parameter Width = 98,
    parameter Asynchronous = 0,
    parameter AddressBits = $clog2(Words)
) (
    input wire clk_i,

    input wire                   write_i,
    input wire [AddressBits-1:0] write_address_i,
    input wire [      Width-1:0] write_data_i,

    input  wire                   read_i,
    input  wire [AddressBits-1:0] read_address_i,
    output wire [      Width-1:0] read_data_o
);

  wire [Words*Width-1:0] words;
  genvar i;
  generate
    for (i = 0; i < Words; i = i + 1) begin : g_word
      reg [Width-1:0] word_q;
      always @(posedge clk_i) begin
        if (write_i && write_address_i == i) word_q <= write_data_i;
      end
      assign words[i*Width+:Width] = word_q;
    end
  endgenerate

  (* anyseq *) wire [Width-1:0] anything;
  reg [Width-1:0] read_data;
  integer k;
  always @* begin
    read_data = {Width{1'b0}};
    for (k = 0; k < Words; k = k + 1) begin
      if (read_address_i == k) read_data = words[k*Width+:Width];
    end
    if (write_i && write_address_i == read_address_i) read_data = anything;
  end

  generate
    if (Asynchronous == 1) begin : g_asynchronous
      assign read_data_o = read_data;
    end else begin : g_synchronous
      reg [Width-1:0] read_data_q;
      always @(posedge clk_i) begin
        if (read_i) read_data_q <= read_data;
      end
      assign read_data_o = read_data_q;
    end
  endgenerate

endmodule

`default_nettype wire
