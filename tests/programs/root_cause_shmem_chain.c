/* PE 1 waits for a value of PE 0, and PE 2 for one of PE 1: both wait because PE 0 computes.
 *
 * RUN np=3 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * ROOT computation at=@first ranks=0:0.600
 * NO_ROOT ranks=1,2
 * METRIC wait_on_value 0.600
 */
#include "pes.h"

static long flag;

int main(void)
{
    start_shmem();
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0) {
            shmem_long_p(&flag, round + 1, 1); /* MARK first */
        } else {
            shmem_long_wait_until(&flag, SHMEM_CMP_GE, round + 1);
            if (rank == 1)
                shmem_long_p(&flag, round + 1, 2);
        }
        shmem_quiet();
    }
    finish_shmem(REPEATS, rank);
    return 0;
}
