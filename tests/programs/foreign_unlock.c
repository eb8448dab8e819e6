/* PE 2 gives back a lock that PE 0 took, which OpenSHMEM forbids: nobody takes it any more, and both
 * calls are named. PE 3 keeps the lock's state for Open MPI.
 *
 * RUN np=4 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * ANOMALY foreign_unlock count=1 detail="rank 2 gave back what it had not taken"
 * ANOMALY lock_not_released count=1 detail="rank 0 took it and never gave it back"
 * SILENT wait_on_lock below=0.010
 * SILENT unexplained below=0.060
 */
#include "pes.h"

static long locks[4] __attribute__((aligned(64))), done;

int main(void)
{
    long *lock = &locks[3];
    start_shmem();
    if (rank == 3)
        serve_until(&done);
    at(0, rank == 2 ? 60 : 0);
    if (rank == 0) {
        shmem_set_lock(lock);
        let_go_on(2);
    } else if (rank == 2) {
        go_on_after(0);
        shmem_clear_lock(lock);
    }
    at(1, 0);
    if (rank == 0)
        shmem_long_p(&done, 1, 3);
    finish_shmem(2, rank);
    return 0;
}
