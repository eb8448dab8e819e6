/* Non-blocking collectives are charged in the call that completes them, with the pattern of
 * their blocking form and the late member's starting call as the cause.
 *
 * RUN np=4
 * EXPECT wait_at_nxn at=@wait_allreduce ranks=0,1,2 severity=0.540 instances=9 operation=MPI_Wait
 *   cause_rank=3 cause_line=@iallreduce cause_operation=MPI_Iallreduce
 * EXPECT late_broadcast at=@wait_bcast ranks=0,1,2 severity=0.540 instances=9 operation=MPI_Wait
 *   cause_rank=3 cause_line=@ibcast cause_operation=MPI_Ibcast
 * EXPECT wait_at_nxn at=@waitall ranks=0,1,2 severity=0.540 instances=9 operation=MPI_Waitall
 *   cause_rank=3 cause_line=@ialltoall
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 9; round++) {
        int in[4] = {rank, rank + 1, rank + 2, rank + 3}, out[4] = {-1, -1, -1, -1};
        MPI_Request requests[2];
        at(round, rank == 3 ? DELAY : 0);
        switch (round % 3) {
        case 0:
            MPI_Iallreduce(in, out, 1, MPI_INT, MPI_SUM, WORLD, &requests[0]); /* MARK iallreduce */
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* MARK wait_allreduce */
            REQUIRE(out[0] == 6);
            break;
        case 1:
            out[0] = rank == 3 ? round : -1;
            MPI_Ibcast(out, 1, MPI_INT, 3, WORLD, &requests[0]); /* MARK ibcast */
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* MARK wait_bcast */
            REQUIRE(out[0] == round);
            break;
        default:
            MPI_Ialltoall(in, 1, MPI_INT, out, 1, MPI_INT, WORLD, &requests[0]); /* MARK ialltoall */
            requests[1] = MPI_REQUEST_NULL;
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* MARK waitall */
            REQUIRE(out[0] == rank && out[3] == 3 + rank);
        }
        sum += out[0];
    }
    finish(9, sum);
}
