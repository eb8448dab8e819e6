/* Gets that meet at PE 0: when the short one of PE 3 comes, the long get of PE 1 is under way and
 * the short put of PE 2 already waits. Both compete, by how long each overlaps: 30 ms and 50 ms of
 * the 50 that the get takes longer; of the put, which takes 50 longer, 50 ms each.
 *
 * RUN np=4 link="lib/slow_link.c" libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT competing_get at=@last ranks=3:0.250 severity=0.250 instances=5 operation=shmem_getmem
 *   cause_rank=1:0.094,2:0.156
 * EXPECT competing_put at=@put ranks=2:0.250 severity=0.250 instances=5 operation=shmem_putmem
 *   cause_rank=1:0.125,3:0.125
 * METRIC competing_get+competing_put 0.500 instances=10
 * SILENT unexplained below=0.090
 */
#include "pes.h"

enum { SHORT = 50000, LONG = 150000 };
static char memory[LONG], mine[LONG];
static long done;

int main(void)
{
    start_shmem();
    if (rank == 0)
        serve_until(&done);
    for (int round = 0; rank != 0 && round < REPEATS; round++) {
        at(2 * round, rank == 2 ? 10 : rank == 3 ? 30 : 0);
        if (rank == 1)
            shmem_getmem(mine, memory, LONG, 0);
        else if (rank == 2)
            shmem_putmem(memory, mine, SHORT, 0); /* MARK put */
        else if (rank == 3)
            shmem_getmem(mine, memory, SHORT, 0); /* MARK last */
        /* Alone. */
        at(2 * round, 120);
        if (rank == 2)
            shmem_putmem(memory, mine, SHORT, 0);
        at(2 * round, 160);
        if (rank == 3)
            shmem_getmem(mine, memory, SHORT, 0);
    }
    at(2 * REPEATS, 0);
    if (rank == 1)
        shmem_long_p(&done, 1, 0);
    finish_shmem(2 * REPEATS + 1, rank);
    return 0;
}
