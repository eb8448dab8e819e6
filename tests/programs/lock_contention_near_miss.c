/* Locks that do not conflict: shared ones at the same time, exclusive ones at two targets, and
 * exclusive ones one after the other.
 *
 * RUN np=4
 * NOT_WITH mpich because="its targets have to enter MPI for locks, which these do not"
 * SILENT lock_contention+wait_for_progress below=0.030
 */
#include "common.h"

static void use(MPI_Win window, int type, int target, int round, double from, double until)
{
    at(2 * round, from);
    MPI_Win_lock(type, target, 0, window);
    MPI_Put(&rank, 1, MPI_INT, target, rank, 1, MPI_INT, window);
    at(2 * round, until);
    MPI_Win_unlock(target, window);
}

int main(int argc, char **argv)
{
    int memory[4] = {0};
    MPI_Win window;
    start(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        if (rank < 2)
            continue;
        use(window, MPI_LOCK_SHARED, 0, round, 0, 50);
        use(window, MPI_LOCK_EXCLUSIVE, rank - 2, round, 60, 100);
        use(window, MPI_LOCK_EXCLUSIVE, 0, round, rank == 2 ? 110 : 150, rank == 2 ? 130 : 170);
    }
    at(2 * REPEATS, 0);
    MPI_Win_free(&window);
    finish(2 * REPEATS + 1, rank);
}
