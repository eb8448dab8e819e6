/* In a gather of different counts the root waits for those that send something: first for ranks 1
 * and 2, then for rank 2, not for rank 3. With no data at all nobody is waited for.
 *
 * RUN np=4
 * EXPECT early_reduce at=@gatherv ranks=0 severity=0.100 instances=5 operation=MPI_Gatherv cause_rank=1:0.05,2:0.05 cause_line=@gatherv
 * EXPECT late_reduce_contribution at=@gatherv ranks=0 severity=0.100 instances=5 cause_rank=2 cause_line=@gatherv
 * SILENT early_reduce+late_reduce_contribution at=@empty below=0.001
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int counts[4] = {0, 1, 1, 0}, nothing[4] = {0, 0, 0, 0}, places[4] = {0, 0, 1, 2};
    start(&argc, &argv);
    for (int round = 0; round < 2 * REPEATS; round++) {
        int in = rank + round, out[2] = {-1, -1};
        if (round < REPEATS) {
            at(round, rank == 3 ? 70 : 20 * rank);
            MPI_Gatherv(&in, counts[rank], MPI_INT, out, counts, places, MPI_INT, 0, WORLD); /* MARK gatherv */
            REQUIRE(rank != 0 || (out[0] == 1 + round && out[1] == 2 + round));
        } else {
            at(round, rank == 0 ? 0 : DELAY);
            MPI_Gatherv(&in, 0, MPI_INT, out, nothing, places, MPI_INT, 0, WORLD); /* MARK empty */
        }
        sum += out[0] + out[1];
    }
    finish(2 * REPEATS, sum);
}
