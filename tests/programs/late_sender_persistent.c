/* Persistent requests: the Start is the posting and the sending call.
 *
 * RUN np=2
 * EXPECT late_sender at=@wait ranks=1 severity=0.180 instances=3 operation=MPI_Wait
 *   cause_rank=0 cause_line=@start cause_operation=MPI_Start
 * EXPECT late_sender at=@waitall ranks=1 severity=0.180 instances=3 operation=MPI_Waitall
 *   cause_rank=0 cause_line=@startall cause_operation=MPI_Startall
 * METRIC late_sender 0.360
 * SILENT late_receiver
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int values[2];
    MPI_Request requests[2];
    start(&argc, &argv);
    for (int i = 0; i < 2; i++) {
        if (rank == 0)
            MPI_Send_init(&values[i], 1, MPI_INT, 1, i, WORLD, &requests[i]);
        else
            MPI_Recv_init(&values[i], 1, MPI_INT, 0, i, WORLD, &requests[i]);
    }
    for (int round = 0; round < 6; round++) {
        int all = round % 2;
        values[0] = values[1] = -1;
        if (rank == 0) {
            values[0] = round, values[1] = 2 * round;
            at(round, DELAY);
            if (all) {
                MPI_Startall(2, requests); /* MARK startall */
                MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            } else {
                MPI_Start(&requests[0]); /* MARK start */
                MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
            }
        } else {
            at(round, 0);
            if (all) {
                MPI_Startall(2, requests);
                MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* MARK waitall */
            } else {
                MPI_Start(&requests[0]);
                MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* MARK wait */
            }
            REQUIRE(values[0] == round && values[1] == (all ? 2 * round : -1));
            REQUIRE(requests[0] != MPI_REQUEST_NULL);
            sum += values[0] + values[1];
        }
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    finish(6, sum);
}
