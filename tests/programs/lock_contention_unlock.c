/* Libraries that ask for a lock and do not wait for it: a rank that wants the one that another has
 * is held up in MPI_Win_unlock, where its transfer has to be through. The target is inside of MPI
 * all the time. Ranks 1 and 2 have the lock before the other one in turns, for different times.
 *
 * RUN np=3 env="OMPI_MCA_osc=pt2pt"
 * EXPECT lock_contention ranks=1:0.120,2:0.250 severity=0.370 at=@wanted instances=10
 *   operation=MPI_Win_unlock cause_rank=1:0.250,2:0.120 cause_line=@unlock
 *   cause_operation=MPI_Win_unlock because="comput" tolerance=0.15
 * METRIC lock_contention 0.370 tolerance=0.15
 * SILENT wait_for_progress below=0.010
 * NOT_WITH mpich because="where it waits for the lock differs from run to run"
 */
#include "common.h"

static int done, memory[3];
static MPI_Win window;

static void hold(int round, double until)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Put(&rank, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
    /* Now it has the lock. */
    MPI_Win_flush(0, window);
    at(round, until);
    MPI_Win_unlock(0, window); /* MARK unlock */
}

static void want(int round, double from)
{
    at(round, from);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Put(&rank, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
    MPI_Win_unlock(0, window); /* MARK wanted */
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
        } else if (rank == 1) {
            hold(round, 60);
            want(round, 110);
            at(round + 1, 60);
            MPI_Send(&done, 1, MPI_INT, 0, 0, WORLD);
        } else {
            want(round, 10);
            at(round, 100);
            hold(round, 134);
        }
    }
    at(2 * REPEATS, 0);
    MPI_Win_free(&window);
    finish(2 * REPEATS + 1, memory[1] + memory[2]);
}
