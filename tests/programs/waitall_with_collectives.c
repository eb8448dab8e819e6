/* A Waitall completes a receive and two non-blocking collectives: it is charged once, with what
 * it waited for longest.
 *
 * RUN np=3
 * EXPECT late_sender at=@waitall ranks=0 severity=0.180 instances=3 operation=MPI_Waitall
 *   cause_rank=2 cause_line=@send
 * EXPECT wait_at_nxn at=@waitall ranks=0:0.180,2:0.090 severity=0.270 operation=MPI_Waitall
 *   cause_rank=1 cause_line=@second
 * METRIC late_sender 0.180
 * METRIC wait_at_nxn 0.270
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 6; round++) {
        /* In even rounds the message is last, in odd ones rank 1 of the collectives. */
        int message = round % 2 ? 30 : DELAY, member = round % 2 ? DELAY : 30;
        int one = 1, sums[2] = {0, 0}, value = -1;
        MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        at(round, rank == 1 ? member : 0);
        MPI_Iallreduce(&one, &sums[0], 1, MPI_INT, MPI_SUM, WORLD, &requests[0]);
        MPI_Iallreduce(&one, &sums[1], 1, MPI_INT, MPI_SUM, WORLD, &requests[1]); /* MARK second */
        if (rank == 0)
            MPI_Irecv(&value, 1, MPI_INT, 2, 0, WORLD, &requests[2]);
        if (rank == 2) {
            at(round, message);
            MPI_Isend(&round, 1, MPI_INT, 0, 0, WORLD, &requests[2]); /* MARK send */
        }
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE); /* MARK waitall */
        REQUIRE(sums[0] == size && sums[1] == size && (rank != 0 || value == round));
        sum += sums[0] + sums[1] + value;
    }
    finish(6, sum);
}
