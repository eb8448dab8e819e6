/* A synchronous send waits for a receiver that computes first.
 *
 * RUN np=2
 * EXPECT late_receiver at=@send ranks=0 severity=0.300 instances=5 operation=MPI_Ssend
 *   cause_rank=1 cause_line=@recv cause_operation=MPI_Recv
 * METRIC late_receiver 0.300
 * SILENT late_sender
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        if (rank == 0) {
            at(round, 0);
            MPI_Ssend(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK send */
        } else {
            at(round, DELAY);
            value = -1;
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
            REQUIRE(value == round);
            sum += value;
        }
    }
    finish(REPEATS, sum);
}
