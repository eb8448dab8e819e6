/* Sends that do not wait for their late receiver: an eager one, a buffered one, a synchronous
 * one whose Wait comes after the receive, and one whose receive was posted before.
 *
 * RUN np=2
 * SILENT late_receiver
 * SILENT late_sender
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
    for (int round = 0; round < 8; round++) {
        int value = round, kind = round % 4;
        MPI_Request request;
        if (rank == 0) {
            at(round, kind == 3 ? 20 : 0);
            switch (kind) {
            case 0: MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD); break;
            case 1: MPI_Bsend(&value, 1, MPI_INT, 1, 0, WORLD); break;
            case 2:
                MPI_Issend(&value, 1, MPI_INT, 1, 0, WORLD, &request);
                at(round, DELAY + 10);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
                break;
            default: MPI_Ssend(&value, 1, MPI_INT, 1, 0, WORLD);
            }
        } else {
            value = -1;
            at(round, kind == 3 ? 20 : DELAY);
            MPI_Irecv(&value, 1, MPI_INT, 0, 0, WORLD, &request);
            if (kind == 3)
                at(round, 20.5);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            REQUIRE(value == round);
            sum += value;
        }
    }
    MPI_Buffer_detach(&detached, &bytes);
    finish(8, sum);
}
