/* The root of a gather waits for rank 2, and then for rank 1. Rank 2 waits for what the root sends after that: because of
 * rank 1, too, and not of the root or of the network. For the first 5 ms of 40, ranks 1 and 2 are missing.
 *
 * RUN np=3
 * ROOT computation at=@gather ranks=1:0.363
 * NO_ROOT ranks=0
 * METRIC early_reduce+late_reduce_contribution 0.200
 * METRIC late_sender 0.175
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int all[3] = {0, 0, 0}, value = round;
        at(round, rank == 1 ? 40 : rank == 2 ? 5 : 0);
        MPI_Gather(&value, 1, MPI_INT, all, 1, MPI_INT, 0, WORLD); /* MARK gather */
        if (rank == 0) {
            REQUIRE(all[1] == round && all[2] == round);
            MPI_Send(&value, 1, MPI_INT, 2, 0, WORLD);
        } else if (rank == 2) {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
        }
        REQUIRE(value == round);
        sum += value;
    }
    finish(REPEATS, sum);
}
