/* The root of an n-to-one operation comes 30 ms before the first and 60 ms before the last
 * contribution: the first half is the early root's, the second the last member's.
 *
 * RUN np=4
 * EXPECT early_reduce at=@reduce ranks=2 severity=0.090 instances=3 operation=MPI_Reduce
 * EXPECT late_reduce_contribution at=@reduce ranks=2 severity=0.090 instances=3 cause_rank=3 cause_line=@reduce
 * EXPECT early_reduce at=@gather ranks=2 severity=0.090 instances=3 operation=MPI_Gather
 * EXPECT late_reduce_contribution at=@gather ranks=2 severity=0.090 instances=3 cause_rank=3 cause_line=@gather
 * EXPECT early_reduce at=@gatherv ranks=2 severity=0.090 instances=3 operation=MPI_Gatherv
 * EXPECT late_reduce_contribution at=@gatherv ranks=2 severity=0.090 instances=3 cause_rank=3 cause_line=@gatherv
 * METRIC early_reduce 0.270
 * METRIC late_reduce_contribution 0.270
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int ones[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3};
    start(&argc, &argv);
    for (int round = 0; round < 9; round++) {
        int in = rank + round, out[4] = {-1, -1, -1, -1};
        at(round, rank == 2 ? 0 : rank == 3 ? 60 : 30);
        switch (round % 3) {
        case 0:
            MPI_Reduce(&in, out, 1, MPI_INT, MPI_SUM, 2, WORLD); /* MARK reduce */
            REQUIRE(rank != 2 || out[0] == 6 + 4 * round);
            break;
        case 1:
            MPI_Gather(&in, 1, MPI_INT, out, 1, MPI_INT, 2, WORLD); /* MARK gather */
            REQUIRE(rank != 2 || (out[0] == round && out[3] == 3 + round));
            break;
        default:
            MPI_Gatherv(&in, 1, MPI_INT, out, ones, places, MPI_INT, 2, WORLD); /* MARK gatherv */
            REQUIRE(rank != 2 || (out[0] == round && out[3] == 3 + round));
        }
        sum += out[0] + out[3];
    }
    finish(9, sum);
}
