/* Post, start, complete, wait, with everybody in time: the target has posted when the origins
 * start, and they have completed when it waits. An epoch without a transfer, and one that is
 * tested for, not waited.
 *
 * RUN np=3
 * SILENT late_post+early_wait+late_complete below=0.030
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int memory[4] = {0}, value;
    MPI_Win window;
    MPI_Group world, origins, target;
    start(&argc, &argv);
    MPI_Comm_group(WORLD, &world);
    MPI_Group_incl(world, 2, (int[]){1, 2}, &origins);
    MPI_Group_incl(world, 1, (int[]){0}, &target);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    start_clock();
    for (int round = 0; round < 8; round++) {
        if (rank == 0) {
            int done = 0;
            at(2 * round, 0);
            MPI_Win_post(origins, 0, window);
            at(2 * round, 2 * DELAY);
            if (round % 2)
                MPI_Win_wait(window);
            else
                while (!done)
                    MPI_Win_test(window, &done);
            sum += memory[1] + memory[2];
            continue;
        }
        at(2 * round, DELAY);
        MPI_Win_start(target, 0, window);
        value = round * rank;
        if (round % 3)
            MPI_Put(&value, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
        MPI_Win_complete(window);
    }
    MPI_Win_free(&window);
    MPI_Group_free(&world);
    MPI_Group_free(&origins);
    MPI_Group_free(&target);
    finish(16, sum);
}
