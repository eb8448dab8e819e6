/* A PE looks at a variable until another one writes it.
 *
 * RUN np=2 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT wait_on_value_polled at=@test ranks=1:0.300 severity=0.300 instances=5
 *   operation=shmem_long_test cause_rank=0 cause_line=@put cause_operation=shmem_long_p
 *   because="before it wrote"
 * ROOT computation at=@put ranks=0:0.300
 * SILENT wait_on_value below=0.010
 */
#include "pes.h"

static long flag;

/* In Open MPI 4.1.4 a look does not see to what others do to this PE's memory. This does now and
 * then, by a function that is not recorded. */
static void go_on(void)
{
    static int looks;
    int found;
    if (++looks % 1024 == 0)
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &found, MPI_STATUS_IGNORE);
}

int main(void)
{
    start_shmem();
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0)
            shmem_long_p(&flag, round + 1, 1); /* MARK put */
        else
            while (!shmem_long_test(&flag, SHMEM_CMP_GE, round + 1)) /* MARK test */
                go_on();
    }
    finish_shmem(REPEATS, rank);
    return 0;
}
