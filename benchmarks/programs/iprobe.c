/* MPI_Iprobe that finds nothing: what a polling loop does. */
#define CALLS 1
#include "micro.h"

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}
