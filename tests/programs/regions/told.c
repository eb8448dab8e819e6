/* Between two barriers, in each of 5 rounds: 40 regions of 0.2 ms on all ranks, and `heavy`, which computes 10 ms
 * longer on rank 1. With ASLEEP, rank 1 sleeps 10 ms longer in `sleeper` instead, and computes 1 ms
 * longer in `heavy`.
 */
#include "../common.h"
#include <stdio.h>
#include <time.h>
#include "laggard.h"

/* By the thread's own clock: nothing that others do makes it longer. Each look at it is half a microsecond in the
 * kernel, so there are few.
 */
NOINLINE static void compute(double ms)
{
    struct timespec begin, t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        for (volatile int turn = 0; turn < 100000; turn++)
            ;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while ((t.tv_sec - begin.tv_sec) * 1e3 + (t.tv_nsec - begin.tv_nsec) / 1e6 < ms);
}

static void rest(long ms)
{
    struct timespec t = {0, ms * 1000000};
    nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        MPI_Barrier(WORLD); /* MARK begin */
        for (int at = 0; at < 40; at++) {
            char name[32];
            snprintf(name, sizeof name, "small %d", at);
            laggard_region_begin(name);
            compute(0.2);
            laggard_region_end(name);
        }
#ifdef ASLEEP
        laggard_region_begin("sleeper");
        rest(rank == 1 ? 12 : 2);
        laggard_region_end("sleeper");
#endif
        laggard_region_begin("heavy");
#ifdef ASLEEP
        compute(rank == 1 ? 3 : 2);
#else
        compute(rank == 1 ? 12 : 2);
        (void)rest;
#endif
        laggard_region_end("heavy");
        MPI_Barrier(WORLD); /* MARK barrier */
    }
    finish(REPEATS, rank);
    return 0;
}
