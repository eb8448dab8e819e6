/* The last one in a barrier is innocent: rank 2 comes late because it waited for rank 1. Rank 0 waits for
 * both; all of it began with rank 1.
 *
 * RUN np=3
 * ROOT computation at=@send ranks=1:0.600
 * NO_ROOT ranks=0,2
 * METRIC late_sender 0.300
 * METRIC wait_at_barrier 0.300
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        at(round, rank == 1 ? DELAY : 0);
        if (rank == 1)
            MPI_Send(&value, 1, MPI_INT, 2, 0, WORLD); /* MARK send */
        if (rank == 2)
            MPI_Recv(&value, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(WORLD);
        REQUIRE(value == round);
        sum += value;
    }
    finish(REPEATS, sum);
}
