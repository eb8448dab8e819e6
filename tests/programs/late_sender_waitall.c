/* A Waitall over three late senders is charged once, with the largest wait.
 *
 * RUN np=4
 * EXPECT late_sender at=@waitall ranks=0 severity=0.300 instances=5 operation=MPI_Waitall
 *   cause_rank=3 cause_line=@send
 * METRIC late_sender 0.300
 * SILENT late_receiver
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 0) {
            int values[5] = {-1, -1, -1, -1, -1};
            MPI_Request requests[5];
            at(round, 0);
            for (int source = 1; source < 4; source++)
                MPI_Irecv(&values[source], 1, MPI_INT, source, 0, WORLD, &requests[source]);
            requests[0] = requests[4] = MPI_REQUEST_NULL;
            MPI_Waitall(5, requests, MPI_STATUSES_IGNORE); /* MARK waitall */
            for (int source = 1; source < 4; source++) {
                REQUIRE(values[source] == 10 * round + source);
                sum += values[source];
            }
        } else {
            int value = 10 * round + rank;
            at(round, 20 * rank);
            MPI_Send(&value, 1, MPI_INT, 0, 0, WORLD); /* MARK send */
        }
    }
    finish(REPEATS, sum);
}
