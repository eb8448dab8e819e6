/* Post, start, complete, wait: rank 1 transfers in its epochs, rank 2 does not. Both wait for the
 * late post of rank 0, and rank 0 waits for the late end of either epoch. What rank 2 waits for, and
 * makes others wait for, no transfer needed.
 *
 * RUN np=3
 * EXPECT late_post ranks=1 severity=0.240 cause_rank=0 cause_line=@post
 * EXPECT late_post_sync ranks=2 severity=0.240 cause_rank=0 cause_line=@post cause_operation=MPI_Win_post
 * EXPECT early_wait_sync at=@wait ranks=0 severity=0.240 operation=MPI_Win_wait cause_rank=2 cause_line=@complete
 * EXPECT late_complete at=@wait ranks=0 severity=0.240 operation=MPI_Win_wait cause_rank=1 cause_line=@complete
 * METRIC late_post 0.240
 * METRIC late_post_sync 0.240
 * METRIC early_wait_sync 0.240
 * SILENT early_wait below=0.010
 */
#include "common.h"

enum { LATE_POST, LATE_EMPTY, LATE_FULL, CASES };

/* When a call is made in each case, in ms. */
static const double post[CASES] = {DELAY, 0, 0};
static const double ready[CASES] = {2 * DELAY, 0.2 * DELAY, 0.2 * DELAY};
static const double begin[CASES] = {0, 0.1 * DELAY, 0.1 * DELAY};
/* Which rank ends its epoch late. */
static const int late[CASES] = {0, 2, 1};

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
            sum += memory[1];
            continue;
        }
        at(2 * round, begin[what]);
        MPI_Win_start(target, 0, window);
        value = round;
        if (rank == 1)
            MPI_Put(&value, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
        if (rank == late[what])
            at(2 * round, 1.2 * DELAY);
        MPI_Win_complete(window); /* MARK complete */
    }
    MPI_Win_free(&window);
    MPI_Group_free(&world);
    MPI_Group_free(&origins);
    MPI_Group_free(&target);
    finish(8 * CASES, sum);
}
