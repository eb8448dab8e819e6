/* Transfers that do not compete: at the same time with different PEs, and with the same PE one
 * after the other.
 *
 * RUN np=4 link="lib/slow_link.c" libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * SILENT competing_put+competing_get below=0.005
 * SILENT unexplained below=0.090
 */
#include "pes.h"

enum { SHORT = 50000, LONG = 100000 };
static char memory[LONG], mine[LONG];
static long done;

int main(void)
{
    start_shmem();
    /* PEs 0 and 3 are who others transfer to and from. */
    if (rank % 3 == 0)
        serve_until(&done);
    for (int round = 0; rank % 3 != 0 && round < REPEATS; round++) {
        int own = rank == 1 ? 0 : 3;
        at(2 * round, 0);
        shmem_putmem(memory, mine, SHORT, own);
        at(2 * round, 40);
        shmem_getmem(mine, memory, LONG, own);
        /* Staggered. */
        at(2 * round, 60 + 40 * rank);
        shmem_putmem(memory, mine, SHORT, 0);
    }
    at(2 * REPEATS, 0);
    if (rank == 1) {
        shmem_long_p(&done, 1, 0);
        shmem_long_p(&done, 1, 3);
    }
    finish_shmem(2 * REPEATS + 1, rank);
    return 0;
}
