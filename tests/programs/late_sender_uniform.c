/* No receive is fast: ten at one line wait alike, one at another line waits longer than each of
 * them, but less than all of them.
 *
 * RUN np=2
 * EXPECT late_sender at=@many ranks=1 severity=0.400 instances=10 cause_rank=0 cause_line=@often
 * EXPECT late_sender at=@one ranks=1 severity=0.090 instances=1 cause_rank=0 cause_line=@once
 * METRIC late_sender 0.490
 */
#include "common.h"

enum { MANY = 10 };

static long receive_many(void)
{
    long sum = 0;
    for (int round = 0; round < MANY; round++) {
        int value = -1;
        at(round, 0);
        MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK many */
        REQUIRE(value == round);
        sum += value;
    }
    return sum;
}

static void send_many(void)
{
    for (int round = 0; round < MANY; round++) {
        at(round, 40);
        MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD); /* MARK often */
    }
}

int main(int argc, char **argv)
{
    long sum = 0;
    int value = 7;
    start(&argc, &argv);
    if (rank == 0) {
        send_many();
        at(MANY, 90);
        MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK once */
    } else {
        sum = receive_many();
        at(MANY, 0);
        MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK one */
    }
    REQUIRE(value == 7);
    finish(MANY + 1, sum);
}
