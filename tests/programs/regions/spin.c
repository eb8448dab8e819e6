/* PEs wait in loops of their own until another PE has set a flag, which nothing but an operation
 * map can know. Each of 5 rounds has three of them: a function that the compiler instruments, one
 * in which calls of the library are made, and a region that names the variable. In the last,
 * another PE writes to another variable later than the one that is waited for.
 */
#include "../pes.h"

#include "laggard.h"

/* On the symmetric heap, where puts go on while the target is in no library. */
static long *flag, *again, *named, *other;

NOINLINE void spin_until(volatile long *variable, long value)
{
    while (*variable < value)
        usleep(100);
}

NOINLINE void poll_until(volatile long *variable, long value)
{
    while (*variable < value) {
        shmem_quiet();
        usleep(1000);
    }
}

__attribute__((no_instrument_function)) static void named_until(volatile long *variable, long value)
{
    laggard_wait_begin("named_until", variable); /* MARK named */
    while (*variable < value)
        usleep(100);
    /* The loop is left late: meanwhile somebody else writes. */
    pass_ms(20);
    laggard_region_end("named_until");
}

int main(void)
{
    start_shmem();
    flag = shmem_calloc(4, sizeof *flag);
    again = flag + 1;
    named = flag + 2;
    other = flag + 3;
    for (int round = 0; round < REPEATS; round++) {
        at(3 * round, rank == 0 ? 60 : 0);
        if (rank == 0) {
            shmem_long_p(flag, round + 1, 1); /* MARK put */
            shmem_quiet();
        }
        if (rank == 1)
            spin_until(flag, round + 1); /* MARK spin */
        at(3 * round + 1, rank == 2 ? 60 : 0);
        if (rank == 2) {
            shmem_long_p(again, round + 1, 0); /* MARK again */
            shmem_quiet();
        }
        if (rank == 0)
            poll_until(again, round + 1); /* MARK poll */
        at(3 * round + 2, rank == 1 ? 60 : rank == 0 ? 70 : 0);
        if (rank == 1) {
            shmem_long_p(named, round + 1, 2); /* MARK write */
            shmem_quiet();
        }
        if (rank == 0) {
            shmem_long_p(other, round + 1, 2);
            shmem_quiet();
        }
        if (rank == 2)
            named_until(named, round + 1);
    }
    finish_shmem(3 * REPEATS, *flag + *again + *named);
    return 0;
}
