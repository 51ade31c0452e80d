# cmake -DPROGRAM=... -DCOMMITTED=... -P: the committed constants are those that the C++ headers give.
execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE made RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${PROGRAM}: ${failed}")
endif()
file(READ "${COMMITTED}" committed)
if(NOT made STREQUAL committed)
  message(FATAL_ERROR "${COMMITTED} is not current: build the target rtl_constants")
endif()
