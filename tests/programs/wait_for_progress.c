/* Passive target, with windows that need the target's help: rank 0 computes outside of MPI, and
 * the access goes on when it enters a call.
 *
 * RUN np=2 env="OMPI_MCA_osc=pt2pt"
 * EXPECT wait_for_progress ranks=1 severity=0.300 cause_rank=0 cause_line=@serve
 *   cause_operation=MPI_Recv because="comput" tolerance=0.15
 * METRIC wait_for_progress 0.300 tolerance=0.15
 * SILENT lock_contention below=0.010
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
            at(round, DELAY);
            MPI_Recv(&done, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE); /* MARK serve */
            sum += memory[round];
            continue;
        }
        at(round, 0);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Put(&round, 1, MPI_INT, 0, round, 1, MPI_INT, window);
        MPI_Win_unlock(0, window);
        MPI_Send(&done, 1, MPI_INT, 0, 0, WORLD);
    }
    at(REPEATS, 0);
    MPI_Win_free(&window);
    finish(REPEATS + 1, sum);
}
