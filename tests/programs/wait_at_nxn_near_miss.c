/* All come together to an Allreduce; a member late for a Gather or a Bcast is no n-to-n wait.
 *
 * RUN np=4
 * SILENT wait_at_nxn below=0.040
 * SILENT nxn_completion below=0.020
 * SILENT late_broadcast
 * EXPECT early_reduce+late_reduce_contribution at=@gather ranks=0 severity=0.120
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 6; round++) {
        int in = rank + round, out[4] = {-1, -1, -1, -1};
        switch (round % 3) {
        case 0:
            at(round, DELAY);
            MPI_Allreduce(&in, out, 1, MPI_INT, MPI_SUM, WORLD);
            REQUIRE(out[0] == 6 + 4 * round);
            break;
        case 1:
            at(round, rank == 3 ? DELAY : 0);
            MPI_Gather(&in, 1, MPI_INT, out, 1, MPI_INT, 0, WORLD); /* MARK gather */
            REQUIRE(rank != 0 || (out[0] == round && out[3] == 3 + round));
            break;
        default:
            at(round, rank == 3 ? DELAY : rank);
            out[0] = rank == 0 ? round : -1;
            MPI_Bcast(out, 1, MPI_INT, 0, WORLD);
            REQUIRE(out[0] == round);
        }
        sum += out[0] + out[3];
    }
    finish(6, sum);
}
