// Made by rtl_generate_constants from model/nic/translation_table_constants.hpp and translation_table.hpp: do
// not edit; build the target rtl_constants after a change there.
`ifndef RVMA_TABLE_CONSTANTS_VH
`define RVMA_TABLE_CONSTANTS_VH

// Entry word, from bit 0 on: mailbox, pid (together the key), value, valid, parity.
`define RVMA_TABLE_MAILBOX_BITS 64
`define RVMA_TABLE_PID_BITS 16
`define RVMA_TABLE_KEY_BITS 80
`define RVMA_TABLE_VALUE_BITS 16
`define RVMA_TABLE_VALID_BIT 96
`define RVMA_TABLE_PARITY_BIT 97

// Hash.
`define RVMA_TABLE_LANE_BITS 16
`define RVMA_TABLE_ROUNDS 3
`define RVMA_TABLE_LANE_ROTATION_0 0
`define RVMA_TABLE_LANE_ROTATION_1 1
`define RVMA_TABLE_LANE_ROTATION_2 5
`define RVMA_TABLE_LANE_ROTATION_3 8
`define RVMA_TABLE_LANE_ROTATION_4 11
`define RVMA_TABLE_KEY_BYTES 10
`define RVMA_TABLE_BYTE_VALUES 256

// Filling of the hash memories, in words of 64 bits.
`define RVMA_TABLE_WARM_UP_WORDS 18
`define RVMA_TABLE_ROUND_KEY_WORDS 4

// Walk of an insertion.
`define RVMA_TABLE_WALK_START 32'h9e3779b9
`define RVMA_TABLE_WALK_ROTATION 7
`define RVMA_TABLE_WALK_SHIFT_LEFT_1 13
`define RVMA_TABLE_WALK_SHIFT_RIGHT 17
`define RVMA_TABLE_WALK_SHIFT_LEFT_2 5

// Operations; the codes above them are unknown.
`define RVMA_TABLE_OPERATION_BITS 3
`define RVMA_TABLE_INSERT 3'd0
`define RVMA_TABLE_ERASE 3'd1
`define RVMA_TABLE_UPDATE 3'd2
`define RVMA_TABLE_FIND 3'd3
`define RVMA_TABLE_FLUSH 3'd4
`define RVMA_TABLE_LOAD_SEED 3'd5

// Statuses.
`define RVMA_TABLE_STATUS_BITS 3
`define RVMA_TABLE_OK 3'd0
`define RVMA_TABLE_EXISTS 3'd1
`define RVMA_TABLE_NOT_FOUND 3'd2
`define RVMA_TABLE_FULL 3'd3
`define RVMA_TABLE_BUSY 3'd4
`define RVMA_TABLE_BAD 3'd5

// Default shape and its limits.
`define RVMA_TABLE_BANKS 4
`define RVMA_TABLE_ROWS 512
`define RVMA_TABLE_SLOTS 2
`define RVMA_TABLE_STASH 8
`define RVMA_TABLE_MAX_KICKS 32
`define RVMA_TABLE_LATENCY 2
`define RVMA_TABLE_PROTECTION_NONE 0
`define RVMA_TABLE_PROTECTION_PARITY 1
`define RVMA_TABLE_PROTECTION 1
`define RVMA_TABLE_MOST_BANKS 8
`define RVMA_TABLE_MOST_SLOTS 4
`define RVMA_TABLE_MOST_ROWS 1048576
`define RVMA_TABLE_MOST_STASH 64
`define RVMA_TABLE_MOST_KICKS 256

// Cycles of a filling, and the most that an answer can tell.
`define RVMA_TABLE_FILL_CYCLES(Rows) \
    (`RVMA_TABLE_WARM_UP_WORDS + `RVMA_TABLE_ROUND_KEY_WORDS + \
     `RVMA_TABLE_BYTE_VALUES * ((`RVMA_TABLE_KEY_BYTES * $clog2(Rows) + 63) / 64))
`define RVMA_TABLE_INSERT_CYCLES(Banks, Slots, MaxKicks) \
    (5 + 4 * (MaxKicks) + (Banks) * (Slots) * ((MaxKicks) + 1))
`define RVMA_TABLE_GREATER(a, b) ((a) > (b) ? (a) : (b))
`define RVMA_TABLE_MOST_USED(Banks, Rows, Slots, MaxKicks) \
    `RVMA_TABLE_GREATER(`RVMA_TABLE_INSERT_CYCLES(Banks, Slots, MaxKicks), \
                        `RVMA_TABLE_GREATER(1 + (Rows), 1 + `RVMA_TABLE_FILL_CYCLES(Rows)))

`endif
