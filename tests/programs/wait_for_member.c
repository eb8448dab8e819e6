/* Large data in operations with a root: who needs nothing of a late one waits for it all the same. Members
 * of a gather wait for a late root, the root of a scatter for a late member.
 *
 * RUN np=4
 * EXPECT wait_for_member at=@gather ranks=0,2,3 severity=0.540 instances=9 operation=MPI_Gather cause_rank=1 cause_line=@gather
 * EXPECT wait_for_member at=@scatter ranks=1 severity=0.180 instances=3 operation=MPI_Scatter cause_rank=3 cause_line=@scatter
 * SILENT early_reduce+late_reduce_contribution+late_broadcast below=0.030
 */
#include "common.h"

enum { LARGE = 1 << 18 };

int main(int argc, char **argv)
{
    long sum = 0;
    int *all = malloc(4 * LARGE * sizeof *all), *own = calloc(LARGE, sizeof *own);
    start(&argc, &argv);
    for (int at = 0; at < 4 * LARGE; at++)
        all[at] = at / LARGE;
    /* Without a wait: what the data takes is known then. */
    for (int round = 0; round < 3; round++) {
        at(2 * round, 0);
        MPI_Gather(own, LARGE, MPI_INT, all, LARGE, MPI_INT, 1, WORLD);
        at(2 * round + 1, 0);
        MPI_Scatter(all, LARGE, MPI_INT, own, LARGE, MPI_INT, 1, WORLD);
    }
    for (int round = 3; round < 6; round++) {
        at(2 * round, rank == 1 ? DELAY : 0);
        own[0] = rank + round;
        MPI_Gather(own, LARGE, MPI_INT, all, LARGE, MPI_INT, 1, WORLD); /* MARK gather */
        REQUIRE(rank != 1 || (all[0] == round && all[3 * LARGE] == 3 + round));
        at(2 * round + 1, rank == 3 ? DELAY : 0);
        MPI_Scatter(all, LARGE, MPI_INT, own, LARGE, MPI_INT, 1, WORLD); /* MARK scatter */
        sum += own[0];
    }
    finish(12, sum);
}
