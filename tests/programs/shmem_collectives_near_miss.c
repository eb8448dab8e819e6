/* The root comes first, and the sum is taken when all are there: nobody waits.
 *
 * RUN np=4 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * SILENT late_broadcast below=0.040
 * SILENT wait_at_nxn at=@sum below=0.060
 */
#include "pes.h"

/* A PE may begin the next sum while another one is still about to leave the last: two of all. */
static long given[8], got[8], sums[2][8], work[2][SHMEM_REDUCE_MIN_WRKDATA_SIZE + 8];

int main(void)
{
    start_shmem();
    for (int round = 0; round < REPEATS; round++) {
        long *sum = sums[round % 2];
        given[0] = round;
        at(2 * round, rank == 2 ? 0 : DELAY);
        shmem_broadcast64(got, given, 8, 2, 0, 0, 4, pes_sync[1]);
        at(2 * round + 1, DELAY);
        shmem_long_sum_to_all(sum, given, 8, 0, 0, 4, work[round % 2], pes_sync[2 + round % 2]); /* MARK sum */
        REQUIRE(sum[0] == 4 * round);
    }
    finish_shmem(2 * REPEATS, sums[0][0] + sums[1][0]);
    return 0;
}
