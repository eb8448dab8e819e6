/* Waitany and Waitsome wait for whoever comes next: each call has its own cause. A Waitsome
 * completes both where both are there, and either call the messages in any order.
 *
 * RUN np=3
 * EXPECT late_sender at=@waitany ranks=0 severity=0.180 instances=6 operation=MPI_Waitany
 *   cause_rank=1,2 cause_line=@send
 * EXPECT late_sender at=@waitsome ranks=0 severity=0.180 instances=6 operation=MPI_Waitsome
 *   cause_rank=1,2 cause_line=@send
 * METRIC late_sender 0.360
 * SILENT late_sender_wrong_order_other_source
 */
#include "common.h"

static long collect(int round)
{
    int values[3] = {-1, -1, -1}, indices[3], count = 1;
    MPI_Request requests[3] = {MPI_REQUEST_NULL};
    MPI_Status statuses[3];
    for (int source = 2; source >= 1; source--)
        MPI_Irecv(&values[source], 1, MPI_INT, source, 0, WORLD, &requests[source]);
    for (int left = 2; left > 0; left -= count) {
        if (round < 3)
            MPI_Waitany(3, requests, indices, statuses); /* MARK waitany */
        else
            MPI_Waitsome(3, requests, &count, indices, statuses); /* MARK waitsome */
        REQUIRE(count >= 1 && count <= left);
        for (int i = 0; i < count; i++)
            REQUIRE(indices[i] >= 1 && statuses[i].MPI_SOURCE == indices[i]
                    && requests[indices[i]] == MPI_REQUEST_NULL);
    }
    if (round >= 3) {
        MPI_Waitsome(3, requests, &count, indices, statuses);
        REQUIRE(count == MPI_UNDEFINED);
    }
    REQUIRE(values[1] == round && values[2] == 2 * round);
    return values[1] + values[2];
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 6; round++) {
        if (rank == 0) {
            at(round, 0);
            sum += collect(round);
        } else {
            int value = rank * round;
            at(round, 30 * rank);
            MPI_Send(&value, 1, MPI_INT, 0, 0, WORLD); /* MARK send */
        }
    }
    finish(6, sum);
}
