/* A late member of a scatter of large data holds up the root, which a third rank waits for then. Rank 0 has its
 * data by then.
 *
 * RUN np=3
 * ROOT computation at=@scatter ranks=2:0.600
 * METRIC wait_for_member 0.300
 * METRIC late_sender 0.300
 */
#include "common.h"

enum { LARGE = 1 << 18 };

int main(int argc, char **argv)
{
    long sum = 0;
    int *all = calloc(4 * LARGE, sizeof *all), *own = calloc(LARGE, sizeof *own);
    start(&argc, &argv);
    for (int round = 0; round < 2 * REPEATS; round++) {
        int value = round;
        at(round, rank == 2 && round >= REPEATS ? DELAY : 0);
        all[0] = round;
        MPI_Scatter(all, LARGE, MPI_INT, own, LARGE, MPI_INT, 1, WORLD); /* MARK scatter */
        if (rank == 1)
            MPI_Send(&value, 1, MPI_INT, 0, 0, WORLD);
        else if (rank == 0)
            MPI_Recv(&value, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
        REQUIRE(value == round && (rank != 0 || own[0] == round));
        sum += value;
    }
    finish(2 * REPEATS, sum);
}
