/* The same windows with a target that is inside MPI all the time, and calls of it that begin
 * during an access that has no need of them.
 *
 * RUN np=2 env="OMPI_MCA_osc=pt2pt"
 * SILENT wait_for_progress+lock_contention below=0.020
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int memory[REPEATS] = {0}, done = 1;
    MPI_Win window;
    start(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 0) {
            at(round, 0);
            MPI_Recv(&done, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
            sum += memory[round];
            continue;
        }
        at(round, DELAY);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Put(&round, 1, MPI_INT, 0, round, 1, MPI_INT, window);
        MPI_Win_unlock(0, window);
        MPI_Send(&done, 1, MPI_INT, 0, 0, WORLD);
    }
    at(REPEATS, 0);
    MPI_Win_free(&window);
    finish(REPEATS + 1, sum);
}
