/* Rank 1 holds the lock on rank 0's window for long. Rank 2 waits for the lock, and rank 3 for a message
 * of rank 2. Both wait because of rank 1.
 *
 * RUN np=4
 * NOT_WITH mpich because="MPI_Win_lock returns without the lock; MPI_Win_unlock waits for it"
 * ROOT computation at=@unlock ranks=1:0.600
 * NO_ROOT ranks=0,2,3
 * METRIC lock_contention 0.300
 * METRIC late_sender 0.300
 */
#include "common.h"

static void lock(MPI_Win window)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Put(&rank, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
}

int main(int argc, char **argv)
{
    long sum = 0;
    int memory[4] = {0};
    MPI_Win window;
    start(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        at(2 * round, rank == 1 ? 0 : 20);
        if (rank == 1) {
            lock(window);
            at(2 * round, 80);
            MPI_Win_unlock(0, window); /* MARK unlock */
        } else if (rank == 2) {
            lock(window);
            MPI_Win_unlock(0, window);
            MPI_Send(&value, 1, MPI_INT, 3, 0, WORLD);
        } else if (rank == 3) {
            MPI_Recv(&value, 1, MPI_INT, 2, 0, WORLD, MPI_STATUS_IGNORE);
        }
        REQUIRE(value == round);
        sum += value;
    }
    at(2 * REPEATS, 0);
    MPI_Win_free(&window);
    finish(2 * REPEATS + 1, sum);
}
