/* Passive target in all its forms, with windows that need the target's help: rank 0 computes
 * outside of MPI, and rank 1 waits for it in each kind of flush, which has to wait for the lock, and
 * in the completion of requests, for which it has the lock already. A flush that finds all done,
 * and a request that is waited for when it is through, cost nothing.
 *
 * RUN np=2 env="OMPI_MCA_osc=pt2pt"
 * NOT_WITH mpich because="its shared memory needs no help of the target"
 * EXPECT wait_for_progress at=@flush ranks=1 severity=0.100 instances=2 operation=MPI_Win_flush
 *   cause_rank=0 cause_line=@serve cause_operation=MPI_Recv because="comput" tolerance=0.15
 * EXPECT wait_for_progress at=@flush_all ranks=1 severity=0.100 operation=MPI_Win_flush_all
 *   cause_rank=0 cause_line=@serve tolerance=0.15
 * EXPECT wait_for_progress at=@flush_local ranks=1 severity=0.100 operation=MPI_Win_flush_local
 *   cause_rank=0 cause_line=@serve tolerance=0.15
 * EXPECT wait_for_progress at=@flush_local_all ranks=1 severity=0.100
 *   operation=MPI_Win_flush_local_all cause_rank=0 cause_line=@serve tolerance=0.15
 * EXPECT wait_for_progress at=@put ranks=1 severity=0.100 operation=MPI_Wait
 *   cause_rank=0 cause_line=@serve tolerance=0.15
 * EXPECT wait_for_progress at=@get ranks=1 severity=0.100 operation=MPI_Wait
 *   cause_rank=0 cause_line=@serve cause_operation=MPI_Recv because="comput" tolerance=0.15
 * EXPECT wait_for_progress at=@two ranks=1 severity=0.100 operation=MPI_Waitall
 *   cause_rank=0 cause_line=@serve tolerance=0.15
 * METRIC wait_for_progress 0.700 tolerance=0.15
 * SILENT wait_for_progress at=@again below=0.005
 * SILENT wait_for_progress at=@later below=0.005
 * SILENT lock_contention below=0.010
 */
#include "common.h"

enum { FLUSH, FLUSH_ALL, FLUSH_LOCAL, FLUSH_LOCAL_ALL, PUT, GET, TWO, LATER, FORMS };
/* Large enough that the target has to take it. */
enum { INTS = 1 << 18 };

static MPI_Request requests[2];
static int memory[INTS], given[INTS], got[2];

static void do_access(int what, MPI_Win window)
{
    if (what <= FLUSH_LOCAL_ALL)
        MPI_Put(given, 1, MPI_INT, 0, 1, 1, MPI_INT, window);
    switch (what) {
    case FLUSH: MPI_Win_flush(0, window); break; /* MARK flush */
    case FLUSH_ALL: MPI_Win_flush_all(window); break; /* MARK flush_all */
    case FLUSH_LOCAL: MPI_Win_flush_local(0, window); break; /* MARK flush_local */
    case FLUSH_LOCAL_ALL: MPI_Win_flush_local_all(window); break; /* MARK flush_local_all */
    case PUT: MPI_Rput(given, INTS, MPI_INT, 0, 0, INTS, MPI_INT, window, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE); break; /* MARK put */
    case TWO: MPI_Raccumulate(given, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, window, &requests[0]);
        MPI_Rget(&got[1], 1, MPI_INT, 0, 2, 1, MPI_INT, window, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); break; /* MARK two */
    default: MPI_Rget(got, 1, MPI_INT, 0, 1, 1, MPI_INT, window, &requests[0]);
        if (what == GET)
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* MARK get */
    }
}

int main(int argc, char **argv)
{
    long sum = 0;
    int done = 1;
    MPI_Win window;
    start(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    start_clock();
    for (int round = 0; round < 2 * FORMS; round++) {
        int what = round % FORMS, is_one = what == FLUSH || what == FLUSH_LOCAL;
        at(round, 0);
        if (rank == 0) {
            MPI_Recv(&done, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
            at(round, DELAY);
            MPI_Recv(&done, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE); /* MARK serve */
            sum += memory[1];
            continue;
        }
        if (is_one)
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        else
            MPI_Win_lock_all(0, window);
        if (what > FLUSH_LOCAL_ALL) {
            MPI_Put(given, 1, MPI_INT, 0, 3, 1, MPI_INT, window);
            MPI_Win_flush(0, window);
        }
        MPI_Send(&done, 1, MPI_INT, 0, 0, WORLD);
        at(round, 10);
        do_access(what, window);
        if (what == LATER) {
            at(round, DELAY + 20);
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* MARK later */
        }
        if (is_one) {
            MPI_Win_flush(0, window); /* MARK again */
            MPI_Win_unlock(0, window);
        } else {
            MPI_Win_unlock_all(window);
        }
        MPI_Send(&done, 1, MPI_INT, 0, 0, WORLD);
    }
    at(2 * FORMS, 0);
    MPI_Win_free(&window);
    finish(2 * FORMS + 1, sum);
}
