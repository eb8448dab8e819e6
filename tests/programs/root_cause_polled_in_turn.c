/* Rank 0 looks in turn, at two places, for two messages of rank 1, which computes first. It waits for rank 1 in
 * all these looks.
 *
 * RUN np=2
 * ROOT computation at=@first ranks=1:0.300
 * NO_ROOT ranks=0
 * METRIC late_sender_polled 0.300
 */
#include "common.h"

NOINLINE static void look(int *values)
{
    int first = 0, second = 0;
    MPI_Request requests[2];
    for (int tag = 0; tag < 2; tag++)
        MPI_Irecv(&values[tag], 1, MPI_INT, 1, tag, WORLD, &requests[tag]);
    while (!first || !second) {
        if (!first)
            MPI_Test(&requests[0], &first, MPI_STATUS_IGNORE);
        if (!second)
            MPI_Test(&requests[1], &second, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        int values[2] = {round, 2 * round};
        at(round, rank == 1 ? DELAY : 0);
        if (rank == 1) {
            MPI_Send(&values[0], 1, MPI_INT, 0, 0, WORLD); /* MARK first */
            MPI_Send(&values[1], 1, MPI_INT, 0, 1, WORLD);
        } else {
            look(values);
        }
        REQUIRE(values[0] == round && values[1] == 2 * round);
        sum += values[0] + values[1];
    }
    at(REPEATS, 0);
    finish(REPEATS + 1, sum);
}
