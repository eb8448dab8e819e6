/* Passive target: rank 2 wants the lock on rank 0's window that rank 1 has, then both want it
 * behind rank 3, which holds it for different times. Rank 0 does nothing.
 *
 * RUN np=4
 * NOT_WITH mpich because="MPI_Win_lock returns without the lock; MPI_Win_unlock waits for it"
 * EXPECT lock_contention ranks=2 severity=0.250 at=@wanted instances=5 operation=MPI_Win_lock
 *   cause_rank=1 cause_line=@unlock cause_operation=MPI_Win_unlock because="comput" tolerance=0.15
 * EXPECT lock_contention ranks=1 severity=0.200 at=@queued instances=5
 *   cause_rank=3 cause_line=@last tolerance=0.15
 * METRIC lock_contention 0.450 tolerance=0.15
 * SILENT wait_for_progress below=0.010
 */
#include "common.h"

static void hold(MPI_Win window, int round, double until)
{
    MPI_Put(&rank, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
    at(2 * round, until);
}

int main(int argc, char **argv)
{
    int memory[4] = {0};
    MPI_Win window;
    start(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 1) {
            at(2 * round, 0);
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
            hold(window, round, 60);
            MPI_Win_unlock(0, window); /* MARK unlock */
            at(2 * round, 110);
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window); /* MARK queued */
            hold(window, round, 110);
            MPI_Win_unlock(0, window);
        } else if (rank == 2) {
            at(2 * round, 10);
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window); /* MARK wanted */
            hold(window, round, 10);
            MPI_Win_unlock(0, window);
        } else if (rank == 3) {
            at(2 * round, 90);
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
            hold(window, round, 150);
            MPI_Win_unlock(0, window); /* MARK last */
        }
    }
    at(2 * REPEATS, 0);
    MPI_Win_free(&window);
    finish(2 * REPEATS + 1, rank);
}
