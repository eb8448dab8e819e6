/* Fences: rank 2 comes late, nobody has made a transfer, and all wait for it; rank 1 comes late and
 * puts into rank 0's memory first, and rank 0 waits for that.
 *
 * RUN np=3
 * EXPECT wait_at_fence_sync at=@plain ranks=0,1 severity=0.480 operation=MPI_Win_fence cause_rank=2 cause_line=@plain
 * EXPECT early_fence at=@fence ranks=0 severity=0.240 operation=MPI_Win_fence cause_rank=1 cause_line=@put cause_operation=MPI_Put
 * EXPECT wait_at_fence at=@fence ranks=2 severity=0.240 cause_rank=1 cause_line=@fence
 * METRIC wait_at_fence 0.240
 * METRIC wait_at_fence_sync 0.480
 * METRIC early_fence 0.240
 * SILENT late_post+early_wait+late_complete below=0.001
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int memory[4] = {0}, value;
    MPI_Win window;
    start(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    MPI_Win_fence(0, window);
    start_clock();
    for (int round = 0; round < 8; round++) {
        if (round % 2) {
            at(round, rank == 2 ? DELAY : 0);
            MPI_Win_fence(0, window); /* MARK plain */
            continue;
        }
        at(round, rank == 1 ? DELAY : 0);
        value = round;
        if (rank == 1)
            MPI_Put(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, window); /* MARK put */
        MPI_Win_fence(0, window); /* MARK fence */
        sum += memory[1];
    }
    MPI_Win_free(&window);
    finish(8, sum);
}
