/* The receiver waits for rank 2 while rank 1's message lies there.
 *
 * RUN np=3
 * EXPECT late_sender_wrong_order_other_source at=@late ranks=0 severity=0.300 instances=5 operation=MPI_Recv
 *   cause_rank=2 cause_line=@send
 * METRIC late_sender_wrong_order_other_source 0.300
 * SILENT late_sender
 * SILENT late_sender_wrong_order_same_source
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 0) {
            int from_1 = -1, from_2 = -1;
            at(round, 10);
            MPI_Recv(&from_2, 1, MPI_INT, 2, 0, WORLD, MPI_STATUS_IGNORE); /* MARK late */
            MPI_Recv(&from_1, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
            REQUIRE(from_1 == round + 1 && from_2 == round + 2);
            sum += from_1 - 2 * from_2;
        } else {
            int value = round + rank;
            at(round, rank == 2 ? DELAY + 10 : 0);
            MPI_Send(&value, 1, MPI_INT, 0, 0, WORLD); /* MARK send */
        }
    }
    finish(REPEATS, sum);
}
