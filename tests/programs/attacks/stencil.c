/* Steps of an exchange with both neighbours and of computation, which no call is below: time lines
 * and profiles must not put it into the function of the calls before and after. */
#include "../common.h"

#define STEPS 20
#define WORK 5

static double halo[4];

NOINLINE static void exchange(void)
{
    MPI_Request requests[4];
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Irecv(&halo[0], 1, MPI_DOUBLE, left, 1, WORLD, &requests[0]);
    MPI_Irecv(&halo[1], 1, MPI_DOUBLE, right, 2, WORLD, &requests[1]);
    MPI_Isend(&halo[2], 1, MPI_DOUBLE, right, 1, WORLD, &requests[2]);
    MPI_Isend(&halo[3], 1, MPI_DOUBLE, left, 2, WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    int step;
    MPI_Init(&argc, &argv);
    start_clock();
    for (step = 0; step < STEPS; step++) {
        exchange();
        pass_ms(WORK);
    }
    result(step);
    MPI_Finalize();
    return 0;
}
