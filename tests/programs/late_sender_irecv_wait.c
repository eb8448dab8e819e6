/* The Wait of a posted receive waits for a late sender; the post itself costs nothing.
 *
 * RUN np=2
 * EXPECT late_sender at=@wait ranks=1 severity=0.300 instances=5 operation=MPI_Wait
 *   cause_rank=0 cause_line=@send
 * METRIC late_sender 0.300
 * SILENT late_sender at=@post
 * SILENT late_receiver
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        if (rank == 0) {
            at(round, DELAY);
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK send */
        } else {
            MPI_Request request;
            MPI_Status status;
            at(round, 0);
            value = -1;
            MPI_Irecv(&value, 1, MPI_INT, 0, 0, WORLD, &request); /* MARK post */
            MPI_Wait(&request, &status); /* MARK wait */
            REQUIRE(value == round && status.MPI_SOURCE == 0 && request == MPI_REQUEST_NULL);
            sum += value;
        }
    }
    finish(REPEATS, sum);
}
