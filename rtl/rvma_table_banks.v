// One copy of the banks: a memory of one read and one write port for each bank and slot. A row of every bank is read
// at a time. What is read from a word in the cycle in which it is written is not defined.
//
// Storage: Banks * Slots memories of Rows words of WordBits bits, not initialised.
`default_nettype none

module rvma_table_banks #(
    parameter Banks = 4,      // 2 to 8
    parameter Rows = 512,     // of a bank: a power of two, 4 to 2^20
    parameter Slots = 2,      // of a row: 1 to 4
    parameter WordBits = 98,  // of an entry, stored as it is given
    parameter BankBits = $clog2(Banks),                  // derived, not to be set; so are the following
    parameter RowBits = $clog2(Rows),
    parameter SlotBits = Slots > 1 ? $clog2(Slots) : 1
) (
    input wire clk_i,

    input wire                write_i,       // writes one word; not with write_all_i
    input wire                write_all_i,   // writes write_word_i to a row of every memory
    input wire [BankBits-1:0] write_bank_i,  // with write_i
    input wire [ RowBits-1:0] write_row_i,   // with write_i or write_all_i
    input wire [SlotBits-1:0] write_slot_i,  // with write_i
    input wire [WordBits-1:0] write_word_i,  // with write_i or write_all_i

    input  wire                            read_i,       // words are held until the next one
    input  wire [       Banks*RowBits-1:0] read_rows_i,  // with read_i; bank 0 lowest
    output wire [Banks*Slots*WordBits-1:0] words_o       // from the cycle after read_i on; bank-major
);

  genvar bank, slot;
  generate
    for (bank = 0; bank < Banks; bank = bank + 1) begin : g_bank
      for (slot = 0; slot < Slots; slot = slot + 1) begin : g_slot
        localparam [BankBits-1:0] Bank = bank;
        localparam [SlotBits-1:0] Slot = slot;
        rvma_table_memory #(
            .Words(Rows),
            .Width(WordBits)
        ) memory (
            .clk_i(clk_i),
            .write_i(write_all_i || (write_i && write_bank_i == Bank && write_slot_i == Slot)),
            .write_address_i(write_row_i),
            .write_data_i(write_word_i),
            .read_i(read_i),
            .read_address_i(read_rows_i[bank*RowBits+:RowBits]),
            .read_data_o(words_o[(bank*Slots+slot)*WordBits+:WordBits])
        );
      end
    end
  endgenerate

endmodule

`default_nettype wire
