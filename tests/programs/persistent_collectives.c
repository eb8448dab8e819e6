/* Persistent collectives: each start is a non-blocking collective, charged in the call that
 * completes it.
 *
 * RUN np=4
 * EXPECT wait_at_nxn at=@wait_allreduce ranks=0,1,2 severity=0.540 instances=9 operation=MPI_Wait
 *   cause_rank=3 cause_line=@start_allreduce cause_operation=MPI_Iallreduce
 * EXPECT late_broadcast at=@wait_bcast ranks=0,1,2 severity=0.540 instances=9 operation=MPI_Wait
 *   cause_rank=3 cause_line=@start_bcast cause_operation=MPI_Ibcast
 * EXPECT wait_at_nxn at=@waitall ranks=0,1,2 severity=0.540 instances=9 operation=MPI_Waitall
 *   cause_rank=3 cause_line=@startall cause_operation=MPI_Ialltoall
 */
#include "common.h"

/* MPI 4 has them; Open MPI 4 has them as extensions. */
#if MPI_VERSION < 4
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Alltoall_init MPIX_Alltoall_init
#endif

int main(int argc, char **argv)
{
    long sum = 0;
    int in[4], out[4], value;
    MPI_Request requests[3];
    start(&argc, &argv);
    MPI_Allreduce_init(in, out, 1, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(&value, 1, MPI_INT, 3, WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Alltoall_init(in, 1, MPI_INT, out, 1, MPI_INT, WORLD, MPI_INFO_NULL, &requests[2]);
    for (int round = 0; round < 9; round++) {
        at(round, rank == 3 ? DELAY : 0);
        for (int i = 0; i < 4; i++)
            in[i] = rank + i + round;
        value = rank == 3 ? round : -1;
        switch (round % 3) {
        case 0:
            MPI_Start(&requests[0]); /* MARK start_allreduce */
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* MARK wait_allreduce */
            REQUIRE(out[0] == 6 + 4 * round);
            sum += out[0];
            break;
        case 1:
            MPI_Start(&requests[1]); /* MARK start_bcast */
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE); /* MARK wait_bcast */
            REQUIRE(value == round);
            sum += value;
            break;
        default:
            MPI_Startall(1, &requests[2]); /* MARK startall */
            MPI_Waitall(3, requests, MPI_STATUSES_IGNORE); /* MARK waitall */
            REQUIRE(out[0] == rank + round && out[3] == 3 + rank + round);
            sum += out[3];
        }
    }
    for (int i = 0; i < 3; i++)
        MPI_Request_free(&requests[i]);
    finish(9, sum);
}
