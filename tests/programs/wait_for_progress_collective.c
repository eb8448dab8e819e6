/* A non-blocking collective moves on only while its members are inside MPI: all begin it at the
 * same time, rank 0, on which the reduction depends, computes before it waits for it.
 *
 * RUN np=3
 * NOT_WITH mpich because="its reduction over shared memory needs rank 0 for some of the members only"
 * EXPECT wait_for_progress at=@wait operation=MPI_Wait ranks=1:0.300,2:0.300 severity=0.600
 *   cause_rank=0 cause_line=@wait because="comput" tolerance=0.15
 * METRIC wait_for_progress 0.600 tolerance=0.15
 * SILENT wait_at_nxn below=0.020
 */
#include "common.h"

enum { NUMBERS = 1 << 14 };

int main(int argc, char **argv)
{
    static long mine[NUMBERS], all[NUMBERS];
    MPI_Request request;
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        at(round, 0);
        mine[0] = rank + round;
        MPI_Iallreduce(mine, all, NUMBERS, MPI_LONG, MPI_SUM, WORLD, &request);
        at(round, rank == 0 ? DELAY : 1);
        MPI_Wait(&request, MPI_STATUS_IGNORE); /* MARK wait */
        sum += all[0];
    }
    finish(REPEATS, sum);
}
