/* Ibarrier with nothing to do in between: the wait shows in the Wait.
 *
 * RUN np=4
 * EXPECT wait_at_barrier at=@wait ranks=0,1,2 severity=0.900 instances=15 operation=MPI_Wait
 *   cause_rank=3 cause_line=@ibarrier
 * SILENT wait_at_barrier at=@ibarrier
 */
#include "common.h"

int main(int argc, char **argv)
{
    MPI_Request request;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 3 ? DELAY : 0);
        MPI_Ibarrier(WORLD, &request); /* MARK ibarrier */
        MPI_Wait(&request, MPI_STATUS_IGNORE); /* MARK wait */
    }
    finish(REPEATS, rank);
}
