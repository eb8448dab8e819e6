/* Rooted operations over an intercommunicator: the other group waits for the root, and the root
 * for the other group. Rank 1, beside the root and later than all, takes no part.
 * Until the first of the others comes, all of them are missing.
 *
 * RUN np=4
 * EXPECT late_broadcast at=@bcast ranks=2,3 severity=0.360 instances=6 operation=MPI_Bcast cause_rank=0 cause_line=@bcast
 * EXPECT late_broadcast at=@scatter ranks=2,3 severity=0.360 instances=6 operation=MPI_Scatter cause_rank=0 cause_line=@scatter
 * EXPECT late_broadcast at=@wait ranks=2,3 severity=0.360 instances=6 operation=MPI_Wait cause_rank=0 cause_line=@ibcast
 * EXPECT early_reduce at=@gather ranks=0 severity=0.090 instances=3 operation=MPI_Gather cause_rank=2:0.045,3:0.045 cause_line=@gather
 * EXPECT late_reduce_contribution at=@gather ranks=0 severity=0.090 instances=3 cause_rank=3 cause_line=@gather
 * EXPECT early_reduce at=@reduce ranks=0 severity=0.090 instances=3 operation=MPI_Reduce cause_rank=2:0.045,3:0.045 cause_line=@reduce
 * EXPECT late_reduce_contribution at=@reduce ranks=0 severity=0.090 instances=3 cause_rank=3 cause_line=@reduce
 * METRIC late_broadcast 1.080
 * METRIC early_reduce 0.180
 * METRIC late_reduce_contribution 0.180
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    MPI_Comm half, inter;
    MPI_Request request;
    start(&argc, &argv);
    MPI_Comm_split(WORLD, rank / 2, rank, &half);
    MPI_Intercomm_create(half, 0, WORLD, rank < 2 ? 2 : 0, 5, &inter);
    int root = rank == 0 ? MPI_ROOT : rank == 1 ? MPI_PROC_NULL : 0;
    for (int round = 0; round < 15; round++) {
        int one = rank == 0 ? round : -1, many[2] = {round, round + 1};
        if (round % 5 < 3)
            at(round, rank == 0 ? DELAY : rank == 1 ? DELAY + 20 : 0);
        else
            at(round, rank == 0 ? 0 : rank == 1 ? DELAY + 20 : rank == 2 ? 30 : 60);
        switch (round % 5) {
        case 0:
            MPI_Bcast(&one, 1, MPI_INT, root, inter); /* MARK bcast */
            REQUIRE(rank == 1 || one == round);
            break;
        case 1:
            MPI_Scatter(many, 1, MPI_INT, &one, 1, MPI_INT, root, inter); /* MARK scatter */
            REQUIRE(rank < 2 || one == round + rank - 2);
            break;
        case 2:
            MPI_Ibcast(&one, 1, MPI_INT, root, inter, &request); /* MARK ibcast */
            MPI_Wait(&request, MPI_STATUS_IGNORE);               /* MARK wait */
            REQUIRE(rank == 1 || one == round);
            break;
        case 3:
            one = rank;
            MPI_Gather(&one, 1, MPI_INT, many, 1, MPI_INT, root, inter); /* MARK gather */
            REQUIRE(rank != 0 || (many[0] == 2 && many[1] == 3));
            break;
        default:
            one = rank;
            MPI_Reduce(&one, many, 1, MPI_INT, MPI_SUM, root, inter); /* MARK reduce */
            REQUIRE(rank != 0 || many[0] == 5);
        }
        sum += many[0];
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    finish(15, sum);
}
