/* Looks that are no waiting: between looks the rank computes, or the message is there already. Calls between looks that
 * do nothing do not change that.
 *
 * RUN np=2
 * SILENT late_sender_polled below=0.010
 * SILENT late_sender
 * SILENT late_receiver_polled
 */
#include "common.h"

HELPER void compute_ms(double ms)
{
    double until = now() + 1e-3 * ms;
    while (now() < until) {
    }
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int value = round, flag = 0;
        MPI_Request request;
        if (rank == 0) {
            at(round, round % 2 == 0 ? DELAY : 0);
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD);
        } else {
            value = -1;
            MPI_Irecv(&value, 1, MPI_INT, 0, 0, WORLD, &request);
            at(round, round % 2 == 0 ? 0 : DELAY);
            for (; !flag; compute_ms(5)) {
                MPI_Request null = MPI_REQUEST_NULL;
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
                MPI_Wait(&null, MPI_STATUS_IGNORE);
            }
            REQUIRE(value == round);
            sum += value;
        }
    }
    finish(REPEATS + 1, sum);
}
