/* The program does not choose the order: it takes the message that comes first, by a blocking
 * receive, a posted one and Waitany. Rank 1's message lies there all the time, with a tag that
 * is asked for last.
 *
 * RUN np=3
 * EXPECT late_sender at=@late ranks=0 severity=0.300 instances=5 cause_rank=2 cause_line=@send
 * EXPECT late_sender at=@wait ranks=0 severity=0.300 instances=5 cause_rank=2 cause_line=@second
 * EXPECT late_sender at=@any ranks=0 severity=0.300 instances=5 cause_rank=2 cause_line=@third
 * SILENT late_sender_wrong_order_same_source
 * SILENT late_sender_wrong_order_other_source
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int value[3] = {round + rank, round + rank + 10, round + rank + 20};
        if (rank == 0) {
            int late[3] = {-1, -1, -1}, early = -1, index;
            MPI_Request request;
            at(3 * round, 10);
            MPI_Recv(&late[0], 1, MPI_INT, MPI_ANY_SOURCE, 0, WORLD, MPI_STATUS_IGNORE); /* MARK late */
            at(3 * round + 1, 10);
            MPI_Irecv(&late[1], 1, MPI_INT, MPI_ANY_SOURCE, 0, WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE); /* MARK wait */
            at(3 * round + 2, 10);
            MPI_Irecv(&late[2], 1, MPI_INT, 2, 0, WORLD, &request);
            MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE); /* MARK any */
            MPI_Recv(&early, 1, MPI_INT, 1, 1, WORLD, MPI_STATUS_IGNORE);
            REQUIRE(early == round + 1 && late[0] == round + 2 && late[1] == round + 12 && late[2] == round + 22);
            sum += early - 2 * late[0];
        } else if (rank == 1) {
            at(3 * round, 0);
            MPI_Send(&value[0], 1, MPI_INT, 0, 1, WORLD);
        } else {
            at(3 * round, DELAY + 10);
            MPI_Send(&value[0], 1, MPI_INT, 0, 0, WORLD); /* MARK send */
            at(3 * round + 1, DELAY + 10);
            MPI_Send(&value[1], 1, MPI_INT, 0, 0, WORLD); /* MARK second */
            at(3 * round + 2, DELAY + 10);
            MPI_Send(&value[2], 1, MPI_INT, 0, 0, WORLD); /* MARK third */
        }
    }
    finish(REPEATS, sum);
}
