/* MPI and OpenSHMEM in one program: both kinds of finding in one report.
 *
 * RUN np=3 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT late_sender at=@receive ranks=1:0.300 severity=0.300 instances=5
 *   operation=MPI_Recv cause_rank=0 cause_line=@send
 * EXPECT wait_at_shmem_barrier at=@barrier ranks=0:0.300,1:0.300 severity=0.600 instances=10
 *   operation=shmem_barrier_all cause_rank=2 cause_line=@barrier
 * EXPECT wait_at_barrier at=@mpi ranks=0:0.300,2:0.300 severity=0.600 instances=10
 *   operation=MPI_Barrier cause_rank=1 cause_line=@mpi
 */
#include "pes.h"

static int value;

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    shmem_init();
    start_pes_clock();
    for (int round = 0; round < REPEATS; round++) {
        at(3 * round, rank == 0 ? DELAY : 0);
        if (rank == 0)
            MPI_Send(&round, 1, MPI_INT, 1, 3, WORLD); /* MARK send */
        else if (rank == 1)
            MPI_Recv(&value, 1, MPI_INT, 0, 3, WORLD, MPI_STATUS_IGNORE); /* MARK receive */
        at(3 * round + 1, rank == 2 ? DELAY : 0);
        shmem_barrier_all(); /* MARK barrier */
        at(3 * round + 2, rank == 1 ? DELAY : 0);
        MPI_Barrier(WORLD); /* MARK mpi */
    }
    finish_shmem(3 * REPEATS, rank == 1 ? value : rank);
    return 0;
}
