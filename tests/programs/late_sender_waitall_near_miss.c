/* All messages are there before the Waitall begins.
 *
 * RUN np=4
 * SILENT late_sender
 * SILENT late_receiver
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 0) {
            int values[4];
            MPI_Request requests[4] = {MPI_REQUEST_NULL};
            at(round, 0);
            for (int source = 1; source < 4; source++)
                MPI_Irecv(&values[source], 1, MPI_INT, source, 0, WORLD, &requests[source]);
            at(round, DELAY + 10);
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
            for (int source = 1; source < 4; source++) {
                REQUIRE(values[source] == 10 * round + source);
                sum += values[source];
            }
        } else {
            int value = 10 * round + rank;
            at(round, 20 * rank);
            MPI_Send(&value, 1, MPI_INT, 0, 0, WORLD);
        }
    }
    finish(REPEATS, sum);
}
