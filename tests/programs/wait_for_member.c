/* Large data in operations with a root: who needs nothing of a late one waits for it all the same. Members
 * of a gather wait for a late root, the root of a scatter for late members. Two take part, so that no tree is
 * between them, whatever the library does.
 *
 * RUN np=4
 * EXPECT wait_for_member at=@gather ranks=3 severity=0.180 instances=3 operation=MPI_Gather cause_rank=1 cause_line=@gather
 * EXPECT wait_for_member at=@scatter ranks=1 severity=0.180 instances=3 operation=MPI_Scatter cause_rank=3 cause_line=@scatter
 * METRIC wait_for_member 0.360
 * SILENT early_reduce+late_reduce_contribution+late_broadcast below=0.030
 */
#include "common.h"

enum { LARGE = 1 << 18 };

int main(int argc, char **argv)
{
    long sum = 0;
    int *all = malloc(2 * LARGE * sizeof *all), *own = calloc(LARGE, sizeof *own);
    MPI_Comm two;
    start(&argc, &argv);
    MPI_Comm_split(WORLD, rank % 2, rank, &two);
    for (int at = 0; at < 2 * LARGE; at++)
        all[at] = at / LARGE;
    /* Without a wait at first: what the data takes is known then. */
    for (int round = 0; round < 6 && rank % 2 == 1; round++) {
        int is_late = round >= 3;
        at(2 * round, rank == 1 && is_late ? DELAY : 0);
        own[0] = rank + round;
        MPI_Gather(own, LARGE, MPI_INT, all, LARGE, MPI_INT, 0, two); /* MARK gather */
        REQUIRE(rank != 1 || (all[0] == 1 + round && all[LARGE] == 3 + round));
        at(2 * round + 1, rank == 3 && is_late ? DELAY : 0);
        MPI_Scatter(all, LARGE, MPI_INT, own, LARGE, MPI_INT, 0, two); /* MARK scatter */
        sum += own[0];
    }
    finish(12, sum);
}
