/* Buffered and ready sends are sends: their receivers wait for them too. The receive of a ready one
 * is posted before.
 *
 * RUN np=2
 * EXPECT late_sender at=@recv_buffered ranks=1 severity=0.180 instances=3
 *   cause_rank=0 cause_line=@bsend cause_operation=MPI_Bsend
 * EXPECT late_sender at=@wait_ready ranks=1 severity=0.180 instances=3
 *   cause_rank=0 cause_line=@rsend cause_operation=MPI_Rsend
 * METRIC late_sender 0.360
 * SILENT late_receiver
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    char buffer[1024];
    void *detached;
    int bytes;
    start(&argc, &argv);
    MPI_Buffer_attach(buffer, sizeof buffer);
    for (int round = 0; round < 6; round++) {
        int value = round;
        if (rank == 0) {
            if (round % 2)
                go_on_after(1);
            at(round, DELAY + 10);
            if (round % 2 == 0)
                MPI_Bsend(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK bsend */
            else
                MPI_Rsend(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK rsend */
            continue;
        }
        value = -1;
        if (round % 2 == 0) {
            at(round, 10);
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK recv_buffered */
        } else {
            MPI_Request request;
            at(round, 0);
            MPI_Irecv(&value, 1, MPI_INT, 0, 0, WORLD, &request);
            let_go_on(0);
            at(round, 10);
            MPI_Wait(&request, MPI_STATUS_IGNORE); /* MARK wait_ready */
        }
        REQUIRE(value == round);
        sum += value;
    }
    MPI_Buffer_detach(&detached, &bytes);
    REQUIRE(detached == buffer);
    finish(6, sum);
}
