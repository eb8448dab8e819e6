/* Each PE takes the lock when the one before has given it back, and then, with all others at the
 * same time, a lock that nobody else takes: nobody waits. PE 3 keeps the locks' state for Open
 * MPI.
 *
 * RUN np=4 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * SILENT wait_on_lock below=0.030
 */
#include "pes.h"

/* The state of each fourth one is PE 3's. */
static long locks[16] __attribute__((aligned(64))), done;

static void take_turns(int round)
{
    long *lock = &locks[3], *own = &locks[4 * rank + 7];
    at(3 * round, 60 * rank);
    shmem_set_lock(lock);
    at(3 * round, 60 * rank + 30);
    shmem_clear_lock(lock);
    at(3 * round, 200);
    shmem_set_lock(own);
    at(3 * round, 240);
    shmem_clear_lock(own);
}

int main(void)
{
    start_shmem();
    if (rank == 3) {
        serve_until(&done);
    } else {
        for (int round = 0; round < REPEATS; round++)
            take_turns(round);
        at(3 * REPEATS, 0);
        if (rank == 0)
            shmem_long_p(&done, 1, 3);
    }
    finish_shmem(3 * REPEATS + 1, rank);
    return 0;
}
