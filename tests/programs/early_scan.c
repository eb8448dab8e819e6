/* Ranks 2 and 3 wait in a prefix operation for rank 1; rank 0, below it, has nothing to wait for.
 *
 * RUN np=4
 * EXPECT early_scan at=@scan ranks=2,3 severity=0.360 operation=MPI_Scan cause_rank=1 cause_line=@scan
 * EXPECT early_scan at=@exscan ranks=2,3 severity=0.360 operation=MPI_Exscan cause_rank=1 cause_line=@exscan
 * METRIC early_scan 0.720
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 6; round++) {
        int in = rank + 1, out = 0;
        at(round, rank == 1 ? DELAY : 0);
        if (round % 2 == 0) {
            MPI_Scan(&in, &out, 1, MPI_INT, MPI_SUM, WORLD); /* MARK scan */
            REQUIRE(out == (rank + 1) * (rank + 2) / 2);
        } else {
            MPI_Exscan(&in, &out, 1, MPI_INT, MPI_SUM, WORLD); /* MARK exscan */
            REQUIRE(rank == 0 || out == rank * (rank + 1) / 2);
        }
        sum += out;
    }
    finish(6, sum);
}
