/* A chain through looks: rank 1 looks for either of two messages, of which rank 0 sends one late. Rank 2
 * waits for rank 1. Both wait because rank 0 computes.
 *
 * RUN np=3
 * ROOT computation at=@send ranks=0:0.600
 * NO_ROOT ranks=1,2
 * METRIC late_sender_polled 0.300
 * METRIC late_sender 0.300
 */
#include "common.h"

static void look(int round)
{
    int values[2] = {-1, -1}, flag = 0, which;
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, 2 * i, 0, WORLD, &requests[i]);
    for (;;) {
        MPI_Testany(2, requests, &which, &flag, MPI_STATUS_IGNORE);
        if (flag)
            break;
        pass_ms(0.2);
    }
    REQUIRE(which == 0 && values[0] == round);
    MPI_Send(&round, 1, MPI_INT, 2, 0, WORLD);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    REQUIRE(values[1] == round);
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0)
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK send */
        else if (rank == 1)
            look(round);
        else {
            MPI_Recv(&value, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD);
        }
        REQUIRE(value == round);
        sum += value;
    }
    finish(REPEATS, sum);
}
