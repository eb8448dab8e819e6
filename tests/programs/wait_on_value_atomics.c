/* PEs wait for what others write by atomics that return something, and with gaps: a swap, a
 * compare-and-swap of which one that changes nothing comes first, an addition that is the second
 * of two, and elements that are put apart.
 *
 * RUN np=4 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT wait_on_value at=@swapped ranks=1:0.300 severity=0.300 instances=5
 *   cause_rank=0 cause_line=@swap cause_operation=shmem_long_atomic_swap because="comput"
 * EXPECT wait_on_value at=@apart ranks=2:0.300 severity=0.300 instances=5
 *   cause_rank=3 cause_line=@iput cause_operation=shmem_int_iput because="comput"
 * EXPECT wait_on_value at=@compared ranks=0:0.300 severity=0.300 instances=5
 *   cause_rank=2 cause_line=@succeeds cause_operation=shmem_long_atomic_compare_swap
 *   because="comput"
 * EXPECT wait_on_value at=@counted ranks=3:0.300 severity=0.300 instances=5
 *   cause_rank=2 cause_line=@fetch_add cause_operation=shmem_long_atomic_fetch_add
 * METRIC wait_on_value 1.200 instances=20
 * SILENT unexplained below=0.090
 */
#include "pes.h"

enum { INTS = 16 };

static long swapped, compared, counted;
static int many[2 * INTS];

/* The element that is waited for is the last but one of those that are written; what is between
 * them is not. */
static void swap_and_iput(int round)
{
    int mine[INTS];
    for (int i = 0; i < INTS; i++)
        mine[i] = round + 1;
    at(3 * round, rank == 0 || rank == 3 ? DELAY : 0);
    if (rank == 0)
        shmem_long_atomic_swap(&swapped, round + 1, 1); /* MARK swap */
    else if (rank == 1)
        shmem_long_wait_until(&swapped, SHMEM_CMP_GE, round + 1); /* MARK swapped */
    else if (rank == 3)
        shmem_int_iput(many, mine, 2, 1, INTS, 2); /* MARK iput */
    else
        shmem_int_wait_until(&many[2 * INTS - 4], SHMEM_CMP_GE, round + 1); /* MARK apart */
    REQUIRE(many[1] == 0);
}

/* Who does not find what it compares with would set what is waited for. */
static void compare_and_swap(int round)
{
    long found;
    at(3 * round + 1, rank == 2 ? DELAY : rank == 3 ? DELAY / 2 : 0);
    if (rank == 3) {
        found = shmem_long_atomic_compare_swap(&compared, round + 77, round + 1, 0);
        REQUIRE(found == round || found == round + 1);
    } else if (rank == 2)
        REQUIRE(shmem_long_atomic_compare_swap(&compared, round, round + 1, 0) == round); /* MARK succeeds */
    else if (rank == 0)
        shmem_long_wait_until(&compared, SHMEM_CMP_GE, round + 1); /* MARK compared */
}

static void fetch_and_add(int round)
{
    long found;
    at(3 * round + 2, rank == 2 ? DELAY : rank == 1 ? DELAY / 2 : 0);
    if (rank == 1)
        shmem_long_atomic_fetch_inc(&counted, 3);
    else if (rank == 2) {
        /* PE 1 may be late, or in its next round. */
        found = shmem_long_atomic_fetch_add(&counted, 1, 3); /* MARK fetch_add */
        REQUIRE(found >= 2 * round && found <= 2 * round + 2);
    } else if (rank == 3)
        shmem_long_wait_until(&counted, SHMEM_CMP_GE, 2 * (round + 1)); /* MARK counted */
}

int main(void)
{
    start_shmem();
    for (int round = 0; round < REPEATS; round++) {
        swap_and_iput(round);
        compare_and_swap(round);
        fetch_and_add(round);
    }
    finish_shmem(3 * REPEATS, swapped + compared + counted + many[0]);
    return 0;
}
