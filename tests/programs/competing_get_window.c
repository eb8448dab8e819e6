/* Gets of windows compete: rank 2's short one meets the long one of rank 1 at rank 0. Alone, or at
 * the same time with another target, it does not.
 *
 * RUN np=4 link="lib/slow_link.c" libs="-loshmem"
 * NOT_WITH mpich because="its slow link needs OpenSHMEM"
 * EXPECT competing_get at=@meets ranks=2:0.150 severity=0.150 instances=3 operation=MPI_Get
 *   cause_rank=1 cause_line=@long cause_operation=MPI_Get
 *   because="transferred to or from the same rank meanwhile"
 * METRIC competing_get 0.150 instances=3
 * SILENT competing_get at=@alone below=0.005
 * SILENT competing_get at=@elsewhere below=0.005
 * SILENT competing_put+lock_contention+wait_for_progress below=0.010
 * SILENT unexplained below=0.090
 */
#include "common.h"

enum { SHORT = 50000, LONG = 150000, ROUNDS = 3 };
static char memory[LONG], mine[LONG];

int main(int argc, char **argv)
{
    MPI_Win window;
    start(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, WORLD, &window);
    start_clock();
    MPI_Win_lock_all(0, window);
    for (int round = 0; round < ROUNDS; round++) {
        at(2 * round, rank == 2 ? 10 : 0);
        if (rank == 1)
            MPI_Get(mine, LONG, MPI_CHAR, 0, 0, LONG, MPI_CHAR, window); /* MARK long */
        else if (rank == 2)
            MPI_Get(mine, SHORT, MPI_CHAR, 0, 0, SHORT, MPI_CHAR, window); /* MARK meets */
        at(2 * round, 100);
        if (rank == 2)
            MPI_Get(mine, SHORT, MPI_CHAR, 0, 0, SHORT, MPI_CHAR, window); /* MARK alone */
        at(2 * round, 140);
        if (rank == 2)
            MPI_Get(mine, SHORT, MPI_CHAR, 0, 0, SHORT, MPI_CHAR, window); /* MARK elsewhere */
        else if (rank == 1)
            MPI_Get(mine, SHORT, MPI_CHAR, 3, 0, SHORT, MPI_CHAR, window);
    }
    at(2 * ROUNDS, 0);
    MPI_Win_unlock_all(window);
    at(2 * ROUNDS, 30);
    MPI_Win_free(&window);
    finish(2 * ROUNDS + 1, rank);
}
