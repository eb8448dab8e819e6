/* The highest rank is late: no rank's result depends on it.
 *
 * RUN np=4
 * SILENT early_scan
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 6; round++) {
        int in = rank + 1, out = 0;
        at(round, rank == 3 ? DELAY : rank);
        if (round % 2 == 0) {
            MPI_Scan(&in, &out, 1, MPI_INT, MPI_SUM, WORLD);
            REQUIRE(out == (rank + 1) * (rank + 2) / 2);
        } else {
            MPI_Exscan(&in, &out, 1, MPI_INT, MPI_SUM, WORLD);
            REQUIRE(rank == 0 || out == rank * (rank + 1) / 2);
        }
        sum += out;
    }
    finish(6, sum);
}
