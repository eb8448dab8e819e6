/* Three PEs wait in a barrier for the fourth, then in one of an active set of two.
 *
 * RUN np=4 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT wait_at_shmem_barrier at=@all ranks=0:0.300,1:0.300,2:0.300 severity=0.900 instances=15
 *   operation=shmem_barrier_all cause_rank=3 cause_line=@all because="comput"
 * EXPECT wait_at_shmem_barrier at=@odd ranks=3:0.300 severity=0.300 instances=5
 *   operation=shmem_barrier cause_rank=1 cause_line=@odd because="comput"
 * SILENT wait_at_shmem_barrier at=@even below=0.040
 * SILENT wait_at_barrier below=0.001
 */
#include "pes.h"

int main(void)
{
    start_shmem();
    for (int round = 0; round < REPEATS; round++) {
        at(2 * round, rank == 3 ? DELAY : 0);
        shmem_barrier_all(); /* MARK all */
        at(2 * round + 1, rank == 1 ? DELAY : 0);
        if (rank % 2 == 1)
            shmem_barrier(1, 1, 2, pes_sync[1]); /* MARK odd */
        else
            shmem_barrier(0, 1, 2, pes_sync[1]); /* MARK even */
    }
    finish_shmem(2 * REPEATS, rank);
    return 0;
}
