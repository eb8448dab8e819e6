/* The work between start and completion covers the late member; several operations are in
 * flight and completed in another order than started.
 *
 * RUN np=4
 * SILENT wait_at_nxn below=0.040
 * SILENT late_broadcast below=0.030
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int in = rank, total = -1, root = rank == 3 ? round : -1;
        MPI_Request reduce, bcast;
        at(round, rank == 3 ? 40 : 0);
        MPI_Iallreduce(&in, &total, 1, MPI_INT, MPI_SUM, WORLD, &reduce);
        MPI_Ibcast(&root, 1, MPI_INT, 3, WORLD, &bcast);
        at(round, DELAY);
        MPI_Wait(&bcast, MPI_STATUS_IGNORE);
        MPI_Wait(&reduce, MPI_STATUS_IGNORE);
        REQUIRE(total == 6 && root == round);
        sum += total + root;
    }
    finish(REPEATS, sum);
}
