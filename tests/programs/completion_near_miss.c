/* Ranks that wait long for the last one and leave with it do not wait in the library.
 *
 * RUN np=4
 * EXPECT wait_at_barrier at=@barrier ranks=0,1,2 severity=0.540 cause_rank=3
 * EXPECT wait_at_nxn at=@allreduce ranks=0,1,2 severity=0.540 cause_rank=3
 * SILENT barrier_completion at=@barrier below=0.030
 * SILENT nxn_completion at=@allreduce below=0.030
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 6; round++) {
        int in = rank + round, out = -1;
        at(round, rank == 3 ? DELAY : 0);
        if (round % 2 == 0) {
            MPI_Barrier(WORLD); /* MARK barrier */
        } else {
            MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, WORLD); /* MARK allreduce */
            REQUIRE(out == 6 + 4 * round);
        }
        sum += out;
    }
    finish(6, sum);
}
