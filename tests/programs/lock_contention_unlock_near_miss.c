/* Locks that are asked for lazily and that nobody has: shared ones at the same time, exclusive ones
 * one after the other. The target is inside of MPI all the time, so that it answers; what others
 * compute while they have a lock holds nobody up.
 *
 * RUN np=3 env="OMPI_MCA_osc=pt2pt"
 * SILENT lock_contention+wait_for_progress below=0.030
 */
#include "common.h"

static int done, memory[3];
static MPI_Win window;

static void use(int round, int type, double from, double until)
{
    at(round, from);
    MPI_Win_lock(type, 0, 0, window);
    MPI_Put(&rank, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
    MPI_Win_flush(0, window);
    at(round, until);
    MPI_Win_unlock(0, window);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    start_clock();
    for (int round = 0; round < 2 * REPEATS; round += 2) {
        at(round, 0);
        if (rank == 0) {
            MPI_Recv(&done, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
            continue;
        }
        use(round, MPI_LOCK_SHARED, 10, rank == 1 ? 40 : 60);
        use(round, MPI_LOCK_EXCLUSIVE, rank == 1 ? 80 : 120, rank == 1 ? 100 : 140);
        at(round + 1, 60);
        if (rank == 1)
            MPI_Send(&done, 1, MPI_INT, 0, 0, WORLD);
    }
    at(2 * REPEATS, 0);
    MPI_Win_free(&window);
    finish(2 * REPEATS + 1, memory[1] + memory[2]);
}
