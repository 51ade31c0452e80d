/**
 * \file
 * The driver's calls in C, spelled as in the RVMA paper. Every function does what the C++ call of the same name does
 * (driver.hpp, docs/reference/driver.md), takes simulated time like it, and is called from the rank's own thread.
 * Addresses of buffers are those of the simulated process, not of the program that simulates it: RVMA_Alloc gives
 * them, RVMA_Write and RVMA_Read reach their bytes.
 */
#ifndef RVMA_H
#define RVMA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One process's driver. */
typedef struct RVMA_Process RVMA_Process;
/** Virtual address in the simulated process. */
typedef uint64_t RVMA_Address;
/** The 64-bit virtual address that a sender names. */
typedef uint64_t RVMA_Mailbox;
/** A 16-byte completion word: its physical address. 0 is none. */
typedef uint64_t RVMA_Completion;

/** As RVMA_Init_window gives it: stands for the window that the call opened and no other. {mailbox, 0} names whatever
 * window the mailbox has. */
typedef struct {
  RVMA_Mailbox mailbox;
  uint64_t opening;
} RVMA_Window;

/** Answer of every call. */
typedef enum {
  RVMA_OK = 1,
  RVMA_EXISTS,
  RVMA_FULL,
  RVMA_NO_WINDOW,
  RVMA_NO_BUFFER,
  RVMA_CLOSED,
  RVMA_HISTORY,
  RVMA_BAD_ARGUMENT,
  RVMA_UNSUPPORTED
} RVMA_Status;

/** How a put ended: the first half of its completion word. */
typedef enum {
  RVMA_OUTCOME_PENDING = 0,
  RVMA_OUTCOME_OK = 1,
  RVMA_OUTCOME_NO_MAILBOX = 2,
  RVMA_OUTCOME_CLOSED = 3,
  RVMA_OUTCOME_BAD_KEY = 4,
  RVMA_OUTCOME_STALE = 5,
  RVMA_OUTCOME_NO_BUFFER = 6,
  RVMA_OUTCOME_BOUNDS = 7,
  RVMA_OUTCOME_BUSY = 8,
  RVMA_OUTCOME_TIMEOUT = 9
} RVMA_Outcome;

typedef enum { RVMA_THRESHOLD_BYTES = 0, RVMA_THRESHOLD_OPS = 1 } RVMA_Threshold_type;
typedef enum { RVMA_STEERED = 0, RVMA_MANAGED = 1 } RVMA_Placement;
typedef enum { RVMA_WAIT_MWAIT = 0, RVMA_WAIT_POLL = 1, RVMA_WAIT_INTERRUPT = 2 } RVMA_Wait_how;

/** Flags of RVMA_Init_window. */
enum { RVMA_READABLE = 1, RVMA_CATCH_ALL = 2, RVMA_INTERRUPT = 4 };

/** Buffers: head and bytes delivered. Puts: RVMA_Outcome and bytes. */
typedef struct {
  uint64_t first;
  uint64_t second;
} RVMA_Word;

typedef struct {
  RVMA_Address head;
  uint64_t length;
  uint64_t epoch;
} RVMA_Buffer_info;

/** Sets *window whatever the answer; after a failure, calls on it answer RVMA_NO_WINDOW. */
RVMA_Status RVMA_Init_window(RVMA_Process* process, RVMA_Mailbox mailbox, uint64_t threshold, RVMA_Threshold_type type,
                             RVMA_Placement placement, uint32_t key, unsigned flags, RVMA_Window* window);
RVMA_Status RVMA_Post_buffer(RVMA_Process* process, RVMA_Window window, RVMA_Address buffer, uint64_t size,
                             RVMA_Completion completion);
RVMA_Status RVMA_Post_one_time_buffer(RVMA_Process* process, RVMA_Mailbox mailbox, uint64_t threshold,
                                      RVMA_Threshold_type type, uint32_t key, RVMA_Address buffer, uint64_t size,
                                      RVMA_Completion completion);
RVMA_Status RVMA_Put(RVMA_Process* process, uint32_t node, uint16_t pid, RVMA_Mailbox mailbox, uint64_t offset,
                     RVMA_Address source, uint64_t length, uint32_t key, RVMA_Completion completion);
RVMA_Status RVMA_Get(RVMA_Process* process, uint32_t node, uint16_t pid, RVMA_Mailbox mailbox, uint64_t offset,
                     uint64_t length, RVMA_Address buffer, uint32_t key, RVMA_Completion completion);
RVMA_Status RVMA_Inc_epoch(RVMA_Process* process, RVMA_Window window);
RVMA_Status RVMA_Get_epoch(RVMA_Process* process, RVMA_Window window, uint64_t* completed);
/** `buffers` has room for `n`; `count` becomes how many were written, newest first. */
RVMA_Status RVMA_Get_buf_ptrs(RVMA_Process* process, RVMA_Window window, size_t n, RVMA_Buffer_info* buffers,
                              size_t* count);
RVMA_Status RVMA_Rewind(RVMA_Process* process, RVMA_Window window, uint64_t n, uint64_t* epoch);
RVMA_Status RVMA_Close_window(RVMA_Process* process, RVMA_Window window);

/** Blocks until the word is written (RVMA_OK, and *word if it is not null) or never will be (why not). */
RVMA_Status RVMA_Wait(RVMA_Process* process, RVMA_Completion completion, RVMA_Wait_how how, RVMA_Word* word);
/** 1 if RVMA_Wait would return at once, else 0. */
int RVMA_Test(RVMA_Process* process, RVMA_Completion completion);
RVMA_Completion RVMA_Alloc_completion(RVMA_Process* process);
void RVMA_Free_completion(RVMA_Process* process, RVMA_Completion completion);

/** Memory of the simulated process: zeros, at a multiple of `align` (a power of two). 0 if `bytes` or `align` is bad.
 */
RVMA_Address RVMA_Alloc(RVMA_Process* process, uint64_t bytes, uint64_t align);
void RVMA_Free(RVMA_Process* process, RVMA_Address address);
void RVMA_Read(RVMA_Process* process, RVMA_Address address, void* to, size_t bytes);
void RVMA_Write(RVMA_Process* process, RVMA_Address address, const void* from, size_t bytes);

#ifdef __cplusplus
} /* extern "C" */

namespace rvma {
class Driver;
/** The handle under which a C program knows `driver`; valid as long as it lives. */
RVMA_Process* c_handle(Driver& driver);
}  // namespace rvma
#endif

#endif
