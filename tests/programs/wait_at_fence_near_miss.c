/* Fences that all reach together, with transfers in both directions before them: nobody waits.
 *
 * RUN np=3
 * SILENT wait_at_fence+early_fence below=0.030
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    /* A round's puts do not go where the last round's may still be read. */
    int memory[4] = {0}, value = 0, got = 0;
    MPI_Win window;
    start(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    start_clock();
    for (int round = 0; round < 8; round++) {
        at(round, 0);
        value = round + rank;
        MPI_Put(&value, 1, MPI_INT, (rank + 1) % 3, round % 2, 1, MPI_INT, window);
        MPI_Get(&got, 1, MPI_INT, (rank + 2) % 3, 2, 1, MPI_INT, window);
        at(round, DELAY);
        MPI_Win_fence(0, window);
        sum += memory[round % 2] + got;
    }
    MPI_Win_free(&window);
    finish(8, sum);
}
