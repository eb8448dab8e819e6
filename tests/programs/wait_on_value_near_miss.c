/* The value is there before it is waited for, or comes together with the wait; others write to
 * other PEs, and beside the flag, all the time.
 *
 * RUN np=3 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * SILENT wait_on_value below=0.030
 */
#include "pes.h"

static long flags[3];

int main(void)
{
    start_shmem();
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 1 ? DELAY : 0);
        if (rank == 0)
            shmem_long_p(&flags[1], round + 1, 1);
        else if (rank == 1)
            shmem_long_wait_until(&flags[1], SHMEM_CMP_GE, round + 1);
        at(round, DELAY);
        if (rank == 2) {
            shmem_long_p(&flags[0], round, 1);
            shmem_long_p(&flags[1], round, 0);
        }
        shmem_quiet();
    }
    pshmem_barrier_all();
    finish_shmem(REPEATS, flags[0] + flags[1]);
    return 0;
}
