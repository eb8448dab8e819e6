/* Post, start, complete, wait: the target opens its window late; the origin is still at work
 * when the target waits; the origin has done its transfers and does not say so. Rank 2 is an
 * origin, too, and always in time but for the target.
 *
 * RUN np=3
 * EXPECT late_post ranks=1,2 severity=0.480 cause_rank=0 cause_line=@post cause_operation=MPI_Win_post
 * EXPECT early_wait at=@wait ranks=0 severity=0.240 operation=MPI_Win_wait cause_rank=1 cause_line=@complete
 * EXPECT late_complete at=@wait ranks=0 severity=0.240 operation=MPI_Win_wait cause_rank=1 cause_line=@complete
 * METRIC late_post 0.480
 * METRIC early_wait+late_complete 0.480
 * SILENT late_sender+wait_at_fence below=0.010
 */
#include "common.h"

enum { LATE_POST, EARLY_WAIT, LATE_COMPLETE, CASES };

/* When a call is made in each case, in ms: tables, so that no compiler makes two calls of one. */
static const double post[CASES] = {DELAY, 0, 0};
static const double ready[CASES] = {2 * DELAY, 0.2 * DELAY, 0.2 * DELAY};
static const double begin[CASES] = {0, 0.1 * DELAY, 0.1 * DELAY};
static const double transfer[CASES] = {0, 1.2 * DELAY, 0};
static const double complete[CASES] = {0, 0, 1.2 * DELAY};

int main(int argc, char **argv)
{
    long sum = 0;
    int memory[4] = {0}, value;
    MPI_Win window;
    MPI_Group world, origins, target;
    start(&argc, &argv);
    MPI_Comm_group(WORLD, &world);
    MPI_Group_incl(world, 2, (int[]){2, 1}, &origins);
    MPI_Group_incl(world, 1, (int[]){0}, &target);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    start_clock();
    for (int round = 0; round < 4 * CASES; round++) {
        int what = round % CASES;
        if (rank == 0) {
            at(2 * round, post[what]);
            MPI_Win_post(origins, 0, window); /* MARK post */
            at(2 * round, ready[what]);
            MPI_Win_wait(window); /* MARK wait */
            sum += memory[1] + memory[2];
            continue;
        }
        at(2 * round, begin[what]);
        MPI_Win_start(target, 0, window);
        at(2 * round, transfer[what] * (rank == 1));
        value = round * rank;
        MPI_Put(&value, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
        at(2 * round, complete[what] * (rank == 1));
        MPI_Win_complete(window); /* MARK complete */
    }
    MPI_Win_free(&window);
    MPI_Group_free(&world);
    MPI_Group_free(&origins);
    MPI_Group_free(&target);
    finish(8 * CASES, sum);
}
