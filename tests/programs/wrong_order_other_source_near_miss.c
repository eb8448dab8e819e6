/* First the message that is there, then the late one; and a message of a third rank that is
 * sent only after the late one: no other order would have helped.
 *
 * RUN np=4
 * EXPECT late_sender at=@late ranks=0 severity=0.300 instances=5 cause_rank=2 cause_line=@send
 * SILENT late_sender_wrong_order_same_source
 * SILENT late_sender_wrong_order_other_source
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 0) {
            int from_1 = -1, from_2 = -1, from_3 = -1;
            at(round, 10);
            MPI_Recv(&from_1, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(&from_2, 1, MPI_INT, 2, 0, WORLD, MPI_STATUS_IGNORE); /* MARK late */
            at(round, DELAY + 30);
            MPI_Recv(&from_3, 1, MPI_INT, 3, 0, WORLD, MPI_STATUS_IGNORE);
            REQUIRE(from_1 == round + 1 && from_2 == round + 2 && from_3 == round + 3);
            sum += from_1 - 2 * from_2 + 3 * from_3;
        } else {
            int value = round + rank;
            at(round, rank == 1 ? 0 : rank == 2 ? DELAY + 10 : DELAY + 20);
            MPI_Send(&value, 1, MPI_INT, 0, 0, WORLD); /* MARK send */
        }
    }
    finish(REPEATS, sum);
}
