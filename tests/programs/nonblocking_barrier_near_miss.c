/* Ibarrier with enough work in between, and one completed by a Test loop: nobody waits.
 *
 * RUN np=4
 * SILENT wait_at_barrier below=0.030
 */
#include "common.h"

int main(int argc, char **argv)
{
    MPI_Request request;
    start(&argc, &argv);
    for (int round = 0; round < 6; round++) {
        at(round, rank == 3 ? 40 : 0);
        MPI_Ibarrier(WORLD, &request);
        if (round % 2 == 0) {
            at(round, DELAY);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            int done = 0;
            while (!done) {
                usleep(500);
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            }
        }
    }
    finish(6, rank);
}
