/* PEs wait for values that others write on contexts of their own, and by puts that do not wait for
 * their completion. Reads of the flag, and writes beside it, in between are nobody's cause.
 *
 * RUN np=3 libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 * NOT_WITH mpich because="it has no OpenSHMEM"
 * EXPECT wait_on_value at=@flag ranks=1:0.180 severity=0.180 instances=3
 *   operation=shmem_long_wait_until cause_rank=0 cause_line=@put
 *   cause_operation=shmem_ctx_long_p because="comput"
 * EXPECT wait_on_value at=@block ranks=2:0.180 severity=0.180 instances=3
 *   operation=shmem_int_wait_until cause_rank=1 cause_line=@nbi
 *   cause_operation=shmem_int_put_nbi
 * SILENT unexplained below=0.060
 */
#include "pes.h"

enum { INTS = 16, ROUNDS = 3 };
static long flag, beside;
static int block[INTS];

int main(void)
{
    shmem_ctx_t own;
    start_shmem();
    REQUIRE(shmem_ctx_create(0, &own) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        int mine[INTS];
        for (int i = 0; i < INTS; i++)
            mine[i] = round + 1;
        at(2 * round, rank == 0 ? DELAY : rank == 2 ? DELAY / 2 : 0);
        if (rank == 0) {
            shmem_ctx_long_p(own, &flag, round + 1, 1); /* MARK put */
            shmem_ctx_quiet(own);
        } else if (rank == 1) {
            shmem_long_wait_until(&flag, SHMEM_CMP_GE, round + 1); /* MARK flag */
        } else {
            REQUIRE(shmem_long_g(&flag, 1) <= ROUNDS);
            shmem_long_p(&beside, round, 1);
            shmem_quiet();
        }
        at(2 * round + 1, rank == 1 ? DELAY : 0);
        if (rank == 1) {
            shmem_int_put_nbi(block, mine, INTS, 2); /* MARK nbi */
            shmem_quiet();
        } else if (rank == 2) {
            shmem_int_wait_until(&block[INTS - 1], SHMEM_CMP_GE, round + 1); /* MARK block */
        }
    }
    shmem_ctx_destroy(own);
    finish_shmem(2 * ROUNDS, flag + block[INTS - 1]);
    return 0;
}
