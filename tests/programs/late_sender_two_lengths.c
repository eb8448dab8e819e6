/* At one line every receive waits, in turns a short and a long time: the short waits are no
 * measure for the long ones, and count as well.
 *
 * RUN np=2
 * EXPECT late_sender at=@recv ranks=1 severity=0.450 instances=10 cause_rank=0 cause_line=@send
 * METRIC late_sender 0.450
 */
#include "common.h"

enum { ROUNDS = 10, SHORT = 30, LONG = 60 };

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        int value = round;
        at(round, rank == 0 ? (round % 2 ? LONG : SHORT) : 0);
        if (rank == 0)
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK send */
        else
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
        REQUIRE(value == round);
        sum += value;
    }
    finish(ROUNDS, sum);
}
