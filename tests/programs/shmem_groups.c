/* What all PEs do together, or those of an active set, each with another late PE: sync, collect,
 * alltoall, and the allocation of symmetric memory.
 *
 * RUN np=4 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT wait_at_shmem_barrier at=@all ranks=0:0.180,1:0.180,2:0.180 severity=0.540 instances=9
 *   operation=shmem_sync_all cause_rank=3 cause_line=@all because="comput"
 * EXPECT wait_at_shmem_barrier at=@odd ranks=3:0.180 severity=0.180 instances=3
 *   operation=shmem_sync cause_rank=1 cause_line=@odd because="comput"
 * EXPECT wait_at_nxn at=@collect ranks=1:0.180,2:0.180,3:0.180 severity=0.540 instances=9
 *   operation=shmem_collect64 cause_rank=0 cause_line=@collect because="comput"
 * EXPECT wait_at_nxn at=@alltoall ranks=0:0.180,1:0.180,3:0.180 severity=0.540 instances=9
 *   operation=shmem_alltoall64 cause_rank=2 cause_line=@alltoall because="comput"
 * EXPECT wait_at_shmem_barrier at=@malloc ranks=0:0.180,2:0.180,3:0.180 severity=0.540 instances=9
 *   operation=shmem_malloc cause_rank=1 cause_line=@malloc because="comput"
 * SILENT wait_at_shmem_barrier at=@even below=0.025
 * SILENT wait_at_shmem_barrier at=@free below=0.025
 */
#include "pes.h"

enum { ROUNDS = 3, STEPS = 4, MOST = 4 };

/* What one operation gives is not what the next one writes to, which others may have begun. */
static long given[MOST], collected[2 * MOST], exchanged[MOST];
static long collect_sync[SHMEM_COLLECT_SYNC_SIZE];
static long alltoall_sync[SHMEM_ALLTOALL_SYNC_SIZE];

static void synchronise(int round)
{
    at(STEPS * round, rank == 3 ? DELAY : 0);
    shmem_sync_all(); /* MARK all */
    at(STEPS * round, rank == 1 ? 80 + DELAY : 80);
    if (rank % 2 == 1)
        shmem_sync(1, 1, 2, pes_sync[1]); /* MARK odd */
    else
        shmem_sync(0, 1, 2, pes_sync[1]); /* MARK even */
}

int main(void)
{
    long checksum = 0;
    start_shmem();
    for (int i = 0; i < SHMEM_COLLECT_SYNC_SIZE; i++)
        collect_sync[i] = SHMEM_SYNC_VALUE;
    for (int i = 0; i < SHMEM_ALLTOALL_SYNC_SIZE; i++)
        alltoall_sync[i] = SHMEM_SYNC_VALUE;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MOST; i++)
            given[i] = 100 * round + 10 * rank + i;
        synchronise(round);
        at(STEPS * round + 1, rank == 0 ? 50 + DELAY : 50);
        /* One of the first PE, two of all others. */
        shmem_collect64(collected, given, rank == 0 ? 1 : 2, 0, 0, 4, collect_sync); /* MARK collect */
        REQUIRE(collected[0] == 100 * round && collected[6] == 100 * round + 31);
        at(STEPS * round + 2, rank == 2 ? 20 + DELAY : 20);
        shmem_alltoall64(exchanged, given, 1, 0, 0, 4, alltoall_sync); /* MARK alltoall */
        REQUIRE(exchanged[3] == 100 * round + 30 + rank);
        checksum += exchanged[1];
        at(STEPS * round + 3, rank == 1 ? DELAY : 0);
        long *memory = shmem_malloc(1 << 16); /* MARK malloc */
        REQUIRE(memory != NULL);
        at(STEPS * round + 3, 80);
        shmem_free(memory); /* MARK free */
    }
    finish_shmem(STEPS * ROUNDS, checksum);
    return 0;
}
