/* All PEs compute equally long: barriers, and what synchronises like them, cost next to nothing. One
 * is late to take more memory than there is; none waits for it, and its barrier is none.
 *
 * RUN np=4 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * SILENT wait_at_shmem_barrier below=0.040
 * SILENT barrier_completion below=0.040
 */
#include "pes.h"

int main(void)
{
    start_shmem();
    /* The library tells each time, in words that differ. */
    if (!freopen("/dev/null", "w", stderr))
        return 1;
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 1 ? DELAY / 2 : 0);
        REQUIRE(shmem_malloc((size_t)1 << 45) == NULL);
        at(round, DELAY);
        shmem_barrier_all();
        shmem_sync_all();
    }
    finish_shmem(REPEATS, rank);
    return 0;
}
