/* Barriers of two disjoint communicators from one split, ranks reversed: each is an instance
 * of its own, only the even one is late, and its last member is world rank 0.
 *
 * RUN np=4
 * EXPECT wait_at_barrier at=@even ranks=2 severity=0.300 instances=5 cause_rank=0 cause_line=@even
 * SILENT wait_at_barrier at=@odd
 */
#include "common.h"

int main(int argc, char **argv)
{
    MPI_Comm half;
    int mine;
    start(&argc, &argv);
    MPI_Comm_split(WORLD, rank % 2, -rank, &half);
    MPI_Comm_rank(half, &mine);
    REQUIRE(mine == (rank >= 2 ? 0 : 1));
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 0 ? DELAY : 0);
        if (rank % 2 == 0)
            MPI_Barrier(half); /* MARK even */
        else
            MPI_Barrier(half); /* MARK odd */
    }
    MPI_Comm_free(&half);
    finish(REPEATS, mine);
}
