/* Collectives of PEs: of a late root all others wait in a broadcast; for a late PE all wait in
 * a reduction, which needs everybody's data.
 *
 * RUN np=4 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT late_broadcast at=@broadcast ranks=0:0.300,1:0.300,3:0.300 severity=0.900 instances=15
 *   operation=shmem_broadcast64 cause_rank=2 cause_line=@broadcast because="comput"
 * EXPECT wait_at_nxn at=@sum ranks=0:0.300,2:0.300,3:0.300 severity=0.900 instances=15
 *   operation=shmem_long_sum_to_all cause_rank=1 cause_line=@sum because="comput"
 */
#include "pes.h"

/* A PE may begin the next sum while another one is still about to leave the last: two of all. */
static long given[8], got[8], sums[2][8], work[2][SHMEM_REDUCE_MIN_WRKDATA_SIZE + 8];

int main(void)
{
    long checksum = 0;
    start_shmem();
    for (int round = 0; round < REPEATS; round++) {
        long *sum = sums[round % 2];
        for (int i = 0; i < 8; i++)
            given[i] = 100 * round + 10 * rank + i;
        at(2 * round, rank == 2 ? DELAY : 0);
        shmem_broadcast64(got, given, 8, 2, 0, 0, 4, pes_sync[1]); /* MARK broadcast */
        REQUIRE(rank == 2 || got[7] == 100 * round + 27);
        at(2 * round + 1, rank == 1 ? DELAY : 0);
        shmem_long_sum_to_all(sum, given, 8, 0, 0, 4, work[round % 2], pes_sync[2 + round % 2]); /* MARK sum */
        REQUIRE(sum[1] == 400 * round + 64);
        checksum += sum[0];
    }
    finish_shmem(2 * REPEATS, checksum);
    return 0;
}
