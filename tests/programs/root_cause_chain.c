/* Rank 0 makes all others wait: each of them is late only because it waited itself.
 *
 * RUN np=4
 * ROOT computation at=@first ranks=0:0.900
 * NO_ROOT ranks=1,2,3
 * METRIC late_sender 0.900
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0) {
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK first */
        } else {
            MPI_Recv(&value, 1, MPI_INT, rank - 1, 0, WORLD, MPI_STATUS_IGNORE);
            if (rank < size - 1)
                MPI_Send(&value, 1, MPI_INT, rank + 1, 0, WORLD);
        }
        REQUIRE(value == round);
        sum += value;
    }
    finish(REPEATS, sum);
}
