/* A barrier over an intercommunicator holds both groups.
 *
 * RUN np=4
 * EXPECT wait_at_barrier at=@barrier ranks=0,1,2 severity=0.900 cause_rank=3 cause_line=@barrier
 */
#include "common.h"

int main(int argc, char **argv)
{
    MPI_Comm local, inter;
    start(&argc, &argv);
    MPI_Comm_split(WORLD, rank % 2, rank, &local);
    MPI_Intercomm_create(local, 0, WORLD, 1 - rank % 2, 7, &inter);
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 3 ? DELAY : 0);
        MPI_Barrier(inter); /* MARK barrier */
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    finish(REPEATS, rank);
}
