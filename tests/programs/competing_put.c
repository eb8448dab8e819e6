/* Puts that meet at PE 0: the short one of PE 2 comes while the long one of PE 1 is under way, and
 * takes 70 ms where those of PE 3, to PE 4, take 20.
 *
 * RUN np=5 link="lib/slow_link.c" libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT competing_put at=@short ranks=2:0.250 severity=0.250 instances=5 operation=shmem_putmem
 *   cause_rank=1:0.250 cause_line=@long cause_operation=shmem_putmem
 *   because="transferred to or from the same rank meanwhile"
 * METRIC competing_put 0.250 instances=5
 * SILENT competing_get below=0.010
 * SILENT unexplained below=0.090
 */
#include "pes.h"

enum { SHORT = 50000, LONG = 150000 };
static char memory[LONG], mine[LONG];
static long done;

int main(void)
{
    start_shmem();
    if (rank == 0 || rank == 4)
        serve_until(&done);
    for (int round = 0; rank % 4 != 0 && round < REPEATS; round++) {
        at(round, rank == 2 ? 10 : 0);
        if (rank == 1)
            shmem_putmem(memory, mine, LONG, 0); /* MARK long */
        else if (rank == 2)
            shmem_putmem(memory, mine, SHORT, 0); /* MARK short */
        else if (rank == 3)
            shmem_putmem(memory, mine, SHORT, 4);
    }
    at(REPEATS, 0);
    if (rank == 1) {
        shmem_long_p(&done, 1, 0);
        shmem_long_p(&done, 1, 4);
    }
    finish_shmem(REPEATS + 1, rank);
    return 0;
}
