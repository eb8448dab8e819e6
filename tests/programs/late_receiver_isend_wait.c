/* The Wait of a non-blocking send waits for the late receiver; the receiver's posting call is
 * the cause, also where it only completes the receive later.
 *
 * RUN np=2
 * EXPECT late_receiver at=@wait ranks=0 severity=0.180 instances=3 operation=MPI_Wait
 *   cause_rank=1 cause_line=@recv
 * EXPECT late_receiver at=@wait_large ranks=0 severity=0.180 instances=3 operation=MPI_Wait
 *   cause_rank=1 cause_line=@post cause_operation=MPI_Irecv
 * METRIC late_receiver 0.360
 * SILENT late_sender
 */
#include "common.h"

enum { COUNT = 1 << 18 };
static int data[COUNT];

int main(int argc, char **argv)
{
    long sum = 0;
    MPI_Request request;
    start(&argc, &argv);
    for (int round = 0; round < 6; round++) {
        int large = round % 2, count = large ? COUNT : 1;
        if (rank == 0) {
            data[0] = data[COUNT - 1] = round;
            at(round, 0);
            if (large) {
                MPI_Isend(data, count, MPI_INT, 1, 0, WORLD, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE); /* MARK wait_large */
            } else {
                MPI_Issend(data, count, MPI_INT, 1, 0, WORLD, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE); /* MARK wait */
            }
        } else {
            at(round, DELAY);
            if (large) {
                MPI_Irecv(data, count, MPI_INT, 0, 0, WORLD, &request); /* MARK post */
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(data, count, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
            }
            REQUIRE(data[0] == round && data[count - 1] == round);
            sum += data[0];
        }
    }
    finish(6, sum);
}
