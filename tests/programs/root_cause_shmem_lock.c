/* PE 0 holds a lock for long. PE 1 waits for the lock, and so is late to a barrier, where PEs 2 and 3
 * wait. All wait because of PE 0.
 *
 * RUN np=4 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * ROOT computation at=@clear ranks=0:0.900
 * NO_ROOT ranks=1,2,3
 * METRIC wait_on_lock 0.300
 * METRIC wait_at_shmem_barrier 0.600
 */
#include "pes.h"

/* The state of the last one is PE 3's. */
static long locks[4] __attribute__((aligned(64)));

int main(void)
{
    long *lock = &locks[3];
    start_shmem();
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 0 ? 0 : 20);
        if (rank == 0) {
            shmem_set_lock(lock);
            at(round, 80);
            shmem_clear_lock(lock); /* MARK clear */
        } else if (rank == 1) {
            shmem_set_lock(lock);
            shmem_clear_lock(lock);
        }
        shmem_barrier_all();
    }
    finish_shmem(REPEATS, rank);
    return 0;
}
