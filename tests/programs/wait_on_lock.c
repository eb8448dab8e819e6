/* A lock is passed on from PE 0 to 1 to 2, which hold it for different times: each has its share
 * in the waits of those behind it. PE 3 keeps the lock's state for Open MPI.
 *
 * RUN np=4 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT wait_on_lock at=@second ranks=1:0.250 severity=0.250 instances=5
 *   operation=shmem_set_lock cause_rank=0 cause_line=@clear cause_operation=shmem_clear_lock
 *   because="comput" tolerance=0.15
 * EXPECT wait_on_lock at=@third ranks=2:0.500 severity=0.500 instances=5
 *   cause_rank=0,1 cause_line=@clear tolerance=0.15
 * SILENT wait_on_lock at=@first below=0.020
 */
#include "pes.h"

/* The state of the last one is PE 3's. */
static long locks[4] __attribute__((aligned(64))), done;

static void pass_on(int round)
{
    long *lock = &locks[3];
    at(2 * round, rank == 0 ? 0 : rank == 1 ? 20 : 40);
    if (rank == 0)
        shmem_set_lock(lock); /* MARK first */
    else if (rank == 1)
        shmem_set_lock(lock); /* MARK second */
    else
        shmem_set_lock(lock); /* MARK third */
    at(2 * round, rank == 0 ? 70 : rank == 1 ? 140 : 150);
    shmem_clear_lock(lock); /* MARK clear */
}

int main(void)
{
    start_shmem();
    if (rank == 3) {
        serve_until(&done);
    } else {
        for (int round = 0; round < REPEATS; round++)
            pass_on(round);
        at(2 * REPEATS, 0);
        if (rank == 0)
            shmem_long_p(&done, 1, 3);
    }
    finish_shmem(2 * REPEATS + 1, rank);
    return 0;
}
