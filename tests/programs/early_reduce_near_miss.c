/* The root comes last: all contributions are there.
 *
 * RUN np=4
 * SILENT early_reduce
 * SILENT late_reduce_contribution
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 6; round++) {
        int in = rank + round, out[4] = {-1, -1, -1, -1};
        at(round, rank == 2 ? DELAY : 0);
        if (round % 2 == 0) {
            MPI_Reduce(&in, out, 1, MPI_INT, MPI_SUM, 2, WORLD);
            REQUIRE(rank != 2 || out[0] == 6 + 4 * round);
        } else {
            MPI_Gather(&in, 1, MPI_INT, out, 1, MPI_INT, 2, WORLD);
            REQUIRE(rank != 2 || (out[0] == round && out[3] == 3 + round));
        }
        sum += out[0] + out[3];
    }
    finish(6, sum);
}
