/* PE 1 waits for a value that PE 0 stores through its own mapping of that memory, which no call
 * shows.
 *
 * RUN np=3 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT unexplained at=@wait ranks=1:0.300 severity=0.300 instances=5
 *   operation=shmem_long_wait_until
 * SAYS text="Waits for nobody that the recording shows: the cause is outside of the program"
 * SILENT wait_on_value below=0.010
 * SILENT wait_on_lock below=0.010
 */
#include "pes.h"

int main(void)
{
    long sum = 0;
    start_shmem();
    long *flag = shmem_malloc(sizeof *flag);
    *flag = 0;
    shmem_barrier_all();
    volatile long *theirs = shmem_ptr(flag, 1);
    REQUIRE(theirs != NULL);
    start_pes_clock();
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0)
            *theirs = round + 1;
        else if (rank == 1)
            shmem_long_wait_until(flag, SHMEM_CMP_GE, round + 1); /* MARK wait */
        sum += round;
    }
    at(REPEATS, 0);
    shmem_free(flag);
    finish_shmem(REPEATS + 1, sum);
    return 0;
}
