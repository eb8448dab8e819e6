/* Fences with assertions. Those about stores, puts and what follows do not lift the meeting of all
 * ranks: rank 2 is waited for. One that nothing precedes need not wait, and with this library does
 * not, though rank 2 enters it late: it costs nothing.
 *
 * RUN np=3 link="lib/light_fence.c"
 * EXPECT wait_at_fence_sync at=@asserted ranks=0,1 severity=0.360 operation=MPI_Win_fence
 *   cause_rank=2 cause_line=@asserted
 * METRIC wait_at_fence_sync 0.360
 * SILENT wait_at_fence+wait_at_fence_sync at=@lifted below=0.001
 * SILENT early_fence below=0.010
 */
#include "common.h"

int main(int argc, char **argv)
{
    int memory[4] = {0};
    MPI_Win window;
    start(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    MPI_Win_fence(0, window);
    start_clock();
    for (int round = 0; round < 6; round++) {
        at(round, rank == 2 ? DELAY : 0);
        if (round % 2)
            MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, window); /* MARK asserted */
        else
            MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, window); /* MARK lifted */
    }
    at(6, 0);
    MPI_Win_free(&window);
    finish(7, memory[1]);
}
