/* The program does not choose the order: a Waitall takes the messages of both neighbours at
 * once. That of the next round from rank 1 is sent before this round's from rank 2, and could
 * not have been taken instead.
 *
 * RUN np=3
 * EXPECT late_sender at=@wait ranks=0 severity=0.300 instances=5 cause_rank=2 cause_line=@send
 * SILENT late_sender_wrong_order_same_source
 * SILENT late_sender_wrong_order_other_source
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    if (rank == 1) { /* all its messages at once */
        for (int round = 0; round < REPEATS; round++) {
            int value = round + rank;
            MPI_Send(&value, 1, MPI_INT, 0, 0, WORLD);
        }
    }
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 0) {
            int from_1 = -1, from_2 = -1;
            MPI_Request both[2];
            MPI_Irecv(&from_1, 1, MPI_INT, 1, 0, WORLD, &both[0]);
            MPI_Irecv(&from_2, 1, MPI_INT, 2, 0, WORLD, &both[1]);
            at(round, 10);
            MPI_Waitall(2, both, MPI_STATUSES_IGNORE); /* MARK wait */
            REQUIRE(from_1 == round + 1 && from_2 == round + 2);
            sum += from_1 - 2 * from_2;
        } else if (rank == 2) {
            int value = round + rank;
            at(round, DELAY + 10);
            MPI_Send(&value, 1, MPI_INT, 0, 0, WORLD); /* MARK send */
        }
    }
    finish(REPEATS, sum);
}
