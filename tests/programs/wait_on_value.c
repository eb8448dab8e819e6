/* PEs wait until others write into their memory: by a put of one element, in the middle of a
 * larger put, and by atomics. Two write to one flag, and the second makes it what is waited for;
 * two add to a counter, and the second addition counts.
 *
 * RUN np=4 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT wait_on_value at=@flag ranks=1:0.300 severity=0.300 instances=5
 *   operation=shmem_long_wait_until cause_rank=0 cause_line=@second cause_operation=shmem_long_p
 *   because="comput"
 * EXPECT wait_on_value at=@inside ranks=2:0.300 severity=0.300 instances=5
 *   cause_rank=3 cause_line=@large cause_operation=shmem_int_put
 * EXPECT wait_on_value at=@counter ranks=3:0.300 severity=0.300 instances=5
 *   operation=shmem_int_wait_until cause_rank=2 cause_line=@add
 *   cause_operation=shmem_int_atomic_add
 * EXPECT wait_on_value at=@old ranks=0:0.300 severity=0.300 instances=5
 *   operation=shmem_long_wait cause_rank=1 cause_line=@set cause_operation=shmem_long_atomic_set
 * SILENT wait_at_shmem_barrier below=0.080
 */
#include "pes.h"

enum { INTS = 64 };

static long flag, again;
static int many[INTS], counter;

static void first(int round)
{
    at(4 * round, rank == 0 ? DELAY : rank == 3 ? DELAY / 2 : 0);
    if (rank == 3) {
        shmem_long_p(&flag, 10 * round + 5, 1);
        pshmem_quiet();
        let_go_on(0);
    } else if (rank == 0) {
        go_on_after(3);
        shmem_long_p(&flag, 10 * round + 9, 1); /* MARK second */
    } else if (rank == 1)
        shmem_long_wait_until(&flag, SHMEM_CMP_GT, 10 * round + 6); /* MARK flag */
}

static void second(int round)
{
    int mine[INTS];
    for (int i = 0; i < INTS; i++)
        mine[i] = round + 1;
    at(4 * round + 1, rank == 3 ? DELAY : 0);
    if (rank == 3)
        shmem_int_put(many, mine, INTS, 2); /* MARK large */
    else if (rank == 2)
        shmem_int_wait_until(&many[INTS / 2], SHMEM_CMP_GE, round + 1); /* MARK inside */
}

static void third(int round)
{
    at(4 * round + 2, rank == 2 ? DELAY : rank == 1 ? DELAY / 2 : 0);
    if (rank == 1 || rank == 2)
        shmem_int_atomic_add(&counter, 1, 3); /* MARK add */
    else if (rank == 3)
        shmem_int_wait_until(&counter, SHMEM_CMP_GE, 2 * (round + 1)); /* MARK counter */
}

static void fourth(int round)
{
    at(4 * round + 3, rank == 1 ? DELAY : 0);
    if (rank == 1)
        shmem_long_atomic_set(&again, round + 1, 0); /* MARK set */
    else if (rank == 0)
        shmem_long_wait(&again, round); /* MARK old */
}

int main(void)
{
    start_shmem();
    for (int round = 0; round < REPEATS; round++) {
        first(round);
        second(round);
        third(round);
        fourth(round);
        shmem_quiet();
    }
    finish_shmem(4 * REPEATS, flag + many[3] + counter + again);
    return 0;
}
