/* Small data is handed over before who takes it is there. Large data takes its time, though nobody is late, and
 * though somebody comes while it is under way.
 *
 * RUN np=4
 * SILENT wait_for_member below=0.010
 */
#include "common.h"

enum { LARGE = 1 << 18 };

int main(int argc, char **argv)
{
    long sum = 0;
    int *all = calloc(4 * LARGE, sizeof *all), *own = calloc(LARGE, sizeof *own);
    start(&argc, &argv);
    for (int round = 0; round < 6; round++) {
        int small = rank + round, out[4] = {0};
        at(2 * round, rank == 1 ? DELAY : 0);
        MPI_Gather(&small, 1, MPI_INT, out, 1, MPI_INT, 1, WORLD);
        MPI_Scatter(out, 1, MPI_INT, &small, 1, MPI_INT, 1, WORLD);
        MPI_Bcast(&small, 1, MPI_INT, 1, WORLD);
        at(2 * round + 1, 0);
        for (int n = 0; n < 3; n++) {
            MPI_Barrier(WORLD);
            MPI_Gather(own, LARGE, MPI_INT, all, LARGE, MPI_INT, 1, WORLD);
            MPI_Barrier(WORLD);
            MPI_Scatter(all, LARGE, MPI_INT, own, LARGE, MPI_INT, 1, WORLD);
            MPI_Barrier(WORLD);
            MPI_Bcast(own, LARGE, MPI_INT, 1, WORLD);
        }
        sum += small;
    }
    finish(12, sum);
}
