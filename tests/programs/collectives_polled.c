/* Non-blocking collectives that ranks look at until they are over: charged as in a call that waits,
 * with the late member's starting call as the cause.
 *
 * RUN np=2
 * EXPECT wait_at_nxn_polled at=@allreduce ranks=0 severity=0.060 instances=1 operation=MPI_Test
 *   cause_rank=1 cause_line=@iallreduce cause_operation=MPI_Iallreduce
 * EXPECT wait_at_barrier_polled at=@barrier ranks=0 severity=0.060 instances=1 operation=MPI_Test
 *   cause_rank=1 cause_line=@ibarrier
 * EXPECT late_broadcast_polled at=@bcast ranks=0 severity=0.060 instances=1 operation=MPI_Test
 *   cause_rank=1 cause_line=@ibcast
 * EXPECT early_reduce_polled+late_reduce_contribution_polled at=@reduce ranks=0 severity=0.060
 *   operation=MPI_Test cause_rank=1 cause_line=@ireduce
 * EXPECT early_scan_polled at=@scan ranks=1 severity=0.060 instances=1 operation=MPI_Test
 *   cause_rank=0 cause_line=@iscan
 * SILENT wait_at_nxn+wait_at_barrier+late_broadcast+early_reduce+late_reduce_contribution
 */
#include "common.h"

static int one, all;
static MPI_Request request;

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 5; round++) {
        int flag = 0, late = round < 4;
        one = rank + 1;
        all = -1;
        at(round, rank == late ? DELAY : 0);
        switch (round) {
        case 0:
            MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, WORLD, &request); /* MARK iallreduce */
            while (!flag)
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE); /* MARK allreduce */
            REQUIRE(all == 3);
            break;
        case 1:
            MPI_Ibarrier(WORLD, &request); /* MARK ibarrier */
            while (!flag)
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE); /* MARK barrier */
            break;
        case 2:
            MPI_Ibcast(&one, 1, MPI_INT, 1, WORLD, &request); /* MARK ibcast */
            while (!flag)
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE); /* MARK bcast */
            REQUIRE(one == 2);
            break;
        case 3:
            MPI_Ireduce(&one, &all, 1, MPI_INT, MPI_SUM, 0, WORLD, &request); /* MARK ireduce */
            while (!flag)
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE); /* MARK reduce */
            REQUIRE(rank != 0 || all == 3);
            break;
        default:
            MPI_Iscan(&one, &all, 1, MPI_INT, MPI_SUM, WORLD, &request); /* MARK iscan */
            while (!flag)
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE); /* MARK scan */
            REQUIRE(all == (rank + 1) * (rank + 2) / 2);
        }
        sum += one;
    }
    finish(5, sum);
}
