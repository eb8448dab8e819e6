/* A chain through a collective that a rank looks at: rank 1 looks until rank 0 has come, too, and rank 2
 * waits for rank 1. Both wait because rank 0 computes.
 *
 * RUN np=3
 * ROOT computation at=@start ranks=0:0.600
 * NO_ROOT ranks=1,2
 * METRIC wait_at_nxn_polled 0.300
 * METRIC late_sender 0.300
 */
#include "common.h"

static int sum_up(MPI_Comm pair, int one)
{
    int all = -1, flag = 0;
    MPI_Request request;
    MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, pair, &request); /* MARK start */
    for (;;) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        if (flag)
            return all;
        pass_ms(0.2);
    }
}

int main(int argc, char **argv)
{
    long sum = 0;
    MPI_Comm pair;
    start(&argc, &argv);
    MPI_Comm_split(WORLD, rank < 2, rank, &pair);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        int value = 2 * round;
        at(round, rank == 0 ? DELAY : 0);
        if (rank < 2)
            value = sum_up(pair, round);
        if (rank == 1)
            MPI_Send(&value, 1, MPI_INT, 2, 0, WORLD);
        if (rank == 2)
            MPI_Recv(&value, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
        REQUIRE(value == 2 * round);
        sum += value;
    }
    at(REPEATS, 0);
    MPI_Comm_free(&pair);
    finish(REPEATS + 1, sum);
}
