/* Two ranks swap a message: Irecv, Isend, Waitall. */
#define CALLS 3
#include "micro.h"

static char in[64], out[64];

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
    MPI_Request requests[2];
    MPI_Irecv(in, 64, MPI_BYTE, rank ^ 1, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 64, MPI_BYTE, rank ^ 1, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}
