/* A rank's program in C, as a user would write it: proves that rvma.h is C. Returns 0, or the line that failed. */
#include "c_program.h"

#include <string.h>

#define EXPECT(condition)              \
  do {                                 \
    if (!(condition)) return __LINE__; \
  } while (0)

int c_program(RVMA_Process* process) {
  const char text[] = "hello";
  char back[sizeof text];
  RVMA_Window window = {0, 0};
  RVMA_Window failed = {0, 0};
  RVMA_Word word = {0, 0};
  RVMA_Buffer_info info[2];
  uint64_t epoch = 0;
  size_t count = 0;

  const RVMA_Address buffer = RVMA_Alloc(process, 8192, 4096);
  const RVMA_Completion completion = RVMA_Alloc_completion(process);
  const RVMA_Completion put = RVMA_Alloc_completion(process);
  EXPECT(buffer != 0 && completion != 0 && put != 0);
  EXPECT(RVMA_Alloc(process, 0, 64) == 0);
  EXPECT(RVMA_Alloc(process, 64, 3) == 0);
  RVMA_Write(process, buffer, text, sizeof text);
  RVMA_Read(process, buffer, back, sizeof back);
  EXPECT(memcmp(text, back, sizeof text) == 0);

  EXPECT(RVMA_Init_window(process, 0xbeef, 64, RVMA_THRESHOLD_BYTES, RVMA_STEERED, 7, 0, &window) == RVMA_OK);
  EXPECT(window.mailbox == 0xbeef);
  EXPECT(RVMA_Init_window(process, 1, 64, (RVMA_Threshold_type)5, RVMA_STEERED, 7, 0, &failed) == RVMA_BAD_ARGUMENT);
  EXPECT(RVMA_Init_window(process, 1, 64, RVMA_THRESHOLD_OPS, RVMA_MANAGED, 7, 0x100, &failed) == RVMA_BAD_ARGUMENT);
  EXPECT(RVMA_Inc_epoch(process, failed) == RVMA_NO_WINDOW);
  EXPECT(RVMA_Post_buffer(process, window, buffer, 8192, completion) == RVMA_OK);
  EXPECT(RVMA_Test(process, completion) == 0);
  EXPECT(RVMA_Put(process, 1, 0, 0xbeef, 0, buffer, 64, 7, put) == RVMA_OK);
  EXPECT(RVMA_Wait(process, put, RVMA_WAIT_POLL, &word) == RVMA_OK);
  EXPECT(word.first == RVMA_OUTCOME_OK && word.second == 64);
  EXPECT(RVMA_Inc_epoch(process, window) == RVMA_OK);
  EXPECT(RVMA_Get_epoch(process, window, &epoch) == RVMA_OK && epoch == 3);
  EXPECT(RVMA_Get_buf_ptrs(process, window, 2, info, &count) == RVMA_OK && count == 0);
  EXPECT(RVMA_Rewind(process, window, 1, &epoch) == RVMA_OK && epoch == 2);
  EXPECT(RVMA_Close_window(process, window) == RVMA_OK);
  EXPECT(RVMA_Wait(process, completion, RVMA_WAIT_MWAIT, NULL) == RVMA_CLOSED);
  EXPECT(RVMA_Get_epoch(process, window, &epoch) == RVMA_CLOSED);
  EXPECT(RVMA_Wait(process, completion, (RVMA_Wait_how)9, NULL) == RVMA_BAD_ARGUMENT);
  EXPECT(RVMA_Post_one_time_buffer(process, 0xcafe, 64, RVMA_THRESHOLD_BYTES, 0, buffer, 64, completion) == RVMA_OK);
  EXPECT(RVMA_Get(process, 1, 0, 0xbeef, 0, 64, buffer, 7, put) == RVMA_OK);
  RVMA_Free_completion(process, put);
  RVMA_Free(process, buffer);
  return 0;
}
