/* Locks of all targets at once: rank 2 wants them while rank 1 has an exclusive lock at rank 0, then
 * rank 1 wants that one while rank 2 has all. Rank 0 has all of them together with rank 2, at no
 * cost.
 *
 * RUN np=3
 * NOT_WITH mpich because="MPI_Win_lock returns without the lock; MPI_Win_unlock waits for it"
 * EXPECT lock_contention ranks=2 severity=0.250 at=@all instances=5 operation=MPI_Win_lock_all
 *   cause_rank=1 cause_line=@unlock cause_operation=MPI_Win_unlock because="comput" tolerance=0.15
 * EXPECT lock_contention ranks=1 severity=0.250 at=@one instances=5 operation=MPI_Win_lock
 *   cause_rank=2 cause_line=@unlock_all cause_operation=MPI_Win_unlock_all because="comput"
 *   tolerance=0.15
 * METRIC lock_contention 0.500 tolerance=0.15
 * SILENT lock_contention at=@shared below=0.010
 * SILENT wait_for_progress below=0.010
 */
#include "common.h"

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
            MPI_Put(&rank, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
            at(2 * round, 60);
            MPI_Win_unlock(0, window); /* MARK unlock */
            at(2 * round, 100);
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window); /* MARK one */
            MPI_Win_unlock(0, window);
        } else if (rank == 2) {
            at(2 * round, 10);
            MPI_Win_lock_all(0, window); /* MARK all */
            MPI_Put(&rank, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
            at(2 * round, 150);
            MPI_Win_unlock_all(window); /* MARK unlock_all */
        } else {
            at(2 * round, 90);
            MPI_Win_lock_all(0, window); /* MARK shared */
            at(2 * round, 95);
            MPI_Win_unlock_all(window);
        }
    }
    at(2 * REPEATS, 0);
    MPI_Win_free(&window);
    finish(2 * REPEATS + 1, rank);
}
