/* Transfers of windows compete as those of OpenSHMEM do: rank 2's short put meets the long one of
 * rank 1 at rank 0, between two fences and under shared locks.
 *
 * RUN np=4 link="lib/slow_link.c" libs="-loshmem"
 * NOT_WITH mpich because="its slow link needs OpenSHMEM"
 * EXPECT competing_put at=@fenced ranks=2:0.250 severity=0.250 instances=5 operation=MPI_Put
 *   cause_rank=1 cause_line=@long cause_operation=MPI_Put
 * EXPECT competing_put at=@locked ranks=2:0.250 severity=0.250 instances=5 operation=MPI_Put
 *   cause_rank=1 cause_line=@long cause_operation=MPI_Put
 * METRIC competing_put 0.500 instances=10
 * SILENT lock_contention+wait_for_progress below=0.010
 * SILENT unexplained below=0.090
 */
#include "common.h"

enum { SHORT = 50000, LONG = 150000 };
static char memory[LONG], mine[LONG];

static void put(int bytes, int target, MPI_Win window)
{
    MPI_Put(mine, bytes, MPI_CHAR, target, 0, bytes, MPI_CHAR, window);
}

static NOINLINE void put_long(MPI_Win window)
{
    MPI_Put(mine, LONG, MPI_CHAR, 0, 0, LONG, MPI_CHAR, window); /* MARK long */
}

int main(int argc, char **argv)
{
    MPI_Win window;
    start(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, WORLD, &window);
    start_clock();
    MPI_Win_fence(0, window);
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 2 ? 10 : 0);
        if (rank == 1)
            put_long(window);
        else if (rank == 2)
            MPI_Put(mine, SHORT, MPI_CHAR, 0, 0, SHORT, MPI_CHAR, window); /* MARK fenced */
        else if (rank == 3)
            put(SHORT, 1, window);
    }
    at(REPEATS, 0);
    MPI_Win_fence(0, window);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    for (int round = REPEATS; round < 2 * REPEATS; round++) {
        at(round, rank == 2 ? 10 : 0);
        if (rank == 1)
            put_long(window);
        else if (rank == 2)
            MPI_Put(mine, SHORT, MPI_CHAR, 0, 0, SHORT, MPI_CHAR, window); /* MARK locked */
        else if (rank == 3)
            put(SHORT, 1, window);
    }
    at(2 * REPEATS, 0);
    MPI_Win_unlock(0, window);
    MPI_Win_unlock(1, window);
    at(2 * REPEATS, 30);
    MPI_Win_free(&window);
    finish(2 * REPEATS + 1, rank);
}
