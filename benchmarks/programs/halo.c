/* Halo exchange in a ring: two Irecv, two Isend, Waitall. */
#define CALLS 5
#include "micro.h"

static double in[2][128], out[2][128];
static int before, after;

static void set_up(void) {
    before = (rank + ranks - 1) % ranks;
    after = (rank + 1) % ranks;
}

static __attribute__((noinline)) void step(void) {
    MPI_Request requests[4];
    MPI_Irecv(in[0], 128, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in[1], 128, MPI_DOUBLE, after, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out[0], 128, MPI_DOUBLE, before, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(out[1], 128, MPI_DOUBLE, after, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}
