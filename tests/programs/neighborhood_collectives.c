/* A neighbourhood exchange on a ring of four: the two neighbours of the late rank wait for it,
 * the rank opposite to it does not.
 *
 * RUN np=4
 * EXPECT wait_at_nxn at=@exchange ranks=0,2 severity=0.600 operation=MPI_Neighbor_alltoall
 *   cause_rank=3 cause_line=@exchange
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int sides[1] = {4}, periodic[1] = {1};
    MPI_Comm ring;
    start(&argc, &argv);
    MPI_Cart_create(WORLD, 1, sides, periodic, 0, &ring);
    for (int round = 0; round < REPEATS; round++) {
        int out[2] = {10 * rank, 10 * rank + 1}, in[2] = {-1, -1};
        at(round, rank == 3 ? DELAY : 0);
        MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring); /* MARK exchange */
        REQUIRE(in[0] == 10 * ((rank + 3) % 4) + 1 && in[1] == 10 * ((rank + 1) % 4));
        sum += in[0] - in[1] + round;
    }
    MPI_Comm_free(&ring);
    finish(REPEATS, sum);
}
