/* The receiver comes after the message: nobody waits, small sends are eager.
 *
 * RUN np=2
 * SILENT late_sender
 * SILENT late_receiver
 * SILENT late_sender_wrong_order_same_source
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 0) {
            at(round, 0);
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD);
        } else {
            int value = -1;
            at(round, DELAY);
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
            REQUIRE(value == round);
            sum += value;
        }
    }
    finish(REPEATS, sum);
}
