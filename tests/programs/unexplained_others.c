/* What PEs lose to what no recorded call shows: PE 1 waits for a lock that PE 2 holds by calls that
 * bypass the recorder, and the link of PE 0's put to PE 3 is busy with something else.
 *
 * RUN np=4 link="lib/slow_link.c" libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT unexplained at=@lock ranks=1:0.250 severity=0.250 instances=5 operation=shmem_set_lock
 *   tolerance=0.15
 * EXPECT unexplained at=@put ranks=0:0.200 severity=0.200 instances=5 operation=shmem_putmem
 * SAYS text="Waits for nobody that the recording shows: the cause is outside of the program"
 * SILENT competing_put+wait_on_lock below=0.010
 */
#include "pes.h"

enum { BYTES = 50000 };

/* The state of the last one is PE 3's. */
static long locks[4] __attribute__((aligned(64))), done;
static char memory[BYTES], mine[BYTES];

void pshmem_set_lock(volatile long *lock);
void pshmem_clear_lock(volatile long *lock);
void slow_link_busy(int target, long ms);

static void lock_for_nobody(int round)
{
    at(3 * round, rank == 1 ? 10 : 0);
    if (rank == 1) {
        shmem_set_lock(&locks[3]); /* MARK lock */
        shmem_clear_lock(&locks[3]);
    } else if (rank == 2) {
        pshmem_set_lock(&locks[3]);
        at(3 * round, 60);
        pshmem_clear_lock(&locks[3]);
    }
}

static void put_alone(int round)
{
    at(3 * round + 1, rank == 0 ? 10 : 0);
    if (rank == 2)
        slow_link_busy(3, 50);
    else if (rank == 0)
        shmem_putmem(memory, mine, BYTES, 3); /* MARK put */
    /* Long after: what takes its time at once with that would explain it. */
    at(3 * round + 2, 20);
    if (rank == 1)
        shmem_putmem(memory, mine, BYTES, 3);
}

int main(void)
{
    start_shmem();
    if (rank == 3)
        serve_until(&done);
    for (int round = 0; rank != 3 && round < REPEATS; round++) {
        lock_for_nobody(round);
        put_alone(round);
    }
    at(3 * REPEATS, 0);
    if (rank == 0)
        shmem_long_p(&done, 1, 3);
    finish_shmem(3 * REPEATS + 1, rank);
    return 0;
}
