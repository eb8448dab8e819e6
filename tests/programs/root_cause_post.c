/* Post, start, complete, wait in a chain: rank 1 waits for the window of rank 0, and opens its own for
 * rank 2 only then. Both wait because rank 0 computes.
 *
 * RUN np=3
 * ROOT computation at=@post ranks=0:0.600
 * NO_ROOT ranks=1,2
 * METRIC late_post 0.600
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int memory = -1, value;
    MPI_Win window;
    MPI_Group world, before = MPI_GROUP_NULL, after = MPI_GROUP_NULL;
    start(&argc, &argv);
    MPI_Comm_group(WORLD, &world);
    if (rank > 0)
        MPI_Group_incl(world, 1, (int[]){rank - 1}, &before);
    if (rank < size - 1)
        MPI_Group_incl(world, 1, (int[]){rank + 1}, &after);
    MPI_Win_create(&memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 0 ? DELAY : 0);
        if (rank > 0) {
            value = round;
            MPI_Win_start(before, 0, window);
            MPI_Put(&value, 1, MPI_INT, rank - 1, 0, 1, MPI_INT, window);
            MPI_Win_complete(window);
        }
        if (rank < size - 1) {
            if (rank == 0)
                MPI_Win_post(after, 0, window); /* MARK post */
            else
                MPI_Win_post(after, 0, window);
            MPI_Win_wait(window);
            sum += round;
        }
    }
    at(REPEATS, 0);
    MPI_Win_free(&window);
    MPI_Group_free(&world);
    if (rank > 0)
        MPI_Group_free(&before);
    if (rank < size - 1)
        MPI_Group_free(&after);
    finish(REPEATS + 1, sum);
}
