/* A blocking Probe waits for a late sender; the Recv after it finds the message there.
 *
 * RUN np=2
 * EXPECT late_sender at=@probe ranks=1 severity=0.300 instances=5 operation=MPI_Probe
 *   cause_rank=0 cause_line=@send
 * METRIC late_sender 0.300
 * SILENT late_sender at=@recv
 * SILENT late_receiver
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int values[REPEATS] = {0};
        if (rank == 0) {
            at(round, DELAY);
            values[0] = round;
            MPI_Send(values, round + 1, MPI_INT, 1, round, WORLD); /* MARK send */
        } else {
            MPI_Status status;
            int count;
            at(round, 0);
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status); /* MARK probe */
            MPI_Get_count(&status, MPI_INT, &count);
            REQUIRE(count == round + 1 && status.MPI_TAG == round);
            MPI_Recv(values, count, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
            REQUIRE(values[0] == round);
            sum += values[0] + count;
        }
    }
    finish(REPEATS, sum);
}
