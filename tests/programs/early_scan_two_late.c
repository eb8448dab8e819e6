/* Two ranks come late to a prefix operation: rank 2 waits for rank 1, below it, and not for rank 3,
 * the last of all.
 *
 * RUN np=4
 * EXPECT early_scan at=@scan ranks=2 severity=0.200 instances=5 operation=MPI_Scan cause_rank=1 cause_line=@late
 *   because=computed
 * METRIC early_scan 0.200
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int in = rank + round, out = 0;
        at(round, rank == 1 ? 40 : rank == 3 ? 70 : 0);
        if (rank == 1)
            MPI_Scan(&in, &out, 1, MPI_INT, MPI_SUM, WORLD); /* MARK late */
        else
            MPI_Scan(&in, &out, 1, MPI_INT, MPI_SUM, WORLD); /* MARK scan */
        REQUIRE(out == rank * (rank + 1) / 2 + (rank + 1) * round);
        sum += out;
    }
    finish(REPEATS, sum);
}
