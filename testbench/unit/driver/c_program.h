/** \file A rank's program in C, for the test of the C interface. */
#ifndef RVMA_TESTBENCH_C_PROGRAM_H
#define RVMA_TESTBENCH_C_PROGRAM_H

#include "driver/rvma.h"

#ifdef __cplusplus
extern "C"
#endif
    int
    c_program(RVMA_Process* process);

#endif
