/* MPI_Send to nobody: next to no work in the library. */
#define CALLS 1
#include "micro.h"

static char buffer[8];

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
    MPI_Send(buffer, 8, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
}
