/* A message there and back. */
#define CALLS 2
#include "micro.h"

static char buffer[8];

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
    if (rank == 0)
        MPI_Send(buffer, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(buffer, 8, MPI_BYTE, rank ^ 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(buffer, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
}
