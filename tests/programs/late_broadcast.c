/* The root of a one-to-n operation comes last: everybody waits for it.
 *
 * RUN np=4
 * EXPECT late_broadcast at=@bcast ranks=0,2,3 severity=0.540 instances=9 operation=MPI_Bcast cause_rank=1 cause_line=@bcast
 * EXPECT late_broadcast at=@scatter ranks=0,2,3 severity=0.540 instances=9 operation=MPI_Scatter cause_rank=1 cause_line=@scatter
 * EXPECT late_broadcast at=@scatterv ranks=0,2,3 severity=0.540 instances=9 operation=MPI_Scatterv cause_rank=1 cause_line=@scatterv
 * METRIC late_broadcast 1.620
 * SILENT wait_at_barrier
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int ones[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3};
    start(&argc, &argv);
    for (int round = 0; round < 9; round++) {
        int data[4] = {round, round + 1, round + 2, round + 3}, out = -1;
        at(round, rank == 1 ? DELAY : 0);
        switch (round % 3) {
        case 0:
            out = rank == 1 ? round : -1;
            MPI_Bcast(&out, 1, MPI_INT, 1, WORLD); /* MARK bcast */
            REQUIRE(out == round);
            break;
        case 1:
            MPI_Scatter(data, 1, MPI_INT, &out, 1, MPI_INT, 1, WORLD); /* MARK scatter */
            REQUIRE(out == round + rank);
            break;
        default:
            MPI_Scatterv(data, ones, places, MPI_INT, &out, 1, MPI_INT, 1, WORLD); /* MARK scatterv */
            REQUIRE(out == round + rank);
        }
        sum += out;
    }
    finish(9, sum);
}
