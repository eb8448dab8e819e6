/* The sender is late, but the receiver has work for that time: no wait is left in the Wait.
 *
 * RUN np=2
 * SILENT late_sender
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
            at(round, DELAY - 10);
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD);
        } else {
            MPI_Request request;
            at(round, 0);
            value = -1;
            MPI_Irecv(&value, 1, MPI_INT, 0, 0, WORLD, &request);
            at(round, DELAY);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            REQUIRE(value == round);
            sum += value;
        }
    }
    finish(REPEATS, sum);
}
