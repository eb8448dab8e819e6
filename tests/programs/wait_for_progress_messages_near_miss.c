/* Messages that take long by themselves, and partners whose absence holds nobody up: a large one
 * whose sender waits for it at once, a small one whose sender computes after it, and a receiver
 * that fetches the data by itself while the sender computes.
 *
 * RUN np=2
 * SILENT wait_for_progress below=0.020
 */
#include "common.h"

enum { LARGE = 64 << 20 };

int main(int argc, char **argv)
{
    char *buffer = calloc(LARGE, 1), small = 1;
    MPI_Request request;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        at(3 * round, 0);
        if (rank == 0) {
            MPI_Isend(buffer, LARGE, MPI_CHAR, 1, 0, WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            at(3 * round + 2, 0);
            MPI_Isend(&small, 1, MPI_CHAR, 1, 0, WORLD, &request);
            at(3 * round + 2, DELAY);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, LARGE, MPI_CHAR, 0, 0, WORLD, MPI_STATUS_IGNORE);
            at(3 * round + 2, 1);
            MPI_Recv(&small, 1, MPI_CHAR, 0, 0, WORLD, MPI_STATUS_IGNORE);
        }
    }
    finish(3 * REPEATS, buffer[LARGE - 1] + small);
}
