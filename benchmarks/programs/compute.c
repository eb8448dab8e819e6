/* Work of about a millisecond before each call, at the end of a chain of calls: what samples cost. */
#define CALLS 1
#include "micro.h"

static char buffer[8];
static volatile double sum;

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
    double own = sum;
    for (int n = 0; n < 500000; n++)
        own = own * 0.999 + n;
    sum = own;
    MPI_Send(buffer, 8, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
}
