/* Mprobe takes the message out of the matching and waits for it; Mrecv and Imrecv do not.
 * An Improbe loop is the program's own polling: it never waits.
 *
 * RUN np=2
 * EXPECT late_sender at=@mprobe ranks=1 severity=0.180 instances=3 operation=MPI_Mprobe
 *   cause_rank=0 cause_line=@send
 * METRIC late_sender 0.180
 * SILENT late_sender at=@mrecv
 * SILENT late_sender at=@improbe
 * SILENT late_sender at=@imrecv_wait
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 6; round++) {
        int value = round;
        if (rank == 0) {
            at(round, DELAY);
            MPI_Send(&value, 1, MPI_INT, 1, 4, WORLD); /* MARK send */
            continue;
        }
        MPI_Message message;
        MPI_Status status;
        at(round, 0);
        value = -1;
        if (round % 2 == 0) {
            MPI_Mprobe(MPI_ANY_SOURCE, 4, WORLD, &message, &status); /* MARK mprobe */
            MPI_Mrecv(&value, 1, MPI_INT, &message, &status); /* MARK mrecv */
        } else {
            MPI_Request request;
            int found = 0;
            while (!found) {
                usleep(500);
                MPI_Improbe(0, 4, WORLD, &found, &message, &status); /* MARK improbe */
            }
            MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
            MPI_Wait(&request, &status); /* MARK imrecv_wait */
        }
        REQUIRE(value == round && status.MPI_SOURCE == 0);
        sum += value;
    }
    finish(6, sum);
}
