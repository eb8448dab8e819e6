/* A sum over all ranks, again and again. */
#define CALLS 1
#include "micro.h"

static double mine = 1, sum;

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
