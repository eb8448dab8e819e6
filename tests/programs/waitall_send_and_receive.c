/* A Waitall completes a send with a late receiver and a receive with a later sender: the call
 * is charged once, as a late sender.
 *
 * RUN np=2
 * EXPECT late_sender at=@waitall ranks=0 severity=0.300 instances=5 operation=MPI_Waitall
 *   cause_rank=1 cause_line=@answer
 * SILENT late_receiver
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int question = 7 * round, answer = -1;
        MPI_Request requests[2];
        if (rank == 0) {
            at(round, 0);
            MPI_Irecv(&answer, 1, MPI_INT, 1, 1, WORLD, &requests[0]);
            MPI_Issend(&question, 1, MPI_INT, 1, 0, WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* MARK waitall */
            REQUIRE(answer == question + 1);
            sum += answer;
        } else {
            question = -1;
            at(round, 30);
            MPI_Recv(&question, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
            at(round, DELAY);
            answer = question + 1;
            MPI_Send(&answer, 1, MPI_INT, 0, 1, WORLD); /* MARK answer */
        }
    }
    finish(REPEATS, sum);
}
