/* The third version: a dedicated master, and flags instead of barriers. A PE begins with a patch as
 * soon as that is there, and the master writes it as soon as it is done.
 */
#include "patches.h"

/* Patches that this PE has been given, and that each PE has sent to the master. */
static long given, sent[PES];

static void be_master(int workers)
{
    for (int step = 0; step < PATCHES + AHEAD * workers; step++) {
        int old = step - AHEAD * workers, pe = step % workers + 1;
        if (old >= 0) {
            int round = old / workers;
            shmem_long_wait_until(&sent[pe], SHMEM_CMP_GT, round); /* MARK sent */
            write_patch(old, &out[pe][round % AHEAD]);
        }
        if (step < PATCHES) {
            give(step, step / workers, pe);
            shmem_fence();
            shmem_long_p(&given, step / workers + 1, pe);
        }
    }
}

static void work(int workers)
{
    for (int number = rank - 1; number < PATCHES; number += workers) {
        int round = number / workers;
        shmem_long_wait_until(&given, SHMEM_CMP_GT, round); /* MARK given */
        process(number, round);
        shmem_fence();
        shmem_long_p(&sent[rank], round + 1, 0);
    }
}

static void process_image(void)
{
    if (rank == 0)
        be_master(size - 1);
    else
        work(size - 1);
}

int main(void)
{
    start_patches();
    process_image();
    finish_patches();
    return 0;
}
